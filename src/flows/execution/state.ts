// The state of a flow run in the hands of its owner: the machine, and the leaves that wait, run and are done.
import type { FlowEvent, FlowProgress } from '../../kernel/flow-run.ts'
import { jsonSize } from '../../kernel/json-size.ts'
import { plannedLeaves } from '../definition/planned-leaves.ts'
import { type FlowLeaf, hasAgentStage } from '../machine/flow-leaf.ts'
import { unitOf } from '../machine/leaf-id.ts'
import { createMachine, type LeafOutcome } from '../machine/machine.ts'
import type { Patterns } from '../machine/pattern.ts'
import type { PipelineEvent } from '../pipeline/pipeline-event.ts'
import { createFlowPools, type FlowPools } from '../pools/pools.ts'
import type { ClaimedFlow } from './claim.ts'

export interface FlowState {
  machine: ReturnType<typeof createMachine>
  /** Leaves that may start and that are not sorted into the lists below yet. */
  fresh: FlowLeaf[]
  /** Leaves that may start as soon as there is room, in this order. */
  ready: FlowLeaf[]
  /** Leaves that may start as soon as a worker of their part takes them. */
  pools: FlowPools
  /** Leaves that are tried again after a while. */
  delayed: Map<string, FlowLeaf>
  /** The instant from which on a delayed leaf may start, by id and attempt. */
  dueAt: Map<string, number>
  /** The instant at which the time of a part is up, for parts that have a timeout. */
  deadlines: Map<string, number>
  /** Leaves under way, by id. */
  running: Map<string, FlowLeaf>
  /** The instant at which the beginning of a leaf was journalled, by id and attempt. */
  begun: Map<string, number>
  /** The time that a running leaf has waited: for a person, a provider or a tool. By id and attempt. */
  waitedMs: Map<string, number>
  counts: { completed: number; failed: number; skipped: number }
  /** The first leaves that failed for good. */
  failures: { name: string; error: string }[]
  planned: number
  /** The item counts of each pipeline, by its leaf. */
  items: Map<string, NonNullable<FlowProgress['items']>>
  /** Leaves whose results nobody waits for. They are to be journalled, and stopped if they are under way. */
  dropped: { leaf: FlowLeaf; as: 'failed' | 'skipped'; isTold: boolean }[]
  /** The outcomes that leaves of the same work may take over, by unit. */
  finished: Map<string, FinishedLeaf>
  /** The units that a flow run before this one found slow: what was decided about them holds here, too. */
  foundSlow: Set<string>
  /** True if finished leaves of this flow run may be wanted again. */
  keepsFinished: boolean
  /** The leaves that the journal has as skipped already. */
  toldSkipped: Set<string>
  /** The results of the leaves in bytes of JSON: the owner holds all of them, and reads them anew after a takeover. */
  heldBytes: number
}

export interface FinishedLeaf {
  value: unknown
  tookMs: number
  /** True if the value is that of a source, which is journalled in pages. */
  isPaged: boolean
}

/** The error of a flow run names this many failures at most. */
const MOST_FAILURES = 3

export type RecordedEvent = (FlowEvent | Extract<PipelineEvent, { kind: 'items.completed' }>) & { at: Date }

/** The key of one attempt at a leaf. */
export const attemptKey = ({ id, attempt }: Pick<FlowLeaf, 'id' | 'attempt'>): string => `${attempt} ${id}`

/** Rebuilds the state from the outcomes in the journal. */
export function stateOf(
  flow: ClaimedFlow,
  events: readonly RecordedEvent[],
  patterns: Patterns,
  { finished, foundSlow, keepsFinished }: Pick<FlowState, 'finished' | 'foundSlow' | 'keepsFinished'> = {
    finished: new Map(),
    foundSlow: new Set(),
    keepsFinished: false,
  },
): FlowState {
  const state: FlowState = {
    machine: createMachine(flow.root, flow.input, patterns),
    fresh: [],
    ready: [],
    pools: createFlowPools(),
    delayed: new Map(),
    dueAt: new Map(),
    deadlines: new Map(),
    running: new Map(),
    begun: new Map(),
    waitedMs: new Map(),
    counts: { completed: 0, failed: 0, skipped: 0 },
    failures: [],
    planned: plannedLeaves(flow.root, patterns),
    items: new Map(),
    dropped: [],
    toldSkipped: new Set(),
    finished,
    foundSlow,
    keepsFinished,
    heldBytes: 0,
  }
  const nowMs = Date.now()
  // The journal has the times of the database's clock; timers go by the clock of this process.
  const aheadMs = nowMs - flow.claimed_at.getTime()
  const ours = events.map((event) => ({ ...event, atMs: event.at.getTime() + aheadMs }))
  replay(state, ours, { startedAtMs: nowMs - flow.age, nowMs })
  return state
}

