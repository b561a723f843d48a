// muster.ask and similar functions in flows: the off switch, retries, and the counting of tokens.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestFlows } from '../../test/kit/flows.ts'
import { createScriptedModel, type Script } from '../../test/kit/scripted-model.ts'
import { readUsage } from '../agents/usage.ts'
import { databaseTime } from '../db/database-time.ts'
import { createBuiltInFunctions } from '../flows/definition/built-in-functions.ts'
import { getFlowRun } from '../flows/history/flow-runs.ts'
import { readRecord } from '../flows/history/record.ts'
import { tasksOf } from '../flows/history/trace.ts'
import { type BuiltInNode, builtInPatterns } from '../flows/machine/built-in-patterns.ts'
import { createProjectCalls } from '../journal/project-calls.ts'
import { newId } from '../kernel/id.ts'
import type { Model } from '../kernel/model-call.ts'
import { createAsk } from './ask-model.ts'

let model: Model & { requests: unknown[] } = createScriptedModel([])
let isHalted = false
let looks = 0
const looked = (): boolean => {
  looks++
  return isHalted
}
const ask: ReturnType<typeof createAsk> = (...question) =>
  createAsk({
    pool: flows.pool,
    resolveModel: async () => model,
    isHalted: looked,
    calls,
    outages: flows.worker.outages,
    firstBackoffMs: 1,
  })(...question)
const flows = await createTestFlows({
  functions: { ...Object.fromEntries(createBuiltInFunctions({ ask })), plain: () => 'plain' },
  leafLimit: 2,
})
const { pool, projectId } = flows
const calls = createProjectCalls({ pool, ownerId: () => flows.worker.ownerId() })

// Waits for a provider are the subject of ask-waits.test.ts.
await flows.set({ model_patience: 0 })

const price = { input: 2, output: 8 }
const use = (script: Script): void => {
  model = createScriptedModel(script, { price })
}
const asks = (args: object, name = 'muster.ask'): BuiltInNode => ({ type: 'task', id: 'it', function: name, args })
const usageOf = async (id: string) => (await getFlowRun(pool, projectId, id, 50)).usage
const used = (calls: number, cost: number) => ({
  input_tokens: calls * 100,
  output_tokens: calls * 50,
  total_tokens: calls * 150,
  estimated: false,
  cost_usd: cost,
})
const usage = { inputTokens: 100, outputTokens: 50 }
const COST = (100 * price.input + 50 * price.output) / 1_000_000

test('every call of a function is charged to its flow run, apart from the calls of agents', async () => {
  use(() => ({ text: 'an answer', usage }))
  const { id, status, output } = await flows.play(asks({ prompt: 'Say.', items: ['a', 'b', 'c'] }, 'muster.ask_each'))
  assert.deepEqual([status, output], ['completed', ['an answer', 'an answer', 'an answer']])
  assert.deepEqual(await usageOf(id), used(3, 0.0018))
  const { rows } = await pool.query(
    'select asked_calls, asked_input_tokens, asked_output_tokens, asked_cost_usd::numeric(12, 7)::float8 as cost from flow_runs where id = $1',
    [id],
  )
  assert.deepEqual(rows, [{ asked_calls: 3, asked_input_tokens: 300, asked_output_tokens: 150, cost: 0.0018 }])
})

test('the calls of functions are in the report of the day, once, and not under an agent', async () => {
  use(() => ({ text: 'an answer', usage }))
  const day = (await databaseTime(pool)).toISOString().slice(0, 10)
  const read = async () => (await readUsage(pool, projectId, { from: day, to: day }, { limit: 10 })).agents
  const before = (await read()).find(({ source }) => source === 'function')
  await flows.play(asks({ prompt: 'Say.', items: ['a', 'b'] }, 'muster.ask_each'))
  const after = (await read()).find(({ source }) => source === 'function')
  assert.equal((after?.input_tokens ?? 0) - (before?.input_tokens ?? 0), 200)
  assert.equal((after?.output_tokens ?? 0) - (before?.output_tokens ?? 0), 100)
  assert.ok(Math.abs((after?.cost_usd ?? 0) - (before?.cost_usd ?? 0) - 2 * COST) < 1e-7)
  assert.equal(after?.agent_id, null)
})

