// The life of a run in the hands of one owner, from its claim until it ends, parks or is handed back. Every event is
// committed before anything follows from it, so that the next owner goes on exactly there.
import { isUnavailable } from '../db/failures.ts'
import type { ClaimedRun } from '../journal/claim.ts'
import { wakeAbove } from '../journal/wake.ts'
import { fault } from '../kernel/fault.ts'
import type { Model } from '../kernel/model-call.ts'
import { rightsWithin } from '../kernel/rights.ts'
import type { RunEvent } from '../kernel/run-event.ts'
import { isSupervisor } from '../kernel/supervisor.ts'
import { closeCalls } from '../tasks/close-questions.ts'
import { announceCalls } from './announce-calls.ts'
import { type End, leave, runFailed, runUnavailable } from './end.ts'
import { handBackForTool, heedSwitches } from './heed-switches.ts'
import { exitOf, resultOf } from './judge-calls.ts'
import { loadState } from './load-state.ts'
import { takeStep } from './model-step.ts'
import { openingQuestion } from './opening.ts'
import { append, chosenModel, type Definition, type OwnedRun, type RunDeps, RunLost } from './owned-run.ts'
import { park } from './park.ts'
import { readPrompt, roleText } from './read-prompt.ts'
import type { RunControl } from './run-control.ts'
import { applyEvent, newState, type RunState } from './run-state.ts'
import { settleCalls } from './settle-calls.ts'
import { noTools, stageTools } from './stages.ts'
import { summaryQuestion } from './summary.ts'
import { toEvent } from './tool-result.ts'
import { callsCutOffLate, leaveUndecided, settledByPerson } from './undecided.ts'

/**
 * Never throws. A run that cannot go on fails with the reason. Returns false if nothing could be written: the database
 * still names this process as the owner.
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
    const owned = await openRun(deps, run, definition, control, state, claimedAtMs)
    if (owned) await work(owned)
    return true
  } catch (error) {
    if (error instanceof RunLost) {
      deps.log.info({ run_id: run.id }, 'the run may belong to another process now')
      return false
    }
    if (isUnavailable(error)) {
      deps.log.warn({ run_id: run.id, err: error }, 'the database is away; the run will be taken again')
      return false
    }
    deps.log.error({ run_id: run.id, err: error }, 'a run failed in our own code')
    return failRun(deps, run, error)
  }
}

async function work(owned: OwnedRun): Promise<void> {
  const { deps, run } = owned
  await announce(owned)
  if (isSupervisor(run.part)) {
    if (!deps.supervise) throw new Error('there is no supervisor system in this process')
    return deps.supervise(owned)
  }
  if (!isFlow(owned)) return loop(owned)
  if (!deps.runFlow) throw new Error('there are no flows in this process')
  await deps.runFlow(owned)
}

/** A run goes on as it began, whatever became of its agent. A decision that a flow asks for is a model call. */
const isFlow = ({ agent, run, state }: Pick<OwnedRun, 'agent' | 'run' | 'state'>): boolean =>
  run.answer === null && (state.flowRunId !== null || (agent.flow_type === 'flow' && !state.hasWorked))

async function loop(owned: OwnedRun): Promise<void> {
  const { state, deps } = owned
  for (;;) {
    const late = await callsCutOffLate(owned)
    if (late.length > 0 && (await leaveUndecided(owned, late)) === 'left') return
    if ((await heedSwitches(owned)) === 'left') return
    if (state.asked.size > 0) {
      await announceCalls(owned)
      continue
    }
    if (state.pending.size === 0) {
      if (state.stage !== owned.stage.index && !(await enterStage(owned))) return
      if (owned.prompt === '') {
        if ((await readPrompt(owned)) === 'left') return
        continue
      }
      owned.question = (await openingQuestion(owned)) ?? summaryQuestion(owned)
      if ((await takeStep(owned)) === 'left') return
      continue
    }
    const settled = await settleCalls(owned)
    switch (settled.next) {
      case 'again':
        continue
      case 'outcome_unknown':
        if ((await leaveUndecided(owned, settled.calls)) === 'left') return
        continue
      case 'unavailable':
        await leave(owned, runUnavailable(owned, settled.message))
        return
      case 'exit': {
        const { call } = settled
        await leave(owned, exitOf(state.text, resultOf(call.args)), [toEvent(call, { finished: true }, false)])
        return
      }
      case 'park':
        await park(owned, settled.for)
        deps.onReady()
        return
    }
  }
}

async function stateOf(deps: RunDeps, run: ClaimedRun): Promise<RunState> {
  if (!run.is_new || run.base_run_id !== null) return loadState(deps.pool, run)
  const state = newState()
  if (run.ancestors.length === 0) applyEvent(state, startedEvent(run), 0)
  return state
}

function startedEvent(run: ClaimedRun): RunEvent {
  const { agent_id, input, resumed_from, trigger } = run
  const isReset = trigger.type === 'resume' || trigger.resumed_by !== undefined
  const data = { agent_id, ...(resumed_from ? { resumed_from } : {}), ...(isReset ? { is_reset: true } : {}), input }
  return { kind: 'run.started', data }
}

