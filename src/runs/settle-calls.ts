// The tool calls of a step: made all at once, each result committed as soon as it exists. A call that waits for a
// sub-run or a person parks the run.
import type { RunChange } from '../journal/run-change.ts'
import { fault } from '../kernel/fault.ts'
import type { CutReason, RunEvent } from '../kernel/run-event.ts'
import type { CallTool } from '../kernel/tool.ts'
import { executeTool, type ToolOutcome } from '../tools/execute-tool.ts'
import { type OpenApprovals, settleApprovals } from './approvals.ts'
import { atOnce } from './at-once.ts'
import { type OpenChildren, settleChildren } from './children.ts'
import { heldInEval } from './eval-calls.ts'
import { afterTool, hookError } from './middleware.ts'
import { append, type OwnedRun, openAppend, remainingMs } from './owned-run.ts'
import { isHeld, type PendingCall, pendingCall } from './pending-call.ts'
import { createProgress, type Progress } from './progress.ts'
import { settleQuestions } from './questions.ts'
import type { CallSignal } from './run-control.ts'
import { settleWrites } from './settle-writes.ts'
import { cutOff, timedOut, toEvent, toolGone, unanswered, withheld, withInheritedArgs } from './tool-result.ts'
import { settleDecided } from './undecided.ts'

/** again: every call that can be settled now is settled · park: the calls that are left wait for others. */
export type Settled =
  | { next: 'again' }
  | { next: 'outcome_unknown'; calls: PendingCall[] }
  /** A sub-run behind a request has lost its model. */
  | { next: 'unavailable'; message: string }
  /** The agent left its loop with this call, and no call is left. */
  | { next: 'exit'; call: PendingCall }
  | { next: 'park'; for: Waits }
export interface Waits {
  children: boolean
  /** All runs below wait. */
  isStill?: boolean
  /** A person must answer a question. */
  human: boolean
  approvals?: OpenApprovals
  /** People are asked about these calls at once, although the run waits for others, too. */
  undecided?: readonly PendingCall[]
}

export async function settleCalls(owned: OwnedRun): Promise<Settled> {
  const { state, stage, control, run, deps } = owned
  const held = heldInEval(owned)
  if (held.length > 0) await append(owned, held)
  const waiting = [...state.pending.values()].filter(isHeld)
  const approvals = waiting.length > 0 ? await settleApprovals(owned, waiting) : { count: 0, rejectedAtMs: null }
  const pending = [...state.pending.values()].filter((call) => !isHeld(call))
  const unknown = pending.filter(isUndecided)
  const callable = pending.filter((call) => call.effect !== 'run' && !isUndecided(call))
  if (callable.length > 0) {
    const call = control.signalFor(remainingMs(owned))
    await makeCalls(owned, callable, call)
    call.end()
    if (control.interruption() || deps.isHalted(run.project_id)) return { next: 'again' }
  }
  const ofRun = pending.filter((one) => one.effect === 'run')
  const spawns = ofRun.filter((one) => stage.byName.get(one.name)?.kind === 'spawn_agent')
  const questions = ofRun.filter((one) => stage.byName.get(one.name)?.kind === 'ask_human')
  const writes = ofRun.filter((one) => one.written || stage.byName.get(one.name)?.kind === 'write')
  const orphanedCalls = ofRun.filter((one) => !one.written && !stage.byName.has(one.name))
  if (orphanedCalls.length > 0) await append(owned, orphanedCalls.map(toolGone))
  if (writes.length > 0) await settleWrites(owned, writes)
  if (control.interruption() || control.isAskedToYield() || deps.isHalted(run.project_id)) return { next: 'again' }
  const children = spawns.length > 0 ? await settleChildren(owned, spawns) : NO_CHILDREN
  const openQuestions = questions.length > 0 ? await settleQuestions(owned, questions) : 0
  const open = children.count + openQuestions + approvals.count
  const undecided = await settleDecided(owned, open > 0 ? cutOffSoFar(owned) : unknown)
  if (open > 0)
    return {
      next: 'park',
      for: { children: children.count > 0, isStill: children.isStill, human: openQuestions > 0, approvals, undecided },
    }
  // A call that was cut off just now is found in the next round.
  if (undecided.length > 0) return { next: 'outcome_unknown', calls: undecided }
  const isDoubted = [...state.pending.values()].some(isUndecided)
  if (children.unavailable !== null && !isDoubted) return { next: 'unavailable', message: children.unavailable }
  const exit = ofRun.find((one) => stage.byName.get(one.name)?.kind === 'finish_loop')
  return exit && state.pending.size === 1 ? { next: 'exit', call: exit } : { next: 'again' }
}

const NO_CHILDREN: OpenChildren = { count: 0, isStill: false, unavailable: null }

const cutOffSoFar = ({ state }: OwnedRun): PendingCall[] =>
  [...state.pending.values()].filter((call) => !isHeld(call) && isUndecided(call))

/** A call that nobody may repeat, and whose outcome nobody knows. */
const isUndecided = (call: PendingCall): boolean => call.effect === 'unsafe' && call.isUnknown

/** Results that arrive while an earlier one is being committed are committed together, with the next commit. */
async function makeCalls(owned: OwnedRun, calls: readonly PendingCall[], signal: CallSignal): Promise<void> {
  let done: RunEvent[] = []
  let writing: Promise<void> | null = null
  const flush = async (): Promise<void> => {
    while (done.length > 0) {
      const events = done
      done = []
      await append(owned, events)
    }
    writing = null
  }
  await callAll(owned, calls, signal, (events) => {
    done.push(...events)
    if (writing) return
    writing = flush()
    // A failure reaches the wait below; other calls may be under way until then.
    writing.catch(() => {})
  })
  while (writing) await writing
}

