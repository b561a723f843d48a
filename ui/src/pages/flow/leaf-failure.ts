// Says in plain words why the agent of a task gave no result, and what helps before the flow is run again.
import type { Run } from '../../../../src/kernel/run.ts'
import { duration } from '../../parts/figures.ts'

export interface LeafFailure {
  text: string
  /** The words of the link to the agent's limit, and its field; null if no limit is the reason. */
  limit: { words: string; field: 'max_steps' | 'default_timeout' | 'token_allocation' } | null
}

/** Null for a run that did not fail: another run of the task did, and the error of the task tells of it. */
export function whyLeafFailed(run: Run, agentName: string): LeafFailure | null {
  switch (run.status) {
    case 'queued':
    case 'running':
    case 'completed':
      return null
    case 'cancelled':
      return { text: `${agentName} was cancelled.`, limit: null }
    case 'failed':
      return { text: `${agentName} failed: ${run.error_message ?? 'no reason was given.'}`, limit: null }
    case 'paused':
      return pauseOf(run, agentName)
  }
}

function pauseOf(run: Run, agentName: string): LeafFailure {
  switch (run.pause_reason) {
    case 'step_limit': {
      const most = run.max_steps ?? run.step_count
      const steps = most === 1 ? 'the 1 step' : `all ${most} steps`
      return {
        text: `${agentName} used ${steps} that it may take, and was not done.`,
        limit: { words: 'Change the step limit', field: 'max_steps' },
      }
    }
    case 'timeout': {
      const time = run.timeout === null ? '' : `, ${duration(run.timeout)},`
      return {
        text: `${agentName} used up its time${time} and was not done.`,
        limit: { words: 'Change the timeout', field: 'default_timeout' },
      }
    }
    case 'budget':
      return {
        text: `${agentName} had no tokens left, and was not done.`,
        limit: { words: 'Change the budget', field: 'token_allocation' },
      }
    case 'context':
      return { text: `The conversation of ${agentName} no longer fitted its model.`, limit: null }
    case 'unavailable':
      return { text: `The model of ${agentName} did not answer.`, limit: null }
    case 'stopped':
      return { text: `${agentName} was stopped by a person.`, limit: null }
    case 'halted':
      return { text: `The project was halted while ${agentName} was at work.`, limit: null }
    case 'human':
      return { text: `${agentName} still waited for an answer from a person.`, limit: null }
    case 'outcome_unknown':
      return {
        text: `${agentName} was interrupted during a call, and nobody has said whether it was made.`,
        limit: null,
      }
    case null:
      return { text: `${agentName} stopped before it was done.`, limit: null }
  }
}
