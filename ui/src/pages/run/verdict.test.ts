import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pauseReasons, type Run, runStatuses } from '../../../../src/kernel/run.ts'
import { aRun } from '../../../../test/kit/genui-facts.ts'
import { verdictOf } from './verdict.ts'

const run = (change: Partial<Run>): Run =>
  aRun({ summary: null, duration: 1_600, started_at: null, completed_at: null, ...change })

const AT = '2026-01-01T00:00:00.000Z'
const SPENT = { token_used: 10, token_allocation: 10 }

test('every status has a sentence', () => {
  for (const status of runStatuses) assert.match(verdictOf(run({ status }), 'Writer').text, /\.$/, status)
})

test('every pause that has ended says why and how to continue', () => {
  for (const pause_reason of pauseReasons) {
    const ended = { status: 'paused', pause_reason, completed_at: AT } as const
    const { text, action } = verdictOf(run(ended), 'Writer', SPENT)
    assert.match(text, /[.?]$/, pause_reason)
    assert.notEqual(action, null, pause_reason)
  }
})

test('a run that waits is amber, and names the thing that it waits for', () => {
  const wait = { status: 'paused', pause_reason: 'unavailable', is_wait: true } as const
  const { text, tone, action } = verdictOf(
    run({ ...wait, waiting_for: 'provider openai', wait_message: 'Rate limit reached.' }),
    'Writer',
  )
  assert.equal(text, 'Writer waits for the provider openai: Rate limit reached.')
  assert.deepEqual([tone, action], ['blocked', 'try_now'])
})

test('the steps of a run that continues another are those of both', () => {
  const done = run({ status: 'completed', step_count: 3 })
  assert.equal(verdictOf(done, 'Writer').text, 'Writer finished in 1.6s and 3 steps.')
  const resumed = { ...done, resumed_from: done.id }
  assert.match(verdictOf(resumed, 'Writer').text, / in 1\.6s; 3 steps, counting the run it continues\.$/)
})

test('a leaf is resumed with its flow run', () => {
  const stopped = run({ status: 'paused', pause_reason: 'step_limit', completed_at: AT })
  assert.match(verdictOf(stopped, 'Writer').text, /Resume it with more steps\.$/)
  const { text, action } = verdictOf({ ...stopped, trigger: { type: 'flow', flow_run_id: 'f' } }, 'Writer')
  assert.doesNotMatch(text, /Resume it/)
  assert.equal(action, 'resume_flow')
})

test('only the tokens of the agent itself are topped up', () => {
  const short = run({ status: 'paused', pause_reason: 'budget' })
  assert.equal(verdictOf(short, 'Writer', SPENT).action, 'top_up')
  for (const agent of [undefined, { token_used: 5, token_allocation: null }, { token_used: 5, token_allocation: 10 }]) {
    const { text, action } = verdictOf(short, 'Writer', agent)
    assert.match(text, /of the project's month, or of an agent above Writer/)
    assert.equal(action, null)
  }
})

test('an attempt at a task is resumed by its task, and a run of a supervisor system by nobody', () => {
  const limited = { status: 'paused', pause_reason: 'step_limit', completed_at: AT } as const
  assert.equal(verdictOf(run(limited), 'Writer').action, 'resume')
  const attempt = verdictOf(run({ ...limited, trigger: { type: 'task', task_id: 't' } }), 'Writer')
  assert.deepEqual([attempt.action, /Resume it/.test(attempt.text)], ['resume_task', false])
  const part = verdictOf(run({ ...limited, agent_id: null }), 'The supervisor system')
  assert.deepEqual([part.action, /Resume/.test(part.text)], [null, false])
})

test('a run that another run continues leads there, and offers no second resume', () => {
  for (const status of ['paused', 'failed', 'cancelled'] as const) {
    const continued = run({ status, pause_reason: 'step_limit', completed_at: AT, resumed_as: 'b' })
    assert.equal(verdictOf(continued, 'Writer').action, 'open_continuation')
  }
})

test('a failed or cancelled run is resumed; a failure gives its reason before the message of the error', () => {
  const { text, action } = verdictOf(
    run({
      status: 'failed',
      completed_at: AT,
      error_code: 'DOOM_LOOP',
      error_message: 'Stopped by the doom loop guard: look was called 5 times.',
    }),
    'Writer',
  )
  assert.equal(text, 'It made the same call again and again, and was stopped. look was called 5 times.')
  assert.equal(action, 'resume')
  assert.deepEqual(verdictOf(run({ status: 'cancelled', completed_at: AT, step_count: 1 }), 'Writer'), {
    text: 'The run was cancelled after 1 step.',
    tone: 'pending',
    action: 'resume',
  })
})

test('a run whose tool no process has says so, queued or running', () => {
  for (const status of ['queued', 'running'] as const) {
    const { text, tone, action } = verdictOf(run({ status, waiting_for: 'tool refund' }), 'Writer')
    assert.equal(text, 'Writer waits for a process that has the tool refund.')
    assert.deepEqual([tone, action], ['blocked', null])
  }
})
