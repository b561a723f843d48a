import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Checkpoint, emptyCheckpoint, uuid6 } from '@langchain/langgraph-checkpoint'
import { atEnd } from '../../../test/kit/at-end.ts'
import { createTestDatabase } from '../../../test/kit/database.ts'
import { createDatabaseProxy } from '../../../test/kit/database-proxy.ts'
import { freePort } from '../../../test/kit/free-port.ts'
import { insertProject } from '../../../test/kit/runs.ts'
import { until } from '../../../test/kit/until.ts'
import { createPool } from '../../db/pool.ts'
import { newId } from '../../kernel/id.ts'
import { silentLog } from '../../kernel/log.ts'
import { createCheckpoints } from './checkpoints.ts'
import { CHECKPOINT_TABLES } from './remove-checkpoints.ts'
import { type CheckpointPut, createPutCheckpoint } from './write-checkpoints.ts'

const { pool, url } = await createTestDatabase()
const project = await insertProject(pool)
const proxy = createDatabaseProxy({ after: atEnd }, url, await freePort())
await proxy.listen()
const distant = createPool({ url: proxy.url, max: 4, log: silentLog })
atEnd(() => distant.end())
const saver = await createCheckpoints({ pool: distant, log: silentLog }).saverFor(project)
const META = { source: 'loop', step: 0, parents: {} } as const

const newest = (): Checkpoint => ({
  ...emptyCheckpoint(),
  id: uuid6(0),
  channel_values: { a: 'x', b: ['y'] },
  channel_versions: { a: 1, b: 1 },
})

async function rowsOf(threadId: string): Promise<number[]> {
  const counts: number[] = []
  for (const table of CHECKPOINT_TABLES) {
    const { rowCount } = await pool.query(`select from ${table} where thread_id = $1`, [threadId])
    counts.push(rowCount ?? 0)
  }
  return counts
}

/** Puts one checkpoint with two channels, and at the same moment two writes. */
function putBoth(threadId: string): Promise<unknown> {
  const checkpoint = newest()
  const configurable = { thread_id: threadId, checkpoint_id: checkpoint.id }
  return Promise.all([
    saver.put({ configurable: { thread_id: threadId } }, checkpoint, META, { a: 1, b: 1 }),
    saver.putWrites(
      { configurable },
      [
        ['a', 1],
        ['b', 2],
      ],
      'task',
    ),
  ])
}

const WHOLE = [2, 2, 1]

test('a put whose connection is cut after its commit is written once', async () => {
  const threadId = newId()
  const before = proxy.cuts()
  proxy.cutAfter('put_checkpoints')
  const put = putBoth(threadId)
  await until(() => proxy.cuts() > before, 'the connection was cut')
  proxy.cutAfter(null)
  await put
  assert.deepEqual(await rowsOf(threadId), WHOLE)
})

test('a put whose connection is cut in the middle leaves nothing behind, and is tried again', async () => {
  const threadId = newId()
  // The statement waits for this row after it has written other rows.
  const blocker = await pool.connect()
  await blocker.query('begin')
  await blocker.query(
    `insert into supervisor_channels (project_id, thread_id, checkpoint_ns, channel, version, value)
     values ($1, $2, '', 'b', '1', '"blocked"')`,
    [project, threadId],
  )
  const put = putBoth(threadId)
  const waiting = async (): Promise<number[]> => {
    const { rows } = await pool.query<{ pid: number }>(
      `select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
         and query like '%supervisor_checkpoints%'`,
    )
    return rows.map((row) => row.pid)
  }
  await until(async () => (await waiting()).length > 0, 'the statement is under way')
  const [pid] = await waiting()
  await pool.query('select pg_terminate_backend($1)', [pid])
  await until(async () => (await waiting()).some((other) => other !== pid), 'it is tried again')
  assert.deepEqual(await rowsOf(threadId), [0, 0, 0])
  await blocker.query('rollback')
  blocker.release()
  await put
  assert.deepEqual(await rowsOf(threadId), WHOLE)
})

test('every acknowledged put is stored whole although all connections are cut again and again', async () => {
  const threads: string[] = []
  let isOver = false
  const writers = Array.from({ length: 8 }, async () => {
    while (!isOver) {
      const threadId = newId()
      await putBoth(threadId)
      threads.push(threadId)
    }
  })
  for (let cut = 1; cut <= 5; cut++) {
    const before = threads.length
    proxy.cutAll()
    await until(() => threads.length > before + 10, 'puts go on')
  }
  isOver = true
  await Promise.all(writers)
  for (const threadId of threads) assert.deepEqual(await rowsOf(threadId), WHOLE)
  const { rows } = await pool.query(
    `select count(*)::int as count from supervisor_checkpoints where thread_id = any($1)`,
    [threads],
  )
  assert.deepEqual(rows, [{ count: threads.length }])
})

const put = (threadId: string, projectId = project): CheckpointPut => ({
  kind: 'checkpoint',
  projectId,
  threadId,
  checkpointNs: '',
  checkpointId: 'one',
  parentId: null,
  checkpoint: '{"channel_versions":{"a":1}}',
  metadata: '{}',
  channels: [{ channel: 'a', version: '1', value: '1' }],
})

test('a database that stays away fails the put, loudly', async () => {
  const gone = createPool({ url: `postgres://x@127.0.0.1:${await freePort()}/x`, max: 1, log: silentLog })
  atEnd(() => gone.end())
  let clock = 0
  const warnings: string[] = []
  const log = { ...silentLog, warn: (_: unknown, sentence: string) => void warnings.push(sentence) }
  const putThere = createPutCheckpoint({ db: gone, log, now: () => (clock += 15_000) })
  await assert.rejects(Promise.all([putThere(put('x')), putThere(put('y'))]), /ECONNREFUSED/)
  assert.deepEqual(warnings, ['checkpoints could not be written; trying again'])
})

test('a put that cannot be stored fails without the puts beside it', async () => {
  const write = createPutCheckpoint({ db: pool, log: silentLog })
  const [unknown, mine, twice] = [newId(), newId(), newId()]
  const outcomes = await Promise.allSettled([
    write(put(unknown, newId())),
    write(put(mine)),
    write(put(twice)),
    write({ ...put(twice), metadata: '{"the":"last"}' } as CheckpointPut),
  ])
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ['rejected', 'fulfilled', 'fulfilled', 'fulfilled'],
  )
  assert.deepEqual(await rowsOf(mine), [0, 1, 1])
  assert.deepEqual(await rowsOf(unknown), [0, 0, 0])
  const { rows } = await pool.query('select metadata from supervisor_checkpoints where thread_id = $1', [twice])
  assert.deepEqual(rows, [{ metadata: { the: 'last' } }])
})

test('large puts do not all go into one statement', async () => {
  const sizes: number[] = []
  const db = {
    query: async (sql: unknown, values: readonly unknown[] = []) => {
      sizes.push(String(values[11]).length)
      return pool.query(sql as string, [...values])
    },
  } as typeof pool
  const write = createPutCheckpoint({ db, log: silentLog })
  const value = JSON.stringify('x'.repeat(3_000_000))
  const puts = Array.from({ length: 6 }, () => put(newId()))
  for (const one of puts) if (one.kind === 'checkpoint') one.channels = [{ channel: 'a', version: '1', value }]
  await Promise.all(puts.map(write))
  assert.deepEqual(
    sizes.map((size) => Math.round(size / 3_000_000)),
    [2, 2, 2],
  )
  for (const { threadId } of puts) assert.deepEqual(await rowsOf(threadId), [0, 1, 1])
})
