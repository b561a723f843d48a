// Says in plain words how a run stands or why it stopped, and names the one action that resolves it.
import type { Agent } from '../../../../src/kernel/agent.ts'
import type { Run } from '../../../../src/kernel/run.ts'
import { type StopAction, whyStopped } from '../../../../src/kernel/why-stopped.ts'
import { duration } from '../../parts/figures.ts'

export interface Verdict {
  text: string
  tone: 'running' | 'completed' | 'failed' | 'blocked' | 'paused' | 'pending'
  action: StopAction | null
}

/** `agent` is needed only for a run that has no tokens. */
export function verdictOf(run: Run, agentName: string, agent?: TokensOf): Verdict {
  const stop = whyStopped(run, agentName)
  if (stop === null) return standing(run, agentName)
  const { text = stop.why, action = stop.action } = detail(run, stop.why, agentName, agent)
  return { text, tone: toneOf(run), action }
}

type TokensOf = Pick<Agent, 'token_used' | 'token_allocation'>

function standing(run: Run, agentName: string): Verdict {
  if (run.status === 'queued') return { text: `${agentName} waits for its turn.`, tone: 'pending', action: null }
  if (run.status === 'running')
    return { text: `${agentName} is at work on step ${run.step_count + 1}.`, tone: 'running', action: null }
  return {
    text: finishedText(run, agentName),
    tone: 'completed',
    action: null,
  }
}

function toneOf({ status, waiting_for: awaited, completed_at: endedAt }: Run): Verdict['tone'] {
  if (status === 'failed') return 'failed'
  if (status === 'cancelled') return 'pending'
  return awaited !== null && endedAt === null ? 'blocked' : 'paused'
}

/** Words and actions that need more than the kinds of stops: figures, and the tokens of the agent. */
function detail(
  run: Run,
  why: string,
  agentName: string,
  agent: TokensOf | undefined,
): { text?: string; action?: StopAction | null } {
  if (run.status === 'failed') {
    const isShort = run.error_code === 'BUDGET_EXHAUSTED' && run.resumed_as === null && agent && hasNoTokens(agent)
    return { text: withMessage(why, run), ...(isShort && { action: 'top_up' as const }) }
  }
  if (run.status === 'cancelled') return {}
  if (run.resumed_as !== null) return { text: 'It stopped, and another run continues it.', action: 'open_continuation' }
  switch (run.pause_reason) {
    case 'human':
      return run.waiting_for === 'approval' ? {} : { text: `${agentName} waits for an answer from a person.` }
    case 'outcome_unknown':
      return { text: 'A call that changes something was cut off before it answered. Was it made?' }
    case 'step_limit':
      return { text: `It stopped after ${steps(run.max_steps ?? run.step_count)}, its limit.${how(run, 'more steps')}` }
    case 'timeout':
      return { text: `It ran out of time after ${duration(run.timeout ?? run.duration)}.${how(run, 'more time')}` }
    case 'context':
      return { text: 'The conversation no longer fits the model. A resumed run continues from its summary.' }
    case 'budget':
      return shortage(run, agentName, agent)
    case 'halted':
      return { text: 'The project is halted. The run continues when the halt is lifted.' }
    case 'stopped':
      return { text: `${agentName} was stopped. The run continues when the agent is started.` }
    default:
      return {}
  }
}

/** Nobody else may resume a part of a supervisor system, an attempt at a task or a leaf of a flow. */
const how = (run: Run, more: string): string => (whyStopped(run)?.action === 'resume' ? ` Resume it with ${more}.` : '')

const hasNoTokens = ({ token_used: used, token_allocation: all }: TokensOf): boolean => all !== null && used >= all

/** The tokens that are missing may be the agent's, those of an agent above it, or those of the project's month. */
function shortage(
  run: Run,
  agentName: string,
  agent: TokensOf | undefined,
): { text: string; action: StopAction | null } {
  const isOver = run.completed_at !== null
  const then = isOver ? 'resume the run' : 'the run continues'
  if (agent && hasNoTokens(agent))
    return { text: `${agentName} has used its tokens. Give it more, and ${then}.`, action: 'top_up' }
  return {
    text: `The tokens of the project's month, or of an agent above ${agentName}, are used up. When there are tokens again, ${then}.`,
    action: isOver ? (whyStopped({ ...run, pause_reason: null })?.action ?? null) : null,
  }
}

function withMessage(why: string, { error_message: message }: Run): string {
  // The guard's own words say the same once more.
  const words = message?.replace(/^Stopped by the [a-z ]+ guard: /, '') ?? ''
  return words === '' ? why : `${why} ${words}`
}

/** The steps of a run that continues others are counted over all of them. */
const finishedText = ({ resumed_from: from, step_count: count, duration: ms }: Run, agentName: string): string =>
  from === null
    ? `${agentName} finished in ${duration(ms)} and ${steps(count)}.`
    : `${agentName} finished in ${duration(ms)}; ${steps(count)}, counting the run it continues.`

const steps = (count: number): string => (count === 1 ? '1 step' : `${count} steps`)
