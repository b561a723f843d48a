// Runs over many projects: running ones, those that wait for a provider, and those that failed or stopped. Sub-runs and runs of leaves of flows are
// left out, because the work above them is shown; the run of an agent that is a flow is shown by its flow run.
import { type RowOf, tellInstants } from '../../db/instants.ts'
import { byId, findNewestOfEach, inEachProject, type NewestOfEach } from '../../db/newest-of-each.ts'
import type { Db } from '../../db/pool.ts'
import { oneLine, smallLine } from '../../db/search-rows.ts'
import { type RunOfHome, stopReasons } from '../../kernel/home.ts'
import { continuationOf, ON_TOP, WAIT_COLUMNS } from '../../runs/run-row.ts'

/**
 * The flow run that the run has started is not in the list. A subquery for a value is executed for each row; `not exists`
 * may be planned as a read of all flow runs.
 */
const notShownBy = (condition: string): string =>
  `(select ${condition} from flow_runs f where f.id = agent_runs.started_flow_run_id) is not true`

/** The index agent_runs_on_top has these in the order of their creation. */
const RUNNING = inEachProject(
  `select id, created_at as at from agent_runs
   where project_id = p.id and status = 'running' and ${ON_TOP} and ${notShownBy(`f.status = 'running'`)}`,
)

/** The condition of the index agent_runs_stopped. */
const HAS_STOPPED = `${ON_TOP} and (status = 'failed'
  or (status = 'paused' and pause_reason in (${stopReasons.map((reason) => `'${reason}'`).join(', ')})))`
/** Of each project so many of the newest runs that stopped are looked at, also if most of them were resumed. */
const MOST_STOPPED = 300

const stopped = (at: string, condition: string): string =>
  `select id, at from (
     select id, ${at} as at, status, started_flow_run_id from agent_runs
     where project_id = p.id and ${HAS_STOPPED} and ${condition}
     order by completed_at desc, id desc limit ${MOST_STOPPED}
   ) agent_runs
   where (${continuationOf('agent_runs.id')}) is null
     and ${notShownBy(`f.status in ('failed', 'timed_out') and f.completed_at >= $3`)}`

/** A run that tries its provider again by itself needs nobody. */
const TRIES_AGAIN = `completed_at is null and waits_for = 'provider'`

/** A run that waits for tokens, or for somebody to ask again, has no end. It needs somebody, whenever that began. */
const STOPPED = inEachProject(
  stopped('completed_at', 'completed_at >= $3'),
  stopped('created_at', `completed_at is null and (${TRIES_AGAIN}) is not true`),
)

/** The index agent_runs_stopped has these in the order of their creation: ids begin with their time. */
const WAITING = inEachProject(
  `select id, at from (
     select id, created_at as at from agent_runs where project_id = p.id and ${HAS_STOPPED} and ${TRIES_AGAIN}
     order by completed_at desc, id desc limit ${MOST_STOPPED}
   ) agent_runs where true`,
)

export const findRunningRuns = (db: Db, projects: readonly string[], limit: number): Promise<NewestOfEach> =>
  findNewestOfEach(db, RUNNING, { projects, limit })

/** The runs that wait for a provider. */
export const findProviderWaits = (db: Db, projects: readonly string[], limit: number): Promise<NewestOfEach> =>
  findNewestOfEach(db, WAITING, { projects, limit })

export const findStoppedRuns = (
  db: Db,
  projects: readonly string[],
  limit: number,
  since: Date,
): Promise<NewestOfEach> => findNewestOfEach(db, STOPPED, { projects, limit, more: [since] })

export async function readRunsOfHome(db: Db, ids: readonly string[]): Promise<ReadonlyMap<string, RunOfHome>> {
  const { rows } = await db.query<RowOf<RunOfHome>>(
    `select r.id, r.agent_id, a.name as agent_name, r.status, r.trigger->>'type' as trigger_type,
       ${smallLine('r.input')} as input_line, r.pause_reason, ${oneLine('r.error_message')} as error_message,
       r.created_at, r.started_at, r.completed_at, w.is_wait, w.waiting_for, w.next_try_at,
       ${oneLine('w.wait_message')} as wait_message
     from agent_runs r cross join lateral (select ${WAIT_COLUMNS} from (select r.*) agent_runs) w left join agents a on a.id = r.agent_id and a.deleted_at is null
     where r.id = any($1::uuid[])`,
    [ids],
  )
  return byId(rows.map((row) => tellInstants(row)))
}
