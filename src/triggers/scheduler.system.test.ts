import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../test/kit/app.ts'
import { until } from '../../test/kit/until.ts'
import { silentLog } from '../kernel/log.ts'
import { startScheduler } from './scheduler.ts'

const kit = await createTestApp()
const { pool } = kit
const project = await kit.createProject()
const agent = await kit.createAgent(project.id, { trigger_type: 'schedule', cron_schedule: '0 0 1 1 *' })
const makeDue = (): Promise<unknown> =>
  pool.query(`update schedules set next_run_at = muster.now() + interval '100 ms' where agent_id = $1`, [agent.id])
const runCount = async (): Promise<number> =>
  (await pool.query('select from agent_runs where agent_id = $1', [agent.id])).rowCount ?? 0
const seenAt = async (): Promise<number> =>
  (await pool.query<{ seen_at: Date }>('select seen_at from schedule_watch')).rows[0]?.seen_at.getTime() ?? 0

test('a schedule that becomes due starts its run, and the run is announced', async () => {
  let readyCount = 0
  const scheduler = startScheduler({ pool, log: silentLog, onReady: () => void readyCount++ })
  const before = await runCount()
  await makeDue()
  await until(async () => (await runCount()) === before + 1, 'a run was started')
  await until(() => readyCount === 1, 'the run was announced')
  await scheduler.stop()
})

test('a series of failing rounds is logged once and tried again; a second series is logged again', async () => {
  const said: string[] = []
  const log = { ...silentLog, warn: (_: unknown, message: string) => void said.push(message) }
  let isDown = true
  let failures = 0
  const fail = async (): Promise<never> => {
    failures++
    throw new Error('the database is down')
  }
  const unsteady = new Proxy(pool, {
    get: (target, key) => {
      if (isDown && (key === 'query' || key === 'connect')) return fail
      const value: unknown = Reflect.get(target, key)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  const before = await runCount()
  const scheduler = startScheduler({ pool: unsteady, log, onReady: () => {} })
  // Two queries fail at a time: the round, and the watch beside it.
  await until(() => failures >= 5, 'several rounds have failed')
  assert.deepEqual(said, ['scheduled runs will be started later'])
  isDown = false
  await makeDue()
  await until(async () => (await runCount()) === before + 1, 'a run was started after all')
  isDown = true
  await until(() => said.length === 2, 'the second series is logged')
  await scheduler.stop()
})

test('a stop waits for the running round, and no run is started after it', async () => {
  const holder = await pool.connect()
  const before = await runCount()
  try {
    await holder.query('begin')
    await holder.query('lock table agent_runs in share mode')
    await makeDue()
    const scheduler = startScheduler({ pool, log: silentLog, onReady: () => {} })
    const waits = `select from pg_locks where relation = 'agent_runs'::regclass and not granted`
    await until(async () => (await holder.query(waits)).rowCount === 1, 'the round is under way')
    let isStopped = false
    const stopped = scheduler.stop().then(() => {
      isStopped = true
    })
    await holder.query('select 1')
    assert.equal(isStopped, false)
    await holder.query('commit')
    await stopped
  } finally {
    holder.release()
  }
  assert.equal(await runCount(), before + 1)
  const last = await seenAt()
  await makeDue()
  const isDue = 'select from schedules where agent_id = $1 and next_run_at < muster.now()'
  await until(async () => (await pool.query(isDue, [agent.id])).rowCount === 1, 'the next is due')
  assert.equal(await runCount(), before + 1)
  assert.equal(await seenAt(), last)
})

test('a round that takes long does not look like an outage', async () => {
  const holder = await pool.connect()
  try {
    await holder.query('begin')
    await holder.query('lock table agent_runs in share mode')
    await makeDue()
    const scheduler = startScheduler({ pool, log: silentLog, onReady: () => {} })
    const waits = `select from pg_locks where relation = 'agent_runs'::regclass and not granted`
    await until(async () => (await holder.query(waits)).rowCount === 1, 'the round is under way')
    const last = await seenAt()
    await until(async () => (await seenAt()) > last, 'it is seen while the round lasts')
    await holder.query('commit')
    await scheduler.stop()
  } finally {
    holder.release()
  }
})
