// Tells from the journal alone the topologies of a flow run's adaptive parts and their times, the handovers between
// workers, and the measures of the work.
import type { FlowNode, Topology } from '../../kernel/flow.ts'
import type { FlowEvent } from '../../kernel/flow-run.ts'
import { createPlaces, type Place } from '../machine/leaf-places.ts'
import type { NodeTopology, Patterns } from '../machine/pattern.ts'
import { type MeasuresByTopology, measuresOf, type TopologyTotals, totalsOf } from '../pools/measures.ts'

type Switched = Extract<FlowEvent, { kind: 'topology.switched' }>['data']

/** The fields of an event that are read here; inputs and results of tasks are not. */
export interface TopologyEvent {
  kind: string
  at: Date
  data: Partial<Switched> & {
    task_id?: string
    attempt?: number
    duration?: number
    handover?: { from: string; to: string }
  }
}

interface TopologySwitch extends Switched {
  at: Date
}

interface TopologyHandover {
  task_id: string
  from: string
  to: string
  at: Date
  /** The adaptive part of the task; null if there is none, as for a piece of a problem. */
  pool: string | null
}

/** One life of an adaptive part: each iteration of a loop is a life. */
interface TopologyPart {
  pool: string
  node: NodeTopology
  workload: string
  current: Topology
}

export interface TopologyRecord {
  parts: TopologyPart[]
  history: TopologySwitch[]
  handovers: TopologyHandover[]
  byTopology: MeasuresByTopology
  byWorkload: { workload: string; pool: string; byTopology: MeasuresByTopology }[]
}

interface Part extends TopologyPart {
  begunAt: Date
  /** The instant since which the topology is in force, or up to which its time is counted. */
  sinceAt: Date
  lastAt: Date
  /** The number of tasks that have not ended. */
  open: number
  totals: Map<Topology, TopologyTotals>
  /** The instant from which on a failed task may be taken again. */
  againAt: Map<string, number>
  takenAt: Map<string, Date>
}

/** `until`: the moment of the request, for parts that have not ended; null if the run has ended. */
export function recordTopologies(
  root: FlowNode,
  events: Iterable<TopologyEvent>,
  until: Date | null,
  patterns: Patterns,
): TopologyRecord {
  const places = createPlaces(root, patterns)
  const parts = new Map<string, Part>()
  const none = new Set<string>()
  const known = new Map<string, Place>()
  const history: TopologySwitch[] = []
  const handovers: TopologyHandover[] = []

  for (const { kind, data, at } of events) {
    if (kind === 'topology.switched') {
      const change = { ...(data as Switched), at } // written by the owner of the run
      history.push(change)
      const part = partOf(change.pool, at)
      if (part) switchTo(part, change.to, at)
      continue
    }
    const { task_id: id } = data
    if (id === undefined) continue
    const place = known.get(id) ?? places.placeOf(id)
    known.set(id, place)
    const part = place.parentId === null ? null : partOf(place.parentId, at)
    if (kind === 'task.started' && data.handover) {
      const { from, to } = data.handover
      handovers.push({ task_id: id, from, to, at, pool: part?.pool ?? null })
    }
    if (part) tell(part, { kind, at, data }, id, place)
  }
  for (const part of parts.values()) countTime(part, part.open > 0 && until ? until : part.lastAt)
  const all = [...parts.values()]
  return {
    parts: all.map(({ pool, node, workload, current }) => ({ pool, node, workload, current })),
    history,
    handovers,
    byTopology: sumOfParts(all),
    byWorkload: [...Map.groupBy(all, (part) => part.workload)].flatMap(([workload, some]) =>
      some[0] ? [{ workload, pool: some[0].pool, byTopology: sumOfParts(some) }] : [],
    ),
  }

  function partOf(pool: string, begunAt: Date): Part | null {
    const known = parts.get(pool)
    if (known) return known
    if (none.has(pool)) return null
    const { node: at } = places.placeOf(pool)
    const node = at ? patterns.of(at)?.topology?.(at) : undefined
    if (!node) {
      none.add(pool)
      return null
    }
    const part: Part = {
      pool,
      node,
      workload: node.workload,
      current: node.initial,
      open: node.tasks.length,
      begunAt,
      sinceAt: begunAt,
      lastAt: begunAt,
      totals: new Map(),
      againAt: new Map(),
      takenAt: new Map(),
    }
    parts.set(pool, part)
    return part
  }
}

function switchTo(part: Part, to: Topology, at: Date): void {
  countTime(part, at)
  part.current = to
}

function countTime(part: Part, at: Date): void {
  totalsOf(part.totals, part.current).workedMs += Math.max(0, at.getTime() - part.sinceAt.getTime())
  part.sinceAt = at
}

function tell(part: Part, { kind, at, data }: TopologyEvent, id: string, { kind: doneBy, way }: Place): void {
  if (kind === 'task.started') {
    part.takenAt.set(id, at)
    return
  }
  part.lastAt = at
  const takenAt = part.takenAt.get(id) ?? at
  const retry = part.node.tasks[Number(way.at(-1)?.key)]?.retry
  if (kind === 'task.failed' && (data.attempt ?? 1) <= (retry?.max_retries ?? 0)) {
    part.againAt.set(id, at.getTime() + (retry?.backoff ?? 0))
    return
  }
  part.open--
  // A quick failure is no speed.
  if (kind !== 'task.completed') return
  const since = part.againAt.get(id) ?? part.begunAt.getTime()
  const total = totalsOf(part.totals, part.current)
  total.tasks++
  total.waitMs += Math.max(0, takenAt.getTime() - since)
  // An agent works on its own, so its time is taken from the events. The caller of a function measures its time.
  total.durationMs += doneBy === 'agent' ? at.getTime() - takenAt.getTime() : (data.duration ?? 0)
}

/** Parts that ran at the same time count with the sum of their times. */
function sumOfParts(parts: readonly Part[]): MeasuresByTopology {
  const all = new Map<Topology, TopologyTotals>()
  for (const { totals } of parts) {
    for (const [topology, one] of totals) {
      const sum = totalsOf(all, topology)
      for (const name of ['tasks', 'waitMs', 'durationMs', 'workedMs'] as const) sum[name] += one[name]
    }
  }
  // A topology under which nothing was done was not measured.
  for (const [topology, { tasks }] of all) if (tasks === 0) all.delete(topology)
  const measures = measuresOf(all)
  for (const one of Object.values(measures)) {
    one.throughput = Number(one.throughput.toPrecision(4))
    one.wait = Math.round(one.wait)
    one.duration = Math.round(one.duration)
  }
  return measures
}
