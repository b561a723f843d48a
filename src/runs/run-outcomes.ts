import type { Db } from '../db/pool.ts'
import type { RunStatus } from '../kernel/run.ts'

export interface ChildOutcome {
  id: string
  status: RunStatus
  summary: string | null
  errorMessage: string | null
  hasEnded: boolean
  createdAt: Date
}

export async function readOutcomes(db: Db, ids: readonly string[]): Promise<Map<string, ChildOutcome>> {
  const { rows } = await db.query<{
    id: string
    status: RunStatus
    summary: string | null
    error_message: string | null
    completed_at: Date | null
    created_at: Date
  }>('select id, status, summary, error_message, completed_at, created_at from agent_runs where id = any($1)', [ids])
  return new Map(
    rows.map((row) => [
      row.id,
      {
        id: row.id,
        status: row.status,
        summary: row.summary,
        errorMessage: row.error_message,
        hasEnded: row.completed_at !== null,
        createdAt: row.created_at,
      },
    ]),
  )
}
