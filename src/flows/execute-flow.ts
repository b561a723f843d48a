// The life of a flow run in the hands of one owner, from its claim until it ends, parks or goes back. The machine says
// which leaves may start; here they are started, and their outcomes are committed before anything follows from them.
// This file knows no pattern.
import { explainFailure } from '../db/failures.ts'
import { MOST_CRASHES } from '../db/queue-table.ts'
import { fault } from '../kernel/fault.ts'
import type { FlowEvent } from '../kernel/flow-run.ts'
import { jsonSize } from '../kernel/json-size.ts'
import { runIdsOf } from './agent-leaves.ts'
import { createAgentWaits } from './agent-waits.ts'
import { beginAll, isAgentTask, isFunctionTask, releaseSlot } from './begin-leaf.ts'
import { type ClaimedFlow, giveUpFlow } from './claim-flows.ts'
import { end } from './end-flow.ts'
import { append, type FlowDeps, FlowLost, type FlowMessage, readEvents, type Session } from './flow-session.ts'
import { type FlowStanding, nameOf, progressOf, standingOf } from './flow-standing.ts'
import { withdraw, withdrawUntaken } from './handouts.ts'
import { checkElsewhere, takeUp, want } from './leaves-elsewhere.ts'
import type { LeafOutcome, LeafTask } from './machine.ts'
import type { Mailbox } from './mailbox.ts'
import { expireNode, stopDropped, take, untold } from './settle-leaf.ts'
import { checkWatched, nextInMs, setDeadlines, setWatches } from './watch-leaves.ts'

/** A flow of a halted project looks again whether it may go on. */
const HALTED_FOR_MS = 1_000
/** The owner itself waits for a leaf that is due sooner; for one that is due later it parks the flow run. */
const WORTH_PARKING_MS = 200

/** Never throws. False: nothing could be written, and the flow run is this process's in the database alone. */
export async function executeFlow(deps: FlowDeps, flow: ClaimedFlow, mailbox: Mailbox<FlowMessage>): Promise<boolean> {
  const signals = new Map<string, AbortController>()
  const timers = new Set<NodeJS.Timeout>()
  const local = new Set<string>()
  const after = (ms: number, message: FlowMessage): void => {
    if (ms > 2_147_483_647) return
    const timer = setTimeout(() => mailbox.put(message), ms)
    timers.add(timer)
  }
  try {
    const events = flow.last_seq === 0 ? [] : await readEvents(deps.pool, flow.id)
    const standing = standingOf(flow, events)
    const session: Session = {
      deps,
      flow,
      mailbox,
      after,
      signals,
      draining: new AbortController(),
      watching: new Map<string, number>(),
      timed: new Set<string>(),
      endsAtMs: Date.now() + flow.timeout - flow.age,
      local,
      handedOut: new Set<string>(),
      standing,
      seenLeaves: flow.ended_leaves,
      newTopology: null,
      waits: createAgentWaits(deps.pool),
    }
    session.standing.pools.recall(events.filter((event) => event.kind !== 'items.completed'))
    want(session, flow)
    after(Math.max(0, session.endsAtMs - Date.now()), { type: 'stop', as: 'timed_out' })
    await conduct(session)
    return true
  } catch (error) {
    if (error instanceof FlowLost) {
      deps.log.info({ flow_run_id: flow.id }, 'the flow run belongs to another process now')
      return false
    }
    if (explainFailure(error)?.code === 'UNAVAILABLE') {
      deps.log.warn({ flow_run_id: flow.id, err: error }, 'the database is away; the flow run will be taken again')
      return false
    }
    deps.log.error({ flow_run_id: flow.id, err: error }, 'a flow run failed in our own code and will be taken again')
    if (await endRegardless(deps, flow)) return true
    return giveUpFlow(deps.pool, flow).then(
      () => true,
      () => false,
    )
  } finally {
    for (const own of signals.values()) own.abort()
    for (const timer of timers) clearTimeout(timer)
    for (const taskId of local) releaseSlot({ deps, flow, local }, taskId)
    deps.slots.leave(mailbox)
  }
}

