// The state of a flow run in the hands of its owner: the machine, which leaves wait, run and are done, and how many.
import type { FlowEvent, Progress } from '../kernel/flow-run.ts'
import { jsonSize } from '../kernel/json-size.ts'
import type { ClaimedFlow } from './claim-flows.ts'
import { createFlowPools, type FlowPools } from './flow-pools.ts'
import { createMachine, type LeafOutcome, type LeafTask } from './machine.ts'
import type { PipelineEvent } from './pipeline/pipeline-event.ts'
import { plannedLeaves } from './planned-leaves.ts'

export interface FlowStanding {
  machine: ReturnType<typeof createMachine>
  /** May start, and nobody has looked at them yet. */
  fresh: LeafTask[]
  /** May start as soon as there is room, in this order. */
  ready: LeafTask[]
  /** May start as soon as a worker of their part takes them. */
  pools: FlowPools
  /** Leaves that are tried again after a while. */
  delayed: Map<string, LeafTask>
  /** The instant from which on a delayed leaf may start, by id and attempt. */
  dueAt: Map<string, number>
  /** The instant at which the time of a part is up, for parts that have a timeout. */
  deadlines: Map<string, number>
  /** Leaves under way, by id. */
  running: Map<string, LeafTask>
  /** The instant at which the journal was told of the beginning, by id and attempt. */
  begun: Map<string, number>
  counts: { completed: number; failed: number; skipped: number }
  /** The first leaves that failed for good. */
  failures: { name: string; error: string }[]
  planned: number
  /** The item counts of each pipeline, by its leaf. */
  items: Map<string, NonNullable<Progress['items']>>
  /** Nobody waits for these leaves any more: the journal is to be told, and those under way are to be stopped. */
  dropped: { task: LeafTask; as: 'failed' | 'skipped'; isTold: boolean }[]
  /** The leaves that the journal calls skipped already. */
  toldSkipped: Set<string>
  /** The results of the leaves in bytes of JSON: the owner holds all of them, and reads them anew after a takeover. */
  heldBytes: number
}

/** So many say enough. */
const MOST_FAILURES = 3

export type RecordedEvent = (FlowEvent | Extract<PipelineEvent, { kind: 'items.completed' }>) & { at: Date }

export const nameOf = ({ id, attempt }: Pick<LeafTask, 'id' | 'attempt'>): string => `${attempt} ${id}`

/** Rebuilds the standing from the outcomes in the journal. */
export function standingOf(flow: ClaimedFlow, events: readonly RecordedEvent[]): FlowStanding {
  const standing: FlowStanding = {
    machine: createMachine(flow.root, flow.input),
    fresh: [],
    ready: [],
    pools: createFlowPools(),
    delayed: new Map(),
    dueAt: new Map(),
    deadlines: new Map(),
    running: new Map(),
    begun: new Map(),
    counts: { completed: 0, failed: 0, skipped: 0 },
    failures: [],
    planned: plannedLeaves(flow.root),
    items: new Map(),
    dropped: [],
    toldSkipped: new Set(),
    heldBytes: 0,
  }
  const nowMs = Date.now()
  // The journal has the database's clock, timers have ours.
  const aheadMs = nowMs - flow.claimed_at.getTime()
  const ours = events.map((event) => ({ ...event, atMs: event.at.getTime() + aheadMs }))
  replay(standing, ours, nowMs - flow.age)
  return standing
}

/** Notes the timeouts that have begun to run, and the delays of these leaves. */
export function noteTimes({ machine, deadlines, dueAt }: FlowStanding, tasks: readonly LeafTask[], atMs: number): void {
  for (const { id, ms } of machine.armed()) deadlines.set(id, atMs + ms)
  for (const task of tasks) if (task.afterMs > 0) dueAt.set(nameOf(task), atMs + task.afterMs)
}

/** Applies the recorded events, in the order in which they happened. */
function replay(
  standing: FlowStanding,
  events: readonly (RecordedEvent & { atMs: number })[],
  startedAtMs: number,
): void {
  let nowMs = startedAtMs
  const open = new Map<string, LeafTask>()
  const pages = new Map<string, unknown[]>()
  const add = (tasks: readonly LeafTask[]): void => {
    for (const task of tasks) open.set(task.id, task)
    for (const { task } of standing.dropped) open.delete(task.id)
    noteTimes(standing, tasks, nowMs)
  }
  add(standing.machine.begin())
  for (const { kind, data, atMs } of events) {
    nowMs = atMs
    switch (kind) {
      case 'task.started':
        standing.begun.set(nameOf({ id: data.task_id, attempt: data.attempt }), atMs)
        break
      case 'task.completed':
      case 'task.failed': {
        const task = open.get(data.task_id)
        if (!task) noteTold(standing, data.task_id)
        if (task?.attempt !== data.attempt) break
        open.delete(data.task_id)
        const isElsewhere = kind === 'task.completed' && data.on_record
        const told = isElsewhere ? { ...data, result: pages.get(task.id) ?? [] } : data
        add(settle(standing, task, outcomeOf(kind, told)))
        break
      }
      case 'source.page':
        addTo(pages, data.task_id, data.items)
        break
      case 'items.completed':
        // Only the items of last stages are read.
        addTo(
          pages,
          data.task_id,
          data.results.map(([, value]) => value),
        )
        break
      case 'task.skipped':
        standing.toldSkipped.add(data.task_id)
        noteTold(standing, data.task_id)
        break
      case 'task.slow':
        add(slow(standing, data.task_id))
        break
      case 'node.expired':
        add(expire(standing, data.node))
        break
      case 'topology.switched':
        standing.pools.restore(data.pool, data.to)
        break
    }
  }
  standing.fresh = [...open.values()]
}

