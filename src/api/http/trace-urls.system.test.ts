import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createScriptedModel } from '../../../test/kit/scripted-model.ts'
import { createSupervisor, delegate, finish } from '../../../test/kit/supervisor.ts'

const traceUrlOf = ({ traceId, spanId }: { traceId: string; spanId: string }) =>
  `http://viewer/${traceId}?span=${spanId}`
const digits = (id: string): string => id.replaceAll('-', '')
const urlOf = (rootId: string, id = rootId): string => `http://viewer/${digits(rootId)}?span=${digits(id).slice(16)}`

type Shown = { id: string; parent_run_id: string | null; trace_url: string | null }

test('answers of the supervisor and all its runs hold the address of their one trace', async () => {
  const kit = await createSupervisor({ supervisor: [delegate('research_agent'), finish()] }, { traceUrlOf })
  const { body } = await kit.run('Say hello.')
  const { run_id: runId } = body.metadata
  assert.equal(body.metadata.trace_url, urlOf(runId))
  assert.equal((await kit.read(runId)).body.metadata.trace_url, urlOf(runId))
  const { items } = await kit.get<{ items: Shown[] }>('/runs')
  assert.equal(items.length, 2)
  for (const run of items) {
    assert.equal(run.trace_url, urlOf(runId, run.id))
    assert.equal((await kit.get<Shown>(`/runs/${run.id}`)).trace_url, run.trace_url)
  }
})

test('a run of an agent has the address of its trace when it is triggered, cancelled or forked', async () => {
  const models = new Map([['script', createScriptedModel(() => ({ text: 'Done.' }))]])
  const kit = await createSupervisor({}, { traceUrlOf, models })
  const agent = await kit.createAgent(kit.project.id, { model: { provider: 'test', name: 'script' } })
  const headers = { 'idempotency-key': 'once' }
  const trigger = () =>
    kit.call<Shown>(`POST ${kit.base}/agents/${agent.id}/trigger`, { headers, body: { input: 'x' } })
  const { body: run } = await trigger()
  assert.equal(run.trace_url, urlOf(run.id))
  assert.equal((await trigger()).body.trace_url, run.trace_url)
  assert.equal((await kit.call<Shown>(`POST ${kit.base}/runs/${run.id}/cancel`)).body.trace_url, run.trace_url)
  const fork = await kit.call<Shown>(`POST ${kit.base}/runs/${run.id}/fork`, { body: { after_step: 0 } })
  assert.equal(fork.body.trace_url, urlOf(fork.body.id))
})

test('without a service for traces, or while its address is not known, an answer has no address', async () => {
  for (const none of [{}, { traceUrlOf: () => null }]) {
    const kit = await createSupervisor({}, none)
    const { body } = await kit.run('Say hello.')
    assert.equal('trace_url' in body.metadata, false)
    assert.equal((await kit.get<Shown>(`/runs/${body.metadata.run_id}`)).trace_url, null)
  }
})

test('the answer of a failure is not changed', async () => {
  const kit = await createSupervisor({}, { traceUrlOf })
  const { status, text } = await kit.call(`GET ${kit.base}/runs/nothing`)
  assert.equal(status, 404)
  assert.equal(text.includes('trace_url'), false)
})
