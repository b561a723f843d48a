// The runs of agents that are stages of pipelines: a run that nobody waits for any more is cancelled.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestFlows } from '../../../test/kit/flows.ts'
import { createScriptedModel } from '../../../test/kit/scripted-model.ts'
import { until } from '../../../test/kit/until.ts'
import { systemActor } from '../../kernel/principal.ts'
import type { BuiltInNode } from '../machine/built-in-patterns.ts'
import { cancelFlow } from './cancel.ts'

let gate = Promise.withResolvers<void>()
const functions = {
  fail: async () => {
    await gate.promise
    throw new Error('broken')
  },
}
const flows = await createTestFlows({ functions, drainMs: 20, leaseMs: 1_000 })
let calls = 0
flows.models.set(
  'script',
  createScriptedModel(({ prompt }) => {
    calls++
    const asked = JSON.stringify(prompt)
    if (asked.includes('quick')) return { text: 'Done.' }
    return { text: 'Done.', waitFor: asked.includes('gated') ? gate.promise : 'abort' }
  }),
)
await flows.createAgent({ name: 'ann' })
const stage = { type: 'task' as const, agent: 'ann', input: '{{item}}' }
const pipeline = (more: Partial<Extract<BuiltInNode, { type: 'pipeline' }>> = {}): BuiltInNode => ({
  type: 'pipeline',
  source: ['slow'],
  stages: [stage],
  on_error: 'stop',
  ...more,
})
const cancel = (id: string): Promise<boolean> => cancelFlow(flows.pool, flows.projectId, id, systemActor)
const runsOf = async (id: string): Promise<string[]> => {
  const { rows } = await flows.pool.query<{ status: string }>(
    'select status from agent_runs where flow_run_id = $1 order by created_at, id',
    [id],
  )
  return rows.map(({ status }) => status)
}
const runsAre = (id: string, ...statuses: string[]): Promise<void> =>
  until(async () => (await runsOf(id)).join() === statuses.join(), `the runs of stages are ${statuses.join()}`, 5_000)

test('a cancel of the flow run cancels the run of a stage, after the time to drain', async () => {
  const id = await flows.startFlow(pipeline())
  await runsAre(id, 'running')
  await cancel(id)
  assert.equal((await flows.ended(id)).status, 'cancelled')
  await runsAre(id, 'cancelled')
})

for (const [name, root] of [
  ['the pipeline', pipeline({ timeout: 300 })],
  ['the part around the pipeline', { type: 'sequential', timeout: 300, steps: [pipeline()] }],
] as [string, BuiltInNode][]) {
  test(`the run of a stage is cancelled when the time of ${name} is up`, async () => {
    const { id, status, progress } = await flows.play(root)
    assert.deepEqual([status, progress.running, progress.failed], ['failed', 0, 1])
    await runsAre(id, 'cancelled')
  })
}

test('a pipeline that is tried again when its time was up starts beside no run of before', async () => {
  const again = pipeline({ timeout: 300, retry: { max_retries: 1, backoff: 0 } })
  const { id, status } = await flows.play(again)
  assert.equal(status, 'failed')
  await runsAre(id, 'cancelled', 'cancelled')
})

test('the time of the flow run ends the run of a stage', async () => {
  const { id, status } = await flows.play(pipeline(), { timeout: 300 })
  assert.equal(status, 'timed_out')
  await runsAre(id, 'cancelled')
})

test('a stage whose time is up cancels its run before the next attempt', async () => {
  // The runs wait for a slot, so that their own timeouts do not begin.
  await flows.pool.query(
    `create function hold() returns trigger language plpgsql as $$ begin new.ready_at := null; return new; end $$;
     create trigger hold before insert on agent_runs for each row execute function hold()`,
  )
  const retried = { ...stage, timeout: 300, retry: { max_retries: 1, backoff: 0 } }
  const { id, status } = await flows.play(pipeline({ stages: [retried] }))
  await flows.pool.query('drop trigger hold on agent_runs')
  assert.equal(status, 'failed')
  await runsAre(id, 'cancelled', 'cancelled')
})

test('a failure in one stage cancels the run of another', async () => {
  gate = Promise.withResolvers()
  const stages = [stage, { type: 'task' as const, function: 'fail' }]
  const id = await flows.startFlow(pipeline({ source: ['quick', 'slow'], stages }))
  await runsAre(id, 'completed', 'running')
  gate.resolve()
  assert.equal((await flows.ended(id)).status, 'failed')
  await runsAre(id, 'completed', 'cancelled')
})

test('the next owner waits for the run of a stage although its agent was disabled', async () => {
  gate = Promise.withResolvers()
  const { id: agentId } = await flows.createAgent({ name: 'ben' })
  calls = 0
  const id = await flows.startFlow(pipeline({ source: ['gated'], stages: [{ ...stage, agent: 'ben' }] }))
  // A run that has not read its agent yet would fail because the agent is disabled.
  await until(() => calls > 0, 'the run asks its model')
  await flows.pool.query('update agents set enabled = false where id = $1', [agentId])
  await flows.pool.query('update flow_runs set fence = fence + 1, owner = null, ready_at = now() where id = $1', [id])
  const begun = async (): Promise<number> =>
    (await flows.flowKinds(id)).filter((kind) => kind === 'pipeline.started').length
  await until(async () => (await begun()) === 2, 'the next owner takes up the pipeline')
  gate.resolve()
  const { status, output } = await flows.ended(id)
  assert.deepEqual([status, output], ['completed', ['Done.']])
})

test('the next owner waits for the run of a stage, and a cancel ends it there', async () => {
  const id = await flows.startFlow(pipeline())
  await runsAre(id, 'running')
  calls = 0
  const other = await createTestFlows({ functions, database: flows, drainMs: 20, leaseMs: 1_000 })
  await flows.flowWorker.stop()
  await until(async () => (await other.read(id)).owner !== null, 'another process owns the flow run')
  assert.deepEqual(await runsOf(id), ['running'])
  await other.flowWorker.stop()
  assert.deepEqual(await runsOf(id), ['running'])
  assert.equal(calls, 0)
  // No process owns the flow run when the cancel comes.
  await cancel(id)
  const third = await createTestFlows({ functions, database: flows, drainMs: 20, leaseMs: 1_000 })
  assert.equal((await third.ended(id)).status, 'cancelled')
  await runsAre(id, 'cancelled')
})
