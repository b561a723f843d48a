// Which processes live over this database. A worker owns its runs as long as its lease lasts by the database's clock;
// a session lock that it holds shows its death at once, where the lease alone would show it seconds later.
import type { Db } from '../db/pool.ts'

export interface Worker {
  id: string
  slots: number
  lockKey: number
  leaseMs: number
}

/** Writes the worker's row, or renews it after its connection came back. The lock is held by `client`'s session. */
export async function registerWorker(client: Db, worker: Worker): Promise<void> {
  await client.query('select pg_advisory_lock($1)', [worker.lockKey])
  await writeWorker(client, worker)
}

/** The row alone: under a new name, while the process holds its lock still. */
export async function writeWorker(db: Db, { id, slots, lockKey, leaseMs }: Worker): Promise<void> {
  await db.query(
    `insert into workers (id, slots, lease_until, lock_key, locked_on)
     values ($1, $2, muster.now() + $3 * interval '1 ms', $4, pg_postmaster_start_time())
     on conflict (id) do update set locked_on = pg_postmaster_start_time(), lease_until = excluded.lease_until`,
    [id, slots, leaseMs, lockKey],
  )
}

/** False: somebody declared this worker dead, and its runs are theirs. */
export async function renewLease(db: Db, { id, leaseMs }: Worker): Promise<boolean> {
  const { rowCount } = await db.query(
    `update workers set lease_until = muster.now() + $2 * interval '1 ms' where id = $1`,
    [id, leaseMs],
  )
  return rowCount === 1
}

export interface Sighting {
  id: string
  /** Its lease has passed. */
  hasLapsed: boolean
  /** Its lock is gone although the database has not restarted since it was taken. */
  isUnlocked: boolean
}

/** How the other workers look from here. */
export async function sightOthers(db: Db, ownId: string): Promise<Sighting[]> {
  const { rows } = await db.query<{ id: string; has_lapsed: boolean; is_unlocked: boolean }>(
    `select id, lease_until < muster.now() as has_lapsed,
       locked_on = pg_postmaster_start_time() and not exists (
         select from pg_locks where locktype = 'advisory' and granted and objsubid = 1
           and database = (select oid from pg_database where datname = current_database())
           and (classid::bigint << 32 | objid::bigint) = lock_key
       ) as is_unlocked
     from workers where id <> $1`,
    [ownId],
  )
  return rows.map((row) => ({ id: row.id, hasLapsed: row.has_lapsed, isUnlocked: row.is_unlocked }))
}

export async function forgetWorker(db: Db, id: string): Promise<boolean> {
  const { rowCount } = await db.query('delete from workers where id = $1', [id])
  return rowCount === 1
}