/** A process that cannot go on with a flow run can still end it, where somebody asked for the end or its time is up. */
async function endRegardless({ journal, log }: FlowDeps, { id, fence, ...flow }: ClaimedFlow): Promise<boolean> {
  const isCancelled = flow.cancel_requested_at !== null
  if (!isCancelled && flow.age < flow.timeout) return false
  const status = isCancelled ? 'cancelled' : 'timed_out'
  const error = isCancelled ? null : 'The time of the flow was up.'
  const events = [{ kind: `flow.${status}`, data: { error } }]
  try {
    return (
      (await journal.append({ runId: id, fence, events, change: { status, error, ended: true } })).status === 'written'
    )
  } catch (failure) {
    log.error({ flow_run_id: id, err: failure }, 'a flow run could not be ended')
    return false
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
  let isLeaving = false
  let isFirst = flow.last_seq === 0
  if (flow.cancel_requested_at !== null) stopping = 'cancelled'
  else if (flow.age >= flow.timeout) stopping = 'timed_out'
  await takeUp(session, events, { mayBegin: !stopping && !deps.isHalted(flow.project_id) })
  if (stopping) await beginStopping(session, stopping)
  for (;;) {
    // A flow that was stopped is stopped, also where the last leaf ended meanwhile.
    if (stopping && standing.running.size === 0) return end(session, events, { status: stopping, error: null })
    const outcome = stopping ? null : standing.machine.outcome()
    if (outcome) return end(session, events, outcome)
    if (isLeaving && session.local.size === 0) return handBack(session, events)
    setDeadlines(session)
    const isHalted = deps.isHalted(flow.project_id)
    const starts = stopping || isHalted || isLeaving ? [] : takeStartable(session)
    // The switch is journalled before the leaves that are started under it.
    for (const data of standing.pools.switched()) events.push({ kind: 'topology.switched', data })
    for (const start of starts) if (!standing.begun.has(nameOf(start.task))) events.push(begunEvent(standing, start))
    events.push(...untold(standing))
    for (const data of standing.pools.rebalance()) events.push({ kind: 'topology.switched', data })
    const haveBegun = isFirst && !stopping && (await beginEarly(session, starts))
    isFirst = false
    // A leaf that is done at once is told together with its beginning.
    if (!haveBegun || mailbox.isEmpty()) {
      const isCancelled = await write(session, events.splice(0))
      if (isCancelled && !stopping) {
        // The end was asked for before these began.
        if (!haveBegun) giveBack(session, starts)
        mailbox.put({ type: 'stop', as: 'cancelled' })
      } else if (!haveBegun) await beginAll(session, starts.map(taskOf))
    }
    await stopDropped(session)
    setWatches(session)
    if (isHalted && !stopping && isIdle(session)) return park(session, HALTED_FOR_MS)
    if (!stopping && isParkable(session)) {
      const nextMs = nextInMs(session)
      if (nextMs > WORTH_PARKING_MS) return park(session, nextMs)
    }
    for (const message of await mailbox.take()) {
      switch (message.type) {
        case 'lapse':
          throw new FlowLost()
        case 'hand_back':
          if (message.isUrgent) return handBack(session, events)
          isLeaving = true
          break
        case 'settled':
          take(session, events, message.task, message.outcome, message.startedAtMs)
          break
        case 'due':
          // A task that is not among the delayed ones was dropped: nobody waits for it any more.
          if (standing.delayed.delete(message.task.id)) standing.fresh.push({ ...message.task, afterMs: 0 })
          break
        case 'expired':
          expireNode(session, events, message.node)
          break
        case 'watch':
          checkWatched(session, events, message.taskId)
          break
        case 'news':
          await checkElsewhere(session, events)
          break
        case 'room':
          break
        case 'stop':
          // A drain has no longer than the flow.
          if (stopping && message.as === 'timed_out') session.after(0, { type: 'drained' })
          if (stopping) break
          stopping = message.as
          await beginStopping(session, stopping)
          break
        case 'drained':
          await abandon(session)
          break
      }
    }
  }
}

/** Nothing new begins; leaves under way have their time to end. */
async function beginStopping(session: Session, as: 'cancelled' | 'timed_out'): Promise<void> {
  const { deps, flow, draining, after } = session
  draining.abort()
  await takeBackUntaken(session)
  after(as === 'timed_out' ? 0 : await deps.drainMs(flow.project_id), { type: 'drained' })
}

async function handBack(session: Session, events: readonly FlowEvent[]): Promise<void> {
  await append(session, events, { release: true, ready_in_ms: 0, progress: progressOf(session.standing, false) })
}

/** Answers whether somebody has asked for the end. */
async function write(session: Session, events: readonly FlowEvent[]): Promise<boolean> {
  const { standing, newTopology } = session
  if (events.length === 0 && newTopology === null) return false
  if (events.some((event) => event.kind === 'topology.switched')) await fault('topology.mid_switch')
  session.newTopology = null
  const parts = inParts(events)
  const last = parts.pop() ?? []
  for (const part of parts) await append(session, part, {})
  return append(session, last, {
    progress: progressOf(standing, false),
    ...(newTopology === null ? {} : { topology_in_force: newTopology }),
  })
}

/** The bytes that are serialised at once. One leaf's result may be twice as large. */
const MOST_AT_ONCE_BYTES = 8 * 1_048_576

/** Any first part may be on record without the rest: the events that follow from a leaf come after it. */
function inParts(events: readonly FlowEvent[]): FlowEvent[][] {
  const parts: FlowEvent[][] = [[]]
  let bytes = 0
  for (const event of events) {
    const { bytes: own } = jsonSize(event.kind === 'task.completed' ? event.data.result : null)
    if (bytes > 0 && bytes + own > MOST_AT_ONCE_BYTES) {
      parts.push([])
      bytes = 0
    }
    parts.at(-1)?.push(event)
    bytes += own
  }
  return parts
}

const taskOf = ({ task }: Start): LeafTask => task

/**
 * The process that has just accepted a new flow knows that nobody has asked for its end: functions that this process
 * calls itself may begin before the journal says so. Answers whether they have.
 */
async function beginEarly(session: Session, starts: readonly Start[]): Promise<boolean> {
  if (starts.length === 0 || !starts.every(({ task }) => session.local.has(task.id))) return false
  await beginAll(session, starts.map(taskOf))
  await new Promise(setImmediate)
  return true
}

function giveBack(session: Session, starts: readonly Start[]): void {
  const { standing } = session
  for (const { task } of starts) {
    standing.running.delete(task.id)
    releaseSlot(session, task.id)
  }
  standing.ready.unshift(...starts.map(taskOf))
}

interface Start {
  task: LeafTask
  worker: string | null
  handover: { from: string; to: string } | null
}

/** As many of the waiting leaves as there is room for; leaves that back off come later. */
function takeStartable(session: Session): Start[] {
  const { deps, flow, standing, after, mailbox } = session
  for (const task of standing.fresh.splice(0)) {
    if (task.afterMs > 0) {
      standing.delayed.set(task.id, task)
      const dueAtMs = standing.dueAt.get(nameOf(task)) ?? Date.now() + task.afterMs
      standing.dueAt.set(nameOf(task), dueAtMs)
      after(Math.max(0, dueAtMs - Date.now()), { type: 'due', task })
    } else if (task.pool) standing.pools.add(task.pool, task)
    else standing.ready.push(task)
  }
  const { slots } = deps
  const room = Math.max(0, (flow.workers ?? deps.leafLimit) - standing.running.size)
  // Functions wait for room here where nobody else lives; else those that find none are left to others.
  const { project_id: projectId } = flow
  const hasRoomHere = (): boolean => deps.hasOthers() || slots.hasRoomFor(projectId)
  const starts: Start[] = []
  const take = (start: Start): void => {
    const { task } = start
    starts.push(start)
    standing.running.set(task.id, task)
    if (!isFunctionTask(task) || !deps.functions.has(task.leaf.function) || !slots.hasRoomFor(projectId)) return
    slots.take(projectId)
    session.local.add(task.id)
  }
  let count = 0
  for (const task of standing.ready) {
    if (count >= room || (isFunctionTask(task) && !hasRoomHere())) break
    take({ task, worker: null, handover: null })
    count++
  }
  standing.ready.splice(0, count)
  for (const start of standing.pools.take(Math.min(room - count, deps.hasOthers() ? room : slots.roomFor(projectId))))
    take(start)
  if (standing.ready.length + standing.pools.waitingCount() > 0 && !slots.hasRoomFor(projectId)) {
    slots.wait(mailbox, projectId, () => mailbox.put({ type: 'room' }))
  }
  slots.passOn()
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

/** All leaves under way run in other hands, and this process will hear of their ends. */
const isParkable = (session: Session): boolean => session.standing.running.size > 0 && isIdle(session)

/** No leaf of the flow runs in this process, and none waits for room here. */
function isIdle({ standing, mailbox, handedOut }: Session): boolean {
  if (!mailbox.isEmpty()) return false
  for (const task of standing.running.values()) if (!isAgentTask(task) && !handedOut.has(task.id)) return false
  return true
}

async function park(session: Session, forMs = Number.POSITIVE_INFINITY): Promise<void> {
  const leftMs = Math.max(0, Math.min(forMs, session.endsAtMs - Date.now()))
  await append(session, [], { release: true, seen_leaves: session.seenLeaves, ready_in_ms: leftMs })
  session.deps.onParked(leftMs)
}

/** Takes back the functions that were left to others and that nobody has begun: they need not be waited for. */
async function takeBackUntaken({ standing, flow, deps, handedOut }: Session): Promise<void> {
  for (const id of await withdrawUntaken(deps.pool, flow.id, [...handedOut])) {
    const task = standing.running.get(id)
    handedOut.delete(id)
    standing.running.delete(id)
    if (task) standing.ready.push(task)
  }
}

/** Signals have fired or will not be heeded: leaves that have not ended by now are left behind. */
async function abandon({ standing, flow, deps, signals, mailbox, handedOut }: Session): Promise<void> {
  for (const own of signals.values()) own.abort()
  const left = [...standing.running.values()]
  const runIds = left.filter(isAgentTask).flatMap((task) => runIdsOf(flow.id, task))
  if (runIds.length > 0) await deps.cancelRuns(flow.project_id, runIds)
  if (handedOut.size > 0) await withdraw(deps.pool, flow.id, [...handedOut])
  const outcome: LeafOutcome = { status: 'failed', error: 'It was given up when the flow was stopped.' }
  for (const task of left) mailbox.put({ type: 'settled', task, outcome, startedAtMs: Date.now() })
}
