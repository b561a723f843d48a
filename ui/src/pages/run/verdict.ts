// Says in plain words how a run stands or why it stopped, and names the one action that resolves it.
import type { Run } from '../../../../src/kernel/run.ts'
import { duration } from '../../parts/figures.ts'

export type Resolution = 'answer' | 'resumed' | 'outcome' | 'resume' | 'top_up' | 'unhalt' | 'retry' | null

export interface Verdict {
  text: string
  tone: 'running' | 'completed' | 'failed' | 'blocked' | 'paused' | 'pending'
  resolution: Resolution
}

export function verdictOf(run: Run, agentName: string): Verdict {
  switch (run.status) {
    case 'queued':
      return { text: `${agentName} waits for its turn.`, tone: 'pending', resolution: null }
    case 'running':
      return { text: `${agentName} is at work on step ${run.step_count + 1}.`, tone: 'running', resolution: null }
    case 'completed':
      return {
        text: `${agentName} finished in ${duration(run.duration)} and ${steps(run.step_count)}.`,
        tone: 'completed',
        resolution: null,
      }
    case 'cancelled':
      return { text: `The run was cancelled after ${steps(run.step_count)}.`, tone: 'pending', resolution: 'retry' }
    case 'failed':
      return { text: failureOf(run, agentName), tone: 'failed', resolution: failedBy(run) }
    case 'paused':
      return pauseOf(run, agentName)
  }
}

function pauseOf(run: Run, agentName: string): Verdict {
  const paused = (text: string, resolution: Resolution): Verdict => ({ text, tone: 'paused', resolution })
  if (run.resumed_as !== null) return paused('It stopped, and another run continues it.', 'resumed')
  switch (run.pause_reason) {
    case 'human':
      return paused(`${agentName} waits for an answer from a person.`, 'answer')
    case 'outcome_unknown':
      return paused(
        'Muster was interrupted in the middle of a call with an effect, and nobody knows whether it was done. Say which.',
        'outcome',
      )
    case 'step_limit':
      return paused(
        `It stopped after ${steps(run.max_steps ?? run.step_count)}, its limit. Resume it with more steps.`,
        'resume',
      )
    case 'timeout':
      return paused(
        `It ran out of time after ${duration(run.timeout ?? run.duration)}. Resume it with more time.`,
        'resume',
      )
    case 'context':
      return paused('The conversation no longer fits the model. Resume it: it goes on from its summary.', 'resume')
    case 'budget':
      return paused(
        `${agentName} has used its tokens. Give it more, and ${run.completed_at === null ? 'it goes on' : 'resume the run'}.`,
        'top_up',
      )
    case 'halted':
      return paused('The project is halted. The run goes on when the halt is lifted.', 'unhalt')
    case 'stopped':
      return paused(`${agentName} was stopped. The run goes on when the agent is started.`, null)
    case 'unavailable':
      return paused('The model could not be reached for a long time. Resume it when the model answers again.', 'resume')
    case null:
      return paused('It is paused.', 'resume')
  }
}

const FAILURES: Record<string, string> = {
  DOOM_LOOP: 'It was stopped because it went round in a loop.',
  CRASH_LOOP: 'It was stopped because the process died several times while it ran.',
  BUDGET_EXHAUSTED: 'It did not begin: the agent has no tokens left.',
  PROMPT_MISSING: 'Its prompt does not exist in the library.',
}

function failureOf(run: Run, agentName: string): string {
  const known = run.error_code === null ? undefined : FAILURES[run.error_code]
  // The guard's own words say the same once more.
  const message = run.error_message?.replace(/^Stopped by the [a-z ]+ guard: /, '')
  return [known ?? `${agentName} failed after ${steps(run.step_count)}.`, message].filter(Boolean).join(' ')
}

const failedBy = (run: Run): Resolution => (run.error_code === 'BUDGET_EXHAUSTED' ? 'top_up' : 'retry')

const steps = (count: number): string => (count === 1 ? '1 step' : `${count} steps`)
