// Why a run does not work now, and the one action that resolves it. The console, the commands and generated layouts show
// both in their own ways.
import type { Run } from './run.ts'

/**
 * - `answer`, `approve`, `decide_outcome`: a person answers its question, decides about a call, or tells the outcome of one.
 * - `resume`: a new run continues it. `resume_task`, `resume_flow`: the task, or the flow run, is resumed instead.
 * - `open_continuation`: another run continues it already.
 * - `try_now`: it tries again by itself, and can be told to try at once.
 * - `top_up`, `unhalt`, `start_agent`: it continues with tokens, without the halt, or with its agent.
 */
export type StopAction =
  | 'answer'
  | 'approve'
  | 'decide_outcome'
  | 'resume'
  | 'resume_task'
  | 'resume_flow'
  | 'open_continuation'
  | 'try_now'
  | 'top_up'
  | 'unhalt'
  | 'start_agent'

export interface WhyStopped {
  /** One sentence or two, without the message of an error. */
  why: string
  /** Null if nobody needs to act, or nobody can. */
  action: StopAction | null
}

export type StoppedRun = Pick<
  Run,
  | 'agent_id'
  | 'status'
  | 'trigger'
  | 'pause_reason'
  | 'error_code'
  | 'max_steps'
  | 'step_count'
  | 'resumed_as'
  | 'completed_at'
  | 'waiting_for'
  | 'wait_message'
>

/** Null for a run that is queued, running or completed and waits for nothing. `subject` begins the sentences. */
export function whyStopped(run: StoppedRun, subject = 'The run'): WhyStopped | null {
  if (run.completed_at === null) {
    const wait = waitOf(run, subject)
    if (wait !== null) return wait
  }
  switch (run.status) {
    case 'queued':
    case 'running':
    case 'completed':
      return null
    case 'cancelled':
      return { why: `The run was cancelled after ${stepsText(run.step_count)}.`, action: continuationBy(run) }
    case 'failed':
      return {
        why: FAILURES.get(run.error_code) ?? `${subject} failed after ${stepsText(run.step_count)}.`,
        action: continuationBy(run),
      }
    case 'paused':
      return pauseOf(run, subject)
  }
}

const FAILURES = new Map<string | null, string>(
  Object.entries({
    DOOM_LOOP: 'It made the same call again and again, and was stopped.',
    CRASH_LOOP: 'The process that worked on it died again and again, so it was given up.',
    MODEL_ERROR: 'The model could not be used.',
    BUDGET_EXHAUSTED: 'It did not begin: the agent has no tokens left.',
    TOOL_ERROR: 'A tool failed, and it could not continue.',
    PROMPT_MISSING: 'Its prompt does not exist in the library.',
    FLOW_FAILED: 'The flow that it started failed.',
    MIDDLEWARE_ERROR: 'Middleware of the app module failed.',
    INTERNAL_ERROR: 'Muster itself failed on this run.',
  }),
)

/** The thing that a run waits for: "provider openai" has the kind provider and the name openai. */
export function awaitedBy({ waiting_for: awaited }: Pick<Run, 'waiting_for'>): { kind: string; name: string } | null {
  if (awaited === null) return null
  const [kind = '', name = ''] = awaited.split(/ (.*)/s)
  return { kind, name }
}

function waitOf(run: StoppedRun, subject: string): WhyStopped | null {
  const awaited = awaitedBy(run)
  switch (awaited?.kind) {
    case 'provider':
      return { why: `${subject} waits for the provider ${awaited.name}${wordsOf(run)}.`, action: 'try_now' }
    case 'tool':
      return { why: `${subject} waits for a process that has the tool ${awaited.name}.`, action: null }
    case 'approval':
      return { why: `${subject} waits for the approval of a call.`, action: 'approve' }
    case 'money':
      return { why: `${subject} waits until it may spend money again.`, action: null }
    default:
      return null
  }
}

/** The words end the sentence, so they lose their own full stop. */
const wordsOf = (run: StoppedRun): string => (providerWords(run) ?? '').trim().replace(/[.\s]+$/, '')

/**
 * The words of the awaited provider as they follow its name: ", which answered 429: Slow down." or ": Slow down." Null
 * without words.
 */
export function providerWords(run: Pick<Run, 'waiting_for' | 'wait_message'>): string | null {
  const words = run.wait_message?.trim() ?? ''
  if (words === '') return null
  const subject = `${awaitedBy(run)?.name} `
  return words.startsWith(subject) ? `, which ${words.slice(subject.length)}` : `: ${words}`
}

function pauseOf(run: StoppedRun, subject: string): WhyStopped {
  const hasEnded = run.completed_at !== null
  switch (run.pause_reason) {
    case 'human':
      // An eval asks no people: its run ends with the question.
      return hasEnded
        ? { why: `${subject} ended with a question to a person.`, action: continuationBy(run) }
        : { why: `${subject} waits for the answer of a person.`, action: 'answer' }
    case 'outcome_unknown':
      return {
        why: 'A call was cut off; its outcome is unknown.',
        action: run.resumed_as === null ? 'decide_outcome' : 'open_continuation',
      }
    case 'step_limit':
      return { why: `${subject} reached its limit${stepsOf(run)}.`, action: continuationBy(run) }
    case 'timeout':
      return { why: `${subject} ran out of time.`, action: continuationBy(run) }
    case 'context':
      return {
        why: `The conversation of ${inSentence(subject)} no longer fits the model.`,
        action: continuationBy(run),
      }
    case 'budget':
      return { why: 'The tokens of its agent, or of the month, are used up.', action: 'top_up' }
    case 'halted':
      return { why: 'The project is halted.', action: 'unhalt' }
    case 'stopped':
      return { why: 'The agent was stopped.', action: 'start_agent' }
    case 'unavailable':
      return { why: 'The model or the prompt library did not answer.', action: hasEnded ? continuationBy(run) : null }
    case null:
      return { why: `${subject} is paused.`, action: continuationBy(run) }
  }
}

const stepsOf = ({ max_steps: most }: StoppedRun): string => ` of ${most === null ? 'steps' : stepsText(most)}`

const stepsText = (count: number): string => (count === 1 ? '1 step' : `${count} steps`)

const inSentence = (subject: string): string => subject.replace(/^(The|It)\b/, (word) => word.toLowerCase())

/** The way to continue a run that has ended. Null for parts of a supervisor system: nobody resumes them one by one. */
function continuationBy({ resumed_as: next, agent_id: agentId, trigger }: StoppedRun): StopAction | null {
  if (next !== null) return 'open_continuation'
  if (agentId === null) return null
  if (trigger.type === 'task') return 'resume_task'
  return trigger.type === 'flow' && trigger.flow_run_id !== undefined ? 'resume_flow' : 'resume'
}
