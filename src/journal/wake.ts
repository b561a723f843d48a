import type { Db, PreparedSql } from '../db/pool.ts'
import { LOWEST_ID } from '../kernel/id.ts'

export const READY_CHANNEL = 'muster_ready'
export const CANCEL_CHANNEL = 'muster_cancel'
/** A notice that names a run whose agent was stopped. */
export const STOP_CHANNEL = 'muster_stop'
export const HALT_CHANNEL = 'muster_halt'
/** A notice that names a flow run: one of its leaves has ended, or the flow run was cancelled. */
export const FLOW_CHANNEL = 'muster_flow'
/** A notice that names a project: an eval of it was made or cancelled. */
export const EVAL_CHANNEL = 'muster_eval'

/**
 * Called when something has happened that the run may be waiting for. A run that is about to wait is kept awake by the
 * raised count. Returns whether the run was made ready.
 */
export async function wakeWaiting(db: Db, runId: string, waitsFor: 'human' | 'children'): Promise<boolean> {
  const { rows } = await db.query<{ is_ready: boolean }>(
    `update agent_runs set signals = signals + 1,
       ready_at = case when owner is null and waits_for = $2 then coalesce(ready_at, muster.now()) else ready_at end
     where id = $1 and completed_at is null returning ready_at is not null as is_ready`,
    [runId, waitsFor],
  )
  return rows[0]?.is_ready ?? false
}

/**
 * Called in the transaction that changed how long runs of the project wait for an approval or for a provider: those that
 * wait restart their timers, and those that are about to wait see the raised count. A run that has not started is held
 * for a person's decision and stays so. Returns the number of runs that were made ready.
 */
export async function restartTimers(tx: Db, projectId: string): Promise<number> {
  const { rows } = await tx.query<{ is_ready: boolean }>(
    `update agent_runs set signals = signals + (owner is not null)::int,
       ready_at = case when owner is null then muster.now() else ready_at end
     where id in (
       select id from agent_runs where id in (
         select id from agent_runs where owner is not null and project_id = $1
         union all select id from agent_runs where project_id = $1 and pause_reason = 'human' and waits_for = 'human'
           and started_at is not null
         union all select id from agent_runs where project_id = $1 and waits_for = 'provider'
       ) and completed_at is null and (owner is not null or ready_at is null) order by id for update)
     returning owner is null as is_ready`,
    [projectId],
  )
  return rows.filter((row) => row.is_ready).length
}

/** Something that waited and continues: a run, or a call of a function of a flow run. */
export type Continued = { runIds: readonly string[] } | { flowRunId: string }

/**
 * Wakes the runs above, through all flow runs, that took everything below them for waiting: their time runs again. A run
 * that is about to wait sees the raised count. Another run without an owner knows its deadline already; with many runs
 * below it would be woken once for each of them. Returns whether runs were made ready.
 */
export async function wakeAbove(db: Db, continued: Continued): Promise<boolean> {
  const values = 'runIds' in continued ? [continued.runIds, null] : [[], continued.flowRunId]
  const { rows } = await db.query<{ is_ready: boolean }>(WAKE_ABOVE, values)
  return rows.some((row) => row.is_ready)
}

const WAKE_ABOVE = `
  with recursive above (id, parent_run_id, flow_run_id, is_above) as (
    select id, parent_run_id, flow_run_id, false from agent_runs where id = any($1::uuid[])
    union
    select r.id, r.parent_run_id, r.flow_run_id, true from flow_runs f join agent_runs r on r.id = f.parent_run_id
    where f.id = $2
    union
    select r.id, r.parent_run_id, r.flow_run_id, true
    from above a left join flow_runs f on f.id = a.flow_run_id
    join agent_runs r on r.id = coalesce(a.parent_run_id, f.parent_run_id)
  )
  update agent_runs set signals = signals + 1, stands_still = false,
    ready_at = case when owner is null and waits_for = 'children' then coalesce(ready_at, muster.now()) else ready_at end
  where id in (
    select id from agent_runs where id in (select id from above where is_above) and timeout is not null
      and completed_at is null and (owner is not null or stands_still) order by id for update)
  returning ready_at is not null as is_ready`

