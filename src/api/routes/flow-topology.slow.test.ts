import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../../test/kit/app.ts'
import { type FlowTopology, flowTopologySchema } from '../../flows/history/topology.ts'
import type { FlowRun } from '../../kernel/flow-run.ts'
import { newId } from '../../kernel/id.ts'
import type { ErrorAnswer } from '../http/errors.ts'

let gate = Promise.withResolvers<void>()
const kit = await createTestApp({ models: new Map(), functions: { wait: () => gate.promise } })
const project = await kit.createProject()
const runs = `/api/projects/${project.id}/flow-runs`
const wait = { type: 'task', function: 'wait' }
const adaptive = (fields: object = {}) => ({ type: 'adaptive', workers: 2, tasks: [wait, wait, wait, wait], ...fields })

async function start(root: object): Promise<string> {
  const { status, body, text } = await kit.call<FlowRun>(`POST ${runs}`, { body: { root } })
  assert.equal(status, 202, text)
  return body.id
}
async function until(id: string, holds: (run: FlowRun) => boolean): Promise<void> {
  while (!holds((await kit.call<FlowRun>(`GET ${runs}/${id}`)).body)) await new Promise(setImmediate)
}
const begun = async (root: object): Promise<string> => {
  gate = Promise.withResolvers()
  const id = await start(root)
  await until(id, ({ progress }) => progress.running > 0)
  return id
}
const finish = async (id: string): Promise<void> => {
  gate.resolve()
  await until(id, ({ completed_at }) => completed_at !== null)
}
const read = (id: string) => kit.call<FlowTopology>(`GET ${runs}/${id}/topology`)
const ask = (id: string, body: object) => kit.call<FlowTopology & ErrorAnswer>(`POST ${runs}/${id}/topology`, { body })

test('a switch is in force when its request is answered', async () => {
  const id = await begun(adaptive())
  assert.equal((await read(id)).body.current, 'hierarchical')
  const { status, body } = await ask(id, { topology: 'mesh' })
  assert.equal(status, 200)
  flowTopologySchema.parse(body)
  const [change] = body.history
  assert.deepEqual([body.current, change?.from, change?.to, change?.moved], ['mesh', 'hierarchical', 'mesh', 2])
  assert.deepEqual(Object.keys(body).toSorted(), ['by_topology', 'current', 'handovers', 'history', 'recommendation'])
  assert.deepEqual((await read(id)).body, body)
  await finish(id)
  const after = (await read(id)).body
  assert.deepEqual([after.current, after.by_topology.mesh?.tasks, after.recommendation], ['mesh', 4, null])
  const { text } = await kit.call(`GET ${runs}/${id}/events`)
  assert.match(text, /event: topology\.switched\ndata: .*"to":"mesh"/)
})

test('an unknown topology, or one that the flow cannot have, is refused and changes nothing', async () => {
  const id = await begun(adaptive())
  for (const body of [
    { topology: 'ring' },
    {},
    { topology: null },
    { topology: 'custom' },
    { topology: 'mesh', edges: [] },
  ]) {
    const { status, body: answer } = await ask(id, body)
    assert.deepEqual([status, answer.error.code], [400, 'INVALID_REQUEST'])
  }
  assert.match((await ask(id, { topology: 'custom' })).body.error.message, /custom needs edges/)
  assert.deepEqual((await read(id)).body.history, [])
  await finish(id)
  const { status, body } = await ask(id, { topology: 'mesh' })
  assert.deepEqual([status, body.error.code], [409, 'CONFLICT'])
})

test('a part with edges switches to mesh and back to custom', async () => {
  const id = await begun(adaptive({ topology: 'custom', edges: [['w1', 'w2']] }))
  assert.equal((await ask(id, { topology: 'mesh' })).body.current, 'mesh')
  assert.equal((await ask(id, { topology: 'custom' })).body.current, 'custom')
  await finish(id)
})

test('a flow without an adaptive part has no topology to read or to switch', async () => {
  const id = await begun(wait)
  assert.deepEqual((await read(id)).body, {
    current: null,
    history: [],
    handovers: [],
    by_topology: {},
    recommendation: null,
  })
  assert.deepEqual((await ask(id, { topology: 'mesh' })).status, 409)
  await finish(id)
  assert.equal((await read(newId())).status, 404)
  assert.equal((await ask(newId(), { topology: 'mesh' })).status, 404)
})
