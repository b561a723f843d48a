import { listPage, type PageQuery } from '../db/list-page.ts'
import type { Db } from '../db/pool.ts'
import { runNotFound } from '../kernel/errors.ts'
import type { Page } from '../kernel/fields.ts'
import { isId } from '../kernel/id.ts'
import type { Run, RunStatus } from '../kernel/run.ts'
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

export interface RunFilter {
  agent_id?: string | undefined
  status?: RunStatus | undefined
  parent_run_id?: string | undefined
}

export async function listRuns(db: Db, projectId: string, filter: RunFilter, query: PageQuery): Promise<Page<Run>> {
  const given = Object.entries(filter).filter(([, value]) => value !== undefined)
  // The names are those of RunFilter: a constant of the source, never of a request.
  const conditions = given.map(([column], index) => `and ${column} = $${index + 2}`)
  return listPage<RunRow, Run>(db, {
    sql: `select ${RUN_COLUMNS} from agent_runs where project_id = $1 ${conditions.join(' ')}`,
    values: [projectId, ...given.map(([, value]) => value)],
    query,
    toItem: toRun,
    isHeavy: true,
  })
}
