import type { Db } from '../db/pool.ts'

export const READY_CHANNEL = 'muster_ready'
export const CANCEL_CHANNEL = 'muster_cancel'
export const HALT_CHANNEL = 'muster_halt'
/** A notice that names a flow run: one of its leaves has ended, or the flow run was cancelled. */
export const FLOW_CHANNEL = 'muster_flow'

/**
 * Called when something has happened that the run may be waiting for. A waiting run is made ready; a run that is about
 * to wait is kept awake by the raised count. Returns whether the run was made ready.
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

/** Called when the off switch was released: the project's runs go on under the same ids. */
export async function wakeHalted(db: Db, projectId: string): Promise<number> {
  const { rowCount } = await db.query(
    `update agent_runs set ready_at = muster.now()
     where project_id = $1 and status = 'paused' and pause_reason = 'halted' and owner is null and ready_at is null`,
    [projectId],
  )
  return rowCount ?? 0
}

const MOST_OVERLOOKED = 500

/**
 * Wakes runs that sleep without a reason: they were cancelled, their sub-runs have ended, or their project is not
 * halted. No path should leave a run so; this is a safety net. One index holds only such runs, the other takes a probe
 * for each project with halted runs.
 */
export async function wakeOverlooked(db: Db): Promise<number> {
  const { rowCount } = await db.query(
    `with recursive halted (project_id) as (
       select (select project_id from agent_runs where ${HALTED} order by project_id limit 1)
       union all
       select (select r.project_id from agent_runs r where ${HALTED} and r.project_id > h.project_id
         order by r.project_id limit 1)
       from halted h where h.project_id is not null
     ), overlooked as (
       (select id from agent_runs where owner is null and ready_at is null and completed_at is null
         and waits_for is not null
         and (cancel_requested_at is not null or (waits_for = 'children' and open_children <= 0))
        limit ${MOST_OVERLOOKED})
       union
       (select r.id from halted h join projects p on p.id = h.project_id and p.halted_at is null
        join agent_runs r on r.project_id = h.project_id and r.status = 'paused' and r.pause_reason = 'halted'
        where r.owner is null and r.ready_at is null limit ${MOST_OVERLOOKED})
     )
     update agent_runs set ready_at = muster.now()
     where id in (select id from agent_runs where id in (select id from overlooked) order by id for update skip locked)
       and owner is null and ready_at is null and completed_at is null and waits_for is not null`,
  )
  return rowCount ?? 0
}

const HALTED = `status = 'paused' and pause_reason = 'halted'`

/** Notifies every process. If the notice is lost, the next sweep of a process finds the change. */
export async function tellProcesses(db: Db, channel: string, payload = ''): Promise<void> {
  await db.query('select pg_notify($1, $2)', [channel, payload])
}
