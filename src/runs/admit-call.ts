// Tokens for a model call are reserved from the agent's allocation and the project's month, and settled with the call.
import type { Pool } from '../db/pool.ts'
import { inTransaction } from '../db/transaction.ts'
import { guardMonth } from '../journal/month.ts'
import { type Reservation, reserveTokens, wakeBudgetWaiters } from '../journal/reserve.ts'
import { type CallVerdict, guardBudget } from '../kernel/guards.ts'
import { noteMarks } from './budget-marks.ts'
import type { OwnedRun } from './owned-run.ts'

/** Reserves tokens before the call, so that all runs of an agent overshoot its allocation by one call at most. */
export async function admitCall(owned: OwnedRun, tokens: number): Promise<CallVerdict> {
  const { run, deps, state, agent } = owned
  if (!isLimited(owned)) return { verdict: 'go' }
  const bound = tokens + (agent.model?.max_output_tokens ?? 4_096)
  if (run.agent_id === null) return admitForProject(owned, bound)
  const wanted = { agentIds: paying(owned), bound, runId: run.id, fence: run.fence }
  const facts = isMonthLimited(owned)
    ? await reserveWithin(deps.pool, run.project_id, wanted)
    : await reserveTokens(deps.pool, wanted)
  if (facts && 'verdict' in facts) return facts
  if (facts?.isAdmitted) {
    owned.reserved = bound
    return { verdict: 'go' }
  }
  if (!facts) return { verdict: 'stop', status: 'paused', reason: 'budget' }
  const { allocation, used, reserved, agentId } = facts
  // The run of a task waits for tokens, even before its first call.
  const isFirstCall = state.ownSteps === 0 && run.task_id === null
  const verdict = guardBudget({ allocation, used, reserved, bound, isFirstCall })
  if (verdict.verdict !== 'stop' || agentId === run.agent_id) return verdict
  const attemptRunId = await findAttempt(deps.pool, run.id, agentId)
  return attemptRunId === null ? verdict : { verdict: 'wait', reason: 'tokens', attemptRunId }
}

/** The attempt at a task of the payer that the run is part of. The leaves of a task wait for tokens as the task does. */
async function findAttempt(pool: Pool, runId: string, payer: string): Promise<string | null> {
  const { rows } = await pool.query<{ id: string | null }>(
    'select muster.attempt_above((muster.leaf_of_run($1)).flow_run_id, $2) as id',
    [runId, payer],
  )
  return rows[0]?.id ?? null
}

/** The run's own agent, and the agents above that pay, too. */
const paying = ({ run }: OwnedRun): string[] => [...(run.agent_id === null ? [] : [run.agent_id]), ...run.payers]

const isLimited = (owned: OwnedRun): boolean =>
  owned.agent.token_allocation !== null || owned.run.payers.length > 0 || isMonthLimited(owned)

/** A limit holds for runs under way, too, as soon as this process has heard of it. */
const isMonthLimited = ({ settings, deps, run }: OwnedRun): boolean =>
  settings.monthly_token_limit !== null || deps.isMonthLimited(run.project_id)

/** A run without an agent has no allocation, but its project's month. */
async function admitForProject(owned: OwnedRun, bound: number): Promise<CallVerdict> {
  const asked = await owned.deps.calls.ask(owned.run.project_id, bound)
  if ('verdict' in asked) return asked
  owned.call = asked
  return { verdict: 'go' }
}

/** Works like `reserveTokens`, within the project's month, which all calls overshoot by one call at most. */
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

/** The call's tokens were counted with its step. Runs that wait for its reservation are told. */
export async function settleCall(owned: OwnedRun): Promise<void> {
  const { agent, deps, run } = owned
  if (!isLimited(owned)) return
  if (run.agent_id === null) {
    await owned.call?.settle(0)
    return
  }
  if (agent.token_allocation !== null) await noteMarks(deps, run, run.agent_id)
  for (const payer of run.payers) await noteMarks(deps, run, payer)
  if ((await wakeBudgetWaiters(deps.pool, paying(owned))) > 0) deps.onReady()
}
