import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../../test/kit/app.ts'
import type { FlowRun } from '../../kernel/flow-run.ts'

const kit = await createTestApp({ models: new Map() })
const project = await kit.createProject()
const base = `/api/projects/${project.id}`

interface Template {
  name: string
  pattern: string
  usage: string
  example: { input: unknown }
}

test('Flow templates library: every template runs unchanged in a project without agents', async () => {
  const { body } = await kit.call<{ items: Template[] }>(`GET ${base}/flow-templates`)
  const names = body.items.map((template) => template.name)
  for (const name of ['code_review', 'data_pipeline', 'research', 'swarm_test']) assert.ok(names.includes(name), name)
  for (const { name, example, usage } of body.items) {
    assert.ok(usage.length > 20, name)
    const started = await kit.call<FlowRun>(`POST ${base}/flow-runs`, { body: { template: name, ...example } })
    assert.equal(started.status, 202, started.text)
    let run = started.body
    while (run.status === 'queued' || run.status === 'running') {
      run = (await kit.call<FlowRun>(`GET ${base}/flow-runs/${run.id}`)).body
    }
    assert.equal(run.status, 'completed', `${name}: ${run.error}`)
    const { total, completed } = run.progress
    assert.ok(completed > 0 && completed <= total, name)
  }
})

test('a template that does not exist is refused, and so is a start with more than one of template, root and flow_id', async () => {
  for (const body of [{ template: 'nobody' }, { template: 'research', root: {} }, {}]) {
    assert.equal((await kit.call(`POST ${base}/flow-runs`, { body })).status, 400, JSON.stringify(body))
  }
})

test('Pattern recommendation: a description gives a pattern, a definition and an estimate', async () => {
  const workload = 'Process 10,000 documents independently then summarize'
  const { body } = await kit.call<{ pattern: string; definition: object; estimate: { model_calls: number } }>(
    `POST ${base}/flows/recommend`,
    { body: { workload } },
  )
  assert.equal(body.pattern, 'map_reduce')
  assert.ok(body.estimate.model_calls >= 10_000)
  const checked = await kit.call<{ valid: boolean }>(`POST ${base}/flows/validate`, { body: { root: body.definition } })
  assert.equal(checked.body.valid, true)
  assert.equal((await kit.call(`POST ${base}/flows/recommend`, { body: { workload: '  ' } })).status, 400)
})
