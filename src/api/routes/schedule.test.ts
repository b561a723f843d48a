import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../../test/kit/app.ts'
import { createScheduleClock } from '../../../test/kit/schedule-clock.ts'
import { silentLog } from '../../kernel/log.ts'
import type { Schedule } from '../../kernel/schedule.ts'
import { tick } from '../../triggers/tick.ts'

const kit = await createTestApp()
const clock = createScheduleClock(kit)
const project = await kit.createProject()
const viewer = (await kit.createKey(project.id, 'viewer')).key

interface List {
  items: Schedule[]
  next_cursor: string | null
}
const list = (query = '', projectId = project.id) =>
  kit.call<List>(`GET /api/projects/${projectId}/schedule${query}`, { token: viewer })

test('every enabled scheduled agent is listed with its next and its last run', async () => {
  await clock.passTo('2031-01-01T11:00:00Z')
  const agent = await kit.createAgent(project.id, {
    name: 'noon',
    trigger_type: 'schedule',
    cron_schedule: '0 12 * * *',
    timezone: 'Europe/London',
  })
  await kit.createAgent(project.id, { trigger_type: 'schedule', cron_schedule: '0 12 * * *', enabled: false })
  await kit.createAgent(project.id, { cron_schedule: '0 12 * * *' })
  const entry = { agent_id: agent.id, name: 'noon', cron_schedule: '0 12 * * *', timezone: 'Europe/London' }
  const before = await list()
  assert.equal(before.status, 200)
  assert.deepEqual(before.body, {
    items: [{ ...entry, next_run_at: '2031-01-01T12:00:00.000Z', last_run_at: null }],
    next_cursor: null,
  })

  await clock.passTo('2031-01-01T12:00:01Z')
  assert.equal(await tick({ pool: kit.pool, log: silentLog, onReady: () => {} }), 1)
  const [after] = (await list()).body.items
  const run = await kit.pool.query<{ created_at: Date }>('select created_at from agent_runs where agent_id = $1', [
    agent.id,
  ])
  assert.deepEqual(after, {
    ...entry,
    next_run_at: '2031-01-02T12:00:00.000Z',
    last_run_at: run.rows[0]?.created_at.toISOString(),
  })
})

test('a long schedule is read page by page, each agent once', async () => {
  const big = await kit.createProject()
  const key = (await kit.createKey(big.id, 'viewer')).key
  const names = Array.from({ length: 5 }, (_, index) => `agent ${index}`)
  for (const name of names) {
    await kit.createAgent(big.id, { name, trigger_type: 'schedule', cron_schedule: '0 12 * * *' })
  }
  const seen: string[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const route: string = `GET /api/projects/${big.id}/schedule?limit=2${cursor ? `&cursor=${cursor}` : ''}`
    const page: List = (await kit.call<List>(route, { token: key })).body
    assert.ok(page.items.length <= 2)
    seen.push(...page.items.map((item) => item.name))
    cursor = page.next_cursor
  }
  assert.deepEqual(seen, names.reverse())
})

test('the schedule of another project is not found', async () => {
  const other = await kit.createProject()
  assert.equal((await list('', other.id)).status, 404)
})

for (const [name, cron_schedule, says] of [
  ['an hour too many', '0 24 * * *', /hour is 24/],
  ['a day that never comes', '0 0 30 2 *', /nothing is due in the next 8 years/],
] as const) {
  test(`a schedule with ${name} is refused when the agent is written`, async () => {
    const body = { name: 'never', trigger_type: 'schedule', cron_schedule }
    const answer = await kit.call<{ error: { message: string } }>(`POST /api/projects/${project.id}/agents`, { body })
    assert.equal(answer.status, 400)
    assert.match(answer.body.error.message, says)
  })
}

interface Preview {
  cron_schedule: string
  timezone: string
  items: string[]
  error?: { code: string; message: string; details: unknown }
}
const preview = (query: Record<string, string>, token: string | null = viewer, projectId = project.id) =>
  kit.call<Preview>(`GET /api/projects/${projectId}/schedule/preview?${new URLSearchParams(query)}`, { token })

test('a preview has the next five times, in the time zone, also where clocks change', async () => {
  await clock.passTo('2032-03-26T12:00:00Z')
  const answer = await preview({ cron_schedule: '30 2 * * *', timezone: 'Europe/Berlin' })
  assert.equal(answer.status, 200)
  assert.deepEqual(answer.body, {
    cron_schedule: '30 2 * * *',
    timezone: 'Europe/Berlin',
    // The 28th has no half past two: the clocks go from two to three.
    items: ['27T01:30', '28T01:00', '29T00:30', '30T00:30', '31T00:30'].map((at) => `2032-03-${at}:00.000Z`),
  })
})

test('a preview begins with the time at which the scheduler starts the agent', async () => {
  const cron = { cron_schedule: '17 5 1,15 * 2', timezone: 'America/New_York' }
  const agent = await kit.createAgent(project.id, { trigger_type: 'schedule', ...cron })
  const scheduled = (await list()).body.items.find((item) => item.agent_id === agent.id)
  const { items } = (await preview({ ...cron, count: '3' })).body
  assert.equal(items.length, 3)
  assert.equal(items[0], scheduled?.next_run_at)
})

test('a preview is in UTC by default, and reaches leap years', async () => {
  const { body } = await preview({ cron_schedule: '0 0 29 2 *', count: '2' })
  assert.deepEqual([body.timezone, body.items], ['UTC', ['2036-02-29T00:00:00.000Z', '2040-02-29T00:00:00.000Z']])
})

for (const [name, query, says, details] of [
  ['an hour too many', { cron_schedule: '0 24 * * *' }, /hour is 24, which must be between 0 and 23/, null],
  ['four fields', { cron_schedule: '* * * *' }, /five fields/, null],
  ['an unknown zone', { cron_schedule: '* * * * *', timezone: 'Europe/Berlln' }, /mean "Europe\/Berlin"/, null],
  ['no time at all', { cron_schedule: '0 0 30 2 *' }, /nothing is due in the next 8 years/, { never_due: true }],
] as const) {
  test(`a preview of ${name} says so`, async () => {
    const { status, body } = await preview(query)
    assert.equal(status, 400)
    assert.match(body.error?.message ?? '', says)
    assert.deepEqual(body.error?.details, details)
  })
}

for (const query of [{}, { cron_schedule: '* * * * *', count: '0' }, { cron_schedule: '* * * * *', count: '51' }]) {
  test(`a preview with ${JSON.stringify(query)} is refused`, async () => {
    const { status, body } = await preview(query)
    assert.deepEqual([status, body.error?.code], [400, 'INVALID_REQUEST'])
  })
}

test('a preview needs the role of a viewer in the project', async () => {
  const cron = { cron_schedule: '* * * * *' }
  const other = await kit.createProject()
  assert.equal((await preview(cron, null)).status, 401)
  assert.equal((await preview(cron, viewer, other.id)).status, 404)
})
