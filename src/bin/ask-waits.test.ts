// Flows whose model is away: muster.ask and agent leaves wait, hold no slot, and use up no timeout.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { createTestFlows } from '../../test/kit/flows.ts'
import { createScriptedModel } from '../../test/kit/scripted-model.ts'
import { until } from '../../test/kit/until.ts'
import { listAlerts } from '../flows/alerts/alerts.ts'
import { checkAlerts } from '../flows/alerts/check-alerts.ts'
import { createBuiltInFunctions } from '../flows/definition/built-in-functions.ts'
import { cancelFlow } from '../flows/execution/cancel.ts'
import { createFlowJournal } from '../flows/execution/journal.ts'
import { type BuiltInNode, builtInPatterns } from '../flows/machine/built-in-patterns.ts'
import { createProjectCalls } from '../journal/project-calls.ts'
import { silentLog } from '../kernel/log.ts'
import type { Model } from '../kernel/model-call.ts'
import { systemActor } from '../kernel/principal.ts'
import { createAsk } from './ask-model.ts'

let isDown = true
let retryAfterMs: number | null = null
const model = createScriptedModel(() =>
  isDown ? { fail: { message: 'acme answered 503: Down.', isRetryable: true, retryAfterMs } } : { text: 'an answer' },
)
/** The provider as it is configured now. */
let current: Model = model
/** A question is asked when this has resolved. */
let isPrepared: Promise<void> = Promise.resolve()
const ask: ReturnType<typeof createAsk> = async (...question) => {
  await isPrepared
  return createAsk({
    pool: flows.pool,
    resolveModel: async () => current,
    isHalted: () => false,
    calls: createProjectCalls({ pool, ownerId: () => flows.worker.ownerId() }),
    outages: flows.worker.outages,
    firstBackoffMs: 1,
  })(...question)
}
const flows = await createTestFlows({
  functions: { ...Object.fromEntries(createBuiltInFunctions({ ask })), plain: () => 'plain' },
  leafLimit: 1,
})
const { pool, clock, projectId } = flows
flows.models.set('script', model)
await flows.set({ default_model: { provider: 'acme', name: 'asked' } })

const isStill = async (id: string): Promise<boolean> =>
  (await pool.query('select from flow_runs where id = $1 and all_wait_since is not null', [id])).rowCount === 1
const asks = (fields: object = {}): BuiltInNode => ({
  type: 'task',
  id: 'asking',
  function: 'muster.ask',
  args: { prompt: 'Say.' },
  ...fields,
})
const causes = async (id: string): Promise<string[]> =>
  (await listAlerts(pool, projectId, { flow_run_id: id }, { limit: 9 })).items.map((alert) => alert.suspected_cause)
const check = () =>
  checkAlerts({ pool, journal: createFlowJournal({ db: pool, log: silentLog }), patterns: builtInPatterns })

test('muster.ask waits for its provider without a slot, and neither its timeout nor the flow’s passes', async () => {
  isDown = true
  const id = await flows.startFlow(asks({ timeout: 1_500 }), { timeout: 60_000 })
  await until(() => isStill(id), 'the flow stands still')
  const { rows } = await pool.query('select provider, model, task_id from provider_waits where flow_run_id = $1', [id])
  assert.deepEqual(rows, [{ provider: 'acme', model: 'asked', task_id: 'asking' }])
  const beside = await flows.play({ type: 'task', id: 'other', function: 'plain' })
  assert.equal(beside.status, 'completed', 'the leaf that waits holds no slot')
  await clock.advance(120_000)
  assert.equal(await check(), 1)
  const { items: alerts } = await listAlerts(pool, projectId, { flow_run_id: id }, { limit: 9 })
  assert.deepEqual(alerts[0]?.actions, ['cancel'], 'more workers would only wait as well')
  assert.match((await causes(id))[0] ?? '', /expected\. asking waits for provider acme, which answered 503: Down\.$/)
  // The turn comes with a sweep; the leaf's own timeout of 1.5 s would have passed by then.
  await until(() => model.requests.length > 6, 'it was tried again')
  await until(() => isStill(id), 'the flow stands still again')
  isDown = false
  await clock.advance(600_000)
  const { status, output } = await flows.ended(id)
  assert.deepEqual([status, output], ['completed', 'an answer'])
  const left = 'select from provider_waits union all select from provider_outages'
  await until(async () => (await pool.query(left)).rowCount === 0, 'nobody waits any more')
})