/** Notes the timeouts that have begun to run, and the delays of these leaves. */
export function noteTimes({ machine, deadlines, dueAt }: FlowState, leaves: readonly FlowLeaf[], atMs: number): void {
  for (const { id, ms } of machine.armed()) deadlines.set(id, atMs + ms)
  for (const leaf of leaves) if (leaf.afterMs > 0) dueAt.set(attemptKey(leaf), atMs + leaf.afterMs)
}

function replay(
  state: FlowState,
  events: readonly (RecordedEvent & { atMs: number })[],
  until: { startedAtMs: number; nowMs: number },
): void {
  let nowMs = until.startedAtMs
  const open = new Map<string, FlowLeaf>()
  /** The runs and calls that wait, by leaf. */
  const waits = new Map<string, Set<string>>()
  const pages = new Map<string, unknown[]>()
  const add = (leaves: readonly FlowLeaf[]): void => {
    for (const leaf of leaves) open.set(leaf.id, leaf)
    for (const { leaf } of state.dropped) open.delete(leaf.id)
    noteTimes(state, leaves, nowMs)
  }
  add(state.machine.begin())
  for (const { kind, data, atMs } of events) {
    passTime(state, { open, waits }, atMs - nowMs)
    nowMs = atMs
    switch (kind) {
      case 'task.waiting':
        waits.set(data.task_id, (waits.get(data.task_id) ?? new Set()).add(data.run_id))
        break
      case 'task.continued':
        waits.get(data.task_id)?.delete(data.run_id)
        break
      case 'task.started':
        state.begun.set(attemptKey({ id: data.task_id, attempt: data.attempt }), atMs)
        break
      case 'task.completed':
      case 'task.failed': {
        const leaf = open.get(data.task_id)
        if (!leaf) noteTold(state, data.task_id)
        if (leaf?.attempt !== data.attempt) break
        open.delete(data.task_id)
        waits.delete(data.task_id)
        const isElsewhere = kind === 'task.completed' && data.on_record
        const told = isElsewhere ? { ...data, result: pages.get(leaf.id) ?? [] } : data
        add(settle(state, leaf, outcomeOf(kind, told)))
        break
      }
      case 'source.page':
        addTo(pages, data.task_id, data.items)
        break
      case 'items.completed':
        // Only the items of last stages are read back.
        addTo(
          pages,
          data.task_id,
          data.results.map(([, value]) => value),
        )
        break
      case 'task.skipped':
        state.toldSkipped.add(data.task_id)
        noteTold(state, data.task_id)
        break
      case 'task.slow':
        add(slow(state, data.task_id))
        break
      case 'node.expired':
        add(expire(state, data.node))
        break
      case 'topology.switched':
        state.pools.restore(data.pool, data.to)
        break
    }
  }
  passTime(state, { open, waits }, until.nowMs - nowMs)
  state.fresh = [...open.values()]
}

/** No time passes for a leaf that waits, nor for a part in which all running leaves wait. */
function passTime(
  state: FlowState,
  { open, waits }: { open: ReadonlyMap<string, FlowLeaf>; waits: ReadonlyMap<string, ReadonlySet<string>> },
  ms: number,
): void {
  const waiting = new Set([...waits].flatMap(([id, runs]) => (runs.size > 0 && open.has(id) ? [id] : [])))
  if (waiting.size === 0 || ms <= 0) return
  const { machine, begun, deadlines, waitedMs } = state
  const underWay = [...open.values()].filter((leaf) => begun.has(attemptKey(leaf)))
  for (const leaf of underWay) {
    const key = attemptKey(leaf)
    if (waiting.has(leaf.id)) waitedMs.set(key, (waitedMs.get(key) ?? 0) + ms)
  }
  for (const [node, atMs] of deadlines) {
    const within = underWay.filter((leaf) => machine.isWithin(leaf.id, node))
    if (within.length > 0 && within.every(({ id }) => waiting.has(id))) deadlines.set(node, atMs + ms)
  }
}

function addTo(lists: Map<string, unknown[]>, key: string, items: readonly unknown[]): void {
  const list = lists.get(key) ?? []
  for (const item of items) list.push(item)
  lists.set(key, list)
}

function noteTold({ dropped }: FlowState, leafId: string): void {
  for (const entry of dropped) if (entry.leaf.id === leafId) entry.isTold = true
}

function outcomeOf(
  kind: 'task.completed' | 'task.failed',
  data: { result?: unknown; error?: string; made?: string; duration: number },
): LeafOutcome {
  const tookMs = data.duration
  return kind === 'task.completed'
    ? { status: 'completed', value: data.result, tookMs }
    : { status: 'failed', error: data.error ?? '', tookMs, ...(data.made === undefined ? {} : { made: data.made }) }
}

