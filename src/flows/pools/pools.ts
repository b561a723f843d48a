// Parts of a flow that have workers of their own. The leaves of a part are dealt to its workers, and taken as the
// topology says. This state is lost with the process; the next owner rebuilds it from the journal and the run's row.
import type { Topology } from '../../kernel/flow.ts'
import type { FlowEvent } from '../../kernel/flow-run.ts'
import type { FlowLeaf } from '../machine/flow-leaf.ts'
import type { PoolSettings } from '../machine/pattern.ts'
import { createWorkPool, type WorkPool } from './work-pool.ts'

export type PoolOf = NonNullable<FlowLeaf['pool']>

interface Taken {
  leaf: FlowLeaf
  worker: string
  handover: { from: string; to: string } | null
}

type SwitchedTopology = Extract<FlowEvent, { kind: 'topology.switched' }>['data']

export interface FlowPools {
  /** Adds a leaf that may start as soon as a worker takes it. */
  add(pool: PoolOf, leaf: FlowLeaf): void
  /** At most `room` leaves that are to be started now. */
  take(room: number): Taken[]
  done(leaf: FlowLeaf, durationMs: number, ok: boolean): void
  /** Removes dropped leaves from the waiting ones. */
  remove(ids: ReadonlySet<string>): void
  waiting(): FlowLeaf[]
  waitingCount(): number
  /** Somebody wants this topology. A new wish also switches parts under way; an old wish holds for later parts only. */
  want(topology: Topology, isNew: boolean): void
  /** The switches that somebody asked for, since the last call. */
  switched(): SwitchedTopology[]
  /** Switches overloaded pools and returns those switches. */
  rebalance(): SwitchedTopology[]
  /** Gives the pool the topology that it had when the flow was taken over. */
  restore(pool: string, topology: Topology): void
  /** Reads from the journal which worker was at which leaf when the flow was taken over. */
  recall(events: readonly FlowEvent[]): void
  /** Notes that the leaf went on during the takeover: its worker is not free. */
  resume(leaf: FlowLeaf): void
}

interface Entry {
  id: string
  settings: PoolSettings
  pool: WorkPool<FlowLeaf>
  /** Leaves that have arrived and are not dealt. They are dealt together, because each deal looks at all workers. */
  arrived: FlowLeaf[]
}

const BY_HAND = { reason: 'Somebody asked for this topology.', considered: null }
const now = (): number => performance.timeOrigin + performance.now()

export function createFlowPools(): FlowPools {
  const entries = new Map<string, Entry>()
  /** The pools with waiting leaves, in the order of their turns. */
  const busy = new Set<Entry>()
  const restored = new Map<string, Topology>()
  const recalled = new Map<string, string>()
  const workerOf = new Map<string, { entry: Entry; worker: string }>()
  const waiting = new Map<string, FlowLeaf>()
  /** The pools that get another topology as soon as their arrived leaves are dealt. */
  const due = new Map<Entry, Topology>()
  let wanted: Topology | null = null
  const told: SwitchedTopology[] = []

  return {
    add: (pool, leaf) => {
      const entry = entryOf(pool)
      waiting.set(leaf.id, leaf)
      entry.arrived.push(leaf)
      busy.add(entry)
    },
    take: (room) => {
      dealArrived()
      const taken: Taken[] = []
      for (const entry of [...busy]) {
        const own = takeFrom(entry, room - taken.length, ({ id }) => waiting.delete(id))
        for (const { leaf, worker } of own) workerOf.set(leaf.id, { entry, worker })
        taken.push(...own)
        // If there is no room for all leaves, the other pools come first the next time.
        busy.delete(entry)
        if (entry.pool.waiting() > 0) busy.add(entry)
        if (taken.length >= room) break
      }
      return taken
    },
    done: (leaf, durationMs, ok) => {
      const at = workerOf.get(leaf.id)
      workerOf.delete(leaf.id)
      at?.entry.pool.done(at.worker, leaf.id, durationMs, ok)
    },
    remove: (ids) => ids.forEach((id) => void waiting.delete(id)),
    waiting: () => [...waiting.values()],
    waitingCount: () => waiting.size,
    want: (topology, isNew) => {
      wanted = topology
      if (!isNew) return
      for (const entry of entries.values()) if (entry.settings.possible.includes(topology)) due.set(entry, topology)
      for (const [id, from] of restored) {
        // No leaf of this pool was dealt in this process yet, and only its node knows the edges of a custom topology.
        if (entries.has(id) || from === topology || topology === 'custom') continue
        restored.set(id, topology)
        told.push({ pool: id, from, to: topology, ...BY_HAND, moved: 0, switch_ms: 0 })
      }
    },
    switched: () => {
      dealArrived()
      return told.splice(0)
    },
    rebalance: () => {
      dealArrived()
      return [...busy].flatMap((entry) => {
        if (!entry.settings.maySwitch) return []
        const overload = entry.pool.check()
        return overload?.to ? switchTo(entry, overload.to, overload) : []
      })
    },
    restore: (pool, topology) => void restored.set(pool, topology),
    recall: (events) => {
      for (const { kind, data } of events) {
        if (kind !== 'task.started' || data.worker === undefined) continue
        recalled.set(`${data.attempt} ${data.task_id}`, data.worker)
      }
    },
    resume: (leaf) => {
      const worker = recalled.get(`${leaf.attempt} ${leaf.id}`)
      if (!leaf.pool || worker === undefined) return
      const entry = entryOf(leaf.pool)
      if (entry.pool.resume(worker, leaf)) workerOf.set(leaf.id, { entry, worker })
    },
  }

  function entryOf({ id, settings: read }: PoolOf): Entry {
    const known = entries.get(id)
    if (known) return known
    const own = restored.get(id)
    const settings = read()
    const pool = createWorkPool<FlowLeaf>({ ...settings, topology: own ?? settings.topology, now })
    const entry: Entry = { id, settings, pool, arrived: [] }
    entries.set(id, entry)
    // A restored topology was journalled after the wish, or the wish would count as new.
    if (own === undefined && wanted !== null && settings.possible.includes(wanted)) due.set(entry, wanted)
    return entry
  }

  function dealArrived(): void {
    for (const { arrived, pool } of busy) if (arrived.length > 0) pool.add(arrived.splice(0))
    for (const [entry, topology] of due) told.push(...switchTo(entry, topology, BY_HAND))
    due.clear()
  }
}

/** Takes at most `room` leaves. `claim` is false for a leaf that was removed. */
function takeFrom({ pool }: Entry, room: number, claim: (leaf: FlowLeaf) => boolean): Taken[] {
  const taken: Taken[] = []
  for (const worker of pool.idle()) {
    if (taken.length >= room || pool.waiting() === 0) return taken
    for (let next = pool.next(worker); next; next = pool.next(worker)) {
      const { task: leaf, handover } = next
      if (claim(leaf)) {
        taken.push({ leaf, worker, handover })
        break
      }
      pool.done(worker, leaf.id, 0, false)
    }
  }
  return taken
}

function switchTo(
  { id, pool }: Entry,
  to: Topology,
  { reason, considered }: Pick<SwitchedTopology, 'reason' | 'considered'>,
): SwitchedTopology[] {
  const result = pool.switchTo(to)
  if (!result) return []
  const { from, moved, switchMs } = result
  return [{ pool: id, from, to, reason, considered, moved, switch_ms: Math.ceil(switchMs) }]
}
