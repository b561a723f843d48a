// The life of a run in the hands of one owner, from its claim until it ends, parks or goes back. Before each step the
// switches are asked; then the calls of the last step are settled, or the model is called. Every event is committed
// before anything follows from it, so that the next owner goes on exactly there.
import { explainFailure } from '../db/failures.ts'
import type { ClaimedRun, Settlement } from '../journal/claim.ts'
import { fault } from '../kernel/fault.ts'
import type { Model } from '../kernel/model-call.ts'
import { rightsWithin } from '../kernel/rights.ts'
import type { RunEvent } from '../kernel/run-event.ts'
import { isSupervisor } from '../kernel/supervisor.ts'
import { announceCalls } from './announce-calls.ts'
import { cancelled, type End, failed, stopped } from './end.ts'
import { loadState } from './load-state.ts'
import { leave, takeStep } from './model-step.ts'
import { openingQuestion } from './opening.ts'
import { notBegun, park, parkHalted } from './park.ts'
import { readPrompt, roleText } from './read-prompt.ts'
import type { RunControl } from './run-control.ts'
import { applyEvent, newState, type PendingCall, type RunState } from './run-state.ts'
import { append, type Definition, type RunDeps, RunLost, type Session } from './session.ts'
import { settleCalls } from './settle-calls.ts'
import { noTools, stageTools } from './stages.ts'
import { summaryQuestion } from './summary.ts'
import { toEvent } from './tool-result.ts'
import { leaveUndecided } from './undecided.ts'

/**
 * Never throws. A run that cannot go on fails, and its error says why. False: nothing could be written, and the run is
 * this process's in the database alone.
 */
export async function executeRun(
  deps: RunDeps,
  run: ClaimedRun,
  definition: Definition | null,
  control: RunControl,
): Promise<boolean> {
  try {
    await fault('claim.after')
    const claimedAtMs = performance.now()
    const state = await stateOf(deps, run)
    const session = await openSession(deps, run, definition, control, state, claimedAtMs)
    if (session) await work(session)
    return true
  } catch (error) {
    if (error instanceof RunLost) {
      deps.log.info({ run_id: run.id }, 'the run may belong to another process now')
      return false
    }
    if (explainFailure(error)?.code === 'UNAVAILABLE') {
      deps.log.warn({ run_id: run.id, err: error }, 'the database is away; the run will be taken again')
      return false
    }
    deps.log.error({ run_id: run.id, err: error }, 'a run failed in our own code')
    return failRun(deps, run, error)
  }
}

async function work(session: Session): Promise<void> {
  const { deps, run } = session
  await announce(session)
  if (!isSupervisor(run.part)) return loop(session)
  if (!deps.supervise) throw new Error('there is no supervisor system in this process')
  await deps.supervise(session)
}

/** Heeds what was asked of the run meanwhile. go: nothing · left: the run is no longer this process's. */
export async function heedSwitches(session: Session): Promise<'go' | 'left'> {
  const { control, state, deps, run } = session
  for (;;) {
    if (control.interruption() === 'lapse') throw new RunLost('lapsed')
    if (control.interruption() === 'cancel') return leave(session, cancelled(state.text || null)).then(() => 'left')
    if (control.isAskedToStop()) return pauseStopped(session).then(() => 'left')
    if (control.interruption() === 'hand_back' || control.isAskedToYield()) return handBack(session).then(() => 'left')
    if (!deps.isHalted(run.project_id)) return 'go'
    if (await parkHalted(session)) return 'left'
  }
}

async function loop(session: Session): Promise<void> {
  const { state, deps } = session
  for (;;) {
    if ((await heedSwitches(session)) === 'left') return
    if (state.asked.size > 0) {
      await announceCalls(session)
      continue
    }
    if (state.pending.size === 0) {
      if (state.stage !== session.stage.index && !(await enterStage(session))) return
      if (session.prompt === '') {
        if ((await readPrompt(session)) === 'left') return
        continue
      }
      session.question = (await openingQuestion(session)) ?? summaryQuestion(session)
      if ((await takeStep(session)) === 'left') return
      continue
    }
    const settled = await settleCalls(session)
    switch (settled.next) {
      case 'again':
        continue
      case 'outcome_unknown':
        return leaveUndecided(session, settled.call)
      case 'park':
        await park(session, settled.for)
        deps.onReady()
        return
    }
  }
}

async function stateOf(deps: RunDeps, run: ClaimedRun): Promise<RunState> {
  if (!run.is_new || run.base_run_id !== null) return withOwnKeys(run, await loadState(deps.pool, run))
  const state = newState()
  if (run.ancestors.length === 0) applyEvent(state, startedEvent(run), 0)
  return state
}

/** A fork repeats on purpose the calls that its original announced: as effects of its own, under keys of its own. */
function withOwnKeys(run: ClaimedRun, state: RunState): RunState {
  if (run.forked_from === null) return state
  for (const call of state.pending.values()) {
    if (call.key.startsWith(run.id)) continue
    Object.assign(call, { key: `${run.id}:${call.key}`, attempt: 1, isUnknown: false, written: null })
  }
  return state
}

