// Prefer: wait=N on the requests that start a run or a flow run.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp, type TestApp } from '../../../test/kit/app.ts'
import { createScriptedModel } from '../../../test/kit/scripted-model.ts'
import type { FlowRun } from '../../kernel/flow-run.ts'
import { hasEnded, type Run } from '../../kernel/run.ts'

const held: (() => void)[] = []
const hold = (): Promise<void> => new Promise((resolve) => held.push(resolve))
/** Lets those go on who are held, once there are as many. */
async function release(fewest = 1): Promise<void> {
  while (held.length < fewest) await new Promise(setImmediate)
  for (const goOn of held.splice(0)) goOn()
}
const functions = {
  add: (n: number) => n + 1,
  wait: async () => {
    await hold()
    return 'waited'
  },
}
const script = createScriptedModel(async (request) => {
  const said = JSON.stringify(request.prompt)
  if (said.includes('slowly')) await hold()
  // One step is not enough for this.
  if (said.includes('search') && request.toolChoice !== 'none') return { calls: [{ name: 'object_search', args: {} }] }
  return { text: 'Done.' }
})
const makeApp = () => createTestApp({ models: new Map([['script', script]]), functions })
const kit = await makeApp()
const project = await kit.createProject()
const agent = await kit.createAgent(project.id)
const base = `/api/projects/${project.id}`
const add = { type: 'task', function: 'add' }
const waits = { type: 'task', function: 'wait' }
const startFlow = (root: object, prefer: string, more: object = {}, { on = kit, path = base } = {}) =>
  on.call<FlowRun>(`POST ${path}/flow-runs`, { headers: { prefer, ...more }, body: { root, input: 1 } })
const trigger = (prefer: string, input = 'x') =>
  kit.call<Run>(`POST ${base}/agents/${agent.id}/trigger`, { headers: { prefer }, body: { input } })

/** Until somebody waits. */
async function watched(on: TestApp = kit): Promise<void> {
  while (on.services.hub.watched().length === 0) await new Promise(setImmediate)
}

test('Prefer: wait=N on POST /flow-runs answers 200 with the run once it has ended', async () => {
  const { status, body, headers } = await startFlow({ type: 'sequential', steps: [add, add] }, 'wait=60')
  assert.deepEqual([status, body.status, body.output], [200, 'completed', 3])
  assert.equal(headers['preference-applied'], 'wait=60')
  const waiting = startFlow(waits, 'wait=9999')
  await watched()
  await release()
  const answer = await waiting
  assert.deepEqual([answer.status, answer.body.output], [200, 'waited'])
  assert.equal(answer.headers['preference-applied'], 'wait=600')
})

test('Prefer: wait=N on POST /flow-runs answers 202 with the run as it stands when the time is up', async () => {
  const { status, body } = await startFlow(waits, 'wait=1')
  assert.deepEqual([status, body.status, body.completed_at], [202, 'running', null])
  await release()
})

test('without Prefer, and with respond-async or a wait of 0, POST /flow-runs answers 202 at once', async () => {
  for (const prefer of ['', 'respond-async', 'wait=0', 'wait=soon']) {
    const { status, body } = await startFlow(waits, prefer)
    assert.equal(status, 202, prefer)
    assert.equal(body.completed_at, null)
  }
  await release(4)
})

test('Prefer: wait=N on trigger answers 200 once the run has ended, else 202 as it stands', async () => {
  const { status, body, headers } = await trigger('wait=60')
  assert.deepEqual([status, body.status, headers['preference-applied']], [200, 'completed', 'wait=60'])
  const late = await trigger('wait=1', 'slowly')
  assert.deepEqual([late.status, late.body.status], [202, 'running'])
  await release()
})

