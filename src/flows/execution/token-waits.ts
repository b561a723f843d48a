// The run of a task waits for tokens of its agent, and its flow run waits with it. `agent_runs.tokens_wait_since` is the
// beginning of that wait. The transaction that gives the flow runs as much more time also ends the wait, so the time is
// given once, whichever process gives it and however often a process dies before. The run is locked before flow runs.
import { recordAudits } from '../../audit/record.ts'
import type { Db, Pool } from '../../db/pool.ts'
import { inTransaction } from '../../db/transaction.ts'
import { FLOW_CHANNEL } from '../../journal/wake.ts'
import { LONGEST_MS } from '../../kernel/limits.ts'
import { systemActor } from '../../kernel/principal.ts'
import { ADJUSTED, TOLD } from './adjust.ts'
import { type ClaimedFlow, TIME_SO_FAR } from './claim.ts'
import { INNER_FIRST } from './journal.ts'

/** A run that has waited before, and did not go on since, has waited all the time. False: its flow run has ended. */
export async function beginTokenWait(tx: Db, runId: string): Promise<boolean> {
  const { rowCount } = await tx.query(
    `update agent_runs set tokens_wait_since = coalesce(tokens_wait_since, muster.now())
     where id = $1 and open_children > 0`,
    [runId],
  )
  return rowCount === 1
}

/** Gives the flow run and the flow runs below it as much more time as the run has waited. False: it did not wait. */
export async function endTokenWait(pool: Pool, runId: string, flowRunId: string): Promise<boolean> {
  return inTransaction(pool, async (tx) => {
    const waitedMs = await takeWait(tx, runId)
    if (waitedMs === null) return false
    const adjusted = await giveTime(tx, flowRunId, waitedMs)
    const notes = adjusted.map(({ id, project_id: projectId, timeout }) => ({
      action: 'flow.adjust',
      actor: systemActor,
      projectId,
      targetType: 'flow_run',
      targetId: id,
      details: { timeout },
    }))
    if (notes.length > 0) await recordAudits(tx, notes)
    return true
  })
}

async function takeWait(tx: Db, runId: string): Promise<number | null> {
  const { rows } = await tx.query<{ ms: number }>(
    `select ceil(extract(epoch from muster.now() - tokens_wait_since) * 1000)::float8 as ms from agent_runs
     where id = $1 and tokens_wait_since is not null for no key update`,
    [runId],
  )
  if (!rows[0]) return null
  await tx.query('update agent_runs set tokens_wait_since = null where id = $1', [runId])
  return rows[0].ms
}

/**
 * Tried and rejected: one statement that joins the run's wait to the flow runs that it locks. It passes over a flow run
 * that another process writes at that moment.
 */
async function giveTime(
  tx: Db,
  flowRunId: string,
  ms: number,
): Promise<{ id: string; project_id: string; timeout: number }[]> {
  const { rows } = await tx.query<{ id: string; project_id: string; timeout: number }>(
    `with change as (
       update flow_runs set timeout = least(timeout + $2::bigint, ${LONGEST_MS})::int, ${ADJUSTED}
       where id in (
         select id from flow_runs where completed_at is null and id in (
           select $1::uuid union all select started_flow_run_id from muster.runs_below_flow($1))
         order by ${INNER_FIRST} for no key update)
       returning id, project_id, last_seq, timeout, workers
     ), ${TOLD}
     select id, project_id, timeout, pg_notify('${FLOW_CHANNEL}', id::text) from change`,
    [flowRunId, ms],
  )
  return rows
}

export interface FlowTime extends Pick<ClaimedFlow, 'timeout' | 'age' | 'still' | 'is_still'> {
  /** True: the flow run waits for tokens with a task of one of these agents. */
  waits_for_tokens: boolean
}

/** The time of the flow run as it stands now: people may have changed it, and its leaves may have waited. */
export async function readTime(db: Db, flowRunId: string, payers: readonly string[]): Promise<FlowTime | null> {
  const { rows } = await db.query<FlowTime>(
    `select r.timeout, ${TIME_SO_FAR}, exists (
       select from unnest($2::uuid[]) as p (id) join agent_runs a on a.id = muster.attempt_above($1, p.id)
       where a.tokens_wait_since is not null) as waits_for_tokens
     from flow_runs r where r.id = $1`,
    [flowRunId, payers],
  )
  return rows[0] ?? null
}
