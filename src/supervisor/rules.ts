// The rules that end in an escalation whatever the supervisor decides: too many rounds, too many tokens, and work that
// failed twice and is given to the same specialist in the same words. Each reads the graph's state and stored rows, so
// that the next owner of the run finds the same.
import type { Db } from '../db/pool.ts'
import type { AgentSummary, SupervisorState } from '../kernel/supervisor.ts'
import type { OwnedRun } from '../runs/owned-run.ts'

/** The answer of a person begins the count of rounds and tokens anew. */
export function roundsReason({ settings, state }: OwnedRun, { history }: SupervisorState): string | null {
  const { supervisor_max_rounds: limit } = settings
  const isSpent = history.length - roundsBefore(state) >= limit
  return isSpent ? `The task took ${limit} rounds and is not done.` : null
}

const roundsBefore = ({ personAnswers }: OwnedRun['state']): number => personAnswers.at(-1)?.summaries ?? 0

export async function tokensReason({ deps, run, settings, state }: OwnedRun): Promise<string | null> {
  const { supervisor_token_limit: limit } = settings
  if (limit === null) return null
  const used = (await tokensOf(deps.pool, run.id)) - (state.personAnswers.at(-1)?.tokens ?? 0)
  return used < limit ? null : `The task used ${used} tokens, and supervisor_token_limit is ${limit}.`
}

/** The tokens of a run and of all runs and flow runs below it. The usage of a flow run includes that of its leaves. */
export async function tokensOf(db: Db, runId: string): Promise<number> {
  const { rows } = await db.query<{ tokens: number }>(
    `with recursive tree as (
       select id, input_tokens + output_tokens as tokens, started_flow_run_id from agent_runs where id = $1
       union all
       select r.id, r.input_tokens + r.output_tokens, r.started_flow_run_id
       from tree t join agent_runs r on r.parent_run_id = t.id
     )
     select sum(t.tokens + coalesce(f.input_tokens + f.output_tokens, 0))::float8 as tokens
     from tree t left join flow_runs f on f.id = t.started_flow_run_id`,
    [runId],
  )
  return rows[0]?.tokens ?? 0
}

/** Work that failed twice in a row under the same instructions. */
export interface FailedTwice {
  agent: string
  instructions: string
}

/** The last two delegations since the last answer of a person, if both failed and were the same. */
export async function findFailedTwice(
  { deps, state }: OwnedRun,
  { history }: SupervisorState,
): Promise<FailedTwice | null> {
  const [first, second] = history.slice(roundsBefore(state)).slice(-2)
  if (!first || !second) return null
  if (!isFailed(first) || !isFailed(second) || first.agent_name !== second.agent_name) return null
  // A run that continues another has the instructions of the first run of its chain.
  const { rows } = await deps.pool.query<{ input: unknown }>(
    `with recursive chain as (
       select input, base_run_id from agent_runs where id = any($1::uuid[])
       union all
       select r.input, r.base_run_id from chain c join agent_runs r on r.id = c.base_run_id
     )
     select input from chain where base_run_id is null`,
    [[first.step_id, second.step_id]],
  )
  const [one, other] = rows.map(({ input }) => input)
  return typeof one === 'string' && one === other ? { agent: first.agent_name, instructions: one } : null
}

const isFailed = ({ result }: AgentSummary): boolean => result === 'FAILED'

export const failedTwiceReason = ({ agent }: FailedTwice): string =>
  `${agent} failed twice with the same instructions, and would get them a third time.`
