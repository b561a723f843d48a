import type { Db } from '../db/pool.ts'
import { runNotFound } from '../kernel/errors.ts'
import { isId } from '../kernel/id.ts'
import type { Run } from '../kernel/run.ts'
import { RUN_COLUMNS, type RunRow, toRun } from './run-row.ts'

export async function getRun(db: Db, projectId: string, runId: string): Promise<Run> {
  const row = isId(runId) ? await readRow(db, projectId, runId) : null
  if (!row) throw runNotFound()
  return toRun(row)
}

async function readRow(db: Db, projectId: string, runId: string): Promise<RunRow | null> {
  const { rows } = await db.query<RunRow>(`select ${RUN_COLUMNS} from agent_runs where id = $1 and project_id = $2`, [
    runId,
    projectId,
  ])
  return rows[0] ?? null
}
