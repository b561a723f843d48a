// Parts of a flow that have workers of their own: their leaves are dealt to these workers, and taken as the
// topology says. This state is lost with the process; the next owner rebuilds it from the journal and the run's row.
import type { Adaptive, ForkJoin, MapReduce, Topology } from '../kernel/flow.ts'
import type { FlowEvent } from '../kernel/flow-run.ts'
import type { LeafTask } from './machine.ts'
import { workerNames } from './validate.ts'
import { createWorkPool, type WorkPool } from './work-pool.ts'

export type PoolNode = Adaptive | ForkJoin | MapReduce

export interface PoolOf {
  id: string
  node: PoolNode
}

export interface Taken {
  task: LeafTask
  worker: string
  handover: { from: string; to: string } | null
}

export type SwitchedTopology = Extract<FlowEvent, { kind: 'topology.switched' }>['data']

export interface FlowPools {
  /** The task may start as soon as a worker takes it. */
  add(pool: PoolOf, task: LeafTask): void
  /** At most `room` tasks that are to be started now. */
  take(room: number): Taken[]
  done(task: LeafTask, durationMs: number, ok: boolean): void
  /** Removes dropped tasks from those that wait. */
  remove(ids: ReadonlySet<string>): void
  /** The tasks that wait for a worker. */
  waiting(): LeafTask[]
  waitingCount(): number
  /** Somebody wants this topology. A new wish also switches parts under way; an old one holds for later parts. */
  want(topology: Topology, isNew: boolean): void
  /** The switches that somebody asked for, since the last call. */
  switched(): SwitchedTopology[]
  /** Switches overloaded pools and answers those switches. */
  rebalance(): SwitchedTopology[]
  /** The pool has the topology that it had when the flow was taken over. */
  restore(pool: string, topology: Topology): void
  /** Reads from the journal which worker was at which leaf when the flow was taken over. */
  recall(events: readonly FlowEvent[]): void
  /** The leaf went on during the takeover: its worker is not free. */
  resume(task: LeafTask): void
}

interface Entry {
  id: string
  node: PoolNode
  pool: WorkPool<LeafTask>
  /** Arrived tasks are dealt together before a worker takes one: dealt one by one, each would look at all workers. */
  arrived: LeafTask[]
}

const ASKED_FOR = 'It was asked for.'
const now = (): number => performance.timeOrigin + performance.now()

