// The items of muster.ask_each are units of resume: an item with an answer is not asked again, by no attempt and by no
// process.

import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { createTestFlows, type TestFlows } from '../../test/kit/flows.ts'
import { buryWorker } from '../../test/kit/runs.ts'
import { createScriptedModel, type Script } from '../../test/kit/scripted-model.ts'
import { inTransaction } from '../db/transaction.ts'
import { type Ask, createBuiltInFunctions } from '../flows/definition/built-in-functions.ts'
import { findAnswer, noteItemAnswer } from '../flows/execution/asked-items.ts'
import { pruneFlowRuns } from '../flows/history/prune-flow-runs.ts'
import type { BuiltInNode } from '../flows/machine/built-in-patterns.ts'
import { createOutageWatch } from '../journal/outage-watch.ts'
import { createProjectCalls } from '../journal/project-calls.ts'
import { newId } from '../kernel/id.ts'
import { silentLog } from '../kernel/log.ts'
import { createAsk } from './ask-model.ts'

/** The items that the model was asked about, in order. */
const asked: string[] = []
let reply: (item: string, times: number) => ReturnType<Script> = (item) => ({ text: `about ${item}` })
const model = createScriptedModel((request) => {
  const item = /<input>\\n(.*?)\\n<\/input>/.exec(JSON.stringify(request.prompt))?.[1] ?? '?'
  asked.push(item)
  return reply(item, asked.filter((each) => each === item).length)
})
beforeEach(() => {
  asked.length = 0
  reply = (item) => ({ text: `about ${item}` })
})

const askFor =
  (flows: () => TestFlows): Ask =>
  (...question) => {
    const { pool, worker } = flows()
    const calls = createProjectCalls({ pool, ownerId: () => worker.ownerId() })
    const outages = createOutageWatch({ pool, ownerId: () => worker.ownerId(), onReady: () => {}, log: silentLog })
    const shared = { resolveModel: async () => model, isHalted: () => false, firstBackoffMs: 1 }
    return createAsk({ pool, calls, outages, ...shared })(...question)
  }
const functions = (flows: () => TestFlows) => Object.fromEntries(createBuiltInFunctions({ ask: askFor(flows) }))
const one: TestFlows = await createTestFlows({ leaseMs: 900, functions: functions(() => one) })
const { pool, projectId } = one

const items = ['a', 'b', 'c', 'd', 'e']
const answers = items.map((item) => `about ${item}`)
const each = (more: object = {}, args: object = { items }): BuiltInNode => ({
  type: 'task',
  id: 'it',
  function: 'muster.ask_each',
  args: { prompt: 'Say.', ...args },
  ...more,
})
const until = async (condition: () => boolean | Promise<boolean>): Promise<void> => {
  while (!(await condition())) await new Promise(setImmediate)
}

test('a retry of the leaf asks about the items without an answer', async () => {
  reply = (item, times) =>
    item === 'c' && times < 3 ? { fail: { message: 'Bad luck.', isRetryable: false } } : { text: `about ${item}` }
  const { id, status, output } = await one.play(each({ retry: { max_retries: 2, backoff: 0 } }))
  assert.deepEqual([status, output], ['completed', answers])
  assert.deepEqual(asked, ['a', 'b', 'c', 'c', 'c', 'd', 'e'])
  const { rows } = await pool.query('select asked_calls from flow_runs where id = $1', [id])
  assert.deepEqual(rows, [{ asked_calls: 7 }])
})

test('the next owner asks about the items without an answer, and about the one that was asked at the death', async () => {
  const gone = Promise.withResolvers<void>()
  reply = (item, times) =>
    item === 'c' && times === 1 ? { text: 'too late', waitFor: gone.promise } : { text: `about ${item}` }
  const id = await one.startFlow(each())
  await until(() => asked.length === 3)
  await buryWorker(pool, one.worker.ownerId())
  const { status, output } = await one.ended(id)
  gone.resolve()
  assert.deepEqual([status, output], ['completed', answers])
  assert.deepEqual(asked, ['a', 'b', 'c', 'c', 'd', 'e'])
})

