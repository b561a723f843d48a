// The next run of each scheduled agent is a row that all processes read, so that a restart forgets nothing.

import { databaseTime } from '../db/database-time.ts'
import { listPage, type PageQuery } from '../db/list-page.ts'
import { columnsOf } from '../db/lists.ts'
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

/** Updates the schedule with the agent. With the same cron and zone the next run is unchanged. */
export async function writeSchedule(tx: Db, agent: Agent): Promise<void> {
  const { id, project_id, trigger_type, enabled, cron_schedule, timezone, catch_up } = agent
  if (trigger_type !== 'schedule' || !enabled || cron_schedule === null) {
    // The row stays, because it has the time of the agent's last run.
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

/** Makes rows for agents that were scheduled before this table existed. Several processes may do this at once. */
export async function addMissingSchedules(db: Db, log: Log): Promise<void> {
  const { rows: agents } = await db.query<ScheduledAgent>(
    `select id, project_id, cron_schedule, timezone, catch_up from agents a
     where trigger_type = 'schedule' and enabled and deleted_at is null and cron_schedule is not null
       and not exists (select from schedules s where s.agent_id = a.id)`,
  )
  if (agents.length === 0) return
  const now = await databaseTime(db)
  await db.query(
    `insert into schedules (agent_id, project_id, cron_schedule, timezone, catch_up, next_run_at)
     select * from unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::timestamptz[])
     on conflict do nothing`,
    columnsOf(agents, (agent) => {
      const { id, project_id, cron_schedule, timezone, catch_up } = agent
      return [id, project_id, cron_schedule, timezone, catch_up, firstRun(agent, now, log)]
    }),
  )
}

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

/** An old cron_schedule may be invalid, because texts were once accepted unchecked. */
function firstRun(agent: ScheduledAgent, now: Date, log: Log): Date | null {
  try {
    if (cronProblem(agent.cron_schedule) === null) return nextTick(agent.cron_schedule, agent.timezone, now)
  } catch {
    // The time zone is unknown on this machine; the warning below tells of it.
  }
  log.warn({ agent_id: agent.id }, 'the schedule of an agent is invalid; the agent does not run until it is changed')
  return null
}
