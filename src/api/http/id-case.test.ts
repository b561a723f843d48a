// Ids are compared in lower case on every route. An id in capitals would otherwise be sealed, audited and cached under
// another name than the same id in small letters.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../../test/kit/app.ts'
import { smallEval } from '../../../test/kit/eval-roles.ts'
import { startMcpHttp } from '../../../test/kit/mcp-http.ts'
import type { GraphObject } from '../../kernel/object.ts'
import type { Task } from '../../kernel/task.ts'
import { startSupervisor } from '../../supervisor/start.ts'

const http = await startMcpHttp()
const kit = await createTestApp()
const project = await kit.createProject()
const base = `/api/projects/${project.id}`
const shouted = `/api/projects/${project.id.toUpperCase()}`
const agent = await kit.createAgent(project.id)

test('an MCP server that was added under a project id in capitals gets its headers', async () => {
  const body = { name: 'Fixture', url: http.url, headers: { authorization: 'Bearer of-the-server' } }
  assert.equal((await kit.call(`POST ${shouted}/mcp-servers`, { body })).status, 201)
  assert.equal((await kit.call(`POST ${base}/mcp-servers/Fixture/approve`)).status, 200)
  assert.equal((await kit.call(`POST ${shouted}/mcp-servers/Fixture/approve`)).status, 200)
  // A name keeps its case, because it is no id.
  assert.equal((await kit.call(`GET ${base}/mcp-servers/FIXTURE`)).status, 404)
})

test('an id in capitals is the same id in paths, queries and bodies, and is stored in small letters', async () => {
  const loud = agent.id.toUpperCase()
  const made = await kit.call<Task>(`POST ${shouted}/tasks`, { body: { title: 'Work', assigned_to: loud } })
  assert.equal(made.status, 201, made.text)
  assert.equal(made.body.assigned_to, agent.id)
  const list = await kit.call<{ items: Task[] }>(`GET ${shouted}/tasks?assigned_to=${loud}`)
  assert.deepEqual(
    list.body.items.map(({ id }) => id),
    [made.body.id],
  )
  const renamed = await kit.call<{ id: string }>(`PATCH ${shouted}/agents/${loud}`, { body: { role: 'Loud' } })
  assert.deepEqual([renamed.status, renamed.body.id], [200, agent.id])
  const { key } = await kit.createKey(project.id, 'viewer')
  assert.equal((await kit.call(`GET ${shouted}/agents/${loud}`, { token: key })).status, 200)
  const { body: object } = await kit.call<GraphObject>(`POST ${shouted}/objects`, {
    body: { type: 'Person', properties: {} },
  })
  await kit.call(`DELETE ${shouted}/objects/${object.id.toUpperCase()}`)
  await kit.call(`POST ${shouted}/halt`)
  await kit.call(`POST ${shouted}/unhalt`)
  const { rows } = await kit.pool.query<{ row: string }>('select to_jsonb(audit_log)::text as row from audit_log')
  for (const id of [project.id, agent.id, object.id, made.body.id]) {
    assert.ok(rows.some(({ row }) => row.includes(id)))
    assert.ok(!rows.some(({ row }) => row.includes(id.toUpperCase())), id)
  }
})

test('an Idempotency-Key holds for a project in either case of its id', async () => {
  const request = { body: { title: 'Once' }, headers: { 'idempotency-key': 'loud' } }
  const first = await kit.call<Task>(`POST ${base}/tasks`, request)
  const second = await kit.call<Task>(`POST ${shouted}/tasks`, request)
  assert.deepEqual([second.status, second.body.id], [201, first.body.id])
})

test('below /v1 and for evals an id in capitals is the same id', async () => {
  const start = { task: 'x', metadata: {}, contextId: null, requested: 'blue', ofProcess: null }
  const run = await startSupervisor(kit.pool, project.id, start)
  const headers = { 'x-project-id': project.id.toUpperCase() }
  const read = await kit.call<{ metadata: { run_id: string } }>(`GET /v1/agent/runs/${run.id.toUpperCase()}`, {
    headers,
  })
  assert.deepEqual([read.status, read.body.metadata.run_id], [200, run.id], read.text)
  const body = { input: { task: 'x' }, options: { run_id: run.id.toUpperCase() } }
  // The run is found, and is not escalated.
  assert.equal((await kit.call('POST /v1/agent/run', { headers, body })).status, 409)
  const made = await kit.call<{ id: string }>(`POST ${shouted}/evals`, { body: smallEval })
  assert.equal(made.status, 201, made.text)
  const evalId = made.body.id.toUpperCase()
  const shown = await kit.call<{ id: string }>(`GET ${shouted}/evals/${evalId}`)
  assert.deepEqual([shown.status, shown.body.id], [200, made.body.id])
  const context = { scenario: 'eval_comparison', eval_id: evalId }
  const layout = await kit.call('POST /v1/genui/layout', { headers, body: { context } })
  assert.equal(layout.status, 200, layout.text)
  assert.ok(layout.text.includes(made.body.id) && !layout.text.includes(evalId), layout.text)
  const cancelled = await kit.call<{ id: string }>(`POST ${base}/evals/${evalId}/cancel`)
  assert.deepEqual([cancelled.status, cancelled.body.id], [200, made.body.id])
})
