import { anyOf } from '../db/lists.ts'
import type { Db, PreparedSql } from '../db/pool.ts'

export interface Reservation {
  isAdmitted: boolean
  /** The agent that the facts are about. */
  agentId: string
  allocation: number | null
  used: number
  reserved: number
}

/**
 * SQL that reserves a call's upper bound ($2) from the allocations of the agents that pay for it ($1). A call is admitted
 * if it fits into every allocation. An allocation with nothing reserved and tokens left admits one call of any size. The
 * decision is made and written under the locks of the agents' rows in agent_tokens, so that calls which ask at once are
 * judged one after the other. `mine` selects a row only if the caller still owns the run or the call. `noted` records the
 * reservation there, so that it can be given back after a crash. The answer is about an agent that has no room, if there
 * is one.
 */
const reserveSql = ({ mine, noted }: { mine: string; noted: string }): string => `
    with mine as (${mine}), facts as (
      select t.agent_id, t.used, t.reserved, a.token_allocation as allocation,
        a.token_allocation is null or t.used + t.reserved + $2 <= a.token_allocation
          or (t.reserved = 0 and t.used < a.token_allocation) as has_room
      from agent_tokens t join agents a on a.id = t.agent_id
      where t.agent_id = ${anyOf(1)} and exists (select from mine) order by t.agent_id for update of t
    ), admitted as (
      select from mine where not exists (select from facts where not has_room)
    ), noted as (${noted}), taken as (
      update agent_tokens set reserved = reserved + $2 where agent_id = ${anyOf(1)} and exists (select from admitted)
    )
    select agent_id, used, reserved, allocation, exists (select from admitted) as is_admitted from facts
    order by has_room limit 1`

/** The run's row is locked first, as in an append. */
const RESERVE: PreparedSql = {
  name: 'tokens_reserve',
  text: reserveSql({
    mine: 'select id from agent_runs where id = $3 and fence = $4 for update',
    noted: 'update agent_runs set reserved = $2 where id = $3 and exists (select from admitted)',
  }),
}

const RESERVE_FOR_CALL: PreparedSql = {
  name: 'tokens_reserve_for_call',
  text: reserveSql({
    mine: 'select id from project_calls where id = $3 for update',
    noted: 'update project_calls set payers = $4::uuid[] where id = $3 and exists (select from admitted)',
  }),
}

interface Paying {
  agentIds: readonly string[]
  bound: number
}

/** Returns null if the run is no longer this owner's. */
export function reserveTokens(
  db: Db,
  { runId, fence, ...paying }: Paying & { runId: string; fence: number },
): Promise<Reservation | null> {
  return reserve(db, RESERVE, paying, [runId, fence])
}

/** Works like `reserveTokens`, for a call that no run makes. The end of the call gives the reservation back. */
export function reserveForCall(
  db: Db,
  { callId, ...paying }: Paying & { callId: string },
): Promise<Reservation | null> {
  return reserve(db, RESERVE_FOR_CALL, paying, [callId, paying.agentIds])
}

async function reserve(
  db: Db,
  sql: PreparedSql,
  paying: Paying,
  rest: readonly unknown[],
): Promise<Reservation | null> {
  await db.query('insert into agent_tokens (agent_id) select unnest($1::uuid[]) order by 1 on conflict do nothing', [
    paying.agentIds,
  ])
  // A statement that waits for the row of an agent's tokens while tokens are added sees the allocation of before. So a
  // refusal holds only if the next statement, which sees what was added, finds the same allocation.
  let answer = await ask(db, sql, paying, rest)
  while (answer && !answer.isAdmitted) {
    const again: Reservation | null = await ask(db, sql, paying, rest)
    if (again?.agentId === answer.agentId && again.allocation === answer.allocation) return again
    answer = again
  }
  return answer
}

async function ask(
  db: Db,
  sql: PreparedSql,
  { agentIds, bound }: Paying,
  rest: readonly unknown[],
): Promise<Reservation | null> {
  const { rows } = await db.query<{
    agent_id: string
    used: number
    reserved: number
    allocation: number | null
    is_admitted: boolean
  }>(sql, [agentIds, bound, ...rest])
  const row = rows[0]
  if (!row) return null
  const { agent_id: agentId, is_admitted: isAdmitted, allocation, used, reserved } = row
  return { isAdmitted, agentId, allocation, used, reserved }
}

/** Makes runs ready that wait for a reservation of these agents to settle. */
export async function wakeBudgetWaiters(db: Db, agentIds: readonly string[]): Promise<number> {
  const { rowCount } = await db.query(
    `update agent_runs set ready_at = muster.now() where waits_for = 'budget' and owner is null and ready_at is null
       and array_append(payers, agent_id) && $1::uuid[]`,
    [agentIds],
  )
  return rowCount ?? 0
}

export interface CrossedMark {
  mark: number
  used: number
  allocation: number
}

const MARKS = [90, 95, 100] as const

const MARK = `case when t.used >= a.token_allocation then 100 when t.used >= a.token_allocation * 0.95 then 95
  when t.used >= a.token_allocation * 0.9 then 90 else 0 end`

/** True if the use of the agent has crossed a mark that `crossMarks` has not returned yet. */
export async function hasCrossedMark(db: Db, agentId: string): Promise<boolean> {
  const { rowCount } = await db.query(
    `select from agent_tokens t join agents a on a.id = t.agent_id where t.agent_id = $1 and t.mark < ${MARK}`,
    [agentId],
  )
  return rowCount === 1
}

/** Keeps the allocation of the agent as it is until the transaction ends. */
export async function holdAllocation(tx: Db, agentId: string): Promise<void> {
  await tx.query('select from agents where id = $1 for no key update', [agentId])
}

/**
 * The marks (90, 95, 100 percent) that were newly crossed. Each mark is returned to one caller only. The caller holds the
 * allocation. Without that, a statement that waits here while tokens are added would see the mark after the change and
 * the allocation before it.
 */
export async function crossMarks(tx: Db, agentId: string): Promise<CrossedMark[]> {
  const { rows } = await tx.query<{ before: number; mark: number; used: number; allocation: number }>(
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

/** Called after a change of the allocation: marks above the present use can be crossed again. */
export async function resetMark(db: Db, agentId: string): Promise<void> {
  await db.query(
    `update agent_tokens t set mark = least(t.mark, case when a.token_allocation is null then 0 else ${MARK} end)
     from agents a where a.id = t.agent_id and t.agent_id = $1`,
    [agentId],
  )
}
