import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pauseReasons, type Run, runStatuses } from '../../../../src/kernel/run.ts'
import { aRun } from '../../../../test/kit/genui-facts.ts'
import { verdictOf } from './verdict.ts'

const run = (change: Partial<Run>): Run =>
  aRun({ summary: null, duration: 1_600, started_at: null, completed_at: null, ...change })

const SPENT = { token_used: 10, token_allocation: 10 }

test('every status has a sentence', () => {
  for (const status of runStatuses) assert.match(verdictOf(run({ status }), 'Writer').text, /\.$/, status)
})

test('every pause says why, and all but a stop name the action that resolves it', () => {
  for (const pause_reason of pauseReasons) {
    const { text, resolution } = verdictOf(run({ status: 'paused', pause_reason }), 'Writer', SPENT)
    assert.match(text, /[.?]$/, pause_reason)
    assert.equal(resolution === null, pause_reason === 'stopped', pause_reason)
  }
})

test('the steps of a run that continues another are those of both', () => {
  const done = run({ status: 'completed', step_count: 3 })
  assert.equal(verdictOf(done, 'Writer').text, 'Writer finished in 1.6s and 3 steps.')
  const resumed = { ...done, resumed_from: done.id }
  assert.match(verdictOf(resumed, 'Writer').text, / in 1\.6s, after 3 steps in all with the runs that it continues\.$/)
})

test('a step of a flow that is resumed gives the flow nothing', () => {
  const stopped = run({ status: 'paused', pause_reason: 'step_limit' })
  assert.doesNotMatch(verdictOf(stopped, 'Writer').text, /flow/)
  const { text, resolution } = verdictOf({ ...stopped, trigger: { type: 'flow' } }, 'Writer')
  assert.match(text, /Resume it with more steps\. The flow does not wait for it/)
  assert.equal(resolution, 'resume')
})

test('only the tokens of the agent itself are topped up', () => {
  const short = run({ status: 'paused', pause_reason: 'budget' })
  assert.equal(verdictOf(short, 'Writer', SPENT).resolution, 'top_up')
  for (const agent of [undefined, { token_used: 5, token_allocation: null }, { token_used: 5, token_allocation: 10 }]) {
    const { text, resolution } = verdictOf(short, 'Writer', agent)
    assert.match(text, /of the project's month, or of an agent above Writer/)
    assert.equal(resolution, null)
  }
})

test('an attempt at a task and a run of a supervisor system offer no resume', () => {
  const limited = { status: 'paused', pause_reason: 'step_limit', completed_at: '2026-01-01T00:00:00.000Z' } as const
  assert.equal(verdictOf(run(limited), 'Writer').resolution, 'resume')
  const attempt = verdictOf(run({ ...limited, trigger: { type: 'task', task_id: 't' } }), 'Writer')
  assert.deepEqual([attempt.resolution, /attempt at a task/.test(attempt.text)], [null, true])
  const part = verdictOf(run({ ...limited, agent_id: null }), 'The supervisor system')
  assert.deepEqual([part.resolution, /Resume/.test(part.text)], [null, false])
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

test('a run whose tool no process has says so, queued or under way', () => {
  for (const status of ['queued', 'running'] as const) {
    const { text, resolution } = verdictOf(run({ status, waiting_for: 'tool refund' }), 'Writer')
    assert.equal(text, 'No live process has the tool refund. The run continues when one has it.')
    assert.equal(resolution, null)
  }
})
