import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { note, restoreAudit, startAuditCluster, tamper } from '../../test/kit/audit.ts'
import type { Client, Pool } from '../db/pool.ts'
import { sealAudit } from './seal.ts'
import { verifyAudit } from './verify.ts'

const old = await startAuditCluster()
const fresh = await startAuditCluster()

/** Makes sure that the second cluster has counted fewer transactions than the first, like a fresh cluster. */
async function keepFresh(): Promise<void> {
  const ahead = (await old.nextXid()) - (await fresh.nextXid())
  await old.spendXids(Math.max(0, 300 - ahead))
}

const counts = async (pool: Pool) => {
  const verdict = await verifyAudit(pool)
  if (!verdict.ok) return assert.fail(`block ${verdict.block}: ${verdict.reason}`)
  return { rows: verdict.rows, unsealed: verdict.unsealed }
}

const countBlocks = async (pool: Pool): Promise<number> =>
  (await pool.query<{ count: number }>('select count(*) from audit_blocks where row_count > 0')).rows[0]?.count ?? 0

async function begin(t: TestContext, pool: Pool): Promise<Client> {
  const client = await pool.connect()
  t.after(() => client.release(true))
  await client.query('begin')
  return client
}

/** Draws a seq, like an insert that is held up before it gets its transaction id. */
async function drawSeq(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ seq: number }>(`select nextval('audit_log_seq_seq') as seq`)
  return rows[0]?.seq ?? assert.fail()
}

const noteWithSeq = (client: Client, seq: number) =>
  client.query(
    `insert into audit_log (seq, id, action, actor_type) overriding system value
     values ($1, gen_random_uuid(), 'thing.do', 'system')`,
    [seq],
  )

async function noteMany(pool: Pool, count: number): Promise<void> {
  for (let index = 0; index < count; index++) await note(pool, 'thing.do', { index })
}

test('a committed row is sealed once', async () => {
  const pool = await old.createDatabase()
  assert.deepEqual(await sealAudit(pool), { sealed: 0 })
  await noteMany(pool, 3)
  assert.deepEqual(await counts(pool), { rows: 0, unsealed: 3 })
  assert.deepEqual(await sealAudit(pool), { sealed: 3 })
  assert.deepEqual(await sealAudit(pool), { sealed: 0 })
  assert.equal(await countBlocks(pool), 1)
  await noteMany(pool, 2)
  assert.deepEqual(await sealAudit(pool), { sealed: 2 })
  assert.equal(await countBlocks(pool), 2)
  assert.deepEqual(await counts(pool), { rows: 5, unsealed: 0 })
})

test('two processes that seal at once make one block', async () => {
  const pool = await old.createDatabase()
  await sealAudit(pool)
  await noteMany(pool, 20)
  const results = await Promise.all([sealAudit(pool), sealAudit(pool), sealAudit(pool), sealAudit(pool)])
  assert.equal(
    results.reduce((sum, { sealed }) => sum + sealed, 0),
    20,
  )
  assert.equal(await countBlocks(pool), 1)
  assert.deepEqual(await counts(pool), { rows: 20, unsealed: 0 })
})

test('a row that commits after later rows is sealed after its commit, and not before', async (t) => {
  const pool = await old.createDatabase()
  await noteMany(pool, 1)
  await sealAudit(pool)
  const early = await begin(t, pool)
  await note(early, 'early.ends_last')
  await noteMany(pool, 3)
  assert.deepEqual(await sealAudit(pool), { sealed: 0 }, 'the other rows have later transaction ids and wait')
  assert.deepEqual(await counts(pool), { rows: 1, unsealed: 3 })
  await early.query('commit')
  assert.deepEqual(await sealAudit(pool), { sealed: 4 })
  assert.deepEqual(await counts(pool), { rows: 5, unsealed: 0 })
})

test('a lower seq under a later transaction id is sealed later', async (t) => {
  const pool = await old.createDatabase()
  await sealAudit(pool)
  const slow = await begin(t, pool)
  const seq = await drawSeq(pool)
  await noteMany(pool, 2)
  assert.deepEqual(await sealAudit(pool), { sealed: 2 })
  await noteWithSeq(slow, seq)
  assert.deepEqual(await sealAudit(pool), { sealed: 0 })
  await slow.query('commit')
  assert.deepEqual(await sealAudit(pool), { sealed: 1 })
  assert.deepEqual(await counts(pool), { rows: 3, unsealed: 0 })
})

