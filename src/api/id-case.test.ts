// Ids are compared in lower case, wherever they are sent. An id in capitals would otherwise be sealed, audited and
// cached under another name than the same id in small letters.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../test/kit/app.ts'
import { startMcpHttp } from '../../test/kit/mcp-http.ts'
import type { GraphObject } from '../kernel/object.ts'
import type { Task } from '../kernel/task.ts'

const http = await startMcpHttp()
const kit = await createTestApp()
const project = await kit.createProject()
const base = `/api/projects/${project.id}`
const shouted = `/api/projects/${project.id.toUpperCase()}`
const agent = await kit.createAgent(project.id)

test('an MCP server that was added under a project id in capitals is connected to with its headers', async () => {
  const body = { name: 'Fixture', url: http.url, headers: { authorization: 'Bearer of-the-server' } }
  assert.equal((await kit.call(`POST ${shouted}/mcp-servers`, { body })).status, 201)
  assert.equal((await kit.call(`POST ${base}/mcp-servers/Fixture/approve`)).status, 200)
  assert.equal((await kit.call(`POST ${shouted}/mcp-servers/Fixture/approve`)).status, 200)
  // A name is no id.
  assert.equal((await kit.call(`GET ${base}/mcp-servers/FIXTURE`)).status, 404)
})

test('paths, queries and bodies take an id in capitals for the same id, and keep it in small letters', async () => {
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

test('an Idempotency-Key holds for a project however its id is written', async () => {
  const request = { body: { title: 'Once' }, headers: { 'idempotency-key': 'loud' } }
  const first = await kit.call<Task>(`POST ${base}/tasks`, request)
  const second = await kit.call<Task>(`POST ${shouted}/tasks`, request)
  assert.deepEqual([second.status, second.body.id], [201, first.body.id])
})
