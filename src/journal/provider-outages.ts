// Providers that are away, and those who wait for them: one row for each provider and model, over all processes. Those who
// wait sleep. One of them is let go when the next try is due; each answer lets two more go, dealt over projects, so that
// their number doubles. After a failure among answers each answer lets one go, which keeps the number as it is.
//
// Locks are taken in this order: the outage, its waits, the runs. A run begins to wait in a transaction that shares the
// lock of the outage, so it either sees that the provider has answered, or is seen by the one who lets runs go.
import type { Db, Pool, PreparedSql } from '../db/pool.ts'
import { inTransaction } from '../db/transaction.ts'
import { LOWEST_ID } from '../kernel/id.ts'

export interface ModelName {
  provider: string
  name: string
}

export interface Outage {
  provider: string
  model: string
  message: string
  is_away: boolean
  /** Milliseconds until the next try, and until the end of the wait that the provider has asked for. */
  next_in: number
  blocked_for: number | null
}

/** Milliseconds from now; negative if the time has passed. */
const inMs = (column: string): string => `(extract(epoch from ${column} - muster.now()) * 1000)::float8`

export const OUTAGE_COLUMNS = `provider, model, message, is_away, ${inMs('next_try_at')} as next_in,
  ${inMs('not_before')} as blocked_for`

const FIRST_WAIT_MS = 2_000
const MAX_WAIT_MS = 300_000
/** A longer wait that a provider asks for is cut: PostgreSQL has no later times than its own. */
const MAX_RETRY_AFTER_MS = 31_536_000_000
/** One who was let go and is not heard of for this long keeps nobody else waiting. */
const TURN_MS = 30_000
/** While answers come, those who wait are let go by the answers. If none comes for this long, one more is let go. */
const QUIET_MS = 10_000
/** A refusal among answers that is this long ago lets their number grow again. */
const GROWS_AFTER_MS = 5_000

const NOTE_FAILURE: PreparedSql = {
  name: 'outage_note_failure',
  text: `
    insert into provider_outages as o (provider, model, message, next_try_at, not_before)
    values ($1, $2, $3, muster.now() + greatest(${FIRST_WAIT_MS}, $4::float8) * interval '1 ms',
      case when $4::float8 > 0 then muster.now() + $4::float8 * interval '1 ms' end)
    on conflict (provider, model) do update set
      message = excluded.message, is_away = true, is_probing = false, failed_at = muster.now(),
      since = case when o.is_away then o.since else muster.now() end,
      not_before = greatest(o.not_before, excluded.not_before),
      failures = o.failures + (o.is_probing or not o.is_away)::int,
      next_try_at = greatest(o.not_before, excluded.not_before, case when o.is_probing or not o.is_away
        then muster.now() + least(${MAX_WAIT_MS}, ${FIRST_WAIT_MS} * 2 ^ least(o.failures, 20)) * interval '1 ms'
        else o.next_try_at end)
    returning ${OUTAGE_COLUMNS}`,
}

/** Notes that the provider is away. Only the failure of one who was let go makes the next wait longer. */
export async function noteOutage(
  db: Db,
  { provider, name }: ModelName,
  { message, retryAfterMs }: { message: string; retryAfterMs: number | null },
): Promise<Outage> {
  const { rows } = await db.query<Outage>(NOTE_FAILURE, [
    provider,
    name,
    message,
    Math.min(retryAfterMs ?? 0, MAX_RETRY_AFTER_MS),
  ])
  if (!rows[0]) throw new Error('an outage that was noted has a row')
  return rows[0]
}

/** Notes that the provider refuses some calls while it answers others. */
export async function noteBusy(db: Db, { provider, name }: ModelName): Promise<void> {
  await db.query(`update provider_outages set busy_at = muster.now() where provider = $1 and model = $2`, [
    provider,
    name,
  ])
}

/** The outage, which stays as it is until the transaction ends; null if there is none. */
export async function holdOutage(tx: Db, { provider, name }: ModelName): Promise<Outage | null> {
  const { rows } = await tx.query<Outage>(
    `select ${OUTAGE_COLUMNS} from provider_outages where provider = $1 and model = $2 for share`,
    [provider, name],
  )
  return rows[0] ?? null
}

export interface NewWait extends ModelName {
  id: string
  projectId: string
  waits: number
  /** Of a call of a function: its process, and the leaf that it is part of. */
  workerId?: string
  flowRunId?: string | undefined
  leafId?: string | undefined
  /** True if the call waits for no turn. */
  isReleased?: boolean
}

