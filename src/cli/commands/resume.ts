// Continues a run or a flow run that has ended: in a new run, by its task, or in a new flow run.
import { hasEnded } from '../../kernel/run.ts'
import { whyStopped } from '../../kernel/why-stopped.ts'
import { type FlowRunAnswer, flowRunAnswer, type RunAnswer, runAnswer, taskAnswer } from '../answers.ts'
import type { CommandContext, Execute, Given } from '../command.ts'
import { CommandFailure, type ExitCode, exitCodes, misused } from '../exit-codes.ts'
import { type FoundRun, findRun } from '../find-run.ts'
import { numberOption, parseInput, readText, textOption } from '../read-input.ts'
import { styled } from '../screen.ts'
import { shortId } from '../short-id.ts'
import { jsonText } from '../visible-text.ts'
import { watchFlowRun } from '../watch-flow-run.ts'
import { watchRun } from '../watch-run.ts'
import { openWorkplace, type Workplace } from '../workplace.ts'
import { limitsOf } from './run.ts'

export const resumeCommand: Execute = async (context, given) => {
  const workplace = await openWorkplace(context)
  const body = await readBody(context, given)
  const found = await findRun(context, workplace, given.args[0] ?? '', {
    fits: ({ kind, run }) => kind === 'run' && run.status === 'paused' && !run.resumed_as,
    orNewest: canBeResumed,
    words: 'can be resumed',
  })
  if (found.kind === 'flow run') return resumeFlow(context, workplace, given, found.run)
  if (taskToResume(found.run, body) !== null) return resumeTask(context, workplace, found.run)
  requireResumable(found.run, body, workplace)
  const run = await context.client.start(workplace.path(`runs/${found.run.id}/resume`), runAnswer, body)
  const name = await workplace.agentName(run.agent_id)
  if (!context.isJson) context.notes.print(styled('dim', `${name} · ${shortId(run.id)}`))
  return watchRun(context, workplace, run)
}

const RESUMABLE_FLOWS: readonly string[] = ['failed', 'cancelled', 'timed_out', 'partial']

function canBeResumed({ kind, run }: FoundRun): boolean {
  if (kind === 'flow run') return RESUMABLE_FLOWS.includes(run.status)
  return run.status === 'failed' || run.status === 'cancelled'
}

async function readBody(context: CommandContext, given: Given): Promise<Record<string, unknown>> {
  const outcome = textOption(given, 'outcome')
  if (outcome !== null && outcome !== 'done' && outcome !== 'not_done') {
    throw misused(`--outcome takes done or not_done, not "${outcome}".`)
  }
  const input = textOption(given, 'input')
  const result = textOption(given, 'result')
  const callId = textOption(given, 'call')
  return {
    ...limitsOf(given),
    ...(input === null ? {} : { input: parseInput(await readText(context, input), '--input') }),
    ...(outcome === null ? {} : { outcome }),
    ...(callId === null ? {} : { call_id: callId }),
    ...(result === null ? {} : { result: parseInput(await readText(context, result), '--result') }),
  }
}

async function resumeFlow(
  context: CommandContext,
  workplace: Workplace,
  given: Given,
  { id }: FlowRunAnswer,
): Promise<ExitCode> {
  const timeout = numberOption(given, 'timeout', '--timeout')
  const body = timeout === null ? {} : { timeout }
  const run = await context.client.start(workplace.path(`flow-runs/${id}/resume`), flowRunAnswer, body)
  if (!context.isJson) context.notes.print(styled('dim', `Flow run ${shortId(run.id)}`))
  return watchFlowRun(context, workplace, run)
}

/** Says in the words of commands what the server would refuse in those of its routes. */
function requireResumable(run: RunAnswer, body: Record<string, unknown>, { command }: Workplace): void {
  if (hasEnded(run) && run.pause_reason === 'outcome_unknown' && !run.resumed_as && body.outcome === undefined)
    throw misused('Add --outcome done or --outcome not_done.')
  if (!hasEnded(run) && run.waiting_for?.startsWith('provider ')) {
    const message = `This run waits for its provider and tries again by itself. To try at once: ${command(`muster try-now ${shortId(run.id)}`)}`
    throw new CommandFailure(exitCodes.refused, message, { code: 'CONFLICT' })
  }
}

/** The task that decides about the run; null if the run is resumed itself. */
function taskToResume(run: RunAnswer, body: Record<string, unknown>): string | null {
  if (!hasEnded(run) || body.outcome !== undefined) return null
  const { resumed_as = null, max_steps = null } = run
  const stop = whyStopped({ ...run, resumed_as, max_steps, waiting_for: null, wait_message: null })
  return stop?.action === 'resume_task' ? (run.trigger.task_id ?? null) : null
}

/** The next attempt at a task continues the run before it. */
async function resumeTask({ client, out, isJson }: CommandContext, { path }: Workplace, run: RunAnswer) {
  const route = path(`tasks/${run.trigger.task_id}`)
  const { status, title } = await client.ask(route, taskAnswer)
  if (status !== 'blocked' && status !== 'failed') {
    const message = `This run was an attempt at the task "${title}", which is ${status}: there is nothing to resume.`
    throw new CommandFailure(exitCodes.refused, message, {
      code: 'CONFLICT',
      details: { task_id: run.trigger.task_id },
    })
  }
  const task = await client.ask(route, taskAnswer, { method: 'PATCH', body: { status: 'pending' } })
  out.print(isJson ? jsonText(task) : `The task "${title}" is pending again. Its next attempt continues the run.`)
  return exitCodes.done
}
