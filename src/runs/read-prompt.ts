// An agent with a prompt_id has its prompt in the library. A run reads the prompt once, before its first step, and
// journals the text for its next owners. A run that continues another reads the prompt for itself.
import { MusterError } from '../kernel/errors.ts'
import { triedOften } from '../kernel/retry.ts'
import { isSpecialist } from '../kernel/supervisor.ts'
import { renderPrompt, usesVariable } from '../prompts/render-prompt.ts'
import { type End, leave, runFailed, runUnavailable } from './end.ts'
import type { StepProgress } from './model-step.ts'
import { append, type OwnedRun } from './owned-run.ts'
import { systemPart, taskTexts } from './prompt-parts.ts'
import { waitAndRetry, waitBefore } from './retry-step.ts'
import type { ReadPrompt } from './run-state.ts'

/** The prompt of an agent that has no prompt. */
export const roleText = (role: string): string => (role ? `You are ${role}.` : 'You are a capable, careful agent.')

/** Sets the system part of the prompt, or ends the run with the reason why there is none. */
export async function readPrompt(owned: OwnedRun): Promise<StepProgress> {
  const { agent, state } = owned
  try {
    // The agent may have been given another prompt_id while the run waited.
    if (state.prompt?.prompt_id !== agent.prompt_id) {
      const read = await ask(owned)
      taskTexts(read, state.task)
      await append(owned, [{ kind: 'prompt.read', data: read }])
    }
    owned.prompt = systemPart(state.prompt ?? { messages: [] }, state.task) || roleText(agent.role)
    return 'again'
  } catch (error) {
    if (!(error instanceof MusterError)) throw error
    if (error.code === 'UNAVAILABLE') return waitForLibrary(owned, error)
    const code = error.code === 'PAYLOAD_TOO_LARGE' ? 'PROMPT_TOO_LARGE' : error.code
    return leave(owned, runFailed(code, error.message, state.text || null))
  }
}

async function ask({ deps, run, agent, state }: OwnedRun): Promise<ReadPrompt> {
  const promptId = agent.prompt_id ?? ''
  const { variantId, version, messages } = await deps.resolvePrompt(run.project_id, promptId, run.part?.variant)
  const read = { prompt_id: promptId, variant_id: variantId, version, messages }
  if (!isSpecialist(run.part)) return read
  return {
    ...read,
    messages: renderPrompt(messages, { ...run.part.values, USER_INPUT: state.task }),
    rendered: true,
    shows_task: usesVariable(messages, 'USER_INPUT'),
  }
}

/** The library is away. It is asked again after a while, as often as a model; then the run pauses. */
export async function waitForLibrary(owned: OwnedRun, { message, retryAfterS }: MusterError): Promise<StepProgress> {
  const { state } = owned
  // Every such error asks for a wait of one second; our own waits are about as long.
  const retryAfterMs = retryAfterS !== null && retryAfterS > 1 ? retryAfterS * 1_000 : null
  const waitMs = waitBefore(owned, { isRetryable: true, retryAfterMs })
  if (waitMs === null) return leave(owned, endWithoutPrompt(owned, `${message}${triedOften(state.attempts)}`))
  const again = { step: state.steps + 1, reason: 'failed', message, attempt: state.attempts + 1, wait: waitMs } as const
  return waitAndRetry(owned, { kind: 'step.restarted', data: again }, {}, waitMs)
}

/** An attempt at a task fails, so that the task is tried again. */
function endWithoutPrompt(owned: OwnedRun, message: string): End {
  const { run, state } = owned
  return run.task_id === null ? runUnavailable(owned, message) : runFailed('UNAVAILABLE', message, state.text || null)
}
