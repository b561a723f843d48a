import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pauseReasons, type Run, runStatuses } from '../../../../src/kernel/run.ts'
import { aRun } from '../../../../test/kit/genui-facts.ts'
import { verdictOf } from './verdict.ts'

const run = (change: Partial<Run>): Run =>
  aRun({ summary: null, duration: 1_600, started_at: null, completed_at: null, ...change })

test('every status has a sentence', () => {
  for (const status of runStatuses) assert.match(verdictOf(run({ status }), 'Writer').text, /\.$/, status)
})

test('every pause says why, and all but a stop name the action that resolves it', () => {
  for (const pause_reason of pauseReasons) {
    const { text, resolution } = verdictOf(run({ status: 'paused', pause_reason }), 'Writer')
    assert.match(text, /\.$/, pause_reason)
    assert.equal(resolution === null, pause_reason === 'stopped', pause_reason)
  }
})

test('a run that another run continues leads there, and offers no second resume', () => {
  const { resolution } = verdictOf(run({ status: 'paused', pause_reason: 'step_limit', resumed_as: 'b' }), 'Writer')
  assert.equal(resolution, 'resumed')
})

test('a failure gives the reason in plain words before the message of the error', () => {
  const { text, resolution } = verdictOf(
    run({
      status: 'failed',
      error_code: 'DOOM_LOOP',
      error_message: 'Stopped by the doom loop guard: look was called 5 times.',
    }),
    'Writer',
  )
  assert.equal(text, 'It was stopped because it went round in a loop. look was called 5 times.')
  assert.equal(resolution, 'retry')
})
