import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defaultSettings, settingsFrom, settingsPatch, settingsProblem, settingsSchema } from './project.ts'

test('the defaults satisfy their own schema and rules', () => {
  assert.deepEqual(settingsSchema.parse(defaultSettings), defaultSettings)
  assert.equal(settingsProblem(defaultSettings), null)
})

test('stored settings win over the defaults', () => {
  assert.equal(settingsFrom({ poll_interval: 500 }).poll_interval, 500)
  assert.equal(settingsFrom({ run_retention_days: 7 }).run_retention_days, 7)
})

test('a stored field this release does not know, or that does not fit, is the default', () => {
  assert.deepEqual(settingsFrom({ from_the_future: 1, poll_interval: 'soon' }), defaultSettings)
})

const refused: Record<string, unknown>[] = [
  { poll_interval: 99 },
  { poll_interval: '500' },
  { poll_interval: 100.5 },
  { stuck_retry_limit: -1 },
  { max_concurrent_agents: 0 },
  { doom_loop_warn: 1 },
  { alert_factor: 0.5 },
  { run_retention_days: 0 },
  { default_model: { provider: 'offline' } },
  { default_model: { provider: 'offline', name: 'x', extra: 1 } },
  { unknown_setting: 1 },
  { poll_interval: null },
]

test('values outside their range, of another type, or unknown are refused', () => {
  for (const patch of refused) assert.equal(settingsPatch.safeParse(patch).success, false, JSON.stringify(patch))
})

test('stopping a doom loop before warning of it is refused', () => {
  assert.match(settingsProblem({ ...defaultSettings, doom_loop_warn: 6 }) ?? '', /doom_loop_stop/)
})