function addTo(lists: Map<string, unknown[]>, key: string, items: readonly unknown[]): void {
  const list = lists.get(key) ?? []
  for (const item of items) list.push(item)
  lists.set(key, list)
}

function noteTold({ dropped }: FlowStanding, taskId: string): void {
  for (const entry of dropped) if (entry.task.id === taskId) entry.isTold = true
}

function outcomeOf(
  kind: 'task.completed' | 'task.failed',
  data: { result?: unknown; error?: string; duration: number },
): LeafOutcome {
  const tookMs = data.duration
  return kind === 'task.completed'
    ? { status: 'completed', value: data.result, tookMs }
    : { status: 'failed', error: data.error ?? '', tookMs }
}

/** Answers the leaves that may start because this one has ended. */
export function settle(standing: FlowStanding, task: LeafTask, outcome: LeafOutcome): LeafTask[] {
  standing.running.delete(task.id)
  const next = standing.machine.settle(task.id, outcome)
  // A leaf that is tried again has not failed yet.
  const isRetried = next.some((each) => each.id === task.id)
  if (outcome.status === 'completed') {
    standing.counts.completed += weightOf(task)
    standing.heldBytes += jsonSize(outcome.value).bytes
  } else if (!isRetried) noteFailed(standing, task, outcome.error)
  noteDropped(standing, 'skipped')
  return next
}

/** Of a pipeline one stage counts as failed, and the others as skipped. */
function noteFailed({ counts, failures }: FlowStanding, task: LeafTask, error: string): void {
  counts.failed++
  counts.skipped += weightOf(task) - 1
  if (failures.length < MOST_FAILURES) failures.push({ name: task.nodeId ?? task.id, error })
}

/** Answers the leaves that may start because this one is still under way, although it was expected to be done. */
export function slow(standing: FlowStanding, taskId: string): LeafTask[] {
  const next = standing.machine.slow(taskId)
  noteDropped(standing, 'skipped')
  return next
}

/** Answers the leaves that may start because the time of this part is up. */
export function expire(standing: FlowStanding, node: string): LeafTask[] {
  const next = standing.machine.expire(node)
  noteDropped(standing, 'failed')
  return next
}

/** Dropped leaves neither wait nor run any more; the caller stops those that were under way. */
function noteDropped(standing: FlowStanding, as: 'failed' | 'skipped'): void {
  const dropped = new Map(standing.machine.dropped().map((task) => [task.id, task]))
  if (dropped.size === 0) return
  standing.fresh = standing.fresh.filter((task) => !dropped.has(task.id))
  standing.ready = standing.ready.filter((task) => !dropped.has(task.id))
  standing.pools.remove(new Set(dropped.keys()))
  for (const [id, task] of dropped) {
    standing.delayed.delete(id)
    standing.running.delete(id)
    // A leaf that never began has not failed.
    const kind = standing.begun.has(nameOf(task)) ? as : 'skipped'
    standing.counts[kind] += weightOf(task)
    standing.dropped.push({ task, as: kind, isTold: false })
  }
}

/** Leaves that are known and have not begun. */
export const unbegun = ({ fresh, ready, pools, delayed }: FlowStanding): LeafTask[] => [
  ...fresh,
  ...ready,
  ...pools.waiting(),
  ...delayed.values(),
]

export function progressOf(standing: FlowStanding, hasEnded: boolean): Progress {
  const { running, counts, planned, fresh, ready, pools, delayed } = standing
  const waiting = fresh.length + ready.length + pools.waitingCount() + delayed.size
  const underWay = [...running.values()].reduce((all, task) => all + weightOf(task), 0)
  const settled = counts.completed + counts.failed + counts.skipped
  const total = Math.max(planned, waiting + underWay + settled)
  const rest = total - underWay - settled
  return {
    total,
    pending: hasEnded ? 0 : rest,
    running: underWay,
    completed: counts.completed,
    failed: counts.failed,
    skipped: counts.skipped + (hasEnded ? rest : 0),
    ...(standing.items.size > 0 ? { items: sumOf([...standing.items.values()]) } : {}),
  }
}

/** A pipeline counts as its stages. */
const weightOf = (task: LeafTask): number => task.stream?.node.stages.length ?? 1

function sumOf(all: readonly NonNullable<Progress['items']>[]): NonNullable<Progress['items']> {
  const sum = { total: 0, completed: 0, failed: 0, skipped: 0 }
  for (const each of all) {
    for (const name of ['total', 'completed', 'failed', 'skipped'] as const) sum[name] += each[name]
  }
  return sum
}
