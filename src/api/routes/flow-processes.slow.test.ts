// One process only serves, and another works. They share nothing but the database.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../../test/kit/app.ts'
import { createTestServices } from '../../../test/kit/run-services.ts'
import type { FlowTask } from '../../flows/history/trace.ts'
import type { FlowRun } from '../../kernel/flow-run.ts'

const begun = Promise.withResolvers<void>()
const gate = Promise.withResolvers<void>()
const functions = {
  add: (n: number) => n + 1,
  wait: async () => {
    begun.resolve()
    await gate.promise
    return 'waited'
  },
}
const kit = await createTestApp({ functions })
await createTestServices(kit, kit.cipher, { models: new Map(), functions })
const project = await kit.createProject()
const runs = `/api/projects/${project.id}/flow-runs`
const add = { type: 'task', function: 'add', id: 'a' }
const start = async (root: object): Promise<string> =>
  (await kit.call<FlowRun>(`POST ${runs}`, { body: { root, input: 1 } })).body.id
const read = async (id: string): Promise<FlowRun> => (await kit.call<FlowRun>(`GET ${runs}/${id}`)).body
const eventsOf = async (id: string): Promise<string[]> =>
  [...(await kit.call(`GET ${runs}/${id}/events`)).text.matchAll(/^event: (.*)$/gm)].map(([, kind = '']) => kind)

test('one process starts a flow, another executes it, and the first streams all its events', async () => {
  const id = await start({ type: 'sequential', steps: [add, { type: 'task', function: 'add' }] })
  assert.deepEqual(await eventsOf(id), [
    'flow.started',
    ...['task.started', 'task.completed', 'task.started', 'task.completed'],
    'flow.completed',
  ])
  const run = await read(id)
  assert.deepEqual([run.status, run.output, run.results], ['completed', 3, { a: 2 }])
  const { items } = (await kit.call<{ items: FlowTask[] }>(`GET ${runs}/${id}/tasks`)).body
  assert.deepEqual(
    items.map((task) => task.status),
    ['completed', 'completed'],
  )
})

test('a cancel through one process reaches the other', async () => {
  const id = await start({ type: 'sequential', steps: [{ type: 'task', function: 'wait', id: 'w' }, add] })
  await begun.promise
  assert.equal((await kit.call<FlowRun>(`POST ${runs}/${id}/cancel`)).body.status, 'running')
  gate.resolve()
  assert.equal((await eventsOf(id)).at(-1), 'flow.cancelled')
  assert.deepEqual((await read(id)).results, { w: 'waited' })
})
