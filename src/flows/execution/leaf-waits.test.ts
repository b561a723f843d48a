// Flows whose leaves wait for a process with their tools, or for the tokens of the month: no timeout passes meanwhile.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { createTestFlows } from '../../../test/kit/flows.ts'
import { createTestRuns, testTool } from '../../../test/kit/run-worker.ts'
import { createScriptedModel } from '../../../test/kit/scripted-model.ts'
import { until } from '../../../test/kit/until.ts'
import { systemActor } from '../../kernel/principal.ts'
import { cancelFlow } from './cancel.ts'

const flows = await createTestFlows({ tools: [testTool('here', async () => 1)], isRouted: true })
const { pool, clock } = flows
flows.models.set(
  'script',
  createScriptedModel(() => ({ text: 'done' })),
)

const isStill = async (id: string): Promise<boolean> =>
  (await pool.query('select from flow_runs where id = $1 and all_wait_since is not null', [id])).rowCount === 1

test('a leaf that waits for a tool uses up neither its timeout nor that of the flow', async () => {
  const { name } = await flows.createAgent({ tools: ['elsewhere'] })
  const id = await flows.startFlow({ type: 'task', id: 'leaf', agent: name, timeout: 30_000 }, { timeout: 60_000 })
  await until(() => isStill(id), 'the flow stands still')
  const { rows } = await pool.query(
    `select data->>'waiting_for' as awaited from flow_events where run_id = $1 and kind = 'task.waiting'`,
    [id],
  )
  assert.deepEqual(rows, [{ awaited: 'tool elsewhere' }])
  await clock.advance(600_000)
  assert.equal((await flows.read(id)).status, 'running')
  const second = await createTestRuns({
    tools: [testTool('elsewhere', async () => 1)],
    isRouted: true,
    database: flows,
  })
  const { status, error } = await flows.ended(id)
  await second.worker.stop()
  assert.deepEqual([status, error], ['completed', null])
  assert.equal((await pool.query('select from flow_leaf_waits')).rowCount, 0)
})

test('no time of a part passes while all running leaves in it wait', async () => {
  const { name } = await flows.createAgent({ tools: ['far'] })
  const gate = Promise.withResolvers<void>()
  flows.functions.set('busy', () => gate.promise)
  const far = (id: string) => ({ type: 'task' as const, id, agent: name })
  const part = (id: string) => ({ type: 'sequential' as const, timeout: 1_200, steps: [far(id)] })
  const alone = await flows.startFlow({ type: 'parallel', timeout: 1_200, branches: [far('a'), far('b')] })
  // The owner holds this one, because the function is called in its process.
  const branches = [part('c'), { type: 'task' as const, id: 'busy', function: 'busy' }]
  const beside = await flows.startFlow({ type: 'parallel', branches })
  const late = await flows.startFlow({
    type: 'parallel',
    branches: [{ type: 'parallel', timeout: 1_200, branches: [far('d'), { type: 'task', function: 'busy' }] }],
  })
  assert.match((await flows.ended(late)).error ?? '', /The time of this part of the flow was up\.$/)
  // The timers of parts go by the real clock.
  await delay(2_500)
  for (const id of [alone, beside]) assert.deepEqual((await flows.read(id)).error, null)
  const second = await createTestRuns({ tools: [testTool('far', async () => 1)], isRouted: true, database: flows })
  gate.resolve()
  for (const id of [alone, beside]) assert.equal((await flows.ended(id)).status, 'completed')
  await second.worker.stop()
})

test('a flow passes its time while one of its leaves waits for a tool and another works', async () => {
  const { name } = await flows.createAgent({ tools: ['elsewhere'] })
  const gate = Promise.withResolvers<void>()
  flows.functions.set('hold', () => gate.promise)
  const branches = [
    { type: 'task' as const, id: 'leaf', agent: name },
    { type: 'task' as const, id: 'held', function: 'hold' },
  ]
  const id = await flows.startFlow({ type: 'parallel', branches }, { timeout: 60_000 })
  const waits = async () =>
    (await pool.query('select from flow_leaf_waits where flow_run_id = $1', [id])).rowCount === 1
  await until(waits, 'the leaf waits')
  assert.equal(await isStill(id), false)
  gate.resolve()
  await until(() => isStill(id), 'the flow stands still')
  assert.equal(await cancelFlow(pool, flows.projectId, id, systemActor), true)
})

test('a leaf that waits for the tokens of the month uses up no time of its flow', async () => {
  const agent = await flows.createAgent({ tools: ['here'] })
  assert.equal((await flows.run(agent)).status, 'completed')
  await flows.set({ monthly_token_limit: 1 })
  const id = await flows.startFlow({ type: 'task', id: 'leaf', agent: agent.name }, { timeout: 60_000 })
  await until(() => isStill(id), 'the flow stands still')
  await clock.advance(600_000)
  assert.equal((await flows.read(id)).status, 'running')
  await flows.set({ monthly_token_limit: null })
  await pool.query(`update agent_runs set ready_at = muster.now() where waits_for = 'month'`)
  flows.worker.onReady()
  assert.equal((await flows.ended(id)).status, 'completed')
})
