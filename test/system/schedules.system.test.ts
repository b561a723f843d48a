// Several servers over one PostgreSQL and five hundred agents that are due together: a tick gives one run for each
// agent, with any number of servers and any clocks, and even if a server dies in the middle of the tick.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { before, test } from 'node:test'
import type pg from 'pg'
import { atEnd } from '../kit/at-end.ts'
import { createUnusedDatabase } from '../kit/database.ts'
import { type Muster, repository, startMuster } from '../kit/process.ts'
import { withClient } from '../kit/test-server.ts'
import { until } from '../kit/until.ts'

const AGENTS = 500
/** A schedule that is not due while this file runs. */
const YEARLY = '0 0 1 1 *'
const HOUR_MS = 3_600_000
const wholeFile = { after: atEnd }
const shared = {
  MUSTER_SECRET_KEY: 'one-key-for-all-of-the-servers',
  MUSTER_ADMIN_TOKEN: 'one-token-for-all-servers',
  MUSTER_DEMO: 'off',
}
const shifted = { NODE_OPTIONS: `--import=${join(repository, 'test/fixtures/shifted-clock.ts')}` }

let databaseUrl = ''
let projectId = ''
let first: Muster
let others: Muster[] = []
let hourAhead: Muster

before(async () => {
  databaseUrl = await createUnusedDatabase()
  first = await startServer({})
  ;[hourAhead, ...others] = await Promise.all([startServer(shifted), startServer({}), startServer({})])
  projectId = await made('/api/projects', { name: 'five hundred' })
  for (let count = 0; count < AGENTS; count += 20) {
    await Promise.all(Array.from({ length: 20 }, (_, index) => createAgent(`agent ${count + index}`, YEARLY)))
  }
})

test('with four servers, one an hour ahead, 500 agents that are due together run once each within 10 s', async (t) => {
  const tick = await makeDue()
  t.diagnostic(`the last run started ${await requireOneRunEach(tick)} ms after the tick`)
})

test('a server that is killed in the middle of a tick loses no run and doubles none', async (t) => {
  await stopHourAhead()
  const [victim, survivor] = others
  assert.ok(victim && survivor)
  await query(`create function hold_starts() returns trigger language plpgsql as
               $$ begin perform pg_advisory_xact_lock_shared(4711); return null; end $$`)
  await query(`create trigger hold_starts before insert on agent_runs execute function hold_starts()`)
  const tick = await withClient(databaseUrl, async (holder) => {
    await holder.query('select pg_advisory_lock(4711)')
    const at = await makeDue()
    const held = `select from pg_locks where locktype = 'advisory' and objid = 4711 and not granted
                  and database = (select oid from pg_database where datname = current_database())`
    // 500 rows are more than two servers take at once, so each of the three has claimed some.
    await until(async () => (await holder.query(held)).rowCount === 3, 'all three are in the middle of it')
    await victim.kill('SIGKILL')
    return at
  })
  t.diagnostic(`the last run started ${await requireOneRunEach(tick)} ms after the tick`)
  await query('drop trigger hold_starts on agent_runs')
})

test('a single server that is an hour ahead starts no run early and none twice', async () => {
  await Promise.all([first.stop(), ...others.filter((server) => server.isRunning()).map((server) => server.stop())])
  hourAhead = await startServer(shifted)
  const tick = await makeDue()
  await requireOneRunEach(tick)
  await stopHourAhead()
})

test('after three hours without a server each agent catches up as its catch_up says', async () => {
  first = await startServer({})
  // The clock is half an hour from any tick: three ticks lie in the last three hours, and none comes during this test.
  const [clock] = await query<{ minute: number }>(
    `select extract(minute from now() at time zone 'UTC' + interval '30 min')::int as minute`,
  )
  const cron = `${clock?.minute} * * * *`
  const ids = new Map<string, string>()
  for (const catchUp of ['once', 'skip', 'all'])
    ids.set(catchUp, await createAgent(catchUp, cron, { catch_up: catchUp }))
  const agents = [...ids.values()]
  await first.stop()
  await query(`update schedules set next_run_at = next_run_at - interval '3 h' where agent_id = any($1)`, [agents])
  await query(`update schedule_watch set seen_at = seen_at - interval '3 h', back_at = back_at - interval '3 h'`)
  const ticks = (
    await query<{ at: Date }>(
      `select next_run_at + n * interval '1 h' as at from schedules, generate_series(0, 2) n where agent_id = $1 order by 1`,
      [ids.get('all')],
    )
  ).map(({ at }) => at.toISOString())

  const [one, other] = await Promise.all([startServer({}), startServer({})])
  const overdue = 'select from schedules where agent_id = any($1) and next_run_at <= now()'
  await until(async () => (await query(overdue, [agents])).length === 0, 'all schedules were checked')
  const timesOf = async (catchUp: string): Promise<string[]> =>
    (
      await query<{ at: string }>(
        `select trigger->>'scheduled_at' as at from agent_runs where agent_id = $1 order by 1`,
        [ids.get(catchUp)],
      )
    ).map(({ at }) => at)
  assert.deepEqual(await timesOf('once'), ticks.slice(-1))
  assert.deepEqual(await timesOf('skip'), [])
  assert.deepEqual(await timesOf('all'), ticks)
  await Promise.all([one.stop(), other.stop()])
})

