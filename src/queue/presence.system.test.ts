import assert from 'node:assert/strict'
import { test } from 'node:test'
import { atEnd } from '../../test/kit/at-end.ts'
import { createTestDatabase } from '../../test/kit/database.ts'
import { createDatabaseProxy } from '../../test/kit/database-proxy.ts'
import { freePort } from '../../test/kit/free-port.ts'
import { newId } from '../kernel/id.ts'
import { silentLog } from '../kernel/log.ts'
import { startPresence } from './presence.ts'
import { forgetDead, insertWorker, renewLease, sightOthers } from './workers.ts'

const { pool, url } = await createTestDatabase()

async function appear(leaseMs: number, overrides: { isAlone?: boolean; url?: string } = {}) {
  const heard: string[] = []
  const deaths: string[] = []
  const seen = { lapses: 0, listening: 0 }
  const presence = await startPresence({
    url: overrides.url ?? url,
    pool,
    slots: 1,
    leaseMs,
    isAlone: overrides.isAlone ?? false,
    unwellAfterMs: 10_000,
    channels: ['muster_test'],
    log: silentLog,
    onNotification: (channel, payload) => heard.push(`${channel} ${payload}`),
    onListening: () => {
      seen.listening++
    },
    onDeath: async (id, forget) => {
      if (await forget(pool)) deaths.push(id)
    },
    onLapse: () => {
      seen.lapses++
    },
  })
  atEnd(() => presence.stop())
  return { presence, heard, deaths, seen }
}
async function until(isTrue: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isTrue())) await new Promise((resolve) => setTimeout(resolve, 10))
}
const workers = async (): Promise<string[]> => (await pool.query('select id from workers')).rows.map((row) => row.id)
const cutListeners = () =>
  pool.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where application_name = 'muster-listener' and datname = current_database()`,
  )

test('a process is registered, hears notices, and is removed when it stops', async () => {
  const { presence, heard } = await appear(5_000)
  assert.deepEqual(await workers(), [presence.ownerId()])
  await pool.query(`select pg_notify('muster_test', 'hello')`)
  await until(() => heard.length > 0)
  assert.deepEqual(heard, ['muster_test hello'])
  await presence.stop()
  assert.deepEqual(await workers(), [])
})

test('a lost connection is replaced and listens again, and no process is declared dead', async () => {
  const [one, two] = await Promise.all([appear(60_000), appear(60_000)])
  await until(() => one.presence.hasOthers() && two.presence.hasOthers())
  await cutListeners()
  await until(() => one.seen.listening === 2 && two.seen.listening === 2)
  await pool.query(`select pg_notify('muster_test', 'again')`)
  await until(() => one.heard.length > 0 && two.heard.length > 0)
  assert.deepEqual([...one.deaths, ...two.deaths], [])
  assert.equal((await workers()).length, 2)
  await Promise.all([one.presence.stop(), two.presence.stop()])
})

test('a worker whose lock is gone while the database did not restart is dead long before its lease', async () => {
  const { presence, deaths } = await appear(60_000)
  const gone = crypto.randomUUID()
  await pool.query(
    `insert into workers (id, slots, lease_until, lock_key, locked_on)
     values ($1, 1, muster.now() + interval '1 hour', 4711, pg_postmaster_start_time())`,
    [gone],
  )
  await until(() => deaths.length > 0)
  assert.deepEqual(deaths, [gone])
  await presence.stop()
})

test('a lock that is gone because the database restarted proves nothing; the lease decides', async () => {
  const { presence, deaths } = await appear(600)
  const id = crypto.randomUUID()
  await pool.query(
    `insert into workers (id, slots, lease_until, lock_key, locked_on)
     values ($1, 1, muster.now() + interval '1 hour', 4712, pg_postmaster_start_time() - interval '1 day')`,
    [id],
  )
  await until(() => presence.hasOthers())
  await pool.query('select pg_sleep(2)')
  assert.deepEqual(deaths, [])
  await pool.query(`update workers set lease_until = muster.now() - interval '1 s' where id = $1`, [id])
  await until(() => deaths.length > 0)
  assert.deepEqual(deaths, [id])
  await presence.stop()
})

test('a process that is alone on its database takes over at once the runs that others left', async () => {
  const left = crypto.randomUUID()
  await pool.query(
    `insert into workers (id, slots, lease_until, lock_key, locked_on)
     values ($1, 1, muster.now() + interval '1 hour', 4713, pg_postmaster_start_time() - interval '1 day')`,
    [left],
  )
  const { presence, deaths } = await appear(60_000, { isAlone: true })
  assert.deepEqual(deaths, [left])
  await presence.stop()
})

test('a process that was declared dead stops acting, and comes back under a new name', async () => {
  const { presence, seen } = await appear(600)
  const before = presence.ownerId()
  await pool.query('delete from workers where id = $1', [before])
  await until(async () => (await workers()).length > 0)
  assert.equal(seen.lapses, 1)
  assert.notEqual(presence.ownerId(), before)
  assert.deepEqual(await workers(), [presence.ownerId()])
  await presence.stop()
})

test('after only the server has lost a listening connection nobody is declared dead, and the lock is taken again', async () => {
  const proxy = createDatabaseProxy({ after: atEnd }, url, await freePort())
  await proxy.listen()
  const [cut, other] = await Promise.all([appear(3_000, { url: proxy.url }), appear(3_000)])
  await until(() => cut.presence.hasOthers() && other.presence.hasOthers())
  const name = cut.presence.ownerId()
  const lockedBefore = await lockKeyOf(name)
  for (let times = 1; times <= 3; times++) {
    assert.equal(proxy.silence('muster-listener'), 1)
    await until(() => cut.seen.listening === times + 1)
  }
  await pool.query(`select pg_notify('muster_test', 'after the cuts')`)
  await until(() => cut.heard.length > 0)
  // The wait is longer than it takes to declare a worker dead that holds no lock and renews nothing.
  const looked = await pool.query<{ until: Date }>(`select now() + interval '4 s' as until`)
  await until(async () => (await pool.query('select now() > $1 as is', [looked.rows[0]?.until])).rows[0].is)
  assert.deepEqual([...cut.deaths, ...other.deaths], [])
  assert.equal(cut.seen.lapses, 0)
  assert.equal(cut.presence.ownerId(), name)
  assert.notEqual(await lockKeyOf(name), lockedBefore)
  await Promise.all([cut.presence.stop(), other.presence.stop()])
})

test('a worker that lost its lock and its name comes back under a new one, with a lock', async () => {
  const proxy = createDatabaseProxy({ after: atEnd }, url, await freePort())
  await proxy.listen()
  const { presence, seen } = await appear(3_000, { url: proxy.url })
  const before = presence.ownerId()
  proxy.silence('muster-listener')
  await pool.query('delete from workers where id = $1', [before])
  await until(() => seen.lapses > 0 && seen.listening === 2)
  assert.notEqual(presence.ownerId(), before)
  assert.equal(seen.lapses, 1)
  const { rows } = await pool.query(
    `select from workers w join pg_locks l on l.locktype = 'advisory' and l.granted
       and (l.classid::bigint << 32 | l.objid::bigint) = w.lock_key where w.id = $1`,
    [presence.ownerId()],
  )
  assert.equal(rows.length, 1)
  await presence.stop()
})

async function lockKeyOf(id: string): Promise<number> {
  const { rows } = await pool.query<{ lock_key: number }>('select lock_key from workers where id = $1', [id])
  return rows[0]?.lock_key ?? 0
}

test('a worker that has renewed since it was seen dead is not removed', async () => {
  const id = newId()
  await insertWorker(pool, { id, slots: 1, lockKey: 5, leaseMs: 60_000, beatMs: 1_000 })
  await pool.query(`update workers set renewed_at = muster.now() - interval '5 s' where id = $1`, [id])
  const [sighting] = (await sightOthers(pool, newId())).filter((other) => other.id === id)
  assert.ok(sighting && sighting.silentForMs >= 5_000)
  await renewLease(pool, { id, slots: 1, lockKey: 5, leaseMs: 60_000, beatMs: 1_000 })
  assert.equal(await forgetDead(pool, sighting), false)
  await pool.query(`update workers set renewed_at = muster.now() - interval '6 s' where id = $1`, [id])
  assert.equal(await forgetDead(pool, sighting), true)
})