/** Called in a transaction that holds the outage, unless the wait is released. */
export async function addWait(tx: Db, wait: NewWait): Promise<void> {
  const { id, projectId, provider, name, waits, workerId = null, flowRunId = null, leafId = null } = wait
  const { isReleased = false } = wait
  await tx.query(
    `insert into provider_waits (id, project_id, provider, model, waits, worker_id, flow_run_id, task_id, released_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, case when $9 then muster.now() end)
     on conflict (id) do update set provider = excluded.provider, model = excluded.model, waits = excluded.waits,
       since = muster.now(), released_at = null`,
    [id, projectId, provider, name, waits, workerId, flowRunId, leafId, isReleased],
  )
}

/** Returns false if there was no such wait (any more). */
export async function removeWait(db: Db, id: string): Promise<boolean> {
  const { rowCount } = await db.query('delete from provider_waits where id = $1', [id])
  return rowCount === 1
}

/** The calls of this process that were let go, or whose waits are gone. */
export async function takeReleased(db: Db, ids: readonly string[]): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>(
    `select g.id from unnest($1::uuid[]) as g (id)
     where not exists (select from provider_waits w where w.id = g.id and w.released_at is null)`,
    [ids],
  )
  return rows.map((row) => row.id)
}

export interface Released {
  /** The number of runs that were made ready. */
  runs: number
  /** True if nobody waits any more: the outage is over. */
  isOver: boolean
}

/** The provider has answered: more of those who wait go, unless it asked for a wait that is not over yet. */
export async function noteAnswer(pool: Pool, model: ModelName): Promise<Released> {
  return inTransaction(pool, async (tx) => {
    const values = [model.provider, model.name]
    // The row is locked by a statement of its own: an update would not see what another process has just changed.
    const { rows } = await tx.query<{ growth: number; cursor: string }>(
      `select cursor, case when not_before > muster.now() then 0
         when busy_at > muster.now() - ${GROWS_AFTER_MS} * interval '1 ms' then 1 else 2 end as growth
       from provider_outages where provider = $1 and model = $2 for update`,
      values,
    )
    const [outage] = rows
    if (!outage) return { runs: 0, isOver: true }
    await tx.query(
      `update provider_outages set is_away = false, is_probing = false, failures = 0,
         not_before = case when not_before > muster.now() then not_before end,
         next_try_at = greatest(muster.now() + ${QUIET_MS} * interval '1 ms', not_before)
       where provider = $1 and model = $2`,
      values,
    )
    const { runs, isOver } = await release(tx, model, outage.cursor, outage.growth)
    return { runs, isOver }
  })
}

/** Lets one go for each outage whose next try is due. Returns the number of runs that were made ready. */
export async function releaseDue(pool: Pool): Promise<number> {
  return inTransaction(pool, async (tx) => {
    const { rows } = await tx.query<{ provider: string; model: string; cursor: string }>(
      `update provider_outages o set is_probing = is_away, next_try_at = muster.now() + ${TURN_MS} * interval '1 ms'
       where (provider, model) in (
         select provider, model from provider_outages where next_try_at <= muster.now() for update skip locked)
       returning provider, model, cursor`,
    )
    let runs = 0
    for (const { provider, model: name, cursor } of rows) {
      const released = await release(tx, { provider, name }, cursor, 1)
      runs += released.runs
      if (released.isNobody) await lookAgainSoon(tx, { provider, name })
    }
    return runs
  })
}

/** All who wait are in halted projects. One of them is let go soon after its project continues. */
async function lookAgainSoon(tx: Db, { provider, name }: ModelName): Promise<void> {
  await tx.query(
    `update provider_outages set is_probing = false,
       next_try_at = greatest(not_before, muster.now() + ${FIRST_WAIT_MS} * interval '1 ms')
     where provider = $1 and model = $2`,
    [provider, name],
  )
}

/**
 * Lets up to `count` go. The caller has locked the outage. The outage is over if nobody waits and the provider has
 * answered, or if nobody is left to try it. isNobody: nobody could be let go.
 */
