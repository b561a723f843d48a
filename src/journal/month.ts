// The tokens of a project in a month (UTC). Calls of agents are added up with their runs, all other calls here.
import type { Db } from '../db/pool.ts'
import { type CallVerdict, guardBudget } from '../kernel/guards.ts'

/** SQL: the first day of the present month. */
export const THIS_MONTH = `date_trunc('month', muster.now() at time zone 'UTC')::date`

/** Adds the tokens of a model call that no agent made. */
export async function noteTokensOfMonth(db: Db, projectId: string, tokens: number): Promise<void> {
  if (tokens <= 0) return
  await db.query(
    `insert into project_tokens as t (project_id, month, used) values ($1, ${THIS_MONTH}, $2)
     on conflict (project_id, month) do update set used = t.used + excluded.used`,
    [projectId, tokens],
  )
}

interface MonthFacts {
  used: number
  /** Upper bounds of the calls under way. */
  reserved: number
  /** The time until the next month. */
  leftMs: number
}

/**
 * Reads the use of this month. The bound of a call under way is read from its run, or from its row of `project_calls`: the
 * tokens of agents have it once for every agent that pays. Calls of processes that have died no longer count as under
 * way.
 */
export async function readMonth(db: Db, projectId: string): Promise<MonthFacts> {
  const { rows } = await db.query<{ used: number; reserved: number; left_ms: number }>(
    `select (coalesce(sum(t.month_used) filter (where t.month = (select ${THIS_MONTH})), 0) + coalesce(
         (select used from project_tokens where project_id = $1 and month = ${THIS_MONTH}), 0))::bigint as used,
       (coalesce((select sum(r.reserved) from agent_runs r where r.owner is not null and r.project_id = $1), 0)
         + coalesce((select sum(c.bound) from project_calls c where c.project_id = $1
         and exists (select from workers w where w.id = c.worker_id)), 0))::bigint as reserved,
       (extract(epoch from (${THIS_MONTH} + interval '1 month') at time zone 'UTC' - muster.now()) * 1000)::float8 as left_ms
     from agents a join agent_tokens t on t.agent_id = a.id where a.project_id = $1`,
    [projectId],
  )
  const row = rows[0]
  return { used: row?.used ?? 0, reserved: row?.reserved ?? 0, leftMs: row?.left_ms ?? 0 }
}

/**
 * Judges a call by the project's month. The project's row is locked until the transaction ends, so that calls which ask
 * at once are judged one after the other. The caller reserves the bound in the same transaction.
 *
 * The sum over 10,000 agents takes 20 to 40 ms, and the lock is held meanwhile. So a call goes without the sum if it
 * fits even though all calls since the last sum took twice their bounds. Near the limit every call is judged by the
 * sum.
 */
export async function guardMonth(tx: Db, projectId: string, bound: number): Promise<CallVerdict> {
  const limit = await readLimit(tx, projectId, 'for no key update')
  if (limit === null || (await fitsSurely(tx, projectId, bound, limit))) return { verdict: 'go' }
  const { used, reserved, leftMs } = await readMonth(tx, projectId)
  const verdict = guardBudget({ allocation: limit, used, reserved, bound, isFirstCall: false })
  if (verdict.verdict === 'stop') return { verdict: 'next_month', inMs: leftMs }
  if (verdict.verdict === 'go') await noteSum(tx, projectId, used + reserved, bound)
  return verdict
}

async function fitsSurely(tx: Db, projectId: string, bound: number, limit: number): Promise<boolean> {
  const { rowCount } = await tx.query(
    `update project_tokens set admitted = admitted + $2
     where project_id = $1 and month = ${THIS_MONTH} and known + 2 * (admitted + $2) <= $3`,
    [projectId, bound, limit],
  )
  return rowCount === 1
}

async function noteSum(tx: Db, projectId: string, known: number, admitted: number): Promise<void> {
  await tx.query(
    `insert into project_tokens (project_id, month, known, admitted) values ($1, ${THIS_MONTH}, $2, $3)
     on conflict (project_id, month) do update set known = excluded.known, admitted = excluded.admitted`,
    [projectId, known, admitted],
  )
}

/**
 * Tells whether the month's tokens are used up. The limit is locked: a change that raises it is committed before, and
 * the answer is false, or after, and the change finds the waiting runs.
 */
export async function isMonthSpent(tx: Db, projectId: string): Promise<boolean> {
  const limit = await readLimit(tx, projectId, 'for share')
  return limit !== null && (await readMonth(tx, projectId)).used >= limit
}

export async function readLimit(
  db: Db,
  projectId: string,
  lock: '' | 'for share' | 'for no key update' = '',
): Promise<number | null> {
  const { rows } = await db.query<{ limit: unknown }>(
    `select settings->'monthly_token_limit' as limit from projects where id = $1 ${lock}`,
    [projectId],
  )
  const limit = rows[0]?.limit
  return typeof limit === 'number' ? limit : null
}

const MOST_AT_ONCE = 5_000

/** Called when a project's limit was changed: if there are tokens, the waiting runs ask again. Returns their number. */
export async function wakeForMonth(db: Db, projectId: string): Promise<number> {
  if (await isMonthSpent(db, projectId)) return 0
  for (let total = 0; ; ) {
    const { rowCount } = await db.query(
      `update agent_runs set ready_at = muster.now(), wake_at = null where id in (
         select id from agent_runs where project_id = $1 and waits_for = 'month' and owner is null and ready_at is null
         order by id limit ${MOST_AT_ONCE} for update skip locked)`,
      [projectId],
    )
    total += rowCount ?? 0
    if ((rowCount ?? 0) < MOST_AT_ONCE) return total
  }
}

/**
 * Wakes runs that wait for tokens of their month although tokens are there: the process that raised the limit died, or
 * another process owned the runs. Takes one probe per project with such runs. Returns their number.
 */
export async function wakeFunded(db: Db): Promise<number> {
  const { rows } = await db.query<{ project_id: string }>(
    `with recursive waiting (project_id) as (
       select (select project_id from agent_runs where waits_for = 'month' order by project_id limit 1)
       union all
       select (select r.project_id from agent_runs r where r.waits_for = 'month' and r.project_id > w.project_id
         order by r.project_id limit 1)
       from waiting w where w.project_id is not null
     )
     select project_id from waiting where project_id is not null`,
  )
  let total = 0
  for (const { project_id: projectId } of rows) total += await wakeForMonth(db, projectId)
  return total
}
