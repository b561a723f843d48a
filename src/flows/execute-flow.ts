// The life of a flow run in the hands of one owner, from its claim until it ends, parks or goes back. The machine says
// which leaves may start; here they are started, and what became of them is committed before anything follows from it.
// This file knows no pattern.
import { fault } from '../kernel/fault.ts'
import type { Topology } from '../kernel/flow.ts'
import type { FlowEvent } from '../kernel/flow-run.ts'
import { runIdsOf, settledAgents } from './agent-leaves.ts'
import { createAgentWaits } from './agent-waits.ts'
import { begin, isAgentTask } from './begin-leaf.ts'
import type { ClaimedFlow } from './claim-flows.ts'
import { append, type FlowDeps, FlowLost, type FlowMessage, readEvents, type Session } from './flow-session.ts'
import { expire, type FlowStanding, nameOf, progressOf, settle, slow, standingOf, unbegun } from './flow-standing.ts'
import type { LeafOutcome, LeafTask } from './machine.ts'
import type { Mailbox } from './mailbox.ts'
import { measuredTopologies } from './topology.ts'

const MOST_CRASHES = 5
/** A flow of a halted project looks again whether it may go on. */
const HALTED_FOR_MS = 1_000

/** Never throws. False: nothing could be written, and the flow run is this process's in the database alone. */
export async function executeFlow(deps: FlowDeps, flow: ClaimedFlow, mailbox: Mailbox<FlowMessage>): Promise<boolean> {
  const stop = new AbortController()
  const timers = new Set<NodeJS.Timeout>()
  const after = (ms: number, message: FlowMessage): void => {
    if (ms > 2_147_483_647) return
    const timer = setTimeout(() => mailbox.put(message), ms)
    timers.add(timer)
  }
  try {
    const events = flow.last_seq === 0 ? [] : await readEvents(deps.pool, flow.id)
    const session: Session = {
      deps,
      flow,
      mailbox,
      after,
      stop,
      signals: new Map<string, AbortController>(),
      watching: new Map<string, number>(),
      standing: standingOf(flow, events),
      seenLeaves: flow.ended_leaves,
      newTopology: null,
      waits: createAgentWaits(deps.pool),
    }
    session.standing.pools.recall(events)
    want(session, flow)
    after(Math.max(0, flow.timeout - flow.age), { type: 'stop', as: 'timed_out' })
    if (flow.cancel_requested_at !== null) mailbox.put({ type: 'stop', as: 'cancelled' })
    await conduct(session)
    return true
  } catch (error) {
    if (error instanceof FlowLost)
      deps.log.info({ flow_run_id: flow.id }, 'the flow run belongs to another process now')
    else deps.log.error({ flow_run_id: flow.id, err: error }, 'a flow run will be taken again')
    return false
  } finally {
    stop.abort()
    for (const timer of timers) clearTimeout(timer)
  }
}

