import { markChangedIf } from '../../db/changed-in.ts'
import type { Db } from '../../db/pool.ts'
import { wakeWaiting } from '../../journal/wake.ts'
import type { StepUsage } from '../../kernel/run.ts'

/**
 * A function of the flow run has called the project's model. The tokens of the call count for the leaf, for the flow run
 * and for the agents that are the flow, even if the call failed. Called in a transaction, after the call has given back
 * its reservation: the rows of the agents' tokens are locked before that of the flow run.
 */
export async function noteAsked(
  tx: Db,
  { flowRunId, leafId, payers }: { flowRunId: string; leafId: string | undefined; payers: readonly string[] },
  usage: StepUsage,
): Promise<void> {
  const { input_tokens, output_tokens, cost_usd, estimated } = usage
  await tx.query(
    `insert into agent_tokens as t (agent_id, used) select unnest($1::uuid[]), $2::bigint order by 1
     on conflict (agent_id) do update set used = t.used + excluded.used`,
    [payers, input_tokens + output_tokens],
  )
  await tx.query(
    `update flow_runs set
       asked_calls = asked_calls + 1,
       asked_input_tokens = asked_input_tokens + $2,
       asked_output_tokens = asked_output_tokens + $3,
       asked_cost_usd = case when $4::float8 is null then asked_cost_usd else coalesce(asked_cost_usd, 0) + $4 end,
       ${markChangedIf('owner is null', 'flow_runs')}
     where id = $1`,
    [flowRunId, input_tokens, output_tokens, cost_usd],
  )
  await tx.query('select muster.add_usage($1, $2, true, $3, $4, $5, $6)', [
    flowRunId,
    leafId ?? null,
    input_tokens,
    output_tokens,
    cost_usd,
    estimated,
  ])
}

export interface Asker {
  /** The agents whose allocations the calls of the flow run's functions count for: those that are the flow. */
  payers: string[]
  isInEval: boolean
}

export async function readAsker(db: Db, flowRunId: string): Promise<Asker> {
  const { rows } = await db.query<{ payers: string[] | null; is_in_eval: boolean | null }>(
    `select within->'payers' as payers, within ? 'eval_id' as is_in_eval from flow_runs where id = $1`,
    [flowRunId],
  )
  return { payers: rows[0]?.payers ?? [], isInEval: rows[0]?.is_in_eval ?? false }
}

/**
 * An agent that is this flow has no tokens left. Resolves if the flow run is part of the agent's task, which waits for
 * tokens and is woken to say so; else the call is refused.
 */
export async function waitOrRefuse(db: Db, flowRunId: string): Promise<void> {
  const { rows } = await db.query<{ name: string; attempt_id: string | null }>(
    `select a.name, muster.attempt_above(f.id, a.id) as attempt_id
     from flow_runs f cross join jsonb_array_elements_text(f.within->'payers') payer
     join agents a on a.id = payer::uuid join agent_tokens t on t.agent_id = a.id
     where f.id = $1 and t.used >= a.token_allocation order by attempt_id nulls first limit 1`,
    [flowRunId],
  )
  const [spent] = rows
  if (!spent) return
  if (spent.attempt_id === null) throw new Error(`The agent ${spent.name} has used up its token allocation.`)
  await wakeWaiting(db, spent.attempt_id, 'children')
}
