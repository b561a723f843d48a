// An agent with a prompt_id has its prompt in the library. A run reads it once, before its first step, and journals what
// it read: whoever goes on with the run has the same text, whatever became of it in the library meanwhile. A run that
// continues another reads for itself.
import { MusterError } from '../kernel/errors.ts'
import { triedOften } from '../kernel/retry.ts'
import { isSpecialist } from '../kernel/supervisor.ts'
import { renderPrompt, usesVariable } from '../prompts/render-prompt.ts'
import { type End, failed, unavailable } from './end.ts'
import { leave, type Progress } from './model-step.ts'
import { systemPart, taskTexts } from './prompt-parts.ts'
import { waitAndRetry, waitBefore } from './retry-step.ts'
import type { ReadPrompt } from './run-state.ts'
import { append, type Session } from './session.ts'

/** The prompt of an agent that has none. */
export const roleText = (role: string): string => (role ? `You are ${role}.` : 'You are a capable, careful agent.')

/** Sets the system part of the prompt, or says why it could not. */
export async function readPrompt(session: Session): Promise<Progress> {
  const { agent, state } = session
  try {
    // The agent may have been given another prompt_id while the run waited.
    if (state.prompt?.prompt_id !== agent.prompt_id) {
      const read = await ask(session)
      taskTexts(read, state.task)
      await append(session, [{ kind: 'prompt.read', data: read }])
    }
    session.prompt = systemPart(state.prompt ?? { messages: [] }, state.task) || roleText(agent.role)
    return 'again'
  } catch (error) {
    if (!(error instanceof MusterError)) throw error
    if (error.code === 'UNAVAILABLE') return waitForLibrary(session, error)
    const code = error.code === 'PAYLOAD_TOO_LARGE' ? 'PROMPT_TOO_LARGE' : error.code
    return leave(session, failed(code, error.message, state.text || null))
  }
}

async function ask({ deps, run, agent, state }: Session): Promise<ReadPrompt> {
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

/** The library elsewhere is away: it is asked again after a while, as often as a model; then the run pauses. */
export async function waitForLibrary(session: Session, { message, retryAfterS }: MusterError): Promise<Progress> {
  const { state } = session
  // Every such error asks for a second; our own waits are about as long.
  const retryAfterMs = retryAfterS !== null && retryAfterS > 1 ? retryAfterS * 1_000 : null
  const waitMs = waitBefore(session, { isRetryable: true, retryAfterMs })
  if (waitMs === null) return leave(session, giveUp(session, `${message}${triedOften(state.attempts)}`))
  const again = { step: state.steps + 1, reason: 'failed', message, attempt: state.attempts + 1, wait: waitMs } as const
  return waitAndRetry(session, { kind: 'step.restarted', data: again }, {}, waitMs)
}

/** An attempt at a task fails: its task is tried again. */
function giveUp(session: Session, message: string): End {
  const { run, state } = session
  return run.task_id === null ? unavailable(session, message) : failed('UNAVAILABLE', message, state.text || null)
}