test('calls of functions count for the agent that is the flow, within its allocation', async () => {
  use(() => ({ text: 'an answer', usage }))
  const agent = await flows.createAgent({ name: 'is a flow', token_allocation: 250 })
  const steps = [1, 2, 3].map((place) => ({ ...asks({ prompt: 'Say.' }), id: `step ${place}` }))
  const within = { depth: 1, chain_depth: 0, rights: {}, payers: [agent.id] }
  const { id, status, error } = await flows.play({ type: 'sequential', steps }, { parent: { runId: newId(), within } })
  assert.deepEqual([status, error], ['failed', 'step 3: The agent is a flow has used up its token allocation.'])
  assert.deepEqual(await usageOf(id), used(2, 2 * COST))
  const { rows } = await pool.query('select used, month_used from agent_tokens where agent_id = $1', [agent.id])
  assert.deepEqual(rows, [{ used: 300, month_used: 0 }])
})

test('the usage of a flow run includes the usage of its agents', async () => {
  use(() => ({ text: 'an answer', usage }))
  flows.models.set(
    'script',
    createScriptedModel(() => ({ text: 'done', usage }), { price }),
  )
  const agent = await flows.createAgent({ name: 'a leaf' })
  const root: BuiltInNode = {
    type: 'sequential',
    steps: [{ type: 'task', agent: agent.name, input: 'go' }, asks({ prompt: 'Say.' })],
  }
  const { id, status } = await flows.play(root)
  assert.equal(status, 'completed')
  assert.deepEqual(await usageOf(id), used(2, 2 * COST))
  const { rows } = await pool.query('select asked_calls from flow_runs where id = $1', [id])
  assert.deepEqual(rows, [{ asked_calls: 1 }])
})

test('a leaf of muster.* shows what its calls used, wherever it stands: all attempts, all parts, and as a source', async () => {
  use((request) => ({ text: JSON.stringify(request.prompt).includes('List') ? 'a\nb' : 'an answer', usage }))
  const root: BuiltInNode = {
    type: 'sequential',
    steps: [
      { ...asks({ prompt: 'Say.', items: ['a', 'b'] }, 'muster.ask_each'), id: 'each' },
      { type: 'task', id: 'plain', function: 'plain' },
      {
        type: 'map_reduce',
        id: 'sum',
        workers: 2,
        reduce: 'plain',
        items: { type: 'task', function: 'muster.ask_list', args: { prompt: 'List.' } },
        map: { type: 'task', function: 'muster.ask', args: { prompt: 'Map.' } },
      },
      {
        type: 'pipeline',
        id: 'pipe',
        source: [1, 2],
        on_error: 'stop',
        stages: [{ type: 'task', function: 'muster.ask', args: { prompt: 'Stage.' } }],
      },
    ],
  }
  const { id, status, error } = await flows.play(root)
  assert.equal(status, 'completed', error ?? '')
  const tasks = tasksOf(await readRecord(pool, projectId, id, builtInPatterns))
  const calls = Object.fromEntries(tasks.map((task) => [task.id, (task.usage?.total_tokens ?? 0) / 150]))
  assert.deepEqual(
    [calls.each, calls.plain, calls['sum/items'], calls['sum/map 0'], calls['sum/map 1'], calls.pipe],
    [2, 0, 1, 1, 1, 2],
  )
  assert.equal(tasks.find((task) => task.id === 'plain')?.usage, null)
  assert.equal(tasks.find((task) => task.id === 'each')?.usage?.cost_usd, 2 * COST)
  assert.deepEqual((await usageOf(id)).total_tokens, 7 * 150)
})

