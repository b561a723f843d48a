import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pauseReasons, type Run } from '../../../../src/kernel/run.ts'
import { whyLeafFailed } from './leaf-failure.ts'

/** Of a run only these fields are read. */
const run = (more: Partial<Run>): Run =>
  ({
    status: 'paused',
    pause_reason: null,
    step_count: 3,
    max_steps: null,
    timeout: null,
    error_message: null,
    ...more,
  }) as Run

test('a limit that stopped a leaf is named with its number, and leads to its change', () => {
  assert.deepEqual(whyLeafFailed(run({ pause_reason: 'step_limit', max_steps: 12 }), 'Writer'), {
    text: 'Writer used all 12 steps that it may take, and was not done.',
    limit: { words: 'Change the step limit', field: 'max_steps' },
  })
  assert.deepEqual(
    whyLeafFailed(run({ pause_reason: 'step_limit', max_steps: 1 }), 'Writer')?.text,
    'Writer used the 1 step that it may take, and was not done.',
  )
  assert.deepEqual(whyLeafFailed(run({ pause_reason: 'timeout', timeout: 90_000 }), 'Writer'), {
    text: 'Writer used up its time, 1m 30s, and was not done.',
    limit: { words: 'Change the timeout', field: 'default_timeout' },
  })
})

test('every reason is a sentence about the agent, without a code and without "paused"', () => {
  for (const pause_reason of [...pauseReasons, null]) {
    const { text = '' } = whyLeafFailed(run({ pause_reason }), 'Writer') ?? {}
    assert.match(text, /Writer.*\.$/, `${pause_reason}`)
    assert.doesNotMatch(text, /_|paused/)
  }
})

test('a failed run gives its own error, and a run that did not fail explains nothing', () => {
  assert.equal(
    whyLeafFailed(run({ status: 'failed', error_message: 'No key.' }), 'Writer')?.text,
    'Writer failed: No key.',
  )
  assert.equal(whyLeafFailed(run({ status: 'completed' }), 'Writer'), null)
})