async function release(
  tx: Db,
  model: ModelName,
  from: string,
  count: number,
): Promise<Released & { isNobody: boolean }> {
  let cursor = from
  let runs = 0
  let released = 0
  for (let left = count; left > 0; ) {
    const { rows } = await tx.query<{ picked: number; calls: number; woken: number; last: string | null }>(RELEASE, [
      model.provider,
      model.name,
      cursor,
      left,
    ])
    const { picked = 0, calls = 0, woken = 0, last = null } = rows[0] ?? {}
    runs += woken
    released += calls + woken
    left -= calls + woken
    cursor = last ?? cursor
    // Some of the picked runs were cancelled or woken before: their turn passes to the next.
    if (picked === 0) break
  }
  const { rowCount } = await tx.query(
    `delete from provider_outages where provider = $1 and model = $2 and (not is_away or $3) and not exists (
       select from provider_waits w where w.provider = $1 and w.model = $2 and w.released_at is null limit 1)`,
    [model.provider, model.name, released === 0],
  )
  if (rowCount === 0 && cursor !== from) {
    await tx.query('update provider_outages set cursor = $3 where provider = $1 and model = $2', [
      model.provider,
      model.name,
      cursor,
    ])
  }
  return { runs, isOver: rowCount === 1, isNobody: released === 0 }
}

/** Projects are asked from the one after the cursor on, and each of them gives one before any gives a second. */
const MAX_PROJECTS = 50

const WAITING = 'w.provider = $1 and w.model = $2 and w.released_at is null'
const nextProject = (bound: string): string =>
  `select w.project_id from provider_waits w where ${WAITING} and ${bound} order by w.project_id limit 1`

const RELEASE: PreparedSql = {
  name: 'outage_release',
  text: `
    with recursive later (project_id, place) as (
      select $3::uuid, 0
      union all select next.project_id, l.place + 1 from later l cross join lateral (
        ${nextProject('w.project_id > l.project_id')}) next where l.place < ${MAX_PROJECTS}
    ), earlier (project_id, place) as (
      select '${LOWEST_ID}'::uuid, max(place) from later
      union all select next.project_id, e.place + 1 from earlier e cross join lateral (
        ${nextProject('w.project_id > e.project_id and w.project_id <= $3')}) next where e.place < ${MAX_PROJECTS}
    ), asked as (
      select project_id, place from later where place > 0
      union all select project_id, place from earlier where project_id <> '${LOWEST_ID}'
    ), picked as materialized (
      select c.id, a.project_id, a.place from asked a cross join lateral (
        select id, row_number() over (order by waits, since, id) as nth from (
          select w.id, w.waits, w.since from provider_waits w where ${WAITING} and w.project_id = a.project_id
          order by w.waits, w.since limit $4::int) first
      ) c
      where exists (select from projects p where p.id = a.project_id and p.halted_at is null and p.deleted_at is null)
      order by c.nth, a.place limit $4::int
    ), runs as (
      delete from provider_waits where id in (select id from picked) and worker_id is null returning id
    ), calls as (
      update provider_waits set released_at = muster.now() where id in (select id from picked) and worker_id is not null
      returning id
    ), woken as (
      update agent_runs set ready_at = muster.now()
      where id = any(array(select id from runs)) and waits_for = 'provider' and owner is null and ready_at is null
        and completed_at is null returning id
    )
    select (select count(*) from picked)::int as picked, (select count(*) from calls)::int as calls,
      (select count(*) from woken)::int as woken,
      coalesce((select project_id from picked order by place desc limit 1), (
        select project_id from asked order by place desc limit 1)) as last`,
}

/** Processes keep a provider's settings for two seconds. */
const KNOWN_AFTER_MS = 3_000

/** The provider was changed or deleted, so a wait that it asked for does not hold any more: it is tried in a moment. */
export async function tryProvider(pool: Pool, provider: string): Promise<void> {
  const soon = `muster.now() + ${KNOWN_AFTER_MS} * interval '1 ms'`
  await inTransaction(pool, async (tx) => {
    await tx.query(
      `update provider_outages set not_before = null, next_try_at = least(next_try_at, ${soon}) where provider = $1`,
      [provider],
    )
    // The raised count tells runs that wait for no turn to try.
    await tx.query(
      `update agent_runs r set signals = signals + 1, wake_at = least(wake_at, ${soon})
       where waits_for = 'provider' and waiting_for = 'provider ' || $1 and owner is null and completed_at is null
         and not exists (select from provider_waits w where w.id = r.id)`,
      [provider],
    )
  })
}

/**
 * Makes a run ready that waits for its provider, before its turn. The raised count tells the run to try, also within the
 * wait that the provider asked for. Returns false if the run does not wait for a provider.
 */
export async function tryNow(db: Db, projectId: string, runId: string): Promise<boolean> {
  const { rowCount } = await db.query(
    `update agent_runs set ready_at = coalesce(ready_at, muster.now()), signals = signals + 1
     where id = $1 and project_id = $2 and waits_for = 'provider' and owner is null and completed_at is null`,
    [runId, projectId],
  )
  return rowCount === 1
}
