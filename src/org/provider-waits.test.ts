// Tasks whose provider is away.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createOrganisation, untilTrue } from '../../test/kit/organisation.ts'

const org = await createOrganisation({ task_batch_size: 3, poll_interval: 100, max_concurrent_agents: 1 })
const down = { fail: { message: 'test answered 503: Down.', isRetryable: true, retryAfterMs: 900_000 } }
const waitingRun = (agentId: string) =>
  untilTrue(async () => (await org.runsOf(agentId)).find((run) => run.waiting_for === 'provider test'), 'a run waits')

test('the task stays in progress, no attempt is counted, and its agent takes up no other meanwhile', async () => {
  let isDown = true
  const agent = await org.agent({ name: 'waiting' }, { work: () => (isDown ? down : { text: 'Done.' }) })
  const task = await org.give({ title: 'First', assigned_to: agent.id })
  const run = await waitingRun(agent.id)
  const second = await org.give({ title: 'Second', assigned_to: agent.id })
  const other = await org.agent({ name: 'other' })
  const beside = await org.give({ title: 'Beside', assigned_to: other.id })
  // The agent that waits does not count as one at work.
  await org.until(beside.id, 'completed')
  await org.rounds()
  assert.equal((await org.task(task.id)).status, 'in-progress')
  assert.equal((await org.task(second.id)).status, 'pending')
  isDown = false
  assert.equal((await org.post(`/runs/${run.id}/try-now`)).status, 200)
  await org.until(task.id, 'completed')
  await org.until(second.id, 'completed')
  assert.equal((await org.runsOf(agent.id)).length, 2)
})

test('a decision about a task waits like its work', async () => {
  let isDown = true
  const agent = await org.agent({ name: 'deciding' })
  const asked = org.models.get('of deciding')
  assert.ok(asked)
  org.models.set('of deciding', {
    ...asked,
    call: async (request, options) =>
      isDown ? { kind: 'failed', text: '', usage, ...down.fail } : asked.call(request, options),
  })
  const task = await org.give({ title: 'To be split', assigned_to: agent.id })
  const run = await waitingRun(agent.id)
  assert.equal(run.step_count, 0)
  isDown = false
  await org.post(`/runs/${run.id}/try-now`)
  await org.until(task.id, 'completed')
})

const usage = { inputTokens: 0, outputTokens: 0, isEstimated: false }

test('a stop pauses a run that waits for its provider at once, and the next start continues it', async () => {
  let isDown = true
  const agent = await org.agent({ name: 'stopped' }, { work: () => (isDown ? down : { text: 'Done.' }) })
  const task = await org.give({ title: 'Work', assigned_to: agent.id })
  const run = await waitingRun(agent.id)
  await org.post(`/agents/${agent.id}/stop`)
  await org.until(task.id, 'pending')
  const stopped = (await org.runsOf(agent.id)).find(({ id }) => id === run.id)
  assert.deepEqual([stopped?.pause_reason, stopped?.is_wait, stopped?.waiting_for], ['stopped', false, null])
  isDown = false
  await org.clock.advance(901_000)
  await org.post(`/agents/${agent.id}/start`)
  await org.until(task.id, 'completed')
})
