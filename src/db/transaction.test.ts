import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createTestDatabase } from '../../test/kit/database.ts'
import { silentLog } from '../kernel/log.ts'
import { explainFailure } from './failures.ts'
import { createPool } from './pool.ts'
import { afterCommit, inTransaction } from './transaction.ts'

const { pool, url } = await createTestDatabase()
await pool.query('create table account (id int primary key, amount int); insert into account values (1, 0), (2, 0)')

const amounts = async (): Promise<number[]> =>
  (await pool.query<{ amount: number }>('select amount from account order by id')).rows.map((row) => row.amount)

test('an error inside a transaction rolls everything back and reaches the caller', async () => {
  const failure = new Error('no')
  await assert.rejects(
    inTransaction(pool, async (tx) => {
      await tx.query('update account set amount = 99')
      throw failure
    }),
    (error) => error === failure,
  )
  assert.deepEqual(await amounts(), [0, 0])
})

test('a commit that the database answered with a rollback is an error, not a result', async () => {
  const swallowing = inTransaction(pool, async (tx) => {
    await tx.query('update account set amount = 99')
    await tx.query('select 1/0').catch(() => {})
    return 'done'
  })
  await assert.rejects(swallowing, /the database rolled the transaction back/)
  assert.deepEqual(await amounts(), [0, 0])
})

test('work registered for after the commit runs once after a commit and never after a rollback', async () => {
  const told: string[] = []
  let attempts = 0
  const seen = await inTransaction(pool, async (tx) => {
    attempts++
    afterCommit(tx, () => told.push(`attempt ${attempts}`))
    if (attempts === 1) throw Object.assign(new Error('once more'), { code: '40001' })
    return told.length
  })
  assert.deepEqual([seen, told], [0, ['attempt 2']])
  const failing = inTransaction(pool, async (tx) => {
    afterCommit(tx, () => told.push('never'))
    throw new Error('no')
  })
  await assert.rejects(failing, /no/)
  afterCommit(pool, () => told.push('at once'))
  assert.deepEqual(told, ['attempt 2', 'at once'])
})

test('a deadlock is resolved by trying again, unseen by the callers', async () => {
  const move = (from: number, to: number, ready: () => Promise<void>) =>
    inTransaction(pool, async (tx) => {
      await tx.query('update account set amount = amount - 1 where id = $1', [from])
      await ready()
      await tx.query('update account set amount = amount + 1 where id = $1', [to])
    })
  // Both transactions hold their first row before either asks for its second: the first attempt is a sure deadlock.
  let holding = 0
  const both = Promise.withResolvers<void>()
  const ready = async (): Promise<void> => {
    if (++holding === 2) both.resolve()
    await both.promise
  }
  await Promise.all([move(1, 2, ready), move(2, 1, ready)])
  assert.ok(holding > 2, 'one of the two was tried again')
  assert.deepEqual(await amounts(), [0, 0])
})

test('a deadlock of two statements outside a transaction is resolved too', async () => {
  const inTurn = `with first as (update account set amount = amount + 1 where id = $1 returning pg_sleep(0.5))
    update account set amount = amount + 1 where id = $2 and exists (select from first)`
  await Promise.all([pool.query(inTurn, [1, 2]), pool.query(inTurn, [2, 1])])
  assert.deepEqual(await amounts(), [2, 2])
  await pool.query('update account set amount = 0')
})

test('a connection cut in the middle is reported as UNAVAILABLE, and the pool goes on serving', async () => {
  const failed = await inTransaction(pool, async (tx) => {
    await tx.query('update account set amount = 7')
    await tx.query('select pg_terminate_backend(pg_backend_pid())')
  }).catch((error: unknown) => error)
  assert.equal(explainFailure(failed)?.code, 'UNAVAILABLE')
  assert.deepEqual(await amounts(), [0, 0])
})

test('connections that are cut under load, some at the moment they are lent, end no process', async () => {
  const small = createPool({ url, max: 4, log: silentLog, connectTimeoutMs: 5_000 })
  let isOver = false
  const work = async (): Promise<void> => {
    while (!isOver) {
      await inTransaction(small, (tx) => tx.query('select 1')).catch(() => {})
      await small.query('select 1').catch(() => {})
    }
  }
  try {
    const working = Array.from({ length: 40 }, work)
    for (let cut = 0; cut < 20; cut++) {
      await sleep(50)
      await pool.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
         where datname = current_database() and pid <> pg_backend_pid() and query = 'select 1'`,
      )
    }
    isOver = true
    await Promise.all(working)
    assert.equal((await small.query('select 2 as two')).rows[0].two, 2)
  } finally {
    await small.end()
  }
})

test('a full pool answers UNAVAILABLE within its time limit instead of waiting for ever', async () => {
  const small = createPool({ url, max: 1, log: silentLog, connectTimeoutMs: 100 })
  try {
    const held = await small.connect()
    const failed = await small.query('select 1').catch((error: unknown) => error)
    assert.equal(explainFailure(failed)?.code, 'UNAVAILABLE')
    held.release()
    assert.equal((await small.query('select 1 as one')).rows[0].one, 1)
  } finally {
    await small.end()
  }
})

test('a statement that takes too long is stopped', async () => {
  const impatient = createPool({ url, max: 1, log: silentLog, statementTimeoutMs: 50 })
  try {
    const failed = await impatient.query('select pg_sleep(60)').catch((error: unknown) => error)
    assert.equal(explainFailure(failed)?.code, 'UNAVAILABLE')
  } finally {
    await impatient.end()
  }
})

const explained: [sql: string, values: unknown[], code: string | undefined][] = [
  ['select $1::text', ['a\0b'], 'INVALID_REQUEST'],
  ['select $1::jsonb', ['{"a":"\\u0000"}'], 'INVALID_REQUEST'],
  ['select $1::jsonb', ['"\\ud800"'], 'INVALID_REQUEST'],
  ['select $1::uuid', ['x'], 'INVALID_REQUEST'],
  ['select 1/0', [], 'INVALID_REQUEST'],
  ['insert into account values (1, 1)', [], undefined],
  ['selec', [], undefined],
]

for (const [sql, values, code] of explained) {
  test(`a failure of «${sql}» is ${code ?? 'a bug unless the store of the table explains it'}`, async () => {
    const failed = await pool.query(sql, values).catch((error: unknown) => error)
    assert.ok(failed instanceof Error)
    assert.equal(explainFailure(failed)?.code, code)
  })
}

test('a foreign-key violation is not taken for HTTP 503', () => {
  const violation = Object.assign(new Error('violates foreign key constraint'), { code: '23503' })
  assert.equal(explainFailure(violation), null)
})
