import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Log, silentLog } from '../kernel/log.ts'
import { createHealth } from './health.ts'

const BUG = new Error('column "wake_at" does not exist')
const AWAY = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })

function setUp() {
  const lines: string[] = []
  const log: Log = {
    ...silentLog,
    info: (_, sentence) => void lines.push(`info: ${sentence}`),
    error: (_, sentence) => void lines.push(`error: ${sentence}`),
  }
  let at = 0
  const health = createHealth({ log, ifItFails: 'nothing is swept', unwellAfterMs: 10_000, now: () => at })
  return {
    health,
    lines,
    wait: (ms: number) => {
      at += ms
    },
  }
}

test('a failure that is no outage is logged as an error at once, and once until the work succeeds again', () => {
  const { health, lines, wait } = setUp()
  for (let rounds = 0; rounds < 5; rounds++) {
    health.failed(BUG)
    wait(1_000)
  }
  assert.deepEqual(lines, ['error: nothing is swept; the work is retried'])
  assert.equal(health.isWell(), true, 'the failure may be over in a moment')
  wait(5_001)
  assert.equal(health.isWell(), false)
  health.succeeded()
  assert.equal(health.isWell(), true)
  health.failed(BUG)
  assert.deepEqual(lines.slice(1), [
    'info: the work succeeds again after this failure: nothing is swept',
    'error: nothing is swept; the work is retried',
  ])
})

test('a database that is away is an error when it has been away for long', () => {
  const { health, lines, wait } = setUp()
  health.failed(AWAY)
  wait(10_000)
  health.failed(AWAY)
  assert.deepEqual(lines, [])
  wait(1)
  health.failed(AWAY)
  health.failed(AWAY)
  assert.equal(lines.length, 1)
})

test('work that hangs is not well, although it does not fail', () => {
  const { health, wait } = setUp()
  health.succeeded()
  wait(10_001)
  assert.equal(health.isWell(), false)
})
