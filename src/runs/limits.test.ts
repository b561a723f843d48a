import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestRuns, testTool } from '../../test/kit/run-worker.ts'
import { createScriptedModel, type Script, type ScriptedAnswer } from '../../test/kit/scripted-model.ts'

const made: { args: unknown; key: string }[] = []
const look = testTool('look', async (args, { key }) => {
  made.push({ args, key })
  return { seen: args }
})
const poll = testTool('poll', async () => 'not yet', { isPoller: true })
const broken = testTool('broken', async () => {
  throw new Error('out of order')
})
const paid: string[] = []
const pay = testTool(
  'pay',
  async (_args, { key }) => {
    paid.push(key)
    return 'paid'
  },
  { effect: 'unsafe' },
)
const runs = await createTestRuns({ tools: [look, poll, broken, pay] })
// Waits for a provider are the subject of provider-waits.test.ts.
await runs.set({ model_patience: 0 })

const script = (answers: readonly ScriptedAnswer[] | Script, options = {}) => {
  const model = createScriptedModel(answers, options)
  runs.models.set('script', model)
  return model
}
const lookAt = (what: number) => ({ calls: [{ name: 'look', args: { what } }] })
const passing = { message: 'The provider answered 503.', isRetryable: true, retryAfterMs: 1 }

test('a call that fails for a moment is made again and is no step; its tokens count', async () => {
  const model = script([{ text: 'half', fail: passing }, { fail: passing }, { text: 'whole' }])
  const run = await runs.run(await runs.createAgent())
  assert.equal(run.status, 'completed')
  assert.equal(run.step_count, 1)
  assert.equal(run.summary, 'whole')
  assert.equal(model.requests.length, 3)
  assert.equal(run.usage.input_tokens, 30)
  assert.deepEqual(await runs.kinds(run.id), [
    'run.started',
    'step.restarted',
    'step.restarted',
    'step.completed',
    'run.completed',
  ])
})

test('without patience the run fails after four retries, with the words of the provider', async () => {
  const model = script(() => ({ fail: passing }))
  const run = await runs.run(await runs.createAgent())
  assert.equal(run.status, 'failed')
  assert.equal(run.error_code, 'MODEL_ERROR')
  assert.match(run.error_message ?? '', /503.*tried 5 times/)
  assert.equal(model.requests.length, 5)
})

test('a wait of more than a second holds no slot: the run parks, and goes on after the wait', async () => {
  const failed = Promise.withResolvers<void>()
  script((_request, call) => {
    if (call === 1) failed.resolve()
    return call === 1 ? { fail: { ...passing, retryAfterMs: 30_000 } } : { text: 'at last' }
  })
  const { id } = await runs.start(await runs.createAgent())
  await failed.promise
  while ((await runs.kinds(id)).at(-1) !== 'run.parked') await new Promise(setImmediate)
  const { rows } = await runs.pool.query('select status, owner from agent_runs where id = $1', [id])
  assert.deepEqual(rows, [{ status: 'running', owner: null }])
  await runs.clock.advance(30_000)
  runs.worker.onReady()
  assert.equal((await runs.finished(id)).summary, 'at last')
})

test('without patience a wait of more than a minute that the provider asks for ends the run at once', async () => {
  const model = script(() => ({ fail: { ...passing, retryAfterMs: 61_000 } }))
  const run = await runs.run(await runs.createAgent())
  assert.equal(run.status, 'failed')
  assert.equal(model.requests.length, 1)
})

const badEndings: [string, ScriptedAnswer][] = [
  ['cut at the limit', { text: 'half an ans', finishReason: 'length' }],
  ['filtered', { text: 'half', finishReason: 'content-filter' }],
  ['ended for another reason', { text: 'half', finishReason: 'other' }],
  ['cut with calls in it', { ...lookAt(1), finishReason: 'length' }],
  ['interrupted again and again', { text: 'half', finishReason: 'interrupted' }],
  ['empty again and again', { text: '' }],
]
for (const [name, answer] of badEndings) {
  test(`an answer that is ${name} never completes a run`, async () => {
    made.length = 0
    script(() => answer)
    const run = await runs.run(await runs.createAgent({ tools: ['look'] }))
    assert.equal(run.status, 'failed')
    assert.equal(run.error_code, 'MODEL_ERROR')
    assert.equal(made.length, 0)
  })
}