test('a passing failure is retried as often as for any model call, and each try is charged', async () => {
  use((_request, call) =>
    call < 3 ? { fail: { message: 'busy', isRetryable: true }, usage } : { text: 'at last', usage },
  )
  const { id, status, output } = await flows.play(asks({ prompt: 'Say.' }))
  assert.deepEqual([status, output], ['completed', 'at last'])
  assert.equal((await usageOf(id)).total_tokens, 450)
  use(() => ({ fail: { message: 'busy', isRetryable: true } }))
  const lost = await flows.play(asks({ prompt: 'Say.' }))
  assert.deepEqual([lost.status, lost.error], ['failed', 'it: busy (tried 5 times)'])
  assert.equal(model.requests.length, 5)
  use(() => ({ fail: { message: 'no such model', isRetryable: false } }))
  const refused = await flows.play(asks({ prompt: 'Say.' }))
  assert.deepEqual([refused.status, refused.error, model.requests.length], ['failed', 'it: no such model', 1])
})

test('an answer that was cut off is tried again; an answer cut at max_output_tokens is a failure', async () => {
  use((_request, call) => (call === 1 ? { text: 'half', finishReason: 'interrupted' } : { text: 'whole' }))
  assert.equal((await flows.play(asks({ prompt: 'Say.' }))).output, 'whole')
  use(() => ({ text: 'half', finishReason: 'length' }))
  const cut = await flows.play(asks({ prompt: 'Say.' }))
  assert.deepEqual([cut.status, cut.error], ['failed', 'it: The answer was cut at max_output_tokens.'])
})

test('Retry-After is honoured as long as all waits together stay within a minute', async () => {
  use(() => ({ fail: { message: 'later', isRetryable: true, retryAfterMs: 61_000 } }))
  const { status, error } = await flows.play(asks({ prompt: 'Say.' }))
  assert.deepEqual([status, error, model.requests.length], ['failed', 'it: later', 1])
})

test('the off switch is read before every call: no model is asked while it is on, and no call is lost', async () => {
  const begun = Promise.withResolvers<void>()
  const go = Promise.withResolvers<void>()
  use((_request, call) => {
    begun.resolve()
    return call === 1 ? { text: 'first', waitFor: go.promise } : { text: 'second' }
  })
  const id = await flows.startFlow(asks({ prompt: 'Say.', items: ['a', 'b'] }, 'muster.ask_each'))
  await begun.promise
  isHalted = true
  go.resolve()
  // The function reads the switch again and again before its second call.
  const before = looks
  while (looks < before + 3) await new Promise(setImmediate)
  assert.equal(model.requests.length, 1)
  isHalted = false
  const { status, output } = await flows.ended(id)
  assert.deepEqual([status, output, model.requests.length], ['completed', ['first', 'second'], 2])
})

test('a call that waits for the switch is given up with its flow', async () => {
  use(() => ({ text: 'never' }))
  isHalted = true
  const { status } = await flows.play(asks({ prompt: 'Say.' }), { timeout: 300 })
  isHalted = false
  assert.deepEqual([status, model.requests.length], ['timed_out', 0])
})

test('calls that wait for the switch hold no slot: other functions of this process go on', async () => {
  use(() => ({ text: 'late' }))
  isHalted = true
  const branches = ['a', 'b', 'c'].map(
    (prompt): BuiltInNode => ({ type: 'task', function: 'muster.ask', args: { prompt } }),
  )
  const id = await flows.startFlow({ type: 'parallel', branches })
  const before = looks
  while (looks < before + 3) await new Promise(setImmediate)
  const plain: BuiltInNode = { type: 'task', function: 'plain', args: {} }
  const other = await flows.play({ type: 'parallel', branches: Array.from({ length: 10 }, () => plain) })
  assert.equal(other.status, 'completed')
  assert.equal(model.requests.length, 0)
  isHalted = false
  const { status, output } = await flows.ended(id)
  assert.deepEqual([status, output], ['completed', ['late', 'late', 'late']])
  // Every slot is free again.
  assert.equal((await flows.play({ type: 'parallel', branches: [plain, plain, plain] })).status, 'completed')
})