test('a leaf that is handed out to another process, and to the next one, asks about each item once', async () => {
  const known = one.functions.get('muster.ask_each') ?? assert.fail()
  const other: TestFlows = await createTestFlows({ leaseMs: 900, database: one, functions: functions(() => other) })
  one.functions.delete('muster.ask_each')
  const gone = Promise.withResolvers<void>()
  reply = (item, times) =>
    item === 'd' && times === 1 ? { text: 'too late', waitFor: gone.promise } : { text: `about ${item}` }
  const id = await one.startFlow({ type: 'sequential', steps: [each()] })
  await until(() => asked.length === 4)
  const { rows } = await pool.query('select owner from flow_handouts where run_id = $1', [id])
  assert.deepEqual(rows, [{ owner: other.worker.ownerId() }])
  one.functions.set('muster.ask_each', known)
  await buryWorker(pool, other.worker.ownerId())
  one.flowWorker.poke()
  const { status, output } = await one.ended(id)
  gone.resolve()
  assert.deepEqual([status, output], ['completed', answers])
  assert.deepEqual(asked, ['a', 'b', 'c', 'd', 'd', 'e'])
})

test('the items of different leaves, of the calls of one leaf, and of shares do not mix', async () => {
  const share = (place: number) => each({ id: `share ${place}` }, { items, share: { of: 2, place } })
  const { status, output } = await one.play({
    type: 'sequential',
    steps: [
      { type: 'parallel', branches: [share(0), share(1)] },
      {
        type: 'pipeline',
        id: 'pipe',
        source: [['f', 'g'], ['h']],
        on_error: 'stop',
        stages: [{ type: 'task', function: 'muster.ask_each', args: { prompt: 'Say.', items: '{{item}}' } }],
      },
    ],
  })
  assert.deepEqual([status, output], ['completed', [['about f', 'about g'], ['about h']]])
  assert.deepEqual(asked.toSorted(), [...items, 'f', 'g', 'h'])
})

test('an answer counts for the very question; texts that cannot be stored are not kept', async () => {
  const { id } = await one.play({ type: 'task', function: 'muster.identity' })
  const item = { flowRunId: id, leafId: 'x'.repeat(5_000), call: ':1', place: 2 }
  const note = (prompt: string, answer: string, of = item) =>
    inTransaction(pool, (tx) => noteItemAnswer(tx, of, { prompt, answer }))
  await note('Say.', 'first')
  assert.equal(await findAnswer(pool, item, 'Say.'), 'first')
  assert.equal(await findAnswer(pool, item, 'Say more.'), null)
  for (const other of [{ place: 1 }, { call: '' }, { leafId: 'x' }, { flowRunId: newId() }]) {
    assert.equal(await findAnswer(pool, { ...item, ...other }, 'Say.'), null)
  }
  await note('Say more.', 'second')
  assert.deepEqual([await findAnswer(pool, item, 'Say.'), await findAnswer(pool, item, 'Say more.')], [null, 'second'])
  for (const text of ['nul \0', 'half \uD800']) await note('Say it.', text, { ...item, place: 3 })
  await note('Say it.', 'nobody hears it', { ...item, flowRunId: newId() })
  assert.equal(await findAnswer(pool, { ...item, place: 3 }, 'Say it.'), null)
})

test('the answers go with their flow run', async () => {
  const { id } = await one.play(each())
  const kept = async () => (await pool.query('select from flow_answers where flow_run_id = $1', [id])).rowCount
  assert.equal(await kept(), items.length)
  await pool.query(`update flow_runs set completed_at = completed_at - interval '3 days' where id = $1`, [id])
  await pruneFlowRuns(pool, { projectId, days: 1 })
  assert.equal(await kept(), 0)
})
