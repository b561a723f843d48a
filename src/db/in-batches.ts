// Background work over many rows: a small transaction at a time, by one process at a time. A process that dies leaves
// whole batches behind, and the next process goes on from there.
import type pg from 'pg'
import { LOWEST_ID } from '../kernel/id.ts'
import type { Client, Db, Pool } from './pool.ts'
import { inTransaction } from './transaction.ts'

/** The second number of each lock's key. Keys of two numbers never collide with locks of one number. */
const BATCH_LOCKS = { retention: 1, projects: 2 } as const

const LOCK_SPACE = 0x6d757374 // 'must'

export interface Batches {
  lock: keyof typeof BATCH_LOCKS
  /** The time limit of one statement. A batch takes milliseconds; one row with a very long journal may take longer. */
  timeoutMs?: number
  /** Ends the work after the batch under way. */
  signal?: AbortSignal | undefined
}

/**
 * The position of a walk in the order of (an instant, id): rows that stay are not seen twice in a round. The instant is
 * PostgreSQL's text, because a Date would cut off the microseconds.
 */
export interface Position {
  at: string
  id: string
}

export const BEGINNING: Position = { at: '-infinity', id: LOWEST_ID }

/** Calls `batch` until it returns false. Returns false if another process does this work. */
export async function inBatches(
  pool: Pool,
  { lock, timeoutMs = 120_000, signal }: Batches,
  batch: (tx: Db) => Promise<boolean>,
): Promise<boolean> {
  for (let isMore = true; isMore && !signal?.aborted; ) {
    const answer = await inTransaction(pool, async (tx) => {
      await tx.query(`set local statement_timeout = ${Math.trunc(timeoutMs)}`)
      return (await takeTurn(tx, lock)) ? { isMore: await batch(patient(tx, timeoutMs)) } : null
    })
    if (!answer) return false
    isMore = answer.isMore
  }
  return true
}

/** The driver, too, waits as long as the statement may take; its usual limit is made for requests. */
function patient(tx: Client, timeoutMs: number): Db {
  return {
    query: (sql, values = []) => {
      // The driver's types lack the time limit of a single statement.
      const statement: pg.QueryConfig<unknown[]> & { query_timeout: number } = {
        ...(typeof sql === 'string' ? { text: sql } : sql),
        values: [...values],
        query_timeout: timeoutMs + 5_000,
      }
      return tx.query(statement)
    },
  }
}

/** Takes the turn until the transaction ends. Returns false if another process has the turn. */
export async function takeTurn(tx: Db, lock: Batches['lock']): Promise<boolean> {
  const { rows } = await tx.query<{ got: boolean }>('select pg_try_advisory_xact_lock($1, $2) as got', [
    LOCK_SPACE,
    BATCH_LOCKS[lock],
  ])
  return rows[0]?.got ?? false
}

/** Repeats a statement that deletes at most `atOnce` rows until it finds fewer. Returns the number of deleted rows. */
export async function deleteInBatches(
  pool: Pool,
  options: Batches,
  { sql, values = [], atOnce }: { sql: string; values?: readonly unknown[]; atOnce: number },
): Promise<number> {
  let total = 0
  await inBatches(pool, options, async (tx) => {
    const { rowCount } = await tx.query(sql, [...values])
    total += rowCount ?? 0
    return rowCount === atOnce
  })
  return total
}

interface RemovedBatch {
  last: Position | undefined
  removed: number
  isMore: boolean
}

/** Walks over lapsed rows, the oldest first, and removes those that may go. Returns the number of removed rows. */
export async function removeOldest(
  pool: Pool,
  signal: AbortSignal | undefined,
  batch: (tx: Db, after: Position) => Promise<RemovedBatch>,
): Promise<number> {
  let total = 0
  let after = BEGINNING
  await inBatches(pool, { lock: 'retention', signal }, async (tx) => {
    const { last, removed, isMore } = await batch(tx, after)
    total += removed
    if (last) after = last
    return last !== undefined && isMore
  })
  return total
}

const ENDED_AT_ONCE = 500

export interface EndedRows {
  table: 'tasks' | 'processing_log' | 'agent_messages'
  /** The column from whose instant the days are counted. An index holds it after the project and before the id. */
  at: 'completed_at' | 'created_at'
  carried: readonly string[]
  /** A condition over the row `t`: rows that meet the condition are kept. */
  stays: string
}

/** Removes the rows of a project that ended more than `days` ago, in the order of their ends. Returns their number. */
export async function removeEnded(
  pool: Pool,
  { table, at, carried, stays }: EndedRows,
  { projectId, days }: { projectId: string; days: number },
  signal?: AbortSignal,
): Promise<number> {
  return removeOldest(pool, signal, async (tx, after) => {
    const { rows } = await tx.query<Position & { stays: boolean }>(
      `select t.id, t.${at}::text as at, ${stays} as stays
       from (
         select id, ${[at, ...carried].join(', ')} from ${table}
         where project_id = $1 and ${at} < muster.now() - $2 * interval '1 day' and (${at}, id) > ($3::timestamptz, $4::uuid)
         order by ${at}, id limit ${ENDED_AT_ONCE} for update skip locked) t
       order by t.${at}, t.id`,
      [projectId, days, after.at, after.id],
    )
    const { rowCount } = await tx.query(`delete from ${table} where id = any($1::uuid[])`, [
      rows.filter((row) => !row.stays).map((row) => row.id),
    ])
    return { last: rows.at(-1), removed: rowCount ?? 0, isMore: rows.length === ENDED_AT_ONCE }
  })
}
