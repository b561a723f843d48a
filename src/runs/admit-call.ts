// Tokens for a model call: reserved before the call, of the agent's allocation and of the project's month, and settled
// with it.
import type { Pool } from '../db/pool.ts'
import { inTransaction } from '../db/transaction.ts'
import { guardMonth } from '../journal/month.ts'
import { type Reservation, reserveTokens, wakeBudgetWaiters } from '../journal/reserve.ts'
import { type CallVerdict, guardBudget } from '../kernel/guards.ts'
import { noteMarks } from './budget-marks.ts'
import type { Session } from './session.ts'

/**
 * Counted before the call: all runs of an agent together overshoot its allocation by one call at most. `tokens`: those of
 * the prompt.
 */
export async function admitCall(session: Session, tokens: number): Promise<CallVerdict> {
  const { run, deps, state, agent } = session
  if (!isLimited(session)) return { verdict: 'go' }
  const bound = tokens + (agent.model?.max_output_tokens ?? 4_096)
  if (run.agent_id === null) return admitForProject(session, bound)
  const wanted = { agentId: run.agent_id, bound, runId: run.id, fence: run.fence }
  const facts = isMonthLimited(session)
    ? await reserveWithin(deps.pool, run.project_id, wanted)
    : await reserveTokens(deps.pool, wanted)
  if (facts && 'verdict' in facts) return facts
  if (facts?.isAdmitted) {
    session.reserved = bound
    return { verdict: 'go' }
  }
  if (!facts) return { verdict: 'stop', status: 'paused', reason: 'budget' }
  const { allocation, used, reserved } = facts
  // The run of a task waits for tokens, even before its first call.
  const isFirstCall = state.ownSteps === 0 && run.task_id === null
  return guardBudget({ allocation, used, reserved, bound, isFirstCall })
}

const isLimited = (session: Session): boolean => session.agent.token_allocation !== null || isMonthLimited(session)

/** A limit holds for runs under way, too, as soon as this process has heard of it. */
const isMonthLimited = ({ settings, deps, run }: Session): boolean =>
  settings.monthly_token_limit !== null || deps.isMonthLimited(run.project_id)

/** A run without an agent has no allocation, but its project's month. */
async function admitForProject(session: Session, bound: number): Promise<CallVerdict> {
  const asked = await session.deps.calls.ask(session.run.project_id, bound)
  if ('verdict' in asked) return asked
  session.call = asked
  return { verdict: 'go' }
}

/** As `reserveTokens`, within the tokens of the project's month: all its calls together overshoot by one at most. */
async function reserveWithin(
  pool: Pool,
  projectId: string,
  wanted: Parameters<typeof reserveTokens>[1],
): Promise<Reservation | CallVerdict | null> {
  return inTransaction(pool, async (tx) => {
    const verdict = await guardMonth(tx, projectId, wanted.bound)
    return verdict.verdict === 'go' ? reserveTokens(tx, wanted) : verdict
  })
}

/** The call's tokens were counted with its step: whoever waits for its reservation is told. */
export async function settleCall(session: Session): Promise<void> {
  const { agent, deps, run } = session
  if (!isLimited(session)) return
  if (run.agent_id === null) {
    // Its tokens were counted with the step.
    await session.call?.settle(0)
    return
  }
  if (agent.token_allocation !== null) await noteMarks(deps, run, run.agent_id)
  if ((await wakeBudgetWaiters(deps.pool, run.agent_id)) > 0) deps.onReady()
}
