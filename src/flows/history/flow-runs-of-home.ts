// Flow runs over many projects: those under way, and those that failed or took too long.
import { byId, findNewestOfEach, inEachProject, type NewestOfEach } from '../../db/newest-of-each.ts'
import type { Db } from '../../db/pool.ts'
import { oneLine } from '../../db/search-rows.ts'
import type { FlowProgress } from '../../kernel/flow-run.ts'
import type { FlowRunOfHome } from '../../kernel/home.ts'
import { WAIT_COLUMNS } from '../../runs/run-row.ts'
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
  waiting_for: string | null
  wait_message: string | null
  next_try_at: Date | null
}

/** SQL: the first leaf of the running flow run `f` that waits for a provider: its run, or the call of its function. */
const PROVIDER_WAIT = `
  (select waiting_for, wait_message, next_try_at from (
     select ${WAIT_COLUMNS} from agent_runs
     where flow_run_id = f.id and completed_at is null and waits_for = 'provider' limit 1) r where waiting_for is not null)
  union all
  (select 'provider ' || p.provider, o.message, o.next_try_at from provider_waits p
   left join provider_outages o on o.provider = p.provider and o.model = p.model where p.flow_run_id = f.id limit 1)
  limit 1`

export async function readFlowRunsOfHome(db: Db, ids: readonly string[]): Promise<ReadonlyMap<string, FlowRunOfHome>> {
  const { rows } = await db.query<Row>(
    `select f.id, f.flow_id, s.name as flow_name, f.root->>'type' as pattern, f.status, ${oneLine('f.error')} as error,
       f.progress, f.created_at, f.started_at, f.completed_at, f.cancel_requested_at, f.expected, f.people_waits, f.waited,
       muster.now() as read_at, w.waiting_for, ${oneLine('w.wait_message')} as wait_message, w.next_try_at
     from flow_runs f left join flows s on s.id = f.flow_id
       left join lateral (${PROVIDER_WAIT}) w on f.status = 'running' and f.people_waits > 0
     where f.id = any($1::uuid[])`,
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
      waiting_for: row.waiting_for,
      wait_message: row.wait_message,
      next_try_at: row.next_try_at?.toISOString() ?? null,
    })),
  )
}
