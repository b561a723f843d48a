// A call that nobody approved has not been made: it counts neither as an effect nor as a call in doubt.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../../test/kit/app.ts'
import { testTool } from '../../../test/kit/run-worker.ts'
import { createScriptedModel } from '../../../test/kit/scripted-model.ts'
import { until } from '../../../test/kit/until.ts'
import type { AgentInput } from '../../kernel/agent.ts'
import type { Model } from '../../kernel/model-call.ts'
import type { Run, RunEffect } from '../../kernel/run.ts'
import type { Task } from '../../kernel/task.ts'

const model = createScriptedModel(({ prompt }) =>
  prompt.some(({ role }) => role === 'tool')
    ? { text: 'Done.' }
    : { text: 'I refund it.', calls: [{ name: 'refund', args: { order: 'A-1' } }] },
)
const kit = await createTestApp({
  models: new Map<string, Model>([['refunds', model]]),
  tools: [testTool('refund', async () => ({ refunded: 5 }), { effect: 'unsafe' })],
  waits: { waitMs: 20_000 },
})
const project = await kit.createProject('Desk')
const base = `/api/projects/${project.id}`
const get = async <Answer>(path: string): Promise<Answer> => (await kit.call<Answer>(`GET ${base}${path}`)).body

const agentNamed = (name: string, more: Partial<AgentInput> = {}) =>
  kit.createAgent(project.id, {
    name,
    model: { provider: 'test', name: 'refunds' },
    tools: ['refund'],
    require_approval: ['refund'],
    ...more,
  })
const careful = await agentNamed('Careful')

const effectsOf = async (runId: string): Promise<unknown[]> =>
  (await get<{ items: RunEffect[] }>(`/runs/${runId}/effects`)).items.map(({ tool, outcome }) => [tool, outcome])
const callOf = async (runId: string): Promise<Task> => {
  const { items } = await get<{ items: Task[] }>('/tasks?kind=suggestion&limit=200')
  return items.find((task) => task.run_id === runId) ?? assert.fail('no call waits')
}
async function waiting(): Promise<Run> {
  const { body: run } = await kit.call<Run>(`POST ${base}/agents/${careful.id}/trigger`, { body: { input: 'Go.' } })
  assert.deepEqual([run.status, run.waiting_for], ['paused', 'approval'])
  return run
}
const ended = (runId: string): Promise<void> =>
  until(async () => (await get<Run>(`/runs/${runId}`)).completed_at !== null, 'the run has ended')

test('a held call is no effect of its run, and neither is a rejected or a cancelled one', async () => {
  const [rejected, cancelled] = [await waiting(), await waiting()]
  assert.deepEqual(await effectsOf(rejected.id), [])
  await kit.call(`POST ${base}/tasks/${(await callOf(rejected.id)).id}/reject`)
  await ended(rejected.id)
  assert.deepEqual(await effectsOf(rejected.id), [])
  await kit.call(`POST ${base}/runs/${cancelled.id}/cancel`)
  await ended(cancelled.id)
  assert.deepEqual(await effectsOf(cancelled.id), [])
})

test('an approved call is an effect, also if the run that asked was cancelled and another continues it', async () => {
  const first = await waiting()
  await kit.call(`POST ${base}/runs/${first.id}/cancel`)
  await ended(first.id)
  const { body: run } = await kit.call<Run>(`POST ${base}/runs/${first.id}/resume`, { body: {} })
  await kit.call(`POST ${base}/tasks/${(await callOf(run.id)).id}/approve`)
  await ended(run.id)
  assert.deepEqual(await effectsOf(run.id), [['refund', 'finished']])
})

test('work whose call was held passes to another agent without a question', async () => {
  const { id: other } = await agentNamed('Other', { require_approval: [] })
  const { body: task } = await kit.call<Task>(`POST ${base}/tasks`, {
    body: { title: 'Refund A-1', assigned_to: careful.id },
  })
  const runsOf = async (agentId: string) => (await get<{ items: Run[] }>(`/runs?agent_id=${agentId}`)).items
  const attempt = async () => (await runsOf(careful.id)).find(({ trigger }) => trigger.task_id === task.id)
  await until(async () => (await attempt())?.waiting_for === 'approval', 'the attempt waits')
  await kit.call(`PATCH ${base}/tasks/${task.id}`, { body: { assigned_to: other } })
  await until(async () => (await get<Task>(`/tasks/${task.id}`)).status === 'completed', 'the other agent did it')
  assert.deepEqual((await get<{ items: Task[] }>('/tasks?kind=escalation')).items, [])
})
