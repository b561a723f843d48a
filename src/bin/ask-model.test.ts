import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../test/kit/app.ts'
import { createScriptedModel } from '../../test/kit/scripted-model.ts'
import { createOutageWatch } from '../journal/outage-watch.ts'
import { createProjectCalls } from '../journal/project-calls.ts'
import { newId } from '../kernel/id.ts'
import { silentLog } from '../kernel/log.ts'
import type { UsageReport } from '../kernel/usage.ts'
import { createDecide } from './ask-model.ts'

const answer = JSON.stringify({ pattern: 'adaptive', items: 50, workers: 5, reasoning: 'The load is uneven.' })
const model = createScriptedModel((request) => (request.answerSchema ? { text: answer } : { text: 'Something else.' }))
let isHalted = false
const kit = await createTestApp({
  decide: (...question) =>
    createDecide({
      pool: kit.pool,
      resolveModel: async () => model,
      isHalted: () => isHalted,
      calls: createProjectCalls({ pool: kit.pool, ownerId: newId }),
      outages: createOutageWatch({ pool: kit.pool, ownerId: newId, onReady: () => {}, log: silentLog }),
    })(...question),
})
const project = await kit.createProject()
const base = `/api/projects/${project.id}`
for (const [name, kind] of [
  ['real', 'openai-compatible'],
  ['offline', 'offline'],
  ['pretended', 'offline'],
]) {
  const body = { name, kind, ...(kind === 'offline' ? {} : { base_url: 'http://127.0.0.1:1/v1' }) }
  const { status, text } = await kit.call('POST /api/providers', { body })
  assert.equal(status, 201, text)
}
const use = async (provider: string): Promise<void> => {
  const body = { default_model: { provider, name: 'any' } }
  const { status, text } = await kit.call(`PATCH ${base}/settings`, { body })
  assert.equal(status, 200, text)
}
const recommend = async (token?: string): Promise<{ pattern: string; reasoning: string }> => {
  const body = { workload: 'Take care of the letters.' }
  const answer = await kit.call<{ pattern: string; reasoning: string }>(`POST ${base}/flows/recommend`, {
    body,
    ...(token ? { token } : {}),
  })
  assert.equal(answer.status, 200, answer.text)
  return answer.body
}

test('a recommendation asks the default model for a decision of that name and shape', async () => {
  await use('real')
  const { pattern, reasoning } = await recommend()
  assert.equal(pattern, 'adaptive')
  assert.match(reasoning, /The model chose adaptive: The load is uneven\./)
  const [request, ...others] = model.requests.splice(0)
  assert.equal(others.length, 0)
  assert.equal(request?.answerSchema?.name, 'flow_recommendation')
  assert.deepEqual(request?.answerSchema?.schema.required, ['pattern', 'reasoning'])
  const { agents } = (await kit.call<UsageReport>(`GET ${base}/usage`)).body
  const amounts = { input_tokens: 10, output_tokens: 5, total_tokens: 15, cost_usd: null }
  assert.deepEqual(agents, [{ agent_id: null, name: null, source: 'other', ...amounts }])
})

test('the offline model is not asked, whatever its provider is called, and neither is a missing model', async () => {
  for (const provider of ['offline', 'pretended']) {
    await use(provider)
    assert.match((await recommend()).reasoning, /no model was asked\.$/, provider)
  }
  await use('real')
  await kit.call('DELETE /api/providers/real')
  assert.match((await recommend()).reasoning, /no model was asked\.$/)
  assert.equal(model.requests.length, 0)
})

test('a user with read access only causes no model call', async () => {
  const body = { name: 'paid', kind: 'openai-compatible', base_url: 'http://127.0.0.1:1/v1' }
  await kit.call('POST /api/providers', { body })
  await use('paid')
  const keys = { viewer: await kit.createKey(project.id, 'viewer'), member: await kit.createKey(project.id, 'member') }
  assert.match((await recommend(keys.viewer.key)).reasoning, /no model was asked\.$/)
  assert.equal(model.requests.length, 0)
  assert.equal((await recommend(keys.member.key)).pattern, 'adaptive')
})

test('in a halted project no model is asked', async () => {
  isHalted = true
  assert.match((await recommend()).reasoning, /no model was asked\.$/)
  isHalted = false
  assert.equal(model.requests.splice(0).length, 1, 'the call of the test before')
})