test('unknown tools, malformed and unfit arguments are answered with the problem, and count as calls', async () => {
  const model = script([
    {
      calls: [
        { name: 'nope', args: {} },
        { name: 'look', input: '{"what":' },
        { name: 'look', input: '[1]' },
      ],
    },
    { calls: [{ name: 'broken', args: {} }] },
    { text: 'I see.' },
  ])
  made.length = 0
  const run = await runs.run(await runs.createAgent({ tools: ['look', 'broken'] }))
  assert.equal(run.status, 'completed')
  assert.equal(made.length, 0)
  const steps = await runs.steps(run.id)
  const tools = steps.filter((step) => step.kind === 'tool')
  assert.deepEqual(
    tools.map((step) => [step.name, step.is_error, step.args]),
    [
      ['nope', true, {}],
      ['look', true, '{"what":'],
      ['look', true, '[1]'],
      ['broken', true, {}],
    ],
  )
  assert.match(JSON.stringify(tools[0]?.result), /look, broken/)
  assert.match(JSON.stringify(tools[3]?.result), /out of order/)
  assert.equal(model.requests.length, 3)
})

test('the same malformed call over and over is a doom loop too; calls of a poller are not', async () => {
  script(() => ({ calls: [{ name: 'look', input: '{"what":' }] }))
  const looping = await runs.run(await runs.createAgent({ tools: ['look'] }))
  assert.equal(looping.error_code, 'DOOM_LOOP')
  script((_request, call) => (call <= 8 ? { calls: [{ name: 'poll', args: {} }] } : { text: 'there' }))
  const polling = await runs.run(await runs.createAgent({ tools: ['poll'] }))
  assert.equal(polling.status, 'completed')
  assert.equal(polling.step_count, 9)
})

test('of identical calls with an effect in one step two are made, and the others are refused', async () => {
  made.length = 0
  const child = await runs.createAgent({ name: 'paid by the step' })
  const calls = [
    ...Array.from({ length: 4 }, () => ({ name: 'pay', args: { to: 'Ann' } })),
    { name: 'pay', args: { to: 'Bob' } },
    ...Array.from({ length: 4 }, () => ({ name: 'look', args: { what: 1 } })),
    ...Array.from({ length: 3 }, () => ({ name: 'spawn_agent', args: { agent: child.name, input: 'go' } })),
  ].map((call, place) => ({ id: `c${place}`, ...call }))
  script((request) => (request.tools.length > 0 && request.prompt.length <= 2 ? { calls } : { text: 'done' }))
  const run = await runs.run(await runs.createAgent({ tools: ['pay', 'look', 'spawn_agent'] }))
  assert.equal(run.status, 'completed')
  assert.equal(new Set(paid).size, 3, 'Ann twice and Bob once, each under a key of its own')
  assert.equal(paid.length, 3)
  assert.equal(made.length, 4, 'reading changes nothing')
  const tools = (await runs.steps(run.id)).filter((step) => step.kind === 'tool')
  assert.deepEqual(
    calls.map(({ id }) => tools.find((tool) => tool.call_id === id)?.blocked),
    [...[null, null, 'doom_loop', 'doom_loop', null], ...[null, null, null, null], ...[null, null, 'doom_loop']],
  )
  const refused = tools.find((tool) => tool.call_id === 'c2')
  assert.match(JSON.stringify(refused?.result), /this one was not made\./)
  const { rowCount } = await runs.pool.query('select from agent_runs where parent_run_id = $1', [run.id])
  assert.equal(rowCount, 2)
})

test('a call is the same if only its reason is another', async () => {
  const calls = ['a', 'b', 'c'].map((reasoning) => ({
    name: 'pay',
    args: { to: 'Cyd', reasoning, apply: 'execute' },
  }))
  script((request) => (request.prompt.length <= 2 ? { calls } : { text: 'done' }))
  const run = await runs.run(await runs.createAgent({ tools: ['pay'], execution_mode: 'hybrid' }))
  const tools = (await runs.steps(run.id)).filter((step) => step.kind === 'tool')
  assert.deepEqual(tools.map((tool) => tool.blocked).toSorted(), ['doom_loop', null, null])
})

test('two hundred calls in one step, some with the same id, each get one result', async () => {
  made.length = 0
  const calls = Array.from({ length: 200 }, (_, what) => ({ id: `c${what % 150}`, name: 'look', args: { what } }))
  script([{ calls }, { text: 'all' }])
  const run = await runs.run(await runs.createAgent({ tools: ['look'] }))
  assert.equal(run.status, 'completed')
  assert.equal(made.length, 200)
  assert.equal(new Set(made.map((one) => one.key)).size, 200)
  const tools = (await runs.steps(run.id)).filter((step) => step.kind === 'tool')
  assert.equal(new Set(tools.map((step) => step.call_id)).size, tools.length)
})

