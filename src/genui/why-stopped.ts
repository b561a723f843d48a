import type { PauseReason, Run } from '../kernel/run.ts'
import { sayCounted } from './amounts.ts'

type Stopped = Pick<
  Run,
  'status' | 'pause_reason' | 'waiting_for' | 'error_code' | 'error_message' | 'max_steps' | 'completed_at'
>

export interface Explained {
  /** Plain words, followed by the message of the run's error. */
  words: string
  tone: 'neutral' | 'good' | 'warning' | 'bad'
}

/** The reason for a run's status, and the way to let the run go on. */
export function whyStopped(run: Stopped): Explained {
  switch (run.status) {
    case 'queued':
      return { words: 'The run waits for its turn.', tone: 'neutral' }
    case 'running':
      return { words: 'The run is in progress.', tone: 'neutral' }
    case 'completed':
      return { words: 'The run finished its work.', tone: 'good' }
    case 'cancelled':
      return { words: 'The run was cancelled before it had finished.', tone: 'neutral' }
    case 'failed':
      return { words: withMessage(FAILURES.get(run.error_code) ?? 'The run failed.', run), tone: 'bad' }
    case 'paused':
      return { words: withMessage(pausedBecause(run), run), tone: 'warning' }
  }
}

const FAILURES = new Map<string | null, string>(
  Object.entries({
    DOOM_LOOP: 'The run made the same call again and again, and was stopped.',
    CRASH_LOOP: 'The process that worked on the run died again and again, so it was given up.',
    MODEL_ERROR: 'The model could not be used.',
    BUDGET_EXHAUSTED: 'The agent had no tokens left, so the run was refused before its first call.',
    TOOL_ERROR: 'A tool failed, and the run could not go on.',
    PROMPT_MISSING: 'A prompt that the run needs is missing in the library.',
    FLOW_FAILED: 'The flow that the run started failed.',
    MIDDLEWARE_ERROR: 'Middleware of the app module failed.',
    INTERNAL_ERROR: 'Muster itself failed on this run.',
  }),
)

const PAUSES: { readonly [Reason in PauseReason]: string } = {
  step_limit: 'The run reached its limit of steps. Resume it to go on.',
  timeout: 'The run took longer than it may. Resume it to go on.',
  context: 'The conversation became too long for the model.',
  budget: 'There are no tokens left for the run. It goes on, or can be resumed, once there are.',
  outcome_unknown:
    'The process died during a call that must not be repeated. A person must state the outcome of the call.',
  human: 'The run waits for the answer of a person.',
  halted: 'The project is halted. The run goes on when it is released.',
  stopped: 'The agent was stopped. The work goes on when it is started.',
  unavailable: 'The model or the prompt library did not answer for too long. The run can be continued.',
}

function pausedBecause(run: Stopped): string {
  const { pause_reason: reason, max_steps: most, completed_at: endedAt, waiting_for: waitingFor } = run
  if (reason === null) return 'The run is paused.'
  if (reason === 'step_limit' && most !== null)
    return `The run reached its limit of ${sayCounted(most, 'step')}. Resume it to go on.`
  if (reason === 'unavailable' && waitingFor !== null) return `The run waits for ${waitingFor} and continues by itself.`
  // An eval asks no people: its run ends with the question.
  if (reason === 'human' && endedAt !== null) return 'The run ended with a question to a person.'
  return PAUSES[reason]
}

function withMessage(words: string, { error_message: message }: Stopped): string {
  const said = message?.trim() ?? ''
  return said === '' ? words : `${words} It says: ${said}`
}
