// Where a flow run stands, in the hands of its owner: the machine, which leaves wait, run and are done, and how many.
import type { FlowEvent, Progress } from '../kernel/flow-run.ts'
import type { ClaimedFlow } from './claim-flows.ts'
import { createFlowPools, type FlowPools } from './flow-pools.ts'
import { createMachine, type LeafOutcome, type LeafTask } from './machine.ts'
import { plannedLeaves } from './planned-leaves.ts'

export interface FlowStanding {
  machine: ReturnType<typeof createMachine>
  /** May start, and nobody has looked at them yet. */
  fresh: LeafTask[]
  /** May start as soon as there is room, in this order. */
  ready: LeafTask[]
  /** May start as soon as a worker of their part takes them. */
  pools: FlowPools
  /** Are tried again after a while. */
  delayed: Map<string, LeafTask>
  /** Under way, by id. */
  running: Map<string, LeafTask>
  /** Told in the journal to have begun, by id and attempt. */
  begun: Set<string>
  counts: { completed: number; failed: number }
  planned: number
  /** What goes through each pipeline, by its leaf. */
  items: Map<string, NonNullable<Progress['items']>>
  /** Were under way when the pattern around them expired, and are to be stopped. */
  dropped: string[]
}

export const nameOf = ({ id, attempt }: Pick<LeafTask, 'id' | 'attempt'>): string => `${attempt} ${id}`

/** Rebuilt from what the journal says became of the leaves. */
export function standingOf(flow: ClaimedFlow, events: readonly FlowEvent[]): FlowStanding {
  const standing: FlowStanding = {
    machine: createMachine(flow.root, flow.input),
    fresh: [],
    ready: [],
    pools: createFlowPools(),
    delayed: new Map(),
    running: new Map(),
    begun: new Set(),
    counts: { completed: 0, failed: 0 },
    planned: plannedLeaves(flow.root),
    items: new Map(),
    dropped: [],
  }
  const settled = new Map<string, LeafOutcome>()
  const expired: string[] = []
  for (const { kind, data } of events) {
    if (kind === 'node.expired') expired.push(data.node)
    if (kind === 'topology.switched') standing.pools.restore(data.pool, data.to)
    if (kind === 'task.started') standing.begun.add(nameOf({ id: data.task_id, attempt: data.attempt }))
    if (kind === 'task.completed')
      settled.set(`${data.attempt} ${data.task_id}`, { status: 'completed', value: data.result })
    if (kind === 'task.failed') settled.set(`${data.attempt} ${data.task_id}`, { status: 'failed', error: data.error })
  }
  replay(standing, standing.machine.begin(), settled)
  // What was on record within it has been settled by now; the rest was dropped when it expired.
  for (const node of expired) replay(standing, expire(standing, node), settled)
  return standing
}

/** Leaves that are on record are settled at once, and so are those that follow from them. */
function replay(standing: FlowStanding, tasks: readonly LeafTask[], settled: ReadonlyMap<string, LeafOutcome>): void {
  const queue = [...tasks]
  for (let task = queue.shift(); task; task = queue.shift()) {
    const known = settled.get(nameOf(task))
    if (known) queue.push(...settle(standing, task, known))
    else standing.fresh.push(task)
  }
}

/** Answers the leaves that may start because of it. */
export function settle(standing: FlowStanding, task: LeafTask, outcome: LeafOutcome): LeafTask[] {
  standing.running.delete(task.id)
  const next = standing.machine.settle(task.id, outcome)
  // One that is tried again has not failed yet.
  const isRetried = next.some((each) => each.id === task.id)
  if (outcome.status === 'completed') standing.counts.completed += weightOf(task)
  else if (!isRetried) standing.counts.failed += weightOf(task)
  return next
}

/** Answers the leaves that may start because of it. What was under way within it is dropped; the caller stops it. */
export function expire(standing: FlowStanding, node: string): LeafTask[] {
  const next = standing.machine.expire(node)
  const dropped = new Set(standing.machine.dropped())
  standing.fresh = standing.fresh.filter((task) => !dropped.has(task.id))
  standing.ready = standing.ready.filter((task) => !dropped.has(task.id))
  standing.pools.remove(dropped)
  for (const id of dropped) {
    if (standing.running.delete(id)) standing.dropped.push(id)
    standing.counts.failed++
  }
  return next
}

/** Known, and not begun. */
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
  const known = waiting + underWay + counts.completed + counts.failed
  const total = Math.max(planned, known)
  const rest = total - underWay - counts.completed - counts.failed
  return {
    total,
    pending: hasEnded ? 0 : rest,
    running: underWay,
    completed: counts.completed,
    failed: counts.failed,
    skipped: hasEnded ? rest : 0,
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