async function conduct(session: Session): Promise<void> {
  const { flow, standing, mailbox, deps } = session
  const events: FlowEvent[] = flow.last_seq === 0 ? [{ kind: 'flow.started', data: { input: flow.input } }] : []
  if (flow.crashes >= MOST_CRASHES) {
    const error = `CRASH_LOOP: the process that worked on this flow died ${flow.crashes} times; it is not tried again.`
    return end(session, events, { status: 'failed', error })
  }
  let stopping: 'cancelled' | 'timed_out' | null = null
  await takeUpAgents(session, events)
  for (;;) {
    // Who stops a flow has stopped it, also where the last leaf ended meanwhile.
    if (stopping && standing.running.size === 0) return end(session, events, { status: stopping, error: null })
    const outcome = stopping ? null : standing.machine.outcome()
    if (outcome) return end(session, events, outcome)
    for (const { id, ms } of standing.machine.armed()) session.after(ms, { type: 'expired', node: id })
    const isHalted = deps.isHalted(flow.project_id)
    const starts = stopping || isHalted ? [] : takeStartable(session)
    // Before those that are started under it.
    for (const data of standing.pools.switched()) events.push({ kind: 'topology.switched', data })
    for (const start of starts) if (!standing.begun.has(nameOf(start.task))) events.push(begunEvent(standing, start))
    events.push(...untold(standing))
    for (const data of standing.pools.rebalance()) events.push({ kind: 'topology.switched', data })
    const isCancelled = await write(session, events.splice(0))
    if (isCancelled && !stopping) {
      // It was asked for before these began.
      for (const { task } of starts) standing.running.delete(task.id)
      standing.ready.unshift(...starts.map(({ task }) => task))
      mailbox.put({ type: 'stop', as: 'cancelled' })
    } else {
      for (const { task } of starts) await begin(session, task)
    }
    await stopDropped(session)
    setWatches(session)
    if (isHalted && !stopping && isIdle(session)) return park(session, HALTED_FOR_MS)
    const watchMs = nextWatchMs(session)
    if (isParkable(session) && !stopping && watchMs > 0) return park(session, watchMs)
    for (const message of await mailbox.take()) {
      switch (message.type) {
        case 'lapse':
          throw new FlowLost()
        case 'hand_back':
          return void (await append(session, events, { release: true, ready_in_ms: 0 }))
        case 'settled':
          take(session, events, message.task, message.outcome, message.startedAtMs)
          break
        case 'due':
          standing.delayed.delete(message.task.id)
          standing.fresh.push({ ...message.task, afterMs: 0 })
          break
        case 'expired':
          expireNode(session, events, message.node)
          break
        case 'watch':
          checkWatched(session, events, message.taskId)
          break
        case 'news':
          await checkAgents(session, events)
          break
        case 'stop':
          if (stopping) break
          stopping = message.as
          session.after(message.as === 'timed_out' ? 0 : await deps.drainMs(flow.project_id), { type: 'drained' })
          break
        case 'drained':
          await abandon(session)
          break
      }
    }
  }
}

/** Answers whether somebody has asked for the end. */
async function write(session: Session, events: readonly FlowEvent[]): Promise<boolean> {
  const { standing, newTopology } = session
  if (events.length === 0 && newTopology === null) return false
  if (events.some((event) => event.kind === 'topology.switched')) await fault('topology.mid_switch')
  session.newTopology = null
  return append(session, events, {
    progress: progressOf(standing, false),
    ...(newTopology === null ? {} : { topology_in_force: newTopology }),
  })
}

function want(
  session: Session,
  { wanted_topology: wanted, is_topology_new: isNew }: { wanted_topology: Topology | null; is_topology_new: boolean },
): void {
  if (wanted === null) return
  session.standing.pools.want(wanted, isNew)
  if (isNew) session.newTopology = wanted
}

interface Start {
  task: LeafTask
  worker: string | null
  handover: { from: string; to: string } | null
}

/** As many of those that wait as there is room for; those that back off come later. */
function takeStartable({ deps, flow, standing, after }: Session): Start[] {
  for (const task of standing.fresh.splice(0)) {
    if (task.afterMs > 0) {
      standing.delayed.set(task.id, task)
      after(task.afterMs, { type: 'due', task })
    } else if (task.pool) standing.pools.add(task.pool, task)
    else standing.ready.push(task)
  }
  const room = Math.max(0, Math.min(flow.workers ?? deps.leafLimit, deps.leafLimit) - standing.running.size)
  const plain = standing.ready.splice(0, room).map((task): Start => ({ task, worker: null, handover: null }))
  const starts = [...plain, ...standing.pools.take(room - plain.length)]
  for (const { task } of starts) standing.running.set(task.id, task)
  return starts
}

function begunEvent(standing: FlowStanding, { task, worker, handover }: Start): FlowEvent {
  standing.begun.set(nameOf(task), Date.now())
  const name = task.nodeId ?? ('agent' in task.leaf ? task.leaf.agent : task.leaf.function)
  const more = {
    ...('agent' in task.leaf ? { agent: task.leaf.agent } : {}),
    ...(task.after.length > 0 ? { after: [...task.after] } : {}),
    ...(worker === null ? {} : { worker }),
    ...(handover ? { handover: { from: handover.from, to: handover.to } } : {}),
  }
  return { kind: 'task.started', data: { task_id: task.id, name, attempt: task.attempt, ...more } }
}

