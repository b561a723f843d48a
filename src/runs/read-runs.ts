import { listPage, type PageQuery } from '../db/list-page.ts'
import type { Db } from '../db/pool.ts'
import { selectByBeginning } from '../db/select-by-beginning.ts'
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
  /** The first letters of the id. */
  id?: string | undefined
  agent_id?: string | undefined
  status?: RunStatus | undefined
  parent_run_id?: string | undefined
  flow_run_id?: string | undefined
  task_id?: string | undefined
}

export async function listRuns(db: Db, projectId: string, filter: RunFilter, query: PageQuery): Promise<Page<Run>> {
  const { id: beginning, status, parent_run_id, flow_run_id, task_id, agent_id } = filter
  if (await isForeign(db, projectId, { task_id, parent_run_id, flow_run_id })) return { items: [], next_cursor: null }
  const ids = { parent_run_id, flow_run_id, task_id, agent_id, project_id: projectId }
  return listPage<RunRow, Run>(db, {
    ...(beginning === undefined
      ? selectByStatus({
          select: `select ${RUN_COLUMNS} from agent_runs`,
          ...runIndex(ids),
          among: { status: status === undefined ? runStatuses : [status] },
        })
      : selectByBeginning({ columns: RUN_COLUMNS, table: 'agent_runs', beginning, among: ids, status })),
    query,
    toItem: toRun,
    largeColumns: ['input', 'summary', 'error_message'],
  })
}

/** The runs of a task, a run or a flow run are of one project, so one of them tells. The others' rows are not read. */
async function isForeign(
  db: Db,
  projectId: string,
  filter: Omit<RunFilter, 'id' | 'status' | 'agent_id'>,
): Promise<boolean> {
  for (const [column, id] of Object.entries(filter)) {
    if (id === undefined) continue
    const { rows } = await db.query<{ project_id: string }>(
      `select project_id from agent_runs where ${column} = $1 limit 1`,
      [id],
    )
    if (rows[0]?.project_id !== projectId) return true
  }
  return false
}

/** The most selective filter comes first: a task, a run or a flow run has fewer runs than an agent. */
function runIndex({ parent_run_id, flow_run_id, task_id, agent_id, project_id }: RunFilter & { project_id: string }) {
  if (task_id !== undefined) return { by: { task_id }, also: { parent_run_id, flow_run_id, agent_id, project_id } }
  if (parent_run_id !== undefined) return { by: { parent_run_id }, also: { flow_run_id, agent_id, project_id } }
  if (flow_run_id !== undefined) return { by: { flow_run_id }, also: { agent_id, project_id } }
  return { by: { project_id, agent_id } }
}
