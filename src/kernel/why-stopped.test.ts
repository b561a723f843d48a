import assert from 'node:assert/strict'
import { test } from 'node:test'
import { aRun } from '../../test/kit/genui-facts.ts'
import { pauseReasons, type Run, runStatuses } from './run.ts'
import { whyStopped } from './why-stopped.ts'

const actionOf = (change: Partial<Run>) => whyStopped(aRun(change))?.action
const ended = { status: 'failed', error_code: 'MODEL_ERROR' } as const

test('a run that ended without success is resumed where its work is decided', () => {
  for (const status of ['failed', 'cancelled'] as const) {
    assert.equal(actionOf({ status }), 'resume')
    assert.equal(actionOf({ status, resumed_as: 'b' }), 'open_continuation')
    assert.equal(actionOf({ status, agent_id: null }), null)
    assert.equal(actionOf({ status, trigger: { type: 'task', task_id: 't' } }), 'resume_task')
    assert.equal(actionOf({ status, trigger: { type: 'flow', flow_run_id: 'f' } }), 'resume_flow')
  }
  for (const pause_reason of ['step_limit', 'timeout', 'context', 'unavailable', null] as const) {
    assert.equal(actionOf({ status: 'paused', pause_reason }), 'resume')
  }
})

test('a run that waits names the awaited thing', () => {
  const waits = (change: Partial<Run>) =>
    whyStopped(aRun({ status: 'paused', completed_at: null, is_wait: true, ...change }), 'Writer')
  const busy = { pause_reason: 'unavailable', waiting_for: 'provider openai' } as const
  assert.deepEqual(waits({ ...busy, wait_message: 'Rate limit reached. ' }), {
    why: 'Writer waits for the provider openai: Rate limit reached.',
    action: 'try_now',
  })
  assert.equal(waits({ ...busy, wait_message: null })?.why, 'Writer waits for the provider openai.')
  assert.equal(
    waits({ ...busy, wait_message: 'openai answered 429: Slow down.' })?.why,
    'Writer waits for the provider openai, which answered 429: Slow down.',
  )
  assert.equal(waits({ pause_reason: 'human', waiting_for: 'approval' })?.action, 'approve')
  assert.equal(waits({ pause_reason: 'human', waiting_for: 'person' })?.action, 'answer')
  const queued = waits({ status: 'queued', waiting_for: 'tool mcp:desk/pay a bill' })
  assert.deepEqual(queued, { why: 'Writer waits for a process that has the tool mcp:desk/pay a bill.', action: null })
})

test('a run that works or is completed has not stopped', () => {
  for (const status of ['queued', 'running'] as const)
    assert.equal(whyStopped(aRun({ status, completed_at: null })), null)
  assert.equal(whyStopped(aRun({ status: 'completed' })), null)
})

test('every stop has a sentence with a subject, also where the agent is its subject', () => {
  for (const subject of ['The run', 'Writer', 'It']) {
    for (const status of runStatuses) {
      for (const pause_reason of [...pauseReasons, null]) {
        const stop = whyStopped(aRun({ ...ended, status, pause_reason }), subject)
        if (stop) assert.match(stop.why, /^[A-Z][^_]*\.$/)
      }
    }
  }
})
