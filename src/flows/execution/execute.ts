// The life of a flow run in the hands of one owner, from its claim until the run ends, parks or is handed back. The
// machine says which leaves may start (start-leaves.ts). Their outcomes are committed before anything follows from them.
// No pattern is named here.
import { isUnavailable } from '../../db/failures.ts'
import type { FlowEvent } from '../../kernel/flow-run.ts'
import { LONGEST_MS } from '../../kernel/limits.ts'
import { MOST_CRASHES } from '../../queue/queue-table.ts'
import { hasAgentStage } from '../machine/flow-leaf.ts'
import type { LeafOutcome } from '../machine/machine.ts'
import type { NodeOutcome } from '../machine/move.ts'
import { isAgentLeaf } from './agent-leaves.ts'
import { createAgentWaits } from './agent-waits.ts'
import { beginAll, releaseSlot } from './begin-leaf.ts'
import { cancelFlowsBelow } from './cancel.ts'
import { type ClaimedFlow, giveUpFlow } from './claim.ts'
import { endFlow } from './end.ts'
import { crashLoop, endRegardless } from './end-regardless.ts'
import { withdrawUntaken } from './handouts.ts'
import { flowScope } from './leaf-scope.ts'
import { checkElsewhere, takeUpLeaves, wantTopology } from './leaves-elsewhere.ts'
import type { Mailbox } from './mailbox.ts'
import {
  appendToFlow,
  type FlowDeps,
  FlowLost,
  type FlowMessage,
  type FlowStop,
  type OwnedFlow,
  readFlowJournal,
} from './owned-flow.ts'
import { expireNode, stopDropped, takeOutcome, takeUntold } from './settle-leaf.ts'
import { startLeaves } from './start-leaves.ts'
import { attemptKey, progressOf, stateOf, unbegun } from './state.ts'
import { cancelAllRuns, stopLeaves } from './stop-leaves.ts'
import { stopWaiting } from './stop-waiting.ts'
import { chainOf, hasLives, readFinished } from './take-over-leaves.ts'
import {
  checkWatched,
  isExpired,
  isLate,
  nextInMs,
  postponeIfHalted,
  postponeIfWaiting,
  rearmIfEarly,
  setDeadlines,
  setEnd,
  setWatches,
  timeLeftMs,
} from './watch-leaves.ts'
import { writeEvents } from './write-events.ts'

/** A flow of a halted project is parked for this long before the owner looks again whether it may go on. */
const HALTED_FOR_MS = 1_000
/** The owner waits for a leaf that is due sooner than this; for a leaf that is due later it parks the run. */
const WORTH_PARKING_MS = 200