test('rolled back rows leave no trace', async (t) => {
  const pool = await old.createDatabase()
  await sealAudit(pool)
  const client = await begin(t, pool)
  await note(client, 'never.happened')
  await noteMany(pool, 1)
  await client.query('rollback')
  assert.deepEqual(await sealAudit(pool), { sealed: 1 })
  assert.deepEqual(await counts(pool), { rows: 1, unsealed: 0 })
})

test('a backlog becomes blocks of bounded size, and the rows of a transaction stay in one block', async () => {
  const pool = await old.createDatabase()
  const bulk = (count: number) =>
    pool.query(
      `insert into audit_log (id, action, actor_type) select gen_random_uuid(), 'bulk.do', 'system'
       from generate_series(1, $1::int)`,
      [count],
    )
  for (const count of [3_000, 3_000, 12_000, 10]) await bulk(count)
  assert.deepEqual(await sealAudit(pool), { sealed: 18_010 })
  for (const count of [4_000, 4_000, 7]) await bulk(count)
  assert.deepEqual(await sealAudit(pool), { sealed: 8_007 })
  const { rows } = await pool.query<{ row_count: number }>(
    'select row_count from audit_blocks where row_count > 0 order by number',
  )
  assert.deepEqual(
    rows.map((row) => row.row_count),
    [6_000, 12_000, 10, 8_000, 7],
  )
  assert.deepEqual(await counts(pool), { rows: 26_017, unsealed: 0 })
})

test('a database that was restored into another cluster continues its chain', async (t) => {
  await keepFresh()
  const before = await old.createDatabase()
  await sealAudit(before)
  const hanging = await begin(t, before)
  const seq = await drawSeq(before)
  await noteMany(before, 5)
  await sealAudit(before)
  await noteMany(before, 2)
  await sealAudit(before)
  // When the backup is made, one row below the highest sealed seq and two above it are unsealed.
  await noteWithSeq(hanging, seq)
  await hanging.query('commit')
  await noteMany(before, 2)
  assert.deepEqual(await counts(before), { rows: 7, unsealed: 3 })

  const after = await fresh.createDatabase()
  await restoreAudit(before, after)
  assert.ok((await distance(after)) > 0)
  assert.deepEqual(await counts(after), { rows: 7, unsealed: 3 })
  await noteMany(after, 4)
  assert.deepEqual(await counts(after), { rows: 7, unsealed: 7 })
  assert.deepEqual(await sealAudit(after), { sealed: 7 })
  assert.deepEqual(await counts(after), { rows: 14, unsealed: 0 })
  await noteMany(after, 3)
  assert.deepEqual(await sealAudit(after), { sealed: 3 })
  assert.deepEqual(await sealAudit(after), { sealed: 0 })
  assert.deepEqual(await counts(after), { rows: 17, unsealed: 0 })

  // A restore back into the first cluster, in which the ids of both clusters are in the past.
  const back = await old.createDatabase()
  await noteMany(after, 1)
  await restoreAudit(after, back)
  await noteMany(back, 1)
  assert.deepEqual(await sealAudit(back), { sealed: 2 })
  assert.deepEqual(await counts(back), { rows: 19, unsealed: 0 })
})

test('after a restore, sealing goes on while the counter passes the ids of the restored rows', async () => {
  await keepFresh()
  const before = await old.createDatabase()
  await noteMany(before, 3)
  await sealAudit(before)
  await noteMany(before, 2)
  await sealAudit(before)
  const after = await fresh.createDatabase()
  await restoreAudit(before, after)
  const passes = await distance(after)
  assert.ok(passes > 0)
  assert.deepEqual(await sealAudit(after), { sealed: 0 })
  let written = 0
  for (let spent = 0; spent < passes + 40; spent += 20) {
    await fresh.spendXids(17)
    await noteMany(after, 3)
    written += 3
    assert.deepEqual(await sealAudit(after), { sealed: 3 })
  }
  assert.deepEqual(await counts(after), { rows: 5 + written, unsealed: 0 })
})

