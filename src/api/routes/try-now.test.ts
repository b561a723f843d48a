// A run that waits for its provider, over HTTP.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../../test/kit/app.ts'
import { createScriptedModel } from '../../../test/kit/scripted-model.ts'
import type { Model } from '../../kernel/model-call.ts'
import type { Run } from '../../kernel/run.ts'

let isDown = true
const script = createScriptedModel(() =>
  isDown
    ? { fail: { message: 'test answered 503: Come back later.', isRetryable: true, retryAfterMs: 900_000 } }
    : { text: 'done' },
)
const kit = await createTestApp({ models: new Map<string, Model>([['script', script]]) })
const project = await kit.createProject()
const agent = await kit.createAgent(project.id)
const base = `/api/projects/${project.id}`

test('a trigger answers with the run that waits, lists find it by its reason, and try-now tries it at once', async () => {
  const { body: run, status } = await kit.call<Run>(`POST ${base}/agents/${agent.id}/trigger`, { body: { input: 'x' } })
  assert.deepEqual(
    [status, run.status, run.pause_reason, run.is_wait, run.waiting_for, run.wait_message],
    [200, 'paused', 'unavailable', true, 'provider test', 'test answered 503: Come back later.'],
  )
  const found = async (query: string): Promise<string[]> =>
    (await kit.call<{ items: Run[] }>(`GET ${base}/runs?${query}`)).body.items.map(({ id }) => id)
  assert.deepEqual(await found('pause_reason=unavailable'), [run.id])
  assert.deepEqual(await found(`pause_reason=unavailable&agent_id=${agent.id}&status=paused`), [run.id])
  assert.deepEqual(await found(`pause_reason=unavailable&id=${run.id.slice(0, 12)}`), [run.id])
  assert.deepEqual(await found('pause_reason=unavailable&q=x'), [run.id])
  assert.deepEqual(await found('pause_reason=human'), [])
  assert.deepEqual(await found('pause_reason=unavailable&status=failed'), [])
  assert.equal((await kit.call(`GET ${base}/runs?pause_reason=tired`)).status, 400)

  assert.equal((await kit.call(`POST ${base}/runs/${run.id}/resume`, { body: {} })).status, 409)
  isDown = false
  const tried = await kit.call<Run>(`POST ${base}/runs/${run.id}/try-now`)
  assert.deepEqual([tried.status, tried.body.id], [200, run.id])
  let now = tried.body
  while (now.completed_at === null) now = (await kit.call<Run>(`GET ${base}/runs/${run.id}`)).body
  assert.deepEqual([now.status, now.summary, now.is_wait, now.waiting_for], ['completed', 'done', false, null])
  assert.equal((await kit.call(`POST ${base}/runs/${run.id}/try-now`)).status, 409)
})

test('the deletion of its agent ends a run that waits', async () => {
  isDown = true
  const doomed = await kit.createAgent(project.id, { name: 'Doomed' })
  const { body: run } = await kit.call<Run>(`POST ${base}/agents/${doomed.id}/trigger`, { body: { input: 'x' } })
  assert.deepEqual([run.status, run.pause_reason], ['paused', 'unavailable'])
  assert.equal((await kit.call(`DELETE ${base}/agents/${doomed.id}`)).status, 204)
  let now = run
  while (now.completed_at === null) now = (await kit.call<Run>(`GET ${base}/runs/${run.id}`)).body
  assert.deepEqual([now.status, now.error_code], ['failed', 'AGENT_DELETED'])
})

test('a lower model_patience ends the waits that last longer, within the wait that the provider asked for', async () => {
  isDown = true
  const { body: run } = await kit.call<Run>(`POST ${base}/agents/${agent.id}/trigger`, { body: { input: 'x' } })
  assert.deepEqual([run.status, run.pause_reason], ['paused', 'unavailable'])
  assert.equal((await kit.call(`PATCH ${base}/settings`, { body: { model_patience: 1 } })).status, 200)
  let now = run
  while (now.completed_at === null) now = (await kit.call<Run>(`GET ${base}/runs/${run.id}`)).body
  assert.deepEqual([now.status, now.error_code], ['failed', 'MODEL_ERROR'])
})
