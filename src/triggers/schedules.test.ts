import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../test/kit/app.ts'
import { createScheduleClock } from '../../test/kit/schedule-clock.ts'
import type { Agent, AgentInput } from '../kernel/agent.ts'
import { silentLog } from '../kernel/log.ts'
import { addMissingSchedules } from './schedules.ts'
import { tick } from './tick.ts'

const kit = await createTestApp()
const { pool } = kit
const clock = createScheduleClock(kit)
const project = await kit.createProject()
const parts = { pool, log: silentLog, onReady: () => {} }
const path = `/api/projects/${project.id}/agents`
// The clock runs from here on; no test below lasts until the next half hour.
await clock.passTo('2031-06-10T10:10:00Z')

const scheduled = (input: Partial<AgentInput> = {}): Promise<Agent> =>
  kit.createAgent(project.id, { trigger_type: 'schedule', cron_schedule: '30 * * * *', ...input })
const change = async (agent: Agent, body: object): Promise<void> => {
  const { status, text } = await kit.call(`PATCH ${path}/${agent.id}`, { body })
  assert.equal(status, 200, text)
}

interface Kept {
  next_run_at: Date | null
  last_run_at: Date | null
  catch_up: string
}
async function kept(agent: Agent): Promise<Kept | null> {
  const sql = 'select next_run_at, last_run_at, catch_up from schedules where agent_id = $1'
  return (await pool.query<Kept>(sql, [agent.id])).rows[0] ?? null
}
const nextRun = async (agent: Agent): Promise<string | null> => (await kept(agent))?.next_run_at?.toISOString() ?? null

/** Changes the row as if it had been written long ago; a newly written schedule would be due later. */
const makeOverdue = (agent: Agent): Promise<unknown> =>
  pool.query(`update schedules set next_run_at = '2031-06-10T09:30:00Z' where agent_id = $1`, [agent.id])
const OVERDUE = '2031-06-10T09:30:00.000Z'
const NEW = '2031-06-10T10:30:00.000Z'

test('a scheduled agent is due at its next tick, in its own zone', async () => {
  assert.equal(await nextRun(await scheduled()), NEW)
  const zoned = await scheduled({ cron_schedule: '0 9 * * *', timezone: 'America/New_York' })
  assert.equal(await nextRun(zoned), '2031-06-10T13:00:00.000Z')
})

test('an agent that is not scheduled has no row, whatever its cron_schedule says', async () => {
  assert.equal(await kept(await kit.createAgent(project.id, { cron_schedule: '30 * * * *' })), null)
})

for (const [what, body] of Object.entries({
  'its name': { name: 'renamed' },
  catch_up: { catch_up: 'all' },
  nothing: { cron_schedule: '30 * * * *', timezone: 'UTC', enabled: true },
})) {
  test(`a change of ${what} keeps the time of the next run`, async () => {
    const agent = await scheduled()
    await makeOverdue(agent)
    await change(agent, body)
    assert.equal(await nextRun(agent), OVERDUE)
    assert.equal((await kept(agent))?.catch_up, 'catch_up' in body ? 'all' : 'once')
  })
}

for (const [what, body, next] of [
  ['the cron_schedule', { cron_schedule: '45 * * * *' }, '2031-06-10T10:45:00.000Z'],
  ['the timezone', { timezone: 'Asia/Kathmandu' }, '2031-06-10T10:45:00.000Z'],
] as const) {
  test(`a change of ${what} computes the next run from now`, async () => {
    const agent = await scheduled()
    await makeOverdue(agent)
    await change(agent, body)
    assert.equal(await nextRun(agent), next)
  })
}

for (const [what, off, on] of [
  ['disabled', { enabled: false }, { enabled: true }],
  ['triggered otherwise', { trigger_type: 'manual' }, { trigger_type: 'schedule' }],
] as const) {
  test(`an agent that is ${what} is not due; later its next run is computed anew, its last run is kept`, async () => {
    const agent = await scheduled()
    await makeOverdue(agent)
    await tick(parts)
    const { last_run_at } = (await kept(agent)) ?? {}
    assert.ok(last_run_at)
    await makeOverdue(agent)
    await change(agent, off)
    assert.equal(await nextRun(agent), null)
    await change(agent, on)
    assert.equal(await nextRun(agent), NEW)
    assert.deepEqual((await kept(agent))?.last_run_at, last_run_at)
  })
}

test('a deleted agent is not due', async () => {
  const agent = await scheduled()
  await makeOverdue(agent)
  assert.equal((await kit.call(`DELETE ${path}/${agent.id}`)).status, 204)
  assert.equal(await nextRun(agent), null)
})

test('a refused change leaves the schedule as it was', async () => {
  const agent = await scheduled()
  await makeOverdue(agent)
  const answer = await kit.call(`PATCH ${path}/${agent.id}`, { body: { cron_schedule: '0 0 30 2 *' } })
  assert.equal(answer.status, 400)
  assert.equal(await nextRun(agent), OVERDUE)
})

test('agents without a row get one; unreadable schedules are logged and stop no others', async () => {
  const agents = [await scheduled(), await scheduled(), await scheduled()]
  const [sound, odd, nowhere] = agents
  const disabled = await scheduled({ enabled: false })
  await pool.query('delete from schedules where agent_id = any($1)', [[...agents, disabled].map(({ id }) => id)])
  await pool.query(`update agents set cron_schedule = '61 * * * *' where id = $1`, [odd?.id])
  await pool.query(`update agents set timezone = 'Mars/Olympus' where id = $1`, [nowhere?.id])
  const warned = new Set<unknown>()
  const log = { ...silentLog, warn: ({ agent_id }: Readonly<Record<string, unknown>>) => void warned.add(agent_id) }
  await Promise.all([addMissingSchedules(pool, log), addMissingSchedules(pool, log)])
  assert.ok(sound && odd && nowhere)
  assert.equal(await nextRun(sound), NEW)
  assert.deepEqual([await nextRun(odd), await nextRun(nowhere), await kept(disabled)], [null, null, null])
  assert.deepEqual(warned, new Set([odd.id, nowhere.id]))
})

test('a change of a schedule waits for a tick at the same moment, and then holds', async () => {
  const agent = await scheduled()
  await makeOverdue(agent)
  const ticker = await pool.connect()
  try {
    await ticker.query('begin')
    await ticker.query('select from schedules where agent_id = $1 for update', [agent.id])
    const changed = change(agent, { cron_schedule: '45 * * * *' })
    await ticker.query(`update schedules set next_run_at = '2031-06-10T10:30Z' where agent_id = $1`, [agent.id])
    await ticker.query('commit')
    await changed
  } finally {
    ticker.release()
  }
  assert.equal(await nextRun(agent), '2031-06-10T10:45:00.000Z')
})