test('a backup without any block, and a backup made in the middle of sealing after a restore, continue as well', async () => {
  const before = await old.createDatabase()
  await before.query(
    `insert into audit_log (id, action, actor_type) select gen_random_uuid(), 'bulk.do', 'system'
     from generate_series(1, 6)`,
  )
  const first = await fresh.createDatabase()
  await restoreAudit(before, first)
  await noteMany(first, 2)
  assert.deepEqual(await sealAudit(first), { sealed: 8 })

  // Only the first block is in the backup: the closed region is there, the open one after it is not.
  const middle = await old.createDatabase()
  await restoreAudit(first, middle)
  await tamper(middle, 'delete from audit_blocks where number > 1')
  await noteMany(middle, 1)
  assert.deepEqual(await sealAudit(middle), { sealed: 1 })
  assert.deepEqual(await counts(middle), { rows: 9, unsealed: 0 })
})

test('a restore within the cluster needs nothing special', async () => {
  const before = await old.createDatabase()
  await noteMany(before, 3)
  await sealAudit(before)
  await noteMany(before, 2)
  const after = await old.createDatabase()
  await restoreAudit(before, after)
  await noteMany(after, 1)
  assert.deepEqual(await sealAudit(after), { sealed: 3 })
  assert.deepEqual(await counts(after), { rows: 6, unsealed: 0 })
})

test('rows of many clusters that were never sealed are sealed in the last cluster', async () => {
  await keepFresh()
  let pool = await old.createDatabase()
  await noteMany(pool, 2)
  await sealAudit(pool)
  for (const cluster of [fresh, old, fresh]) {
    await noteMany(pool, 2)
    const target = await cluster.createDatabase()
    await restoreAudit(pool, target)
    pool = target
  }
  await noteMany(pool, 2)
  assert.deepEqual(await counts(pool), { rows: 2, unsealed: 8 })
  assert.deepEqual(await sealAudit(pool), { sealed: 8 })
  assert.deepEqual(await counts(pool), { rows: 10, unsealed: 0 })
})

test('each row ends up in one block, whatever the order of writes, commits, crashes and restores', async () => {
  await keepFresh()
  let state = Number(process.env.MUSTER_TEST_SEED ?? 5)
  const choose = (below: number): number => {
    state = (state * 48_271) % 2_147_483_647
    return state % below
  }
  let pool = await old.createDatabase()
  const open: Client[] = []
  const end = async (sql: 'commit' | 'rollback', index: number): Promise<void> => {
    const [client] = open.splice(index, 1)
    await client?.query(sql)
    client?.release()
  }
  const steps: (() => Promise<unknown>)[] = [
    () => noteMany(pool, 1 + choose(3)),
    async () => {
      if (open.length === 3) return
      const client = await pool.connect()
      await client.query('begin')
      open.push(client)
    },
    async () => open[0] && note(open[choose(open.length)] ?? open[0], 'thing.do'),
    () => end(choose(4) === 0 ? 'rollback' : 'commit', choose(open.length + 1)),
    () => sealAudit(pool, 1 + choose(3)),
    // This sealer died before its last block was committed.
    async () =>
      choose(3) === 0 && tamper(pool, 'delete from audit_blocks where number = (select max(number) from audit_blocks)'),
    async () => {
      if (choose(4) !== 0) return
      const target = await (choose(2) === 0 ? old : fresh).createDatabase()
      await restoreAudit(pool, target)
      while (open.length > 0) await end('rollback', 0)
      pool = target
    },
  ]
  for (let step = 0; step < 150; step++) {
    await steps[choose(steps.length)]?.()
    await counts(pool)
  }
  while (open.length > 0) await end('commit', 0)
  await sealAudit(pool)
  assert.equal((await counts(pool)).unsealed, 0)
  const { rows } = await pool.query(
    `select seq from audit_log a left join audit_blocks b
       on a.xid >= b.xid_from and a.xid < b.xid_to and a.seq >= b.seq_from and a.seq <= b.seq_to
     group by seq having count(b.number) <> 1`,
  )
  assert.deepEqual(rows, [])
})

/** The lead of the restored ids over this cluster's counter. A test without a lead shows nothing. */
async function distance(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ ahead: number }>(
    `select max(xid_to)::text::bigint - pg_snapshot_xmax(pg_current_snapshot())::text::bigint as ahead from audit_blocks`,
  )
  return rows[0]?.ahead ?? 0
}