function take(
  { standing }: Session,
  events: FlowEvent[],
  task: LeafTask,
  outcome: LeafOutcome,
  startedAtMs: number,
): void {
  if (!standing.running.has(task.id)) return
  const shared = recordOf(task, startedAtMs)
  events.push(
    outcome.status === 'completed'
      ? { kind: 'task.completed', data: { ...shared, result: outcome.value } }
      : { kind: 'task.failed', data: { ...shared, error: outcome.error } },
  )
  standing.pools.done(task, shared.duration, outcome.status === 'completed')
  const next = settle(standing, task, { ...outcome, tookMs: shared.duration })
  standing.fresh.push(...next)
  events.push(...untold(standing))
}

const recordOf = (task: LeafTask, startedAtMs: number) => ({
  task_id: task.id,
  node_id: task.nodeId,
  attempt: task.attempt,
  started_at: new Date(startedAtMs).toISOString(),
  duration: Math.max(0, Date.now() - startedAtMs),
})

function expireNode({ standing }: Session, events: FlowEvent[], node: string): void {
  const before = standing.dropped.length
  const next = expire(standing, node)
  if (next.length === 0 && standing.dropped.length === before && !standing.machine.outcome()) return
  standing.fresh.push(...next)
  events.push({ kind: 'node.expired', data: { node } }, ...untold(standing))
}

/** What the journal has to say of leaves that nobody waits for any more. */
function untold(standing: FlowStanding): FlowEvent[] {
  return standing.dropped
    .filter((entry) => !entry.isTold)
    .map((entry): FlowEvent => {
      entry.isTold = true
      const { task, as } = entry
      const begunAtMs = standing.begun.get(nameOf(task))
      if (as === 'skipped' || begunAtMs === undefined) return { kind: 'task.skipped', data: { task_id: task.id } }
      return { kind: 'task.failed', data: { ...recordOf(task, begunAtMs), error: 'The time of its part was up.' } }
    })
}

/** After the journal knows: who takes the flow over would wait for them otherwise. */
async function stopDropped({ standing, flow, deps, signals }: Session): Promise<void> {
  const dropped = standing.dropped.splice(0).map(({ task }) => task)
  for (const { id } of dropped) signals.get(id)?.abort()
  const begun = dropped.filter((task) => isAgentTask(task) && standing.begun.has(nameOf(task)))
  const runIds = begun.flatMap((task) => runIdsOf(flow.id, task))
  if (runIds.length > 0) await deps.cancelRuns(flow.project_id, runIds)
}

/** When the leaves that are watched will be slow. */
function watchesOf({ standing }: Session): { taskId: string; inMs: number }[] {
  return [...standing.machine.watched()].flatMap(([taskId, ms]) => {
    const task = standing.running.get(taskId)
    const begunAtMs = task && standing.begun.get(nameOf(task))
    return begunAtMs === undefined ? [] : [{ taskId, inMs: Math.max(0, begunAtMs + ms - Date.now()) }]
  })
}

function setWatches(session: Session): void {
  for (const { taskId, inMs } of watchesOf(session)) {
    const dueAtMs = Date.now() + inMs
    // One timer is enough unless it must ring earlier; one that rings early is set anew.
    if ((session.watching.get(taskId) ?? Number.POSITIVE_INFINITY) <= dueAtMs + 1) continue
    session.watching.set(taskId, dueAtMs)
    session.after(inMs, { type: 'watch', taskId })
  }
}

const nextWatchMs = (session: Session): number => Math.min(...watchesOf(session).map(({ inMs }) => inMs))

function checkWatched(session: Session, events: FlowEvent[], taskId: string): void {
  const { standing } = session
  session.watching.delete(taskId)
  const task = standing.running.get(taskId)
  const isDue = watchesOf(session).some((watch) => watch.taskId === taskId && watch.inMs === 0)
  if (!task || !isDue) return
  const runningFor = Date.now() - (standing.begun.get(nameOf(task)) ?? Date.now())
  events.push({ kind: 'task.slow', data: { task_id: taskId, running_for: runningFor } })
  const next = slow(standing, taskId)
  standing.fresh.push(...next)
}