test('Prefer: wait=N holds for resume and fork', async () => {
  const { body: run } = await trigger('wait=60')
  const path = `POST ${base}/runs/${run.id}/fork`
  const fork = (prefer: string) =>
    kit.call<Run>(path, { headers: { prefer }, body: { after_step: 0, input: 'slowly' } })
  const late = await fork('wait=1')
  assert.deepEqual([late.status, late.headers['preference-applied']], [202, 'wait=1'])
  await release()
  const paused = await kit.call<Run>(`POST ${base}/agents/${agent.id}/trigger`, {
    headers: { prefer: 'wait=60' },
    body: { input: 'search', max_steps: 1 },
  })
  assert.deepEqual([paused.status, paused.body.status], [200, 'paused'])
  const resumed = await kit.call<Run>(`POST ${base}/runs/${paused.body.id}/resume`, {
    headers: { prefer: 'wait=1' },
    body: { input: 'slowly' },
  })
  assert.equal(resumed.headers['preference-applied'], 'wait=1')
  assert.equal(resumed.status, 202)
  // Each step of this run is held. A step that is left would be released in place of the next test's.
  const read = async (): Promise<Run> => (await kit.call<Run>(`GET ${base}/runs/${resumed.body.id}`)).body
  while (!hasEnded(await read())) await release(0)
})

test('a repeated request with a key waits for the first run', async () => {
  const key = { 'idempotency-key': 'once' }
  const first = await startFlow(waits, 'wait=0', key)
  const again = startFlow(waits, 'wait=60', key)
  await watched()
  await release()
  const { status, body, headers } = await again
  assert.deepEqual([status, body.id, body.status], [200, first.body.id, 'completed'])
  assert.equal(headers['idempotency-replayed'], 'true')
  const third = await startFlow(waits, 'wait=60', key)
  assert.deepEqual([third.status, third.body.id], [200, first.body.id])
})

test('a flow run of a halted project is answered as it stands', async () => {
  const waiting = startFlow(waits, 'wait=600')
  await watched()
  await kit.call(`POST ${base}/halt`)
  assert.equal((await waiting).status, 202)
  assert.equal((await startFlow(add, 'wait=600')).status, 202)
  const { status, body } = await trigger('wait=600')
  assert.deepEqual([status, body.status, body.pause_reason], [200, 'paused', 'halted'])
  await kit.call(`POST ${base}/unhalt`)
  await release()
})

test('a wait ends when its project is deleted', async () => {
  const { id } = await kit.createProject()
  const waiting = startFlow(waits, 'wait=600', {}, { on: kit, path: `/api/projects/${id}` })
  await watched()
  await kit.call(`DELETE /api/projects/${id}`)
  assert.equal((await waiting).status, 404)
  const own = await kit.createProject()
  const { id: agentId } = await kit.createAgent(own.id)
  const triggered = kit.call<Run>(`POST /api/projects/${own.id}/agents/${agentId}/trigger`, {
    headers: { prefer: 'wait=600' },
    body: { input: 'slowly' },
  })
  await watched()
  await kit.call(`DELETE /api/projects/${own.id}`)
  const { status } = await triggered
  assert.ok(status === 200 || status === 404, String(status))
  await release(0)
})

test('a server that closes answers those who wait for a flow run', async () => {
  const other = await makeApp()
  const own = await other.createProject()
  const waiting = startFlow(waits, 'wait=600', {}, { on: other, path: `/api/projects/${own.id}` })
  await watched(other)
  await other.app.close()
  const { status, body } = await waiting
  assert.deepEqual([status, body.completed_at], [202, null])
  await release(0)
})

test('nothing is left of a wait whose client has gone', async () => {
  const address = await kit.app.listen({ host: '127.0.0.1', port: 0 })
  const leaving = new AbortController()
  const { key } = await kit.createKey(project.id, 'member')
  const answer = fetch(`${address}${base}/flow-runs`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', prefer: 'wait=600' },
    body: JSON.stringify({ root: waits }),
    signal: leaving.signal,
  })
  await watched()
  leaving.abort()
  await assert.rejects(answer)
  while (kit.services.hub.watched().length > 0) await new Promise(setImmediate)
  await release()
})
