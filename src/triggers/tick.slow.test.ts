import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../test/kit/app.ts'
import { createScheduleClock } from '../../test/kit/schedule-clock.ts'
import type { Agent, AgentInput } from '../kernel/agent.ts'
import { silentLog } from '../kernel/log.ts'
import { dueWithin, tick } from './tick.ts'

const kit = await createTestApp()
const { pool } = kit
const clock = createScheduleClock(kit)
let readyCount = 0
const parts = { pool, log: silentLog, onReady: () => void readyCount++ }
const DAILY = '0 12 * * *'

/** Each test has a day of its own, on which no other schedule is due. */
let day = 0
async function morning(): Promise<{ projectId: string; date: string }> {
  await pool.query('update schedules set next_run_at = null')
  const date = `2031-01-${String(++day).padStart(2, '0')}`
  await clock.passTo(`${date}T11:00:00Z`)
  await tick(parts)
  return { projectId: (await kit.createProject()).id, date }
}

const daily = (projectId: string, input: Partial<AgentInput> = {}): Promise<Agent> =>
  kit.createAgent(projectId, { trigger_type: 'schedule', cron_schedule: DAILY, ...input })

const change = (agent: Agent, body: object) =>
  kit.call(`PATCH /api/projects/${agent.project_id}/agents/${agent.id}`, { body })

interface StartedRun {
  agent_id: string
  trigger: object
  input: object
}
async function runsOf(projectId: string): Promise<StartedRun[]> {
  const sql = `select agent_id, trigger, input from agent_runs where project_id = $1 order by input->>'scheduled_at'`
  return (await pool.query<StartedRun>(sql, [projectId])).rows
}
const times = async (projectId: string): Promise<unknown[]> =>
  (await runsOf(projectId)).map(({ input }) => 'scheduled_at' in input && input.scheduled_at)

test('a tick starts a run that has its scheduled time, and announces the run', async () => {
  const { projectId, date } = await morning()
  const agent = await daily(projectId)
  const before = readyCount
  assert.equal(await tick(parts), 0)
  assert.equal(readyCount, before)
  await clock.passTo(`${date}T12:00:01Z`)
  assert.equal(await tick(parts), 1)
  assert.equal(readyCount, before + 1)
  const scheduled_at = `${date}T12:00:00.000Z`
  assert.deepEqual(await runsOf(projectId), [
    { agent_id: agent.id, trigger: { type: 'schedule', scheduled_at }, input: { scheduled_at } },
  ])
  assert.equal(await tick(parts), 0, 'it was run twice')
})

test('many processes that tick at once start each run once', async () => {
  const { projectId, date } = await morning()
  const agent = await daily(projectId)
  await pool.query(
    `with copies as (
       insert into agents (id, project_id, name, capabilities, trigger_type, cron_schedule)
       select gen_random_uuid(), project_id, 'copy ' || n, capabilities, trigger_type, cron_schedule
       from agents, generate_series(2, 450) n where id = $1 returning id
     )
     insert into schedules (agent_id, project_id, cron_schedule, timezone, catch_up, next_run_at)
     select copies.id, s.project_id, s.cron_schedule, s.timezone, s.catch_up, s.next_run_at
     from copies, schedules s where s.agent_id = $1`,
    [agent.id],
  )
  await clock.passTo(`${date}T12:00:01Z`)
  const started = await Promise.all([1, 2, 3, 4].map(() => tick(parts)))
  assert.equal(
    started.reduce((sum, count) => sum + count, 0),
    450,
  )
  const runs = await runsOf(projectId)
  assert.equal(runs.length, 450)
  assert.equal(new Set(runs.map((run) => run.agent_id)).size, 450)
})

for (const [catchUp, ticks] of [
  ['once', ['T14:00']],
  ['skip', []],
  ['all', ['T12:00', 'T13:00', 'T14:00']],
] as const) {
  test(`after three hours without a process, ${catchUp} starts ${ticks.length}`, async () => {
    const { projectId, date } = await morning()
    await daily(projectId, { cron_schedule: '0 12-23 * * *', catch_up: catchUp })
    await clock.wakeAt(`${date}T14:30:00Z`)
    assert.equal(await tick(parts), ticks.length)
    assert.equal(await tick(parts), 0)
    await clock.passTo(`${date}T15:00:01Z`)
    assert.equal(await tick(parts), 1, 'the tick after the outage is on time')
    assert.deepEqual(
      await times(projectId),
      [...ticks, 'T15:00'].map((time) => `${date}${time}:00.000Z`),
    )
  })
}