/** Agents that an earlier owner had started are under way, or have ended since. */
async function takeUpAgents(session: Session, events: FlowEvent[]): Promise<void> {
  const { standing } = session
  const begun = standing.fresh.filter((task) => isAgentTask(task) && standing.begun.has(nameOf(task)))
  if (begun.length === 0) return
  // Inserting again inserts what is missing: one was announced, and its owner died before it was queued.
  for (const task of begun) {
    standing.running.set(task.id, task)
    standing.pools.resume(task)
    await begin(session, task)
  }
  standing.fresh = standing.fresh.filter((task) => !standing.running.has(task.id))
  await checkAgents(session, events)
}

interface News extends Pick<ClaimedFlow, 'ended_leaves' | 'workers' | 'wanted_topology' | 'is_topology_new'> {
  is_cancelled: boolean
}

async function checkAgents(session: Session, events: FlowEvent[]): Promise<void> {
  const { deps, flow, standing } = session
  const { rows } = await deps.pool.query<News>(
    `select ended_leaves, cancel_requested_at is not null as is_cancelled, workers, wanted_topology,
       topology_wanted_at is not null as is_topology_new from flow_runs where id = $1`,
    [flow.id],
  )
  session.seenLeaves = rows[0]?.ended_leaves ?? session.seenLeaves
  flow.workers = rows[0]?.workers ?? flow.workers
  if (rows[0]?.is_cancelled) session.mailbox.put({ type: 'stop', as: 'cancelled' })
  if (rows[0]?.is_topology_new) want(session, rows[0])
  await session.waits.check()
  const agents = [...standing.running.values()].filter(isAgentTask)
  for (const { task, outcome } of await settledAgents(deps.pool, flow.id, agents)) {
    take(session, events, task, outcome, standing.begun.get(nameOf(task)) ?? Date.now())
  }
}

/** Only agents are under way: they have slots of their own, and the last word is theirs. */
function isParkable({ standing, mailbox }: Session): boolean {
  const running = [...standing.running.values()]
  return running.length > 0 && mailbox.isEmpty() && running.every(isAgentTask)
}

/** Nothing of it runs in this process. */
const isIdle = ({ standing, mailbox }: Session): boolean =>
  mailbox.isEmpty() && [...standing.running.values()].every(isAgentTask)

async function park(session: Session, forMs = Number.POSITIVE_INFINITY): Promise<void> {
  const leftMs = Math.min(forMs, session.flow.timeout - session.flow.age)
  await append(session, [], { release: true, seen_leaves: session.seenLeaves, ready_in_ms: Math.max(0, leftMs) })
}

/** Signals have fired or will not be heeded: what has not ended now is left behind. */
async function abandon({ standing, flow, deps, stop, mailbox }: Session): Promise<void> {
  stop.abort()
  const left = [...standing.running.values()]
  const runIds = left.filter(isAgentTask).flatMap((task) => runIdsOf(flow.id, task))
  if (runIds.length > 0) await deps.cancelRuns(flow.project_id, runIds)
  const outcome: LeafOutcome = { status: 'failed', error: 'It was given up when the flow was stopped.' }
  for (const task of left) mailbox.put({ type: 'settled', task, outcome, startedAtMs: Date.now() })
}

type End =
  | { status: 'completed' | 'partial'; value: unknown; error: null; problems?: readonly string[] }
  | { status: 'failed' | 'cancelled' | 'timed_out'; error: string | null }

async function end(session: Session, events: readonly FlowEvent[], ended: End): Promise<void> {
  const { standing } = session
  const isDone = ended.status === 'completed' || ended.status === 'partial'
  const skipped = unbegun(standing).map((task): FlowEvent => ({ kind: 'task.skipped', data: { task_id: task.id } }))
  const problems = 'problems' in ended ? ended.problems : undefined
  const error = ended.status === 'timed_out' ? 'The time of the flow was up.' : (problems?.join(' ') ?? ended.error)
  const last: FlowEvent = isDone
    ? { kind: `flow.${ended.status}` as 'flow.completed', data: { output: 'value' in ended ? ended.value : null } } // one of two
    : { kind: `flow.${ended.status}` as 'flow.failed', data: { error } }
  const told = [...events, ...skipped]
  const measured = await measuredTopologies(session.deps.pool, session.flow, told)
  await append(session, [...told, ...measured, last], {
    status: ended.status,
    error,
    ...('value' in ended ? { output: ended.value } : {}),
    progress: progressOf(standing, true),
    ended: true,
  })
}