test('the history is compacted at 80 % of the context, the originals stay, and the task is never lost', async () => {
  const long = 'x'.repeat(2_000)
  const model = script(
    (request, call) => {
      const isCompaction = JSON.stringify(request.prompt.at(-1)).includes('about to be shortened')
      if (isCompaction) return { text: 'A short summary.', usage: { inputTokens: 900, outputTokens: 10 } }
      const usage = { inputTokens: Math.ceil(JSON.stringify(request.prompt).length / 4), outputTokens: 10 }
      return call < 8 ? { text: `${long}${call}`, ...lookAt(call), usage } : { text: 'end', usage }
    },
    { contextTokens: 3_000 },
  )
  const agent = await runs.createAgent({
    tools: ['look'],
    model: { provider: 'test', name: 'script', max_output_tokens: 100 },
  })
  const run = await runs.run(agent, { input: 'The task itself.' })
  assert.equal(run.status, 'completed')
  const kinds = await runs.kinds(run.id)
  assert.ok(kinds.includes('context.compacted'))
  const last = JSON.stringify(model.requests.at(-1)?.prompt)
  assert.match(last, /The task itself/)
  assert.match(last, /A short summary/)
  for (const request of model.requests) assert.ok(JSON.stringify(request.prompt).length / 4 < 3_000)
  assert.ok((await runs.steps(run.id)).some((step) => step.kind === 'model' && step.text === `${long}1`))
})

test('a history that cannot be made shorter pauses the run instead of a refusal by the provider', async () => {
  const model = script([{ text: 'never asked' }], { contextTokens: 300 })
  const run = await runs.run(await runs.createAgent(), { input: 'y'.repeat(5_000) })
  assert.equal(run.status, 'paused')
  assert.equal(run.pause_reason, 'context')
  assert.equal(model.requests.length, 0)
})

test('prices make a cost, per call and per run', async () => {
  const usage = { inputTokens: 1_000, outputTokens: 500 }
  script(
    [
      { ...lookAt(1), usage },
      { text: 'done', usage },
    ],
    { price: { input: 2, output: 8 } },
  )
  const run = await runs.run(await runs.createAgent({ tools: ['look'] }))
  assert.equal(run.usage.cost_usd, 2 * ((1_000 * 2 + 500 * 8) / 1_000_000))
  const [first] = await runs.steps(run.id)
  assert.equal(first?.kind === 'model' && first.usage.cost_usd, (1_000 * 2 + 500 * 8) / 1_000_000)
})

test('a cost is rounded to a tenth of a micro-dollar, per call and over all calls', async () => {
  const usage = { inputTokens: 7, outputTokens: 4 }
  const calls = Array.from({ length: 9 }, (_, index) => ({ ...lookAt(index), usage }))
  script([...calls, { text: 'done', usage }], { price: { input: 0.15, output: 0.61 } })
  const run = await runs.run(await runs.createAgent({ tools: ['look'] }))
  // 7 × 0.15 + 4 × 0.61 = 3.49 micro-dollars.
  const perCall = (await runs.steps(run.id)).flatMap((step) => (step.kind === 'model' ? [step.usage.cost_usd] : []))
  assert.deepEqual(
    perCall,
    Array.from({ length: 10 }, () => 0.0000035),
  )
  assert.equal(run.usage.cost_usd, 0.000035)
})

test('the model is told any JSON that its run is given, null and an empty list too', async () => {
  for (const input of [null, [], 0, false, { a: null }]) {
    const model = createScriptedModel([{ text: 'Heard.' }])
    runs.models.set('script', model)
    await runs.run(await runs.createAgent(), { input })
    assert.deepEqual(model.requests[0]?.prompt.at(-1)?.content, [{ type: 'text', text: JSON.stringify(input) }])
  }
})

const unfit: [what: string, input: string][] = [
  ['a NUL in the name of an agent', '{"agent":"\\u0000","input":"x"}'],
  ['a NUL in an input', '{"agent":"somebody","input":"a\\u0000b"}'],
  ['half a surrogate pair', '{"agent":"somebody","input":{"a":"\\ud800"}}'],
  ['a name twice', '{"agent":"somebody","agent":"else","input":"x"}'],
  ['a number beyond all numbers', '{"agent":"somebody","input":{"a":1e400}}'],
  ['65 levels', `{"agent":"somebody","input":{"a":${'['.repeat(65)}${']'.repeat(65)}}}`],
  ['3,000 levels', `{"agent":"somebody","input":{"a":${'['.repeat(3_000)}${']'.repeat(3_000)}}}`],
  ['more than a mebibyte', `{"agent":"somebody","input":"${'x'.repeat(1_100_000)}"}`],
]
for (const [what, input] of unfit) {
  test(`arguments with ${what} are an error to the model, and the run goes on`, async () => {
    runs.models.set('script', createScriptedModel([{ calls: [{ name: 'spawn_agent', input }] }, { text: 'Sorry.' }]))
    const run = await runs.run(await runs.createAgent({ tools: ['spawn_agent'] }))
    assert.deepEqual([run.status, run.summary], ['completed', 'Sorry.'])
    const [, call] = await runs.steps(run.id)
    assert.ok(call?.kind === 'tool' && call.is_error)
  })
}
