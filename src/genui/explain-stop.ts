import type { Run } from '../kernel/run.ts'
import { type StopAction, type StoppedRun, whyStopped } from '../kernel/why-stopped.ts'

interface Explained {
  /** Plain words, followed by the message of the run's error. */
  words: string
  tone: 'neutral' | 'good' | 'warning' | 'bad'
}

/** The reason for a run's status, and the way to let the run continue. */
export function explainStop(run: StoppedRun & Pick<Run, 'error_message'>): Explained {
  const stop = whyStopped(run)
  if (stop === null) return RUNNING[run.status]
  const advice = stop.action === null ? '' : ADVICE[stop.action]
  const words = [stop.why, advice, messageOf(run)].filter((part) => part !== '').join(' ')
  return { words, tone: run.status === 'failed' ? 'bad' : run.status === 'paused' ? 'warning' : 'neutral' }
}

const RUNNING: Record<Run['status'], Explained> = {
  queued: { words: 'The run waits for its turn.', tone: 'neutral' },
  running: { words: 'The run is in progress.', tone: 'neutral' },
  completed: { words: 'The run finished its work.', tone: 'good' },
  failed: { words: 'The run failed.', tone: 'bad' },
  cancelled: { words: 'The run was cancelled.', tone: 'neutral' },
  paused: { words: 'The run is paused.', tone: 'warning' },
}

const ADVICE: Record<StopAction, string> = {
  answer: '',
  approve: 'Approve or reject the call in the inbox.',
  decide_outcome: 'A person must state the outcome of the call.',
  resume: 'Resume it to continue.',
  resume_task: 'It was an attempt at a task: resume the task to continue.',
  resume_flow: 'It was a leaf of a flow run: resume the flow run to continue.',
  open_continuation: 'Another run continues it.',
  try_now: 'It tries again by itself.',
  top_up: 'It continues, or can be resumed, when there are tokens.',
  unhalt: 'The run continues when the halt is lifted.',
  start_agent: 'The work continues when the agent is started.',
}

function messageOf({ error_message: message }: Pick<Run, 'error_message'>): string {
  const text = message?.trim() ?? ''
  return text === '' ? '' : `It says: ${text}`
}