export function createFlowPools(): FlowPools {
  const entries = new Map<string, Entry>()
  /** The pools with waiting leaves, in the order of their turns. */
  const busy = new Set<Entry>()
  const restored = new Map<string, Topology>()
  const recalled = new Map<string, string>()
  const workerOf = new Map<string, { entry: Entry; worker: string }>()
  const waiting = new Map<string, LeafTask>()
  /** The pools that get another topology as soon as their arrived leaves are dealt. */
  const due = new Map<Entry, Topology>()
  let wanted: Topology | null = null
  let told: SwitchedTopology[] = []

  return {
    add: (pool, task) => {
      const entry = entryOf(pool)
      waiting.set(task.id, task)
      entry.arrived.push(task)
      busy.add(entry)
    },
    take: (room) => {
      dealArrived()
      const taken: Taken[] = []
      for (const entry of [...busy]) {
        takeFrom(entry, room, taken)
        // When there is no room for all, the other pools come first the next time.
        busy.delete(entry)
        if (entry.pool.waiting() > 0) busy.add(entry)
        if (taken.length >= room) break
      }
      return taken
    },
    done: (task, durationMs, ok) => {
      const at = workerOf.get(task.id)
      workerOf.delete(task.id)
      at?.entry.pool.done(at.worker, task.id, durationMs, ok)
    },
    remove: (ids) => {
      for (const id of ids) waiting.delete(id)
    },
    waiting: () => [...waiting.values()],
    waitingCount: () => waiting.size,
    want: (topology, isNew) => {
      wanted = topology
      if (!isNew) return
      for (const entry of entries.values()) if (isPossible(entry.node, topology)) due.set(entry, topology)
      for (const [id, from] of restored) {
        // Nothing of this pool has been dealt in this process yet; only its node knows the edges of a custom topology.
        if (entries.has(id) || from === topology || topology === 'custom') continue
        restored.set(id, topology)
        told.push({ pool: id, from, to: topology, reason: ASKED_FOR, moved: 0, switch_ms: 0 })
      }
    },
    switched: () => {
      dealArrived()
      const taken = told
      told = []
      return taken
    },
    rebalance: () => {
      dealArrived()
      return [...busy].flatMap((entry) => {
        if (entry.node.type !== 'adaptive' || !entry.node.switch) return []
        const overload = entry.pool.check()
        return overload?.to ? switchTo(entry, overload.to, overload.reason) : []
      })
    },
    restore: (pool, topology) => void restored.set(pool, topology),
    recall: (events) => {
      for (const { kind, data } of events) {
        if (kind === 'task.started' && data.worker !== undefined) {
          recalled.set(`${data.attempt} ${data.task_id}`, data.worker)
        }
      }
    },
    resume: (task) => {
      const worker = recalled.get(`${task.attempt} ${task.id}`)
      if (!task.pool || worker === undefined) return
      const entry = entryOf(task.pool)
      if (entry.pool.resume(worker, task)) workerOf.set(task.id, { entry, worker })
    },
  }

  function entryOf({ id, node }: PoolOf): Entry {
    const known = entries.get(id)
    if (known) return known
    const own = restored.get(id)
    const pool = createWorkPool<LeafTask>({ ...settingsOf(node, own), now })
    const entry: Entry = { id, node, pool, arrived: [] }
    entries.set(id, entry)
    // A restored topology was journalled after the wish, or the wish would be new.
    if (own === undefined && wanted !== null && isPossible(node, wanted)) due.set(entry, wanted)
    return entry
  }

  function dealArrived(): void {
    for (const { arrived, pool } of busy) if (arrived.length > 0) pool.add(arrived.splice(0))
    for (const [entry, topology] of due) told.push(...switchTo(entry, topology, ASKED_FOR))
    due.clear()
  }

  function takeFrom(entry: Entry, room: number, taken: Taken[]): void {
    const { pool } = entry
    for (const worker of pool.idle()) {
      if (taken.length >= room || pool.waiting() === 0) return
      for (let next = pool.next(worker); next; next = pool.next(worker)) {
        const { task, handover } = next
        if (!waiting.delete(task.id)) {
          // The task was removed: nobody waits for it any more.
          pool.done(worker, task.id, 0, false)
          continue
        }
        workerOf.set(task.id, { entry, worker })
        taken.push({ task, worker, handover })
        break
      }
    }
  }
}

function switchTo({ id, pool }: Entry, to: Topology, reason: string): SwitchedTopology[] {
  const result = pool.switchTo(to, reason)
  if (!result) return []
  const { from, moved, switchMs } = result
  return [{ pool: id, from, to, reason, moved, switch_ms: Math.ceil(switchMs) }]
}

const isPossible = (node: PoolNode, topology: Topology): boolean =>
  node.type === 'adaptive' && (topology !== 'custom' || node.edges !== undefined)

function settingsOf(node: PoolNode, topology: Topology | undefined) {
  switch (node.type) {
    case 'adaptive':
      return {
        workers: workerNames(node.workers),
        topology: topology ?? node.topology ?? 'hierarchical',
        ...(node.edges ? { edges: node.edges } : {}),
        ...(node.overload ? { overload: { queueLength: node.overload.queue_length } } : {}),
        maySwitch: node.switch,
      }
    case 'fork_join':
      return {
        workers: workerNames(node.workers),
        topology: 'mesh' as const,
        stealing: node.stealing,
        maySwitch: false,
      }
    case 'map_reduce':
      return { workers: workerNames(node.workers), topology: 'star' as const, maySwitch: false }
  }
}
