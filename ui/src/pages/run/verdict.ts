// Says in plain words how a run stands or why it stopped, and names the one action that resolves it.
import type { Agent } from '../../../../src/kernel/agent.ts'
import type { Run } from '../../../../src/kernel/run.ts'
import { duration } from '../../parts/figures.ts'

export type Resolution = 'answer' | 'resumed' | 'outcome' | 'resume' | 'top_up' | 'unhalt' | 'retry' | null

export interface Verdict {
  text: string
  tone: 'running' | 'completed' | 'failed' | 'blocked' | 'paused' | 'pending'
  resolution: Resolution
}

/** `agent` is needed only for a run that has no tokens. */
export function verdictOf(run: Run, agentName: string, agent?: TokensOf): Verdict {
  switch (run.status) {
    case 'queued':
      if (run.waiting_for?.startsWith('tool ')) return missingTool(run.waiting_for)
      return { text: `${agentName} waits for its turn.`, tone: 'pending', resolution: null }
    case 'running':
      if (run.waiting_for?.startsWith('tool ')) return missingTool(run.waiting_for)
      return { text: `${agentName} is at work on step ${run.step_count + 1}.`, tone: 'running', resolution: null }
    case 'completed':
      return {
        text: `${agentName} finished in ${duration(run.duration)}${stepsTaken(run)}.`,
        tone: 'completed',
        resolution: null,
      }
    case 'cancelled':
      return { text: `The run was cancelled after ${steps(run.step_count)}.`, tone: 'pending', resolution: 'retry' }
    case 'failed':
      return { text: failureOf(run, agentName), tone: 'failed', resolution: failedBy(run, agent) }
    case 'paused':
      return pauseOf(run, agentName, agent)
  }
}

const missingTool = (waitingFor: string): Verdict => ({
  text: `No live process has the ${waitingFor}. The run continues when one has it.`,
  tone: 'pending',
  resolution: null,
})

type TokensOf = Pick<Agent, 'token_used' | 'token_allocation'>

const hasNoTokens = ({ token_used: used, token_allocation: all }: TokensOf): boolean => all !== null && used >= all

function pauseOf(run: Run, agentName: string, agent: TokensOf | undefined): Verdict {
  const paused = (text: string, resolution: Resolution): Verdict => ({ text, tone: 'paused', resolution })
  /** Runs of a supervisor system, and attempts at a task, cannot be resumed. */
  const resumable = (why: string, how: string): Verdict => {
    if (run.agent_id === null) return paused(why, null)
    if (run.trigger.type === 'task')
      return paused(`${why} It was an attempt at a task, and the task shows what comes next.`, null)
    const alone = run.trigger.type === 'flow' ? ' The flow does not wait for it: what it finds stays with the run.' : ''
    return paused(`${why} ${how}${alone}`, 'resume')
  }
  if (run.resumed_as !== null) return paused('It stopped, and another run continues it.', 'resumed')
  switch (run.pause_reason) {
    case 'human':
      return paused(`${agentName} waits for an answer from a person.`, 'answer')
    case 'outcome_unknown':
      return paused('A call that changes something was cut off before it answered. Was it made?', 'outcome')
    case 'step_limit':
      return resumable(
        `It stopped after ${steps(run.max_steps ?? run.step_count)}, its limit.`,
        'Resume it with more steps.',
      )
    case 'timeout':
      return resumable(
        `It ran out of time after ${duration(run.timeout ?? run.duration)}.`,
        'Resume it with more time.',
      )
    case 'context':
      return resumable('The conversation no longer fits the model.', 'Resume it: it goes on from its summary.')
    case 'budget':
      return paused(...shortage(run, agentName, agent))
    case 'halted':
      return paused('The project is halted. The run goes on when the halt is lifted.', 'unhalt')
    case 'stopped':
      return paused(`${agentName} was stopped. The run goes on when the agent is started.`, null)
    case 'unavailable':
      return resumable('The model could not be reached for a long time.', 'Resume it when the model answers again.')
    case null:
      return resumable('It is paused.', 'Resume it.')
  }
}

/** The tokens that are missing may be the agent's, those of an agent above it, or those of the project's month. */
function shortage(run: Run, agentName: string, agent: TokensOf | undefined): [text: string, resolution: Resolution] {
  const then = run.completed_at === null ? 'the run goes on' : 'resume the run'
  if (agent && hasNoTokens(agent)) return [`${agentName} has used its tokens. Give it more, and ${then}.`, 'top_up']
  return [
    `The tokens of the project's month, or of an agent above ${agentName}, are used up. When there are tokens again, ${then}.`,
    run.completed_at === null || run.agent_id === null ? null : 'resume',
  ]
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

const failedBy = (run: Run, agent: TokensOf | undefined): Resolution =>
  run.error_code === 'BUDGET_EXHAUSTED' && agent && hasNoTokens(agent) ? 'top_up' : 'retry'

/** The steps of a run that continues others are counted over all of them. */
const stepsTaken = ({ resumed_from: from, step_count: count }: Run): string =>
  from === null ? ` and ${steps(count)}` : `, after ${steps(count)} in all with the runs that it continues`

const steps = (count: number): string => (count === 1 ? '1 step' : `${count} steps`)
