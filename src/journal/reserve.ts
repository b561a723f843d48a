import type { Db, PreparedSql } from '../db/pool.ts'

export interface Reservation {
  isAdmitted: boolean
  allocation: number | null
  used: number
  reserved: number
}

/**
 * Reserves a call's upper bound from the agent's allocation if it fits or nothing else is reserved. The decision is
 * made and written under the lock of the agent's row, so that runs which ask at once are judged one after the other.
 * The run's row is locked first, as in an append.
 */
const RESERVE: PreparedSql = {
  name: 'tokens_reserve',
  text: `
    with mine as (
      select id from agent_runs where id = $3 and fence = $4 for update
    ), facts as (
      select t.used, t.reserved, a.token_allocation as allocation
      from agent_tokens t join agents a on a.id = t.agent_id
      where t.agent_id = $1 and exists (select from mine) for update of t
    ), admitted as (
      select from facts where allocation is null or used + reserved + $2 <= allocation
        or (reserved = 0 and used < allocation)
    ), noted as (
      update agent_runs set reserved = $2 where id = $3 and exists (select from admitted)
    ), taken as (
      update agent_tokens set reserved = reserved + $2 where agent_id = $1 and exists (select from admitted)
    )
    select used, reserved, allocation, exists (select from admitted) as is_admitted from facts`,
}

/** Returns null if the run is no longer this owner's. */
export async function reserveTokens(
  db: Db,
  { agentId, bound, runId, fence }: { agentId: string; bound: number; runId: string; fence: number },
): Promise<Reservation | null> {
  await db.query('insert into agent_tokens (agent_id) values ($1) on conflict do nothing', [agentId])
  const { rows } = await db.query<{ used: number; reserved: number; allocation: number | null; is_admitted: boolean }>(
    RESERVE,
    [agentId, bound, runId, fence],
  )
  const row = rows[0]
  return row
    ? { isAdmitted: row.is_admitted, allocation: row.allocation, used: row.used, reserved: row.reserved }
    : null
}

/** Makes runs ready that wait for a reservation of this agent to settle. */
export async function wakeBudgetWaiters(db: Db, agentId: string): Promise<number> {
  const { rowCount } = await db.query(
    `update agent_runs set ready_at = muster.now() where agent_id = $1 and waits_for = 'budget' and owner is null
       and ready_at is null`,
    [agentId],
  )
  return rowCount ?? 0
}

export interface CrossedMark {
  mark: number
  used: number
  allocation: number
}

const MARKS = [90, 95, 100] as const

/**
 * The marks (90, 95, 100 percent of the allocation) that were newly crossed. Each mark is returned to one caller only.
 */
export async function crossMarks(db: Db, agentId: string): Promise<CrossedMark[]> {
  const { rows } = await db.query<{ before: number; mark: number; used: number; allocation: number }>(
    `with reached as (
       select t.agent_id, t.mark as before, t.used, a.token_allocation as allocation, ${MARK} as mark
       from agent_tokens t join agents a on a.id = t.agent_id
       where t.agent_id = $1 and a.token_allocation is not null for update of t
     )
     update agent_tokens t set mark = r.mark from reached r where t.agent_id = r.agent_id and r.before < r.mark
     returning r.before, r.mark, r.used, r.allocation`,
    [agentId],
  )
  const row = rows[0]
  if (!row) return []
  const { used, allocation } = row
  return MARKS.filter((mark) => mark > row.before && mark <= row.mark).map((mark) => ({ mark, used, allocation }))
}

const MARK = `case when t.used >= a.token_allocation then 100 when t.used >= a.token_allocation * 0.95 then 95
  when t.used >= a.token_allocation * 0.9 then 90 else 0 end`

/** Called after a change of the allocation: marks above the present use can be crossed again. */
export async function resetMark(db: Db, agentId: string): Promise<void> {
  await db.query(
    `update agent_tokens t set mark = least(t.mark, case when a.token_allocation is null then 0 else ${MARK} end)
     from agents a where a.id = t.agent_id and t.agent_id = $1`,
    [agentId],
  )
}