function startedEvent(run: ClaimedRun): RunEvent {
  const { agent_id, input, resumed_from } = run
  return { kind: 'run.started', data: { agent_id, ...(resumed_from ? { resumed_from } : {}), input } }
}

/** Writes first that a sub-run starts or goes on, and the outcome of a call that a person told at the resume. */
async function announce(session: Session): Promise<void> {
  const { run, state } = session
  if (run.ancestors.length > 0 && run.is_new) await append(session, [startedEvent(run)])
  if (run.ancestors.length > 0 && run.was_paused) await append(session, [{ kind: 'run.continued', data: {} }])
  const { settled } = run.trigger
  const call = settled && state.pending.get(settled.call_id)
  if (call) await append(session, [settledByPerson(call, settled)])
}

/** The model gets the person's word as the call's result; the call is not repeated. */
function settledByPerson(call: PendingCall, { outcome, result }: Settlement): RunEvent {
  const isDone = outcome === 'done'
  const said = isDone ? (result ?? { done: true }) : { error: 'This call was not carried out. A person checked it.' }
  const { kind, data } = toEvent(call, said, !isDone)
  return { kind, data: { ...data, settled_by: 'person', args: call.args } }
}

/** Everything the run's definition names, as it is now; a name that leads nowhere ends the run. */
async function openSession(
  deps: RunDeps,
  run: ClaimedRun,
  definition: Definition | null,
  control: RunControl,
  state: RunState,
  claimedAtMs: number,
): Promise<Session | null> {
  if (run.cancel_requested_at !== null) control.interrupt('cancel')
  if (run.stop_requested_at !== null) control.askToStop()
  const close = async (end: End): Promise<null> => {
    await endUnopened(deps, run, end)
    return null
  }
  if (!definition) return close(failed('AGENT_DELETED', 'The agent of this run was deleted.', state.text || null))
  const { agent, settings } = definition
  // Queued runs of a disabled agent do not begin any more; runs under way may end.
  if (!agent.enabled && run.is_new)
    return close(failed('AGENT_DISABLED', `The agent ${agent.name} was disabled before this run began.`, null))
  const rights = rightsWithin(run.rights, agent)
  const choice = agent.model ?? { ...settings.default_model, max_output_tokens: 4_096 }
  const [model, stage] = await Promise.all([
    deps.resolveModel(choice),
    run.answer
      ? { tools: noTools }
      : stageTools(deps, agent, state.stage, { mode: rights.mode, isSenior: run.has_subordinates }),
  ])
  if (!model) return close(failed('MODEL_ERROR', `There is no provider called "${choice.provider}".`, null))
  if ('missing' in stage) return close(missingTools(stage.missing))
  const parts = { run, agent, settings, rights, state, control, deps, model: model satisfies Model }
  return {
    ...parts,
    stage: stage.tools,
    prompt: agent.prompt_id === null ? agent.prompt || roleText(agent.role) : '',
    claimedAtMs,
    reserved: run.reserved,
    call: null,
    question: null,
  }
}

const missingTools = (names: readonly string[]): End =>
  failed('TOOL_ERROR', `The agent names tools that do not exist (any more): ${names.join(', ')}.`, null)

/** False: tools of the stage do not exist, and the run has ended. */
async function enterStage(session: Session): Promise<boolean> {
  const { deps, agent, state, rights, run } = session
  const stage = await stageTools(deps, agent, state.stage, { mode: rights.mode, isSenior: run.has_subordinates })
  if ('missing' in stage) {
    await leave(session, missingTools(stage.missing))
    return false
  }
  session.stage = stage.tools
  return true
}

/** The agent was stopped: the attempt at its task goes on, in a new run, when the agent is started. */
async function pauseStopped(session: Session): Promise<void> {
  const { state } = session
  await leave(session, stopped('stopped', state.text || null, { notBegun: notBegun(state) }))
}

/** Gives the run back at shutdown, or because this process is needed for one run alone: another slot goes on. */
async function handBack(session: Session): Promise<void> {
  const data = { waits_for: 'slot', not_begun: notBegun(session.state) }
  await append(session, [{ kind: 'run.parked', data }], { set: { release: true, ready_in_ms: 0 } })
  session.deps.onReady()
}

async function failRun(deps: RunDeps, run: ClaimedRun, error: unknown): Promise<boolean> {
  const message = error instanceof Error ? error.message : String(error)
  try {
    await endUnopened(deps, run, failed('INTERNAL_ERROR', `Muster failed while working on this run: ${message}`, null))
    return true
  } catch (again) {
    deps.log.error({ run_id: run.id, err: again }, 'the failure could not be written; the run will be taken again')
    return false
  }
}

async function endUnopened(deps: RunDeps, run: ClaimedRun, end: End): Promise<void> {
  const { id: runId, fence, ancestors } = run
  await deps.journal.append({ runId, fence, events: [end.event], change: { set: end.set }, ancestors })
}
