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

test('a stored field that this release does not know, or that does not fit, is replaced by its default', () => {
  assert.deepEqual(settingsFrom({ from_the_future: 1, poll_interval: 'soon' }), defaultSettings)
})

const refused: Record<string, unknown>[] = [
  { poll_interval: 99 },
  { poll_interval: '500' },
  { poll_interval: 100.5 },
  { stuck_retry_limit: -1 },
  { max_concurrent_agents: 0 },
  { max_concurrent_runs: 0 },
  { tool_timeout: 3_600_001 },
  { doom_loop_warn: 1 },
  { alert_factor: 0.5 },
  { run_retention_days: 0 },
  { default_model: { provider: 'offline' } },
  { default_model: { provider: 'offline', name: 'x', extra: 1 } },
  { idempotent_hosts: 'example.com' },
  { idempotent_hosts: ['Example.com'] },
  { idempotent_hosts: ['https://example.com'] },
  { idempotent_hosts: ['example.com/pay'] },
  { idempotent_hosts: ['example.com:0'] },
  { idempotent_hosts: ['example.com:70000'] },
  { idempotent_hosts: ['a:b@example.com'] },
  { idempotent_hosts: ['127.1'] },
  { idempotent_hosts: [''] },
  { idempotent_hosts: Array.from({ length: 101 }, (_, index) => `h${index}.example.com`) },
  { unknown_setting: 1 },
  { poll_interval: null },
]

test('values outside their range, of another type, or unknown are refused', () => {
  for (const patch of refused) assert.equal(settingsPatch.safeParse(patch).success, false, JSON.stringify(patch))
})

test('stopping a doom loop before warning of it is refused', () => {
  assert.match(settingsProblem({ ...defaultSettings, doom_loop_warn: 6 }) ?? '', /doom_loop_stop/)
})

test('hosts that heed an idempotency key are named as a URL names them, with a port or without', () => {
  const hosts = ['example.com', 'pay.example.com:8443', '127.0.0.1:9000', '[::1]:80', 'internal_host']
  assert.equal(settingsPatch.safeParse({ idempotent_hosts: hosts }).success, true)
})
