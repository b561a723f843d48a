// Flow runs over many projects: those under way, and those that failed or took too long.
import { byId, findNewestOfEach, inEachProject, type NewestOfEach } from '../../db/newest-of-each.ts'
import type { Db } from '../../db/pool.ts'
import { oneLine } from '../../db/search-rows.ts'
import type { FlowProgress } from '../../kernel/flow-run.ts'
import type { FlowRunOfHome } from '../../kernel/home.ts'
import { etaOf } from './eta.ts'
import { readExpectations } from './expectation.ts'

const RUNNING = inEachProject(
  `select id, created_at as at from flow_runs where project_id = p.id and status = 'running'`,
)

/** The index flow_runs_failed has this condition. */
const FAILED = inEachProject(
  `select id, completed_at as at from flow_runs
   where project_id = p.id and status in ('failed', 'timed_out') and completed_at >= $3`,
)

export const findRunningFlowRuns = (db: Db, projects: readonly string[], limit: number): Promise<NewestOfEach> =>
  findNewestOfEach(db, RUNNING, { projects, limit })

export const findFailedFlowRuns = (
  db: Db,
  projects: readonly string[],
  limit: number,
  since: Date,
): Promise<NewestOfEach> => findNewestOfEach(db, FAILED, { projects, limit, more: [since] })

interface Row {
  id: string
  flow_id: string | null
  flow_name: string | null
  pattern: string
  status: FlowRunOfHome['status']
  error: string | null
  progress: FlowProgress
  created_at: Date
  started_at: Date | null
  completed_at: Date | null
  cancel_requested_at: Date | null
  expected: number | null
  people_waits: number
  waited: number
  read_at: Date
}

export async function readFlowRunsOfHome(db: Db, ids: readonly string[]): Promise<ReadonlyMap<string, FlowRunOfHome>> {
  const { rows } = await db.query<Row>(
    `select f.id, f.flow_id, s.name as flow_name, f.root->>'type' as pattern, f.status, ${oneLine('f.error')} as error,
       f.progress, f.created_at, f.started_at, f.completed_at, f.cancel_requested_at, f.expected, f.people_waits, f.waited,
       muster.now() as read_at
     from flow_runs f left join flows s on s.id = f.flow_id where f.id = any($1::uuid[])`,
    [ids],
  )
  const running = rows.filter(({ status }) => status === 'running')
  const expectationOf = await readExpectations(db, running)
  return byId(
    rows.map((row) => ({
      id: row.id,
      flow_id: row.flow_id,
      flow_name: row.flow_name,
      pattern: row.pattern,
      status: row.status,
      error: row.error,
      progress: row.progress,
      eta: etaOf(row, expectationOf(row))?.toISOString() ?? null,
      created_at: row.created_at.toISOString(),
      started_at: row.started_at?.toISOString() ?? null,
      completed_at: row.completed_at?.toISOString() ?? null,
    })),
  )
}
