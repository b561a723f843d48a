// The next run of each scheduled agent, as a row that all processes look at: a restart forgets nothing.
import { listPage, type PageQuery } from '../db/list-page.ts'
import type { Db } from '../db/pool.ts'
import type { Agent } from '../kernel/agent.ts'
import type { Page } from '../kernel/fields.ts'
import type { Log } from '../kernel/log.ts'
import type { Schedule } from '../kernel/schedule.ts'
import { nextTick } from './cron.ts'
import { cronProblem } from './cron-fields.ts'

type ScheduledAgent = Pick<Agent, 'id' | 'project_id' | 'timezone' | 'catch_up'> & { cron_schedule: string }

interface Kept {
  cron_schedule: string
  timezone: string
  next_run_at: Date | null
}

/** Follows a write of the agent, in its transaction. With the same cron and zone, the next run stays as it is. */
export async function writeSchedule(tx: Db, agent: Agent): Promise<void> {
  const { id, project_id, trigger_type, enabled, cron_schedule, timezone, catch_up } = agent
  if (trigger_type !== 'schedule' || !enabled || cron_schedule === null) {
    // The row stays: it says when the agent last ran.
    await tx.query('update schedules set next_run_at = null where agent_id = $1', [id])
    return
  }
  const { rows } = await tx.query<Kept>(
    'select cron_schedule, timezone, next_run_at from schedules where agent_id = $1 for update',
    [id],
  )
  const kept = rows[0]
  const isSame = kept?.cron_schedule === cron_schedule && kept.timezone === timezone
  const nextRunAt = (isSame ? kept.next_run_at : null) ?? nextTick(cron_schedule, timezone, await databaseTime(tx))
  await tx.query(
    `insert into schedules (agent_id, project_id, cron_schedule, timezone, catch_up, next_run_at)
     values ($1, $2, $3, $4, $5, $6)
     on conflict (agent_id) do update set cron_schedule = excluded.cron_schedule, timezone = excluded.timezone,
       catch_up = excluded.catch_up, next_run_at = excluded.next_run_at`,
    [id, project_id, cron_schedule, timezone, catch_up, nextRunAt],
  )
}

/** Agents that were scheduled before there were rows get theirs. Several processes may do this at once. */
export async function addMissingSchedules(db: Db, log: Log): Promise<void> {
  const { rows: agents } = await db.query<ScheduledAgent>(
    `select id, project_id, cron_schedule, timezone, catch_up from agents a
     where trigger_type = 'schedule' and enabled and deleted_at is null and cron_schedule is not null
       and not exists (select from schedules s where s.agent_id = a.id)`,
  )
  if (agents.length === 0) return
  const now = await databaseTime(db)
  const due = agents.map((agent) => firstRun(agent, now, log))
  await db.query(
    `insert into schedules (agent_id, project_id, cron_schedule, timezone, catch_up, next_run_at)
     select * from unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::timestamptz[])
     on conflict do nothing`,
    [
      agents.map((agent) => agent.id),
      agents.map((agent) => agent.project_id),
      agents.map((agent) => agent.cron_schedule),
      agents.map((agent) => agent.timezone),
      agents.map((agent) => agent.catch_up),
      due,
    ],
  )
}

/** Every enabled scheduled agent of the project. */
export async function listSchedules(db: Db, projectId: string, query: PageQuery): Promise<Page<Schedule>> {
  return listPage<ScheduleRow, Schedule>(db, {
    sql: `select a.id, a.created_at, a.name, a.cron_schedule, a.timezone, s.next_run_at, s.last_run_at
          from agents a left join schedules s on s.agent_id = a.id
          where a.project_id = $1 and a.deleted_at is null and a.enabled and a.trigger_type = 'schedule'`,
    values: [projectId],
    query,
    toItem: (row) => ({
      agent_id: row.id,
      name: row.name,
      cron_schedule: row.cron_schedule,
      timezone: row.timezone,
      next_run_at: row.next_run_at?.toISOString() ?? null,
      last_run_at: row.last_run_at?.toISOString() ?? null,
    }),
  })
}

interface ScheduleRow extends Pick<Schedule, 'name' | 'cron_schedule' | 'timezone'> {
  id: string
  next_run_at: Date | null
  last_run_at: Date | null
}

/** The database's clock, the only one that schedules go by. */
export async function databaseTime(db: Db): Promise<Date> {
  const { rows } = await db.query<{ now: Date }>('select muster.now() as now')
  if (!rows[0]) throw new Error('the database did not say what time it is')
  return rows[0].now
}

/** A text that was accepted before schedules were checked may be no schedule. */
function firstRun(agent: ScheduledAgent, now: Date, log: Log): Date | null {
  try {
    if (cronProblem(agent.cron_schedule) === null) return nextTick(agent.cron_schedule, agent.timezone, now)
  } catch {
    // Said below: the zone is unknown here.
  }
  log.warn({ agent_id: agent.id }, 'the schedule of an agent cannot be read; it does not run until that is changed')
  return null
}