test('no tick is missed in a pause too short to be an outage', async () => {
  const { projectId, date } = await morning()
  await daily(projectId, { catch_up: 'skip' })
  await clock.passTo(`${date}T11:59:58Z`)
  await tick(parts)
  await clock.wakeAt(`${date}T12:00:01Z`)
  assert.equal(await tick(parts), 1)
})

test('a halted project starts no run, and ticks during the halt are not caught up', async () => {
  const { projectId, date } = await morning()
  await daily(projectId, { cron_schedule: '0 12-23 * * *', catch_up: 'all' })
  await kit.call(`POST /api/projects/${projectId}/halt`)
  await clock.passTo(`${date}T13:30:00Z`)
  assert.equal(await tick(parts), 0)
  assert.equal(await dueWithin(pool, 1_000), null, 'a process would not sleep')
  await kit.call(`POST /api/projects/${projectId}/unhalt`)
  assert.equal(await tick(parts), 0)
  await clock.passTo(`${date}T14:00:01Z`)
  assert.equal(await tick(parts), 1)
  assert.deepEqual(await times(projectId), [`${date}T14:00:00.000Z`])
})

test('ticks while an agent is disabled are not caught up', async () => {
  const { projectId, date } = await morning()
  const agent = await daily(projectId, { cron_schedule: '0 12-23 * * *', catch_up: 'all' })
  await change(agent, { enabled: false })
  await clock.wakeAt(`${date}T13:30:00Z`)
  assert.equal(await tick(parts), 0)
  await change(agent, { enabled: true })
  assert.equal(await tick(parts), 0)
  await clock.passTo(`${date}T14:00:01Z`)
  assert.equal(await tick(parts), 1)
})

test('deleted agents and invalid schedules keep no other agent from running', async () => {
  const { projectId, date } = await morning()
  const gone = await daily(projectId)
  const broken = await daily(projectId)
  const nowhere = await daily(projectId)
  const sound = await daily(projectId)
  await pool.query('update agents set deleted_at = muster.now(), enabled = false where id = $1', [gone.id])
  await pool.query(`update schedules set cron_schedule = 'nonsense' where agent_id = $1`, [broken.id])
  await pool.query(`update schedules set timezone = 'Mars/Olympus' where agent_id = $1`, [nowhere.id])
  await clock.passTo(`${date}T12:00:01Z`)
  assert.equal(await tick(parts), 1)
  assert.deepEqual(
    (await runsOf(projectId)).map((run) => run.agent_id),
    [sound.id],
  )
  assert.equal(await dueWithin(pool, 1_000), null, 'one of the schedules stays due')
})

test('a project that is being deleted is passed over, not waited for', async () => {
  const { projectId, date } = await morning()
  await daily(projectId)
  await clock.passTo(`${date}T12:00:01Z`)
  const deleter = await pool.connect()
  try {
    await deleter.query('begin')
    await deleter.query('delete from projects where id = $1', [projectId])
    assert.equal(await tick(parts), 0)
    await deleter.query('rollback')
  } finally {
    deleter.release()
  }
  assert.equal(await tick(parts), 1)
})

test('a tick that is rolled back has started no run and changed no schedule', async () => {
  const { projectId, date } = await morning()
  await daily(projectId)
  await clock.passTo(`${date}T12:00:01Z`)
  await pool.query(`alter table schedules add constraint no_moves check (last_run_at is null) not valid`)
  await assert.rejects(tick(parts), /no_moves/)
  await pool.query('alter table schedules drop constraint no_moves')
  assert.deepEqual(await runsOf(projectId), [])
  assert.equal(await tick(parts), 1)
})

test('the watch still detects outages after a database clock that was ahead is corrected', async () => {
  const { projectId, date } = await morning()
  await daily(projectId, { catch_up: 'skip' })
  await pool.query(
    `update schedule_watch set seen_at = seen_at + interval '1 day', back_at = back_at + interval '1 day'`,
  )
  await tick(parts)
  await clock.passTo(`${date}T12:00:01Z`)
  assert.equal(await tick(parts), 1)
})
