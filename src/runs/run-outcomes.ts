import type { Db } from '../db/pool.ts'
import type { PauseReason, RunStatus } from '../kernel/run.ts'

export interface ChildOutcome {
  id: string
  status: RunStatus
  pauseReason: PauseReason | null
  summary: string | null
  errorMessage: string | null
  hasEnded: boolean
  /** True if the run was asked to end, or if nobody waits any more for a decision about its calls. */
  isCancelled: boolean
  createdAt: Date
}

export const readOutcomes = (db: Db, ids: readonly string[]): Promise<Map<string, ChildOutcome>> => read(db, OF, ids)

/** The outcomes of those runs that have ended. Of a thousand runs under way only a few have ended since the last look. */
export const readEnded = (db: Db, ids: readonly string[]): Promise<Map<string, ChildOutcome>> =>
  read(db, `${OF} and completed_at is not null`, ids)

/**
 * The newest run of each scope among the runs of these flow runs, by its scope. One statement reads them: a run that was
 * the newest a moment ago may have been continued since.
 */
export async function readNewest(
  db: Db,
  flowRunIds: readonly string[],
  scopes: readonly string[],
): Promise<Map<string, ChildOutcome>> {
  const { rows } = await db.query<OutcomeRow & { scope: string }>(
    `select r.*, s.key_scope as scope from unnest($2::text[]) as s (key_scope) cross join lateral (
       select ${COLUMNS} from agent_runs where flow_run_id = any($1::uuid[]) and key_scope = s.key_scope
       order by created_at desc, id desc limit 1) r`,
    [flowRunIds, scopes],
  )
  return new Map(rows.map((row) => [row.scope, toOutcome(row)]))
}

interface OutcomeRow {
  id: string
  status: RunStatus
  pause_reason: PauseReason | null
  summary: string | null
  error_message: string | null
  completed_at: Date | null
  created_at: Date
  is_cancelled: boolean
}

const COLUMNS = `id, status, pause_reason, summary, error_message, completed_at, created_at,
  cancel_requested_at is not null as is_cancelled`

const OF = `select ${COLUMNS} from agent_runs where id = any($1)`

async function read(db: Db, sql: string, ids: readonly string[]): Promise<Map<string, ChildOutcome>> {
  const { rows } = await db.query<OutcomeRow>(sql, [ids])
  return new Map(rows.map((row) => [row.id, toOutcome(row)]))
}

const toOutcome = (row: OutcomeRow): ChildOutcome => ({
  id: row.id,
  status: row.status,
  pauseReason: row.pause_reason,
  summary: row.summary,
  errorMessage: row.error_message,
  hasEnded: row.completed_at !== null,
  isCancelled: row.is_cancelled,
  createdAt: row.created_at,
})