/** A batch is small enough for a short statement, however many runs sleep. */
const MOST_AT_ONCE = 5_000

/** A run that sleeps because of the off switch. The index agent_runs_asleep_halted holds such runs alone. */
const ASLEEP_HALTED = `status = 'paused' and pause_reason = 'halted' and owner is null and ready_at is null`

/**
 * Called when the off switch was released. Wakes a batch of the runs after the id `after`. Returns the last woken id,
 * or null if there may be no more, also because the switch is on again.
 */
export async function wakeHalted(
  db: Db,
  projectId: string,
  { after = LOWEST_ID, atOnce = MOST_AT_ONCE } = {},
): Promise<{ count: number; last: string | null }> {
  const { rows } = await db.query<{ count: number; last: string | null }>(
    `with batch as (
       select id from agent_runs where project_id = $1 and id > $2 and ${ASLEEP_HALTED}
         and exists (select from projects where id = $1 and halted_at is null)
       order by id limit $3 for update skip locked
     ), woken as (
       update agent_runs r set ready_at = muster.now() from batch where r.id = batch.id returning r.id
     )
     select count(*)::int as count, (array_agg(id order by id desc))[1] as last from woken`,
    [projectId, after, atOnce],
  )
  const { count = 0, last = null } = rows[0] ?? {}
  return { count, last: count < atOnce ? null : last }
}

const WAKE_OVERLOOKED: PreparedSql = {
  name: 'runs_wake_overlooked',
  text: `with recursive halted (project_id) as (
     select (select project_id from agent_runs where ${ASLEEP_HALTED} order by project_id limit 1)
     union all
     select (select r.project_id from agent_runs r where ${ASLEEP_HALTED} and r.project_id > h.project_id
       order by r.project_id limit 1)
     from halted h where h.project_id is not null
   ), overlooked as (
     (select id from agent_runs where owner is null and ready_at is null and completed_at is null
       and waits_for is not null
       and (cancel_requested_at is not null or (waits_for = 'children' and open_children <= 0))
      limit $1)
     union
     (select r.id from halted h
      cross join lateral (select from projects where id = h.project_id and halted_at is null limit 1) p
      cross join lateral (
        select id from agent_runs where project_id = h.project_id and ${ASLEEP_HALTED} limit $1) r
      limit $1)
   ), woken as (
     update agent_runs set ready_at = muster.now()
     where id in (select id from agent_runs where id in (select id from overlooked) order by id for update skip locked)
       and owner is null and ready_at is null and completed_at is null and waits_for is not null
     returning pause_reason
   )
   select count(*)::integer as count, (count(*) filter (where pause_reason = 'halted'))::integer as halted from woken`,
}

/**
 * Wakes runs that sleep without a reason: they were cancelled, their sub-runs have ended, or their project is not
 * halted. This is a safety net. Halted runs are found by one probe per project that has some: a plain join reads all
 * projects. They are counted apart, because a release wakes them only after it is committed, and may be about to.
 * `mayBeMore` tells that a batch was full.
 */
export async function wakeOverlooked(db: Db, atOnce = MOST_AT_ONCE): Promise<Woken> {
  const { rows } = await db.query<{ count: number; halted: number }>(WAKE_OVERLOOKED, [atOnce])
  const { count = 0, halted = 0 } = rows[0] ?? {}
  return { count, halted, mayBeMore: count >= atOnce }
}

interface Woken {
  /** All runs that were woken, the halted ones too. */
  count: number
  halted: number
  mayBeMore: boolean
}

/** Notifies every process. If the notice is lost, the next sweep of a process finds the change. */
export async function tellProcesses(db: Db, channel: string, payload = ''): Promise<void> {
  await db.query('select pg_notify($1, $2)', [channel, payload])
}

/** Sends one notification for each payload, in one statement. */
export async function tellAbout(db: Db, channel: string, payloads: readonly string[]): Promise<void> {
  if (payloads.length > 0)
    await db.query('select pg_notify($1, payload) from unnest($2::text[]) as payload', [channel, payloads])
}