test('a schedule that is changed through one process holds at once in the process that runs it', async () => {
  const [api, worker] = await Promise.all([startServer({ MUSTER_ROLE: 'api' }), startServer({ MUSTER_ROLE: 'worker' })])
  first = api
  const agentId = await createAgent('changed', YEARLY)
  const dueAt = await dueSoon([agentId])
  const changed = await api.call(`PATCH /api/projects/${projectId}/agents/${agentId}`, {
    body: { cron_schedule: '0 0 1 7 *' },
  })
  assert.equal(changed.status, 200, changed.text)
  await until(
    async () => (await query("select where now() > $1::timestamptz + interval '1500 ms'", [dueAt])).length === 1,
    'the old tick is over',
  )
  assert.equal((await runsOf([agentId])).length, 0, 'the old schedule started a run')

  await dueSoon([agentId])
  await until(async () => (await runsOf([agentId])).length === 1, 'the worker starts it')
  const { body } = await api.call<{ items: { agent_id: string; next_run_at: string }[] }>(
    `GET /api/projects/${projectId}/schedule?limit=200`,
  )
  const entry = body.items.find((item) => item.agent_id === agentId)
  assert.match(entry?.next_run_at ?? '', /-07-01T00:00:00\.000Z$/)
  await Promise.all([api.stop(), worker.stop()])
})

const startServer = (env: Record<string, string>): Promise<Muster> =>
  startMuster(wholeFile, { databaseUrl, env: { ...shared, ...env } })

/** Asserts by the server's log lines that its clock really was ahead. */
async function stopHourAhead(): Promise<void> {
  await hourAhead.stop()
  const times = [...hourAhead.stderr().matchAll(/"time":"?([^",]+)/g)].map(
    ([, time = '']) => Number(time) || Date.parse(time),
  )
  assert.ok(times.length > 0, 'it logged nothing')
  for (const time of times) assert.ok(time > Date.now() + HOUR_MS / 2, `it logged at ${new Date(time).toISOString()}`)
}

async function made(path: string, body: object): Promise<string> {
  const answer = await first.call<{ id: string }>(`POST ${path}`, { body })
  assert.equal(answer.status, 201, answer.text)
  return answer.body.id
}

const createAgent = (name: string, cron_schedule: string, fields: object = {}): Promise<string> =>
  made(`/api/projects/${projectId}/agents`, {
    name,
    model: { provider: 'offline', name: 'offline' },
    trigger_type: 'schedule',
    cron_schedule,
    ...fields,
  })

/** Makes all five hundred schedules due in a moment, so that the test need not wait for the next minute. */
async function makeDue(): Promise<string> {
  const rows = await query<{ agent_id: string }>(`select agent_id from schedules where cron_schedule = $1`, [YEARLY])
  assert.equal(rows.length, AGENTS)
  return dueSoon(rows.map(({ agent_id }) => agent_id))
}

async function dueSoon(agentIds: string[]): Promise<string> {
  const [row] = await query<{ at: Date }>(`select date_trunc('milliseconds', now() + interval '2 s') as at`)
  const at = row?.at.toISOString() ?? assert.fail()
  await query('update schedules set next_run_at = $2 where agent_id = any($1)', [agentIds, at])
  return at
}

interface StartedRun {
  agent_id: string
  created_at: Date
  started_at: Date | null
}
const runsOf = (agentIds: string[]): Promise<StartedRun[]> =>
  query<StartedRun>('select agent_id, created_at, started_at from agent_runs where agent_id = any($1)', [agentIds])

/** Returns the milliseconds from the tick to the start of the last run. */
async function requireOneRunEach(tick: string): Promise<number> {
  const ofTick = `from agent_runs where trigger->>'scheduled_at' = $1`
  const open = 'select from schedules where next_run_at <= $1'
  await until(async () => (await query(open, [tick])).length === 0, 'every schedule has moved on', 30_000)
  await until(
    async () => (await query(`select ${ofTick} and completed_at is null`, [tick])).length === 0,
    'every run has ended',
    60_000,
  )
  const runs = await query<StartedRun>(`select agent_id, created_at, started_at ${ofTick}`, [tick])
  assert.equal(runs.length, AGENTS)
  assert.equal(new Set(runs.map((run) => run.agent_id)).size, AGENTS)
  assert.ok(
    runs.every((run) => run.created_at >= new Date(tick)),
    'a run was started before its tick',
  )
  const last = Math.max(...runs.map((run) => run.started_at?.getTime() ?? Number.POSITIVE_INFINITY)) - Date.parse(tick)
  assert.ok(last <= 10_000, `the last run started ${last} ms after the tick`)
  return last
}

async function query<Row extends pg.QueryResultRow>(sql: string, values: unknown[] = []): Promise<Row[]> {
  return withClient(databaseUrl, async (client) => (await client.query<Row>(sql, values)).rows)
}
