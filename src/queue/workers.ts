// The processes over this database. A worker owns its runs while its lease lasts by the database's clock. It also holds
// a lock, which ends with its connection. A missing lock proves nothing by itself, because a connection can be cut
// while its process lives; it only shortens the wait for a lease that is not renewed.
import type { Db, PreparedSql } from '../db/pool.ts'

export interface Worker {
  id: string
  slots: number
  lockKey: number
  leaseMs: number
  beatMs: number
}

const LEASE = `muster.now() + $2 * interval '1 ms'`

export async function insertWorker(db: Db, { id, slots, lockKey, leaseMs, beatMs }: Worker): Promise<void> {
  await db.query(
    `insert into workers (id, lease_until, slots, lock_key, beat_ms, locked_on)
     values ($1, ${LEASE}, $3, $4, $5, pg_postmaster_start_time())`,
    [id, leaseMs, slots, lockKey, beatMs],
  )
}

/** Takes a lock that lasts as long as the connection. The key is new: the server may still hold the last lock. */
export async function takeLock(db: Db, lockKey: number): Promise<void> {
  await db.query('select pg_advisory_lock($1)', [lockKey])
}

/** Renews with a new lock on a new connection. Returns false if another process declared this worker dead. */
export async function renewWithLock(db: Db, { id, leaseMs, lockKey }: Worker): Promise<boolean> {
  const { rowCount } = await db.query(
    `update workers set lease_until = ${LEASE}, renewed_at = muster.now(), lock_key = $3, locked_on = pg_postmaster_start_time() where id = $1`,
    [id, leaseMs, lockKey],
  )
  return rowCount === 1
}

/** Returns false if another process declared this worker dead and took its runs. */
export async function renewLease(db: Db, { id, leaseMs }: Worker): Promise<boolean> {
  const { rowCount } = await db.query(
    {
      name: 'worker_renew',
      text: `update workers set lease_until = ${LEASE}, renewed_at = muster.now() where id = $1`,
    },
    [id, leaseMs],
  )
  return rowCount === 1
}

export interface Sighting {
  id: string
  /** The time since the worker renewed its lease, by the database's clock. */
  silentForMs: number
  beatMs: number
  hasLapsed: boolean
  /** True if the worker's lock is gone although the database has not restarted since the lock was taken. */
  isUnlocked: boolean
}

const SIGHT_OTHERS: PreparedSql = {
  name: 'worker_sight_others',
  text: `select id, (extract(epoch from muster.now() - renewed_at) * 1000)::float8 as silent_for, beat_ms,
      lease_until < muster.now() as has_lapsed,
      locked_on = pg_postmaster_start_time() and not exists (
        select from pg_locks where locktype = 'advisory' and granted and objsubid = 1
          and database = (select oid from pg_database where datname = current_database())
          and (classid::bigint << 32 | objid::bigint) = lock_key
      ) as is_unlocked
    from workers where id <> $1`,
}

export async function sightOthers(db: Db, ownId: string): Promise<Sighting[]> {
  const { rows } = await db.query<{
    id: string
    silent_for: number
    beat_ms: number
    has_lapsed: boolean
    is_unlocked: boolean
  }>(SIGHT_OTHERS, [ownId])
  return rows.map((row) => ({
    id: row.id,
    silentForMs: row.silent_for,
    beatMs: row.beat_ms,
    hasLapsed: row.has_lapsed,
    isUnlocked: row.is_unlocked,
  }))
}

/** Removes a worker that was seen dead, unless it has renewed since it was seen. Returns whether it was removed. */
export async function forgetDead(db: Db, { id, silentForMs }: Sighting): Promise<boolean> {
  const { rowCount } = await db.query(
    `delete from workers where id = $1 and renewed_at <= muster.now() - $2 * interval '1 ms'`,
    [id, silentForMs],
  )
  return rowCount === 1
}

export async function forgetWorker(db: Db, id: string): Promise<boolean> {
  const { rowCount } = await db.query('delete from workers where id = $1', [id])
  return rowCount === 1
}
