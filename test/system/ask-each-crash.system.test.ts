// A server is killed while the parts of a map ask the model about their items. The next server asks about the items
// that have no answer on record, and about no other.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createFlowWorld } from '../kit/flow-harness.ts'
import { until } from '../kit/until.ts'

const WORKERS = 4
const items = Array.from({ length: 60 }, (_, place) => `document ${place}`)
const promptOf = (item: string): string => `<killed> Sum it up.\n\n<input>\n${item}\n</input>`

test('kill -9 in the middle of muster.ask_each: an item that was answered is not asked again', async (t) => {
  const { world, server: killed } = await createFlowWorld(t)
  const { model, projectId, query } = world
  const settings = { default_model: { provider: 'flows', name: 'any' } }
  const set = await killed.call(`PATCH /api/projects/${projectId}/settings`, { body: settings })
  assert.equal(set.status, 200, set.text)
  const map = {
    type: 'task' as const,
    function: 'muster.ask_each',
    args: { prompt: '<{{input}}> Sum it up.', items: '{{item.items}}' },
  }
  const root = { type: 'map_reduce' as const, items, workers: WORKERS, map, reduce: 'muster.identity' }
  const flow = await world.begin(killed, { root, workers: WORKERS }, 'killed')
  const timesAsked = (): number[] => items.map((item) => model.asked(promptOf(item)))
  await until(() => timesAsked().filter((times) => times > 0).length >= items.length / 2, 'half is asked', 60_000)
  await killed.kill('SIGKILL')
  const before = timesAsked()
  const recorded = await query<{ count: number }>('select count(*)::int from flow_answers where flow_run_id = $1', [
    flow.id,
  ])
  const answered = recorded[0]?.count ?? 0
  const inFlight = before.filter((times) => times > 0).length - answered
  t.diagnostic(`${answered} were answered and ${inFlight} in flight at the kill`)
  assert.ok(before.every((times) => times <= 1))
  assert.ok(answered >= items.length / 4 && answered < items.length, `${answered} were answered`)
  assert.ok(inFlight <= WORKERS, `${inFlight} were in flight`)

  const server = await world.start()
  await world.untilEnded([flow])
  const { body } = await server.call<{ status: string; output: { values: string[] } }>(
    `GET /api/projects/${projectId}/flow-runs/${flow.id}`,
  )
  assert.equal(body.status, 'completed')
  assert.equal(body.output.values.length, items.length)
  assert.equal(new Set(body.output.values).size, items.length, 'each answer stands for its item')
  const after = timesAsked()
  assert.equal(after.filter((times) => times === 2).length, inFlight)
  assert.equal(after.filter((times) => times === 1).length, items.length - inFlight)
  await server.kill('SIGKILL')
})