/** Writes first that a sub-run starts or continues, and the outcomes of calls that people gave. */
async function announce(owned: OwnedRun): Promise<void> {
  const { run, state, deps } = owned
  const first = firstEvents(run)
  if (first.length > 0) await append(owned, first)
  const isBelow = run.parent_run_id !== null || run.flow_run_id !== null
  if (run.was_paused && isBelow && (await wakeAbove(deps.pool, { runIds: [run.id] }))) deps.onReady()
  const settled = [run.trigger.settled ?? []].flat().flatMap((decision) => {
    const call = state.pending.get(decision.call_id)
    return call ? [settledByPerson(call, decision)] : []
  })
  if (settled.length > 0) await append(owned, settled)
}

/** The claim of a run without ancestors has written these events itself. */
function firstEvents(run: ClaimedRun): RunEvent[] {
  if (run.ancestors.length === 0) return []
  const continued: RunEvent[] = run.was_paused ? [{ kind: 'run.continued', data: {} }] : []
  return run.is_new ? [startedEvent(run)] : continued
}

/** Resolves everything that the run's definition names, as it is now; an unknown name ends the run. */
async function openRun(
  deps: RunDeps,
  run: ClaimedRun,
  definition: Definition | null,
  control: RunControl,
  state: RunState,
  claimedAtMs: number,
): Promise<OwnedRun | null> {
  if (run.cancel_requested_at !== null) control.interrupt('cancel')
  if (run.stop_requested_at !== null) control.askToStop()
  const close = async (end: End): Promise<null> => {
    await endUnopened(deps, run, end)
    return null
  }
  if (!definition) return close(runFailed('AGENT_DELETED', 'The agent of this run was deleted.', state.text || null))
  const { agent, settings } = definition
  // Queued runs of a disabled agent do not begin any more; runs under way may end.
  if (!agent.enabled && run.is_new)
    return close(runFailed('AGENT_DISABLED', `The agent ${agent.name} was disabled before this run began.`, null))
  const rights = rightsWithin(run.rights, agent)
  const woken = run.waits_for === 'provider' ? await deps.outages.leave(run.id) : null
  const opened = { run, agent, settings, rights, state, control, deps, claimedAtMs, reserved: run.reserved, woken }
  if (isFlow({ agent, run, state })) return { ...opened, ...noModel }
  const choice = chosenModel(definition)
  const [model, stage] = await Promise.all([
    deps.resolveModel(choice),
    run.answer ? { tools: noTools } : stageTools(deps, agent, state.stage, { rights, isSenior: run.has_subordinates }),
  ])
  if (!model) {
    deps.outages.answered(choice)
    return close(runFailed('MODEL_ERROR', `There is no provider called "${choice.provider}".`, null))
  }
  if ('missing' in stage) {
    if (!isElsewhere(deps, stage.missing)) return close(missingTools(stage.missing))
    await handBackForTool({ run, state, deps }, firstEvents(run))
    return null
  }
  const prompt = agent.prompt_id === null ? agent.prompt || roleText(agent.role) : ''
  return { ...opened, model: model satisfies Model, stage: stage.tools, prompt, call: null, question: null }
}

/** An agent that is a flow calls no model itself. */
const noModel = {
  model: { call: () => Promise.reject(new Error('a flow calls no model itself')), contextTokens: 0, price: null },
  stage: noTools,
  prompt: '',
  call: null,
  question: null,
} satisfies Partial<OwnedRun>

const missingTools = (names: readonly string[]): End =>
  runFailed('TOOL_ERROR', `The agent names tools that do not exist (any more): ${names.join(', ')}.`, null)

/**
 * A process with these tools may be alive, or come: the agent was changed since the claim. MCP servers are known to all
 * processes.
 */
const isElsewhere = ({ isRouted }: RunDeps, missing: readonly string[]): boolean =>
  isRouted && missing.some((name) => !name.startsWith('mcp:'))

/** Returns false if tools of the stage do not exist; the run has ended or was handed back then. */
async function enterStage(owned: OwnedRun): Promise<boolean> {
  const { deps, agent, state, rights, run } = owned
  const stage = await stageTools(deps, agent, state.stage, { rights, isSenior: run.has_subordinates })
  if ('missing' in stage) {
    if (isElsewhere(deps, stage.missing)) await handBackForTool(owned)
    else await leave(owned, missingTools(stage.missing))
    return false
  }
  owned.stage = stage.tools
  return true
}

async function failRun(deps: RunDeps, run: ClaimedRun, error: unknown): Promise<boolean> {
  const message = error instanceof Error ? error.message : String(error)
  try {
    await endUnopened(
      deps,
      run,
      runFailed('INTERNAL_ERROR', `Muster failed while working on this run: ${message}`, null),
    )
    return true
  } catch (again) {
    deps.log.error({ run_id: run.id, err: again }, 'the failure could not be written; the run will be taken again')
    return false
  }
}

async function endUnopened(deps: RunDeps, run: ClaimedRun, end: End): Promise<void> {
  const { id: runId, fence, ancestors } = run
  await deps.journal.appendAfter(deps.pool, async (tx) => {
    await closeCalls(tx, [runId])
    return { runId, fence, events: [end.event], change: { set: end.set }, ancestors }
  })
}
