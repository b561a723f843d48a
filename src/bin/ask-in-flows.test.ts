// muster.ask and its kin in flows: the off switch, retries, and the counting of tokens.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestFlows } from '../../test/kit/flows.ts'
import { createScriptedModel, type Script } from '../../test/kit/scripted-model.ts'
import { createBuiltInFunctions } from '../flows/built-in-functions.ts'
import { getFlowRun } from '../flows/flow-runs.ts'
import { createProjectCalls } from '../journal/project-calls.ts'
import type { FlowNode } from '../kernel/flow.ts'
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
  createAsk({ pool: flows.pool, resolveModel: async () => model, isHalted: looked, calls, firstBackoffMs: 1 })(
    ...question,
  )
const flows = await createTestFlows({
  functions: { ...Object.fromEntries(createBuiltInFunctions({ ask })), plain: () => 'plain' },
  leafLimit: 2,
})
const { pool, projectId } = flows
const calls = createProjectCalls({ pool, ownerId: () => flows.worker.ownerId() })

const price = { input: 2, output: 8 }
const use = (script: Script): void => {
  model = createScriptedModel(script, { price })
}
const asks = (args: object, name = 'muster.ask'): FlowNode => ({ type: 'task', id: 'it', function: name, args })
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

test('every call of a function is charged to its flow run, and can be told from those of agents', async () => {
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

test('the usage of a flow run holds that of its agents too', async () => {
  use(() => ({ text: 'an answer', usage }))
  flows.models.set(
    'script',
    createScriptedModel(() => ({ text: 'done', usage }), { price }),
  )
  const agent = await flows.createAgent({ name: 'a leaf' })
  const root: FlowNode = {
    type: 'sequential',
    steps: [{ type: 'task', agent: agent.name, input: 'go' }, asks({ prompt: 'Say.' })],
  }
  const { id, status } = await flows.play(root)
  assert.equal(status, 'completed')
  assert.deepEqual(await usageOf(id), used(2, 2 * COST))
  const { rows } = await pool.query('select asked_calls from flow_runs where id = $1', [id])
  assert.deepEqual(rows, [{ asked_calls: 1 }])
})

test('a failure that may pass is tried again, as often as for any model call, and each try is paid for', async () => {
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

test('an answer that was cut off is tried again; one that is cut at its limit is a failure', async () => {
  use((_request, call) => (call === 1 ? { text: 'half', finishReason: 'interrupted' } : { text: 'whole' }))
  assert.equal((await flows.play(asks({ prompt: 'Say.' }))).output, 'whole')
  use(() => ({ text: 'half', finishReason: 'length' }))
  const cut = await flows.play(asks({ prompt: 'Say.' }))
  assert.deepEqual([cut.status, cut.error], ['failed', 'it: The answer was cut at max_output_tokens.'])
})

test('Retry-After is honoured as far as the whole waiting stays within a minute', async () => {
  use(() => ({ fail: { message: 'later', isRetryable: true, retryAfterMs: 61_000 } }))
  const { status, error } = await flows.play(asks({ prompt: 'Say.' }))
  assert.deepEqual([status, error, model.requests.length], ['failed', 'it: later', 1])
})

test('the off switch is asked before every call: nothing is asked while it is on, and nothing is lost', async () => {
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
  // The function looks at the switch again and again before its second call.
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
    (prompt): FlowNode => ({ type: 'task', function: 'muster.ask', args: { prompt } }),
  )
  const id = await flows.startFlow({ type: 'parallel', branches })
  const before = looks
  while (looks < before + 3) await new Promise(setImmediate)
  const plain: FlowNode = { type: 'task', function: 'plain', args: {} }
  const other = await flows.play({ type: 'parallel', branches: Array.from({ length: 10 }, () => plain) })
  assert.equal(other.status, 'completed')
  assert.equal(model.requests.length, 0)
  isHalted = false
  const { status, output } = await flows.ended(id)
  assert.deepEqual([status, output], ['completed', ['late', 'late', 'late']])
  // Every slot is free again.
  assert.equal((await flows.play({ type: 'parallel', branches: [plain, plain, plain] })).status, 'completed')
})