/** Never throws. False: nothing could be written. The row still names this process as owner; the sweep frees it. */
export async function executeFlow(deps: FlowDeps, flow: ClaimedFlow, mailbox: Mailbox<FlowMessage>): Promise<boolean> {
  const signals = new Map<string, AbortController>()
  const timers = new Set<NodeJS.Timeout>()
  const local = new Set<string>()
  const after = (ms: number, message: FlowMessage): void => {
    if (ms > LONGEST_MS) return
    const timer = setTimeout(() => {
      timers.delete(timer)
      mailbox.put(message)
    }, ms)
    timers.add(timer)
  }
  try {
    const events = flow.last_seq === 0 ? [] : await readFlowJournal(deps.pool, flow.id)
    const flowRunIds = await chainOf(deps.pool, flow)
    const earlier = await readFinished(deps.pool, flowRunIds)
    const state = stateOf(flow, events, deps.patterns, { ...earlier, keepsFinished: hasLives(flow.root) })
    const owned: OwnedFlow = {
      deps,
      flow,
      leafRuns: {
        flowRunId: flow.id,
        scope: flowScope(flow),
        flowRunIds,
        projectId: flow.project_id,
        within: flow.within,
      },
      mailbox,
      after,
      signals,
      draining: new AbortController(),
      watching: new Map<string, number>(),
      timed: new Set<string>(),
      countsFromMs: Date.now() - flow.age + flow.still,
      checkEndAtMs: 0,
      timerAtMs: Number.POSITIVE_INFINITY,
      isNew: !events.some((event) => event.kind === 'flow.started'),
      local,
      handedOut: new Set<string>(),
      ending: new Set<string>(),
      state,
      seenLeaves: flow.ended_leaves,
      seenAdjustments: flow.adjustments,
      newTopology: null,
      waits: createAgentWaits(deps.pool),
    }
    owned.state.pools.recall(events.filter((event) => event.kind !== 'items.completed'))
    wantTopology(owned, flow)
    setEnd(owned, flow.timeout)
    await conduct(owned)
    return true
  } catch (error) {
    if (error instanceof FlowLost) {
      deps.log.info({ flow_run_id: flow.id }, 'the flow run belongs to another process now')
      return false
    }
    if (isUnavailable(error)) {
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
    for (const leafId of local) releaseSlot({ deps, flow, local }, leafId)
    deps.slots.leave(mailbox)
  }
}

/** The way of a flow run through the hands of one owner. */
interface Course {
  /** The events that are not written yet. */
  events: FlowEvent[]
  /** The end that was asked for. Nothing new begins, and the leaves under way may end. */
  stopping: FlowStop | null
  /** This process stops. The flow run is handed back when the functions that this process calls have ended. */
  isLeaving: boolean
}

async function conduct(owned: OwnedFlow): Promise<void> {
  const { flow, deps, mailbox } = owned
  const events: FlowEvent[] = owned.isNew ? [{ kind: 'flow.started', data: { input: flow.input } }] : []
  if (flow.crashes >= MOST_CRASHES) {
    await endFlow(owned, events, { status: 'failed', error: crashLoop(flow.crashes) })
    return cancelAllRuns(deps, flow)
  }
  const course: Course = { events, stopping: await stopAtClaim(owned), isLeaving: false }
  await takeUpLeaves(owned, events, { mayBegin: !course.stopping && !deps.isHalted(flow.project_id) })
  if (course.stopping) await beginStopping(owned, course.stopping)
  for (let isFirst = owned.isNew; ; isFirst = false) {
    const ending = endIfOver(owned, course)
    if (ending) return void (await ending)
    setDeadlines(owned)
    const isHalted = deps.isHalted(flow.project_id)
    const mayStart = !course.stopping && !isHalted && !course.isLeaving
    const isCancelled = await startLeaves(owned, events, { mayStart, mayBeginEarly: isFirst && !course.stopping })
    if (isCancelled && !course.stopping) mailbox.put({ type: 'stop', as: 'cancelled' })
    if (owned.state.dropped.length > 0) await stopDropped(owned)
    setWatches(owned)
    const parkMs = course.stopping ? null : parkTime(owned, isHalted)
    if (parkMs !== null) return park(owned, parkMs, isHalted)
    const messages = await mailbox.take()
    // One look finds all news, however many notices came.
    if (messages.some(({ type }) => type === 'news')) await checkElsewhere(owned, events)
    for (const message of messages) {
      const heeded = heed(owned, course, message)
      if (heeded && (await heeded) === 'left') return
    }
  }
}

async function stopAtClaim(owned: OwnedFlow): Promise<FlowStop | null> {
  if (owned.flow.cancel_requested_at !== null) return 'cancelled'
  return isLate(owned.deps, owned.flow) && !(await postponeIfWaiting(owned)) ? 'timed_out' : null
}

/** The end of the flow run, or its return to the queue. Null: it goes on, and nothing is waited for. */
function endIfOver(owned: OwnedFlow, { events, stopping, isLeaving }: Course): Promise<unknown> | null {
  const { state, local } = owned
  // A flow that was stopped ends as stopped, even if the last leaf ended meanwhile.
  if (stopping !== null && state.running.size === 0) return endStopped(owned, events, stopping)
  const outcome = stopping ? null : state.machine.outcome()
  if (outcome) return endDone(owned, events, outcome)
  return isLeaving && local.size === 0 ? handBack(owned, events) : null
}

/** An earlier owner may have queued runs for a pipeline that this owner has not taken up. */
async function endStopped(owned: OwnedFlow, events: FlowEvent[], as: FlowStop): Promise<void> {
  const { begun } = owned.state
  const left = unbegun(owned.state).filter((leaf) => hasAgentStage(leaf) && begun.has(attemptKey(leaf)))
  await stopLeaves(owned, left)
  await endFlow(owned, events, { status: as, error: null })
}

/**
 * Leaves under way that the end has dropped are stopped before the end is written, so that the next owner stops them if
 * this process dies.
 */
async function endDone(owned: OwnedFlow, events: FlowEvent[], outcome: NodeOutcome): Promise<void> {
  events.push(...takeUntold(owned.state))
  if (owned.state.dropped.length > 0) {
    await writeEvents(owned, events.splice(0))
    await stopDropped(owned)
  }
  await endFlow(owned, events, outcome)
}

/** left: the flow run was handed back. Null: there is nothing to wait for; most messages are such. */
function heed(owned: OwnedFlow, course: Course, message: FlowMessage): Promise<unknown> | null {
  const { events } = course
  const { state } = owned
  switch (message.type) {
    case 'lapse':
      throw new FlowLost()
    case 'hand_back':
      if (message.isUrgent) return handBack(owned, events)
      course.isLeaving = true
      break
    case 'settled':
      takeOutcome(owned, events, message.leaf, message.outcome, message.startedAtMs)
      break
    case 'due':
      // A leaf that is not among the delayed ones was dropped: nobody waits for its result any more.
      if (state.delayed.delete(message.leaf.id)) state.fresh.push({ ...message.leaf, afterMs: 0 })
      break
    case 'expired':
      return isExpired(owned, message.node).then((isUp) => isUp && expireNode(owned, events, message.node))
    case 'watch':
      return checkWatched(owned, events, message.leafId)
    case 'begin':
      owned.ending.delete(message.leaf.id)
      // A leaf that is not running was dropped meanwhile.
      return state.running.has(message.leaf.id) ? beginAll(owned, [message.leaf]) : null
    case 'news':
    case 'room':
      break
    case 'stop':
      return stop(owned, course, message.as)
    case 'look_for_waits':
      return stopWaiting(owned)
    case 'drained':
      return abandon(owned)
  }
  return null
}

async function stop(owned: OwnedFlow, course: Course, as: FlowStop): Promise<void> {
  if (as === 'timed_out' && (rearmIfEarly(owned) || postponeIfHalted(owned) || (await postponeIfWaiting(owned)))) return
  if (!course.stopping) {
    course.stopping = as
    return beginStopping(owned, as)
  }
  // Leaves may drain no longer than the time of the flow lasts.
  if (as === 'timed_out') owned.after(0, { type: 'drained' })
}

/** From now on nothing new begins. Leaves at work have their time to end; those that wait end now. */
async function beginStopping(owned: OwnedFlow, as: FlowStop): Promise<void> {
  const { deps, flow, draining, after } = owned
  draining.abort()
  await takeBackUntaken(owned)
  await cancelFlowsBelow(deps.pool, flow.project_id, flow.id)
  if (as === 'cancelled') await stopWaiting(owned)
  after(as === 'timed_out' ? 0 : await deps.drainMs(flow.project_id), { type: 'drained' })
}

async function handBack(owned: OwnedFlow, events: readonly FlowEvent[]): Promise<'left'> {
  await appendToFlow(owned, events, { release: true, ready_in_ms: 0, progress: progressOf(owned.state, false) })
  return 'left'
}

/** The time for which the flow run may be parked; null if this process has to go on with it. */
function parkTime(owned: OwnedFlow, isHalted: boolean): number | null {
  if (!isIdle(owned)) return null
  if (isHalted) return HALTED_FOR_MS
  // All leaves under way run elsewhere, and this process will be told of their ends.
  const nextMs = owned.state.running.size > 0 ? nextInMs(owned) : 0
  return nextMs > WORTH_PARKING_MS ? nextMs : null
}

/** True if no leaf of the flow runs in this process, and none waits for room in it. */
function isIdle({ state, mailbox, handedOut, ending }: OwnedFlow): boolean {
  if (!mailbox.isEmpty() || ending.size > 0) return false
  for (const leaf of state.running.values()) if (!isAgentLeaf(leaf) && !handedOut.has(leaf.id)) return false
  return true
}

async function park(owned: OwnedFlow, forMs: number, isHalted: boolean): Promise<void> {
  const leftMs = isHalted ? forMs : Math.max(0, Math.min(forMs, timeLeftMs(owned)))
  await appendToFlow(owned, [], {
    release: true,
    ...(isHalted ? { is_halted: true } : {}),
    seen_leaves: owned.seenLeaves,
    seen_adjustments: owned.seenAdjustments,
    ready_in_ms: leftMs,
  })
  owned.deps.onParked(leftMs)
}

/** Takes back the functions that were left to others and that no process has begun, so that nobody waits for them. */
async function takeBackUntaken({ state, flow, deps, handedOut }: OwnedFlow): Promise<void> {
  for (const id of await withdrawUntaken(deps.pool, flow.id, [...handedOut])) {
    const leaf = state.running.get(id)
    handedOut.delete(id)
    state.running.delete(id)
    if (leaf) state.ready.push(leaf)
  }
}

/** Stops the leaves that have not ended by now, and waits for none of them. */
async function abandon(owned: OwnedFlow): Promise<void> {
  const { state, mailbox } = owned
  const left = [...state.running.values()]
  await stopLeaves(owned, left)
  const outcome: LeafOutcome = { status: 'failed', error: 'The task was given up when the flow was stopped.' }
  for (const leaf of left) mailbox.put({ type: 'settled', leaf, outcome, startedAtMs: Date.now() })
}