async function callAll(
  owned: OwnedRun,
  calls: readonly PendingCall[],
  signal: CallSignal,
  onResult: (events: readonly RunEvent[]) => void,
): Promise<void> {
  await atOnce(calls, async (call) => {
    const events = await makeCall(owned, call, signal)
    if (events.length > 0) onResult(events.map((event) => withInheritedArgs(owned.run.id, call, event)))
  })
}

/** Calls that change nothing need no announcement before they are made. */
export const changesNothing = (events: readonly RunEvent[]): boolean =>
  events.every((event) => event.kind !== 'tool.started' || (event.data.effect === 'readonly' && !event.data.approval))

/**
 * Commits a step whose calls change nothing. They are made while the step waits for its commit; results that arrive in
 * time are committed with the step. Everything is committed before the next model call, as always.
 */
export async function commitWithCalls(owned: OwnedRun, events: readonly RunEvent[], change: RunChange): Promise<void> {
  const calls = events.flatMap((event) => (event.kind === 'tool.started' ? [pendingCall(event.data, Date.now())] : []))
  const signal = owned.control.signalFor(remainingMs(owned))
  const commit = openAppend(owned, events, change)
  const results: RunEvent[] = []
  const made = callAll(owned, calls, signal, (made) => results.push(...made))
  await Promise.race([made, commit.taken])
  const early = results.splice(0)
  const areCommitted = early.length === 0 || commit.join(early)
  await commit.done(areCommitted ? early : [])
  await made
  signal.end()
  if (!areCommitted) results.unshift(...early)
  if (results.length > 0) await append(owned, results)
}

/** Returns no events if the call was not made, or if this process may have lost the run. */
async function makeCall(owned: OwnedRun, call: PendingCall, signal: CallSignal): Promise<RunEvent[]> {
  const { run, settings, stage, deps, control } = owned
  const tool = stage.byName.get(call.name)
  await fault('tool.before')
  if (signal.cause() === 'deadline') return [timedOut(call, null)]
  if (control.interruption() || control.isAskedToYield() || deps.isHalted(run.project_id)) return []
  if (tool?.kind !== 'call') return [toolGone(call)]
  // Between the last look at the switches and the call nothing is awaited: a call that was not made has not begun.
  call.hasBegun = true
  const startedAt = Date.now()
  const said = ({ value }: { value: unknown }): RunEvent => ({
    kind: 'tool.progress',
    data: { step: call.step, call_id: call.id, progress: value },
  })
  const progress = createProgress((value) => append(owned, [said({ value })]))
  const outcome = await execute(owned, tool, call, signal, progress)
  const last = await progress.end()
  const before = last ? [said(last)] : []
  const cut = call.effect === 'unsafe' ? cutReason(outcome.cause, signal) : null
  // A process that may have lost the run must not write; the next owner doubts the call all the same.
  if (cut === 'lapse') return []
  if (cut) return [...before, cutOff(call, cut, startedAt, outcome)]
  if (outcome.cause === 'aborted') {
    if (signal.cause() === 'deadline') return [timedOut(call, startedAt)]
    // The effect of the call is unknown: the run that continues this one makes the call again, with the same key.
    return before
  }
  const passed = await afterTool(owned, call, outcome, signal.signal)
  await fault('tool.after_effect_before_commit')
  if (outcome.rawBytes !== undefined && outcome.rawBytes > settings.tool_output_limit) {
    deps.log.info({ run_id: run.id, tool: call.name, bytes: outcome.rawBytes }, 'a tool result was cut')
  }
  switch (passed.kind) {
    case 'aborted':
      return [...before, ...unseen(call, signal, startedAt)]
    case 'failed':
      return [...before, toEvent(call, hookError(passed.message), true, startedAt)]
    case 'passed': {
      const event = toEvent(call, passed.value.result, passed.value.isError, startedAt)
      return [...before, isUnanswered(outcome) ? unanswered(event) : event]
    }
  }
}

const isUnanswered = ({ cause }: ToolOutcome): boolean => cause === 'timeout' || cause === 'lost'

/** Why nobody knows the outcome of an unsafe call that was made; null if its outcome is known. */
function cutReason(cause: ToolOutcome['cause'], signal: CallSignal): CutReason | 'lapse' | null {
  switch (cause) {
    case 'ok':
    case 'error':
      return null
    case 'timeout':
      return 'timeout'
    case 'lost':
      return 'connection'
    case 'aborted': {
      const by = signal.cause()
      return by === 'hand_back' ? 'shutdown' : (by ?? 'lapse')
    }
  }
}

/** Middleware has not seen the result: the call is made again if it may be, or recorded as made without its result. */
function unseen(call: PendingCall, signal: CallSignal, startedAt: number): RunEvent[] {
  const cause = signal.cause()
  if (cause === 'deadline') return [withheld(call, startedAt, 'timeout')]
  const isKept = cause === 'cancel' || (cause === 'hand_back' && call.effect === 'unsafe')
  return isKept ? [withheld(call, startedAt)] : []
}

function execute(owned: OwnedRun, tool: CallTool, call: PendingCall, signal: CallSignal, { emit }: Progress) {
  const { run, settings, deps } = owned
  const context = {
    signal: signal.signal,
    key: call.key,
    attempt: call.attempt,
    run_id: run.id,
    project_id: run.project_id,
    log: deps.log,
    emit,
  }
  const effect = call.effect === 'run' ? tool.effect : call.effect
  return executeTool({ ...tool, effect }, call.args, context, {
    timeoutMs: tool.timeoutMs ?? settings.tool_timeout,
    outputLimitBytes: settings.tool_output_limit,
    // After a cancel the tool may end cleanly if it can; a deadline waits for no tool.
    drainMs: () => (signal.cause() === 'cancel' ? settings.cancel_drain : 0),
  })
}