/** Returns the leaves that may start because this leaf has ended. `bytes` is the size of its result, if it is known. */
export function settle(state: FlowState, leaf: FlowLeaf, outcome: LeafOutcome, bytes?: number): FlowLeaf[] {
  state.running.delete(leaf.id)
  const next = state.machine.settle(leaf.id, outcome)
  // A leaf that is tried again has not failed yet.
  const isRetried = next.some((each) => each.id === leaf.id)
  if (outcome.status === 'completed') {
    state.counts.completed += weightOf(leaf)
    state.heldBytes += bytes ?? jsonSize(outcome.value).bytes
    if (state.keepsFinished) noteFinished(state, leaf, outcome)
  } else {
    if (!isRetried) noteFailed(state, leaf, outcome.error)
    // Runs of other stages may be under way. A pipeline that is tried again has another id.
    if (hasAgentStage(leaf)) state.dropped.push({ leaf, as: 'failed', isTold: true })
  }
  noteDropped(state, 'skipped')
  return next
}

function noteFinished(
  { finished }: FlowState,
  leaf: FlowLeaf,
  { value, tookMs = 0 }: Extract<LeafOutcome, { status: 'completed' }>,
): void {
  finished.set(unitOf(leaf.id), { value, tookMs, isPaged: leaf.isSource })
}

/** One stage of a failed pipeline counts as failed, and the others as skipped. */
function noteFailed({ counts, failures }: FlowState, leaf: FlowLeaf, error: string): void {
  counts.failed++
  counts.skipped += weightOf(leaf) - 1
  if (failures.length < MOST_FAILURES) failures.push({ name: leaf.nodeId ?? leaf.id, error })
}

/** Returns the leaves that may start because this leaf is still under way, although it was expected to be done. */
export function slow(state: FlowState, leafId: string): FlowLeaf[] {
  const next = state.machine.slow(leafId)
  noteDropped(state, 'skipped')
  return next
}

/** Returns the leaves that may start because the time of this part is up. */
export function expire(state: FlowState, node: string): FlowLeaf[] {
  const next = state.machine.expire(node)
  noteDropped(state, 'failed')
  return next
}

/** Removes dropped leaves from all lists; the caller stops the leaves that were under way. */
function noteDropped(state: FlowState, as: 'failed' | 'skipped'): void {
  const dropped = new Map(state.machine.dropped().map((leaf) => [leaf.id, leaf]))
  if (dropped.size === 0) return
  state.fresh = state.fresh.filter((leaf) => !dropped.has(leaf.id))
  state.ready = state.ready.filter((leaf) => !dropped.has(leaf.id))
  state.pools.remove(new Set(dropped.keys()))
  for (const [id, leaf] of dropped) {
    state.delayed.delete(id)
    state.running.delete(id)
    // A leaf that never began has not failed.
    const kind = state.begun.has(attemptKey(leaf)) ? as : 'skipped'
    state.counts[kind] += weightOf(leaf)
    state.dropped.push({ leaf, as: kind, isTold: false })
  }
}

export const unbegun = ({ fresh, ready, pools, delayed }: FlowState): FlowLeaf[] => [
  ...fresh,
  ...ready,
  ...pools.waiting(),
  ...delayed.values(),
]

export function progressOf(state: FlowState, hasEnded: boolean): FlowProgress {
  const { machine, running, counts, planned, fresh, ready, pools, delayed } = state
  const waiting = fresh.length + ready.length + pools.waitingCount() + delayed.size
  const underWay = [...running.values()].reduce((all, leaf) => all + weightOf(leaf), 0)
  const settled = counts.completed + counts.failed + counts.skipped
  const total = Math.max(planned, waiting + underWay + settled + machine.toCome())
  const rest = total - underWay - settled
  return {
    total,
    pending: hasEnded ? 0 : rest,
    running: underWay,
    completed: counts.completed,
    failed: counts.failed,
    skipped: counts.skipped + (hasEnded ? rest : 0),
    ...(state.items.size > 0 ? { items: sumOf([...state.items.values()]) } : {}),
  }
}

/** A leaf with stages counts as its number of stages. */
const weightOf = (leaf: FlowLeaf): number => leaf.stream?.stages.length ?? 1

function sumOf(all: readonly NonNullable<FlowProgress['items']>[]): NonNullable<FlowProgress['items']> {
  const sum = { total: 0, completed: 0, failed: 0, skipped: 0 }
  for (const each of all) {
    for (const name of ['total', 'completed', 'failed', 'skipped'] as const) sum[name] += each[name]
  }
  return sum
}