test('the owner of a flow counts no time in which all that runs waits for a provider', async () => {
  isDown = true
  const { name } = await flows.createAgent({ model: { provider: 'acme', name: 'script' } })
  const agent: BuiltInNode = { type: 'task', id: 'agent', agent: name }
  const stages = [{ type: 'task' as const, function: 'muster.ask', args: { prompt: 'Say {{item}}.' } }]
  const roots: BuiltInNode[] = [
    asks(),
    { type: 'pipeline', source: [1], stages, on_error: 'stop' },
    { type: 'parallel', branches: [asks(), agent] },
  ]
  const ids = await Promise.all(roots.map((root) => flows.startFlow(root, { timeout: 5_000 })))
  for (const id of ids) await until(() => isStill(id), 'the flow stands still')
  // The timer of the owner goes by the real clock.
  await delay(6_000)
  for (const id of ids) assert.equal((await flows.read(id)).status, 'running')
  isDown = false
  await clock.advance(600_000)
  for (const id of ids) assert.equal((await flows.ended(id)).status, 'completed')
})

test('the cancel of a flow whose function waits for its provider takes no drain', async () => {
  isDown = true
  const id = await flows.startFlow(asks())
  await until(() => isStill(id), 'the flow stands still')
  await cancelFlow(pool, projectId, id, systemActor)
  assert.equal((await flows.ended(id)).status, 'cancelled')
  await until(async () => (await pool.query('select from provider_waits')).rowCount === 0, 'nobody waits any more')
})

test('the run of an agent leaf waits, and neither its timeout nor the flow’s passes', async () => {
  isDown = true
  const { name } = await flows.createAgent({ model: { provider: 'acme', name: 'script' } })
  const id = await flows.startFlow({ type: 'task', id: 'agent', agent: name, timeout: 30_000 }, { timeout: 60_000 })
  await until(() => isStill(id), 'the flow stands still')
  await clock.advance(600_000)
  assert.equal(await check(), 1)
  assert.match((await causes(id))[0] ?? '', /expected\. agent waits for provider acme, which answered 503: Down\.$/)
  isDown = false
  await clock.advance(300_000)
  const { status, output } = await flows.ended(id)
  assert.deepEqual([status, output], ['completed', 'an answer'])
  const { rows } = await pool.query<{ data: object }>(
    `select distinct data->>'waiting_for' as waiting_for from flow_events where run_id = $1 and kind = 'task.waiting'`,
    [id],
  )
  assert.deepEqual(rows, [{ waiting_for: 'provider acme' }])
})

test('patience ends the wait of a function', async (t) => {
  isDown = true
  await flows.set({ model_patience: 500 })
  t.after(() => flows.set({ model_patience: 3_600_000 }))
  const { status, error } = await flows.play(asks())
  assert.equal(status, 'failed')
  assert.match(error ?? '', /acme answered 503: Down\. \(tried 6 times/)
})

test('a function does not try before Retry-After, also when its patience ends', async (t) => {
  isDown = true
  retryAfterMs = 7_200_000
  const before = model.requests.length
  await flows.set({ model_patience: 500, default_model: { provider: 'acme', name: 'blocked' } })
  t.after(async () => {
    retryAfterMs = null
    await flows.set({ model_patience: 3_600_000, default_model: { provider: 'acme', name: 'asked' } })
  })
  const { status, error } = await flows.play(asks())
  assert.equal(status, 'failed')
  assert.match(error ?? '', /acme asked for a longer wait than model_patience allows\./)
  assert.equal(model.requests.length, before + 1)
})

test('a function that waits uses the provider as it was changed meanwhile', async (t) => {
  isDown = true
  t.after(() => {
    current = model
  })
  const id = await flows.startFlow(asks())
  await until(() => isStill(id), 'the flow stands still')
  current = createScriptedModel(() => ({ text: 'from the other account' }))
  await clock.advance(600_000)
  assert.equal((await flows.ended(id)).output, 'from the other account')
})

test('a function in an eval does not wait', async () => {
  isDown = true
  await flows.set({ default_model: { provider: 'acme', name: 'in an eval' } })
  const { promise, resolve } = Promise.withResolvers<void>()
  isPrepared = promise
  const id = await flows.startFlow(asks())
  await pool.query(`update flow_runs set within = coalesce(within, '{}') || '{"eval_id":"an eval"}' where id = $1`, [
    id,
  ])
  resolve()
  const { status, error } = await flows.ended(id)
  assert.equal(status, 'failed')
  assert.match(error ?? '', /acme answered 503: Down\. \(tried 5 times/)
})
