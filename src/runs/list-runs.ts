// The list of runs with its filters. Each filter is served by an index, or reads a bounded number of rows.
import { searchAgents } from '../agents/search-agents.ts'
import { listPage, type PageQuery } from '../db/list-page.ts'
import type { Db } from '../db/pool.ts'
import { idsOf, idValues, inputsBegunWith, NEWEST, newestAmong, newestOf } from '../db/search-rows.ts'
import { selectByBeginning } from '../db/select-by-beginning.ts'
import { type Period, selectByStatus } from '../db/select-by-status.ts'
import type { Page } from '../kernel/fields.ts'
import { type PauseReason, type Run, type RunStatus, runStatuses } from '../kernel/run.ts'
import { readSought, type Sought } from '../kernel/search.ts'
import { ON_TOP, RUN_COLUMNS, type RunRow, toRun } from './run-row.ts'
import { TEXTS } from './search-runs.ts'

export interface RunFilter {
  /** The first letters of the id. */
  id?: string | undefined
  /** A text, which is looked for as the search does. */
  q?: string | undefined
  agent_id?: string | undefined
  status?: RunStatus | undefined
  /** The reason of a pause; runs that do not pause have none. */
  pause_reason?: PauseReason | undefined
  /** none: runs that neither another run nor a flow run has started. */
  parent_run_id?: string | undefined
  flow_run_id?: string | undefined
  task_id?: string | undefined
  created_after?: string | undefined
  created_before?: string | undefined
}

export const NO_PARENT = 'none'

interface Ids {
  parent_run_id: string | undefined
  flow_run_id: string | undefined
  task_id: string | undefined
  agent_id: string | undefined
  project_id: string
}

interface Wanted {
  ids: Ids
  status: RunStatus | undefined
  reason: PauseReason | undefined
  within: string | undefined
  period: Period
}

export async function listRuns(db: Db, projectId: string, filter: RunFilter, query: PageQuery): Promise<Page<Run>> {
  const { id: beginning, q, status, parent_run_id: parent, flow_run_id, task_id, agent_id } = filter
  const { pause_reason: reason } = filter
  const parent_run_id = parent === NO_PARENT ? undefined : parent
  if (await isForeign(db, projectId, { task_id, parent_run_id, flow_run_id })) return { items: [], next_cursor: null }
  const wanted: Wanted = {
    ids: { parent_run_id, flow_run_id, task_id, agent_id, project_id: projectId },
    status,
    reason,
    within: parent === NO_PARENT ? ON_TOP : undefined,
    period: { from: filter.created_after, to: filter.created_before },
  }
  const sought = q === undefined ? null : readSought(q)
  return listPage<RunRow, Run>(db, {
    ...(beginning === undefined
      ? sought
        ? selectByText(wanted, sought, await agentsNamed(db, projectId, sought))
        : selectNewest(wanted)
      : selectByBeginning({
          columns: RUN_COLUMNS,
          table: 'agent_runs',
          beginning,
          among: { ...wanted.ids },
          ...wanted,
          within: withReason(wanted),
        })),
    query,
    toItem: toRun,
    largeColumns: ['input', 'summary', 'error_message'],
  })
}

/** The runs of a task, a run or a flow run are of one project, so one of them tells. The others' rows are not read. */
async function isForeign(
  db: Db,
  projectId: string,
  filter: Pick<Ids, 'task_id' | 'parent_run_id' | 'flow_run_id'>,
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

const SELECT = `select ${RUN_COLUMNS} from agent_runs`

const selectNewest = (wanted: Wanted) => selectByStatus({ select: SELECT, ...indexOf(wanted) })

function indexOf({ ids, status, reason, within, period }: Wanted) {
  const statuses = status === undefined ? runStatuses : [status]
  if (reason === undefined) return { ...runIndex(ids), within, period, among: { status: statuses } }
  // The runs of a project with this reason have an index. An agent, a task, a run or a flow run has few that pause.
  const { project_id, ...others } = ids
  const isOfAll = Object.values(others).every((id) => id === undefined)
  const among = { ...(isOfAll ? {} : { status: ['paused'] }), pause_reason: [reason] }
  const isPossible = statuses.includes('paused')
  return { ...(isOfAll ? { by: { project_id } } : runIndex(ids)), within: isPossible ? within : 'false', period, among }
}

/** The condition for runs that are found in another way than by an index of reasons. */
const withReason = ({ within, reason }: Wanted): string | undefined =>
  reason === undefined ? within : [...(within ? [within] : []), `pause_reason = '${reason}'`].join(' and ')

/** The most selective filter comes first: a task, a run or a flow run has fewer runs than an agent. */
function runIndex({ parent_run_id, flow_run_id, task_id, agent_id, project_id }: Ids) {
  if (task_id !== undefined) return { by: { task_id }, also: { parent_run_id, flow_run_id, agent_id, project_id } }
  if (parent_run_id !== undefined) return { by: { parent_run_id }, also: { flow_run_id, agent_id, project_id } }
  if (flow_run_id !== undefined) return { by: { flow_run_id }, also: { agent_id, project_id } }
  return { by: { project_id, agent_id } }
}

/** The best names are enough to find their runs by. */
const MOST_NAMES = 3
/** So many runs are found by their id, and so many by the beginning of their input. */
const MOST_FOUND = 200

const agentsNamed = async (db: Db, projectId: string, sought: Sought): Promise<string[]> =>
  (await searchAgents(db, { projectId, sought, limit: MOST_NAMES })).map(({ id }) => id)

/**
 * SQL for `listPage`: the runs of the search (search-runs.ts), newest first and with the other filters. Texts are looked
 * for in the newest runs that the other filters leave, so a period that ends earlier shows older ones.
 */
function selectByText(
  wanted: Wanted,
  sought: Sought,
  agentIds: readonly string[],
): { sql: string[]; values: unknown[] } {
  const { ids, status, period } = wanted
  const within = withReason(wanted)
  const given = [ids.project_id, sought.patterns, agentIds, ...idValues(sought), sought.text]
  const columns = 'id, created_at, agent_id, input, summary, error_message'
  const newest = selectByStatus({ given, select: `select ${columns} from agent_runs`, ...indexOf(wanted) })
  const statuses = status === undefined ? runStatuses : [status]
  const ofAgent = 'select id, created_at from agent_runs where project_id = $1 and agent_id = a.id'
  const found = `
    select id from ${idsOf('agent_runs', { from: '$4', to: '$5', limit: MOST_FOUND })} begun
    union all select id from ${inputsBegunWith('agent_runs', '$6', MOST_FOUND)} begun
    union all select r.id from unnest($3::uuid[]) as a (id) cross join lateral (${newestOf(statuses, ofAgent, NEWEST)}) r
    union all select id from (${newestAmong(newest.sql, NEWEST)}) newest
      where agent_id = any($3::uuid[]) or ${TEXTS} like all($2::text[])`
  return selectByStatus({
    given: newest.values,
    select: SELECT,
    by: {},
    also: { ...ids },
    within: [`id = any(array(${found}))`, ...(within ? [within] : [])].join(' and '),
    among: status === undefined ? {} : { status: [status] },
    period,
  })
}
