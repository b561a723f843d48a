// The time in which a run waits for runs below it, and all of these wait for people, providers or tools. Such a time counts
// for no timeout, so the run that waits above counts it, too. A run below that continues wakes the runs above it, because
// their time runs again from then on.
import type { Db } from '../db/pool.ts'
import { append, databaseNow, type OwnedRun } from './owned-run.ts'

/** A wait of a run for runs below it is not a wait of its own, so it does not count as work either. */
const PARKED = `('children', 'tool')`

/** SQL: the times in which the runs below were at work since $2: from a beginning or the end of a wait to the next wait. */
const WORK = `
  with recursive below (id, started, ended) as (
    select id, created_at, completed_at from agent_runs where parent_run_id = $1
    union select r.id, r.created_at, r.completed_at from below b join agent_runs r on r.parent_run_id = b.id
  ), recent as (
    select * from below where ended is null or ended > $2
  ), waits as (
    select e.run_id as id, e.at as began, (
      select n.at from run_events n where n.run_id = e.run_id and n.seq > e.seq and n.origin_seq is null
        and not n.data ? 'run_id' order by n.seq limit 1) as ended
    from recent r join run_events e on e.run_id = r.id
    where e.origin_seq is null and not e.data ? 'run_id'
      and (e.kind = 'run.paused' or (e.kind = 'run.parked' and e.data->>'waits_for' in ${PARKED}))
  ), times as (
    select id, started as began, 'work' as kind from recent
    union all select id, ended, 'work' from waits where ended is not null
    union all select id, began, 'rest' from waits
    union all select id, ended, 'rest' from recent where ended is not null
  )
  select extract(epoch from greatest(began, $2)) * 1000 as began,
    extract(epoch from least(coalesce(next, muster.now()), muster.now())) * 1000 as ended, next is null as is_open
  from (select *, lead(began) over (partition by id order by began, kind) as next from times) t
  where kind = 'work' and coalesce(next, muster.now()) > $2
  order by 1`

/** A shorter standstill is not worth an event. */
const MIN_COUNTED_MS = 50

/**
 * Counts the standstill since the run began to wait for the runs below it. Returns whether all of them wait now. A run
 * without a timeout need not know it.
 */
export async function countStandstill(owned: OwnedRun): Promise<boolean> {
  const { run, state, deps } = owned
  if (run.timeout === null || state.parkedAt === null) return false
  const sinceMs = state.parkedAt
  const { rows } = await deps.pool.query<{ began: string; ended: string; is_open: boolean }>(WORK, [
    run.id,
    new Date(sinceMs),
  ])
  const work = totalOf(rows.map((row) => [Number(row.began), Number(row.ended)]))
  const ms = Math.round(databaseNow(owned) - sinceMs - work)
  if (ms >= MIN_COUNTED_MS) await append(owned, [{ kind: 'run.stood_still', data: { ms } }])
  return rows.every((row) => !row.is_open)
}

/** The length of all intervals together, each instant counted once. They are in the order of their beginnings. */
export function totalOf(intervals: readonly (readonly [began: number, ended: number])[]): number {
  let total = 0
  let until = Number.NEGATIVE_INFINITY
  for (const [began, ended] of intervals) {
    total += Math.max(0, ended - Math.max(began, until))
    until = Math.max(until, ended)
  }
  return total
}

/** Wakes the runs above a run that waited and continues, because their time runs again. */
export async function wakeAbove(db: Db, ancestors: readonly string[]): Promise<boolean> {
  const { rows } = await db.query<{ is_ready: boolean }>(
    `update agent_runs set signals = signals + 1,
       ready_at = case when owner is null and waits_for = 'children' then coalesce(ready_at, muster.now()) else ready_at end
     where id in (select id from agent_runs where id = any($1::uuid[]) and timeout is not null and completed_at is null
       order by id for update)
     returning ready_at is not null as is_ready`,
    [ancestors],
  )
  return rows.some((row) => row.is_ready)
}
