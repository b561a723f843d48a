import { listPage, type PageQuery } from '../db/list-page.ts'
import type { Db } from '../db/pool.ts'
import { selectByStatus } from '../db/select-by-status.ts'
import { runNotFound } from '../kernel/errors.ts'
import type { Page } from '../kernel/fields.ts'
import { isId } from '../kernel/id.ts'
import { type Run, type RunStatus, runStatuses } from '../kernel/run.ts'
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
  flow_run_id?: string | undefined
  task_id?: string | undefined
}

export async function listRuns(db: Db, projectId: string, filter: RunFilter, query: PageQuery): Promise<Page<Run>> {
  const { status, parent_run_id, flow_run_id, task_id, agent_id } = filter
  return listPage<RunRow, Run>(db, {
    ...selectByStatus({
      select: `select ${RUN_COLUMNS} from agent_runs`,
      ...runIndex({ parent_run_id, flow_run_id, task_id, agent_id, project_id: projectId }),
      among: { status: status === undefined ? runStatuses : [status] },
    }),
    query,
    toItem: toRun,
    largeColumns: ['input', 'summary', 'error_message'],
  })
}

/** A task has fewer attempts, a run fewer sub-runs, and a flow run fewer leaves, than an agent has runs. */
function runIndex({ parent_run_id, flow_run_id, task_id, agent_id, project_id }: RunFilter & { project_id: string }) {
  if (task_id !== undefined) return { by: { task_id }, also: { parent_run_id, flow_run_id, agent_id, project_id } }
  if (parent_run_id !== undefined) return { by: { parent_run_id }, also: { flow_run_id, agent_id, project_id } }
  if (flow_run_id !== undefined) return { by: { flow_run_id }, also: { agent_id, project_id } }
  return { by: { project_id, agent_id } }
}
