// The model of a run is the one that its calls were made to, whatever its agent has now.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../../test/kit/app.ts'
import { createScriptedModel } from '../../../test/kit/scripted-model.ts'
import { until } from '../../../test/kit/until.ts'
import type { Page } from '../../kernel/fields.ts'
import type { Model } from '../../kernel/model-call.ts'
import type { Run } from '../../kernel/run.ts'
import type { Task } from '../../kernel/task.ts'

const asking: Model = createScriptedModel(({ prompt }) =>
  prompt.some((message) => message.role === 'tool')
    ? { text: 'Done.' }
    : { calls: [{ name: 'ask_human', args: { question: 'Shall I?' } }] },
)
const models = new Map([
  ['first', asking],
  ['second', asking],
  ['plain', createScriptedModel(() => ({ text: 'Done.' }))],
])
const kit = await createTestApp({ models })
const project = await kit.createProject()
const base = `/api/projects/${project.id}`
const read = async (runId: string): Promise<Run> => (await kit.call<Run>(`GET ${base}/runs/${runId}`)).body
const start = async (agentId: string, headers: Record<string, string> = {}): Promise<Run> =>
  (await kit.call<Run>(`POST ${base}/agents/${agentId}/trigger`, { body: { input: 'x' }, headers })).body
const named = (name: string) => ({ provider: 'test', name })

test('a run names its model, in the list too, and keeps it when its agent gets another one', async () => {
  const agent = await kit.createAgent(project.id, { model: named('plain') })
  const run = await start(agent.id)
  assert.deepEqual([run.status, run.model], ['completed', named('plain')])
  await kit.call(`PATCH ${base}/agents/${agent.id}`, { body: { model: named('second') } })
  assert.deepEqual((await read(run.id)).model, named('plain'))
  const { items } = (await kit.call<Page<Run>>(`GET ${base}/runs?agent_id=${agent.id}`)).body
  assert.deepEqual(
    items.map(({ model }) => model),
    [named('plain')],
  )
})

test('a run that goes on with another model names the last one', async () => {
  const agent = await kit.createAgent(project.id, { model: named('first'), tools: ['ask_human'] })
  const waiting = await start(agent.id)
  assert.deepEqual([waiting.pause_reason, waiting.model], ['human', named('first')])
  await kit.call(`PATCH ${base}/agents/${agent.id}`, { body: { model: named('second') } })
  assert.deepEqual((await read(waiting.id)).model, named('first'))
  const { items } = (await kit.call<Page<Task>>(`GET ${base}/tasks?kind=escalation&status=pending`)).body
  const task = items.find(({ run_id: runId }) => runId === waiting.id)
  await kit.call(`PATCH ${base}/tasks/${task?.id}`, { body: { status: 'completed', result: 'yes' } })
  await until(async () => (await read(waiting.id)).completed_at !== null, 'the run ends')
  const ended = await read(waiting.id)
  assert.deepEqual([ended.status, ended.model], ['completed', named('second')])
})

test('a run that has not called a model has none; a run that failed at its model names it', async () => {
  const idle = await createTestApp()
  const own = await idle.createProject()
  const agent = await idle.createAgent(own.id)
  const answer = await idle.call<Run>(`POST /api/projects/${own.id}/agents/${agent.id}/trigger`, {
    body: { input: 'x' },
    headers: { prefer: 'respond-async' },
  })
  assert.deepEqual([answer.body.status, answer.body.model], ['queued', null])
  models.set('broken', createScriptedModel([]))
  const failing = await kit.createAgent(project.id, { model: named('broken') })
  const failed = await start(failing.id)
  assert.deepEqual([failed.status, failed.model], ['failed', named('broken')])
})
