// Middleware around the model calls of runs.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestRuns, testTool } from '../../test/kit/run-worker.ts'
import { buryWorker } from '../../test/kit/runs.ts'
import { createScriptedModel, type Script, type ScriptedAnswer } from '../../test/kit/scripted-model.ts'
import type { Middleware, MiddlewareContext, MiddlewareRequest } from '../kernel/middleware.ts'
import type { Run } from '../kernel/run.ts'
import { cancelRuns } from './cancel.ts'

const looked: unknown[] = []
const look = testTool('look', async (args) => {
  looked.push(args)
  return { seen: args }
})
const send = testTool('send', async () => 'sent', { effect: 'unsafe' })
/** The hooks of the test under way. */
const middleware: Middleware[] = []
const runs = await createTestRuns({ tools: [look, send], middleware, leaseMs: 900 })
const { pool, projectId } = runs

const use = (...hooks: Middleware[]): void => void middleware.splice(0, middleware.length, ...hooks)
const script = (answers: readonly ScriptedAnswer[] | Script, options = {}) => {
  const model = createScriptedModel(answers, options)
  runs.models.set('script', model)
  return model
}
const lookAt = (what: number): ScriptedAnswer => ({
  text: `I look at ${what}.`,
  calls: [{ name: 'look', args: { what } }],
})
const never = new Promise<never>(() => {})
const errorOf = ({ status, error_code, error_message }: Run) => [status, error_code, error_message]

/** Declares the only worker dead: its runs are free, and it comes back under another name. */
async function declareDead(): Promise<void> {
  const workers = () => pool.query<{ id: string }>('select id from workers')
  while ((await workers()).rowCount === 0) await new Promise(setImmediate)
  for (const { id } of (await workers()).rows) await buryWorker(pool, id)
}

test('hooks are called in order and awaited, and see requests and answers as plain data', async () => {
  const told: unknown[] = []
  const telling = (name: string): Middleware => ({
    beforeModel: async ({ request, ctx }) => {
      await new Promise(setImmediate)
      told.push([name, 'before', ctx.step, request.messages.length])
      return undefined
    },
    afterModel: async ({ response, ctx }) => {
      await new Promise(setImmediate)
      told.push([name, 'after', ctx.step, response.text])
      return undefined
    },
  })
  let request: MiddlewareRequest | null = null
  let ctx: MiddlewareContext | null = null
  let response: unknown = null
  use(telling('a'), telling('b'), {
    beforeModel: (given) => {
      if (given.ctx.step === 1) ({ request, ctx } = given)
      return undefined
    },
    afterModel: (given) => {
      if (given.ctx.step === 1) response = given.response
      return undefined
    },
  })
  script([lookAt(1), { text: 'Done.' }])
  const agent = await runs.createAgent({ prompt: 'Look closely.', tools: ['look'] })
  const run = await runs.run(agent)
  assert.equal(run.status, 'completed')
  assert.deepEqual(told, [
    ['a', 'before', 1, 1],
    ['b', 'before', 1, 1],
    ['a', 'after', 1, 'I look at 1.'],
    ['b', 'after', 1, 'I look at 1.'],
    ['a', 'before', 2, 3],
    ['b', 'before', 2, 3],
    ['a', 'after', 2, 'Done.'],
    ['b', 'after', 2, 'Done.'],
  ])
  assert.deepEqual(ctx, { run_id: run.id, project_id: projectId, agent: agent.name, step: 1 })
  assert.deepEqual(request, {
    system: 'Look closely.',
    messages: [{ role: 'user', content: 'Do it.' }],
    tools: [{ name: 'look', description: look.description, input_schema: look.inputSchema }],
    tool_choice: 'auto',
    max_output_tokens: 4_096,
    temperature: null,
    answer_schema: null,
  })
  assert.deepEqual(response, {
    text: 'I look at 1.',
    tool_calls: [{ id: 'call_1_1', name: 'look', args: { what: 1 } }],
    reasoning: [],
    finish_reason: 'tool-calls',
    usage: { input_tokens: 10, output_tokens: 5, estimated: false },
  })
})

test('the model sees a changed request, for this call alone, and the journal records the change', async () => {
  use(
    { beforeModel: ({ request }) => ({ ...request, system: `${request.system} Be polite.` }) },
    // A request changed in place counts, if it is returned.
    {
      beforeModel: ({ request, ctx }) => {
        if (ctx.step === 1) request.messages.push({ role: 'user', content: 'Mind the policy.' })
        return request
      },
    },
    // A change of the copy that is not returned counts for nothing.
    { beforeModel: ({ request }) => void request.messages.splice(0) },
  )
  const model = script([lookAt(1), { text: 'Done.' }])
  const run = await runs.run(await runs.createAgent({ prompt: 'Look.', tools: ['look'] }))
  const [first, second] = model.requests.map(({ prompt }) => prompt)
  assert.deepEqual(
    first?.map(({ role, content }) => [role, content]),
    [
      ['system', 'Look. Be polite.'],
      ['user', [{ type: 'text', text: 'Do it.' }]],
      ['user', [{ type: 'text', text: 'Mind the policy.' }]],
    ],
  )
  assert.deepEqual(
    second?.map(({ role }) => role),
    ['system', 'user', 'assistant', 'tool'],
  )
  const [step, , last] = await runs.steps(run.id)
  assert.deepEqual(step?.kind === 'model' && step.request_changes, {
    system: 'Look. Be polite.',
    messages: { at: 1, removed: 0, added: [{ role: 'user', content: 'Mind the policy.' }] },
  })
  assert.deepEqual(last?.kind === 'model' && last.request_changes, { system: 'Look. Be polite.' })
})

test('without a change the journal says nothing about the request', async () => {
  use({ beforeModel: ({ request }) => ({ ...request }) })
  script([{ text: 'Done.' }])
  const [step] = await runs.steps((await runs.run(await runs.createAgent())).id)
  assert.ok(step && !('request_changes' in step))
})

test('a changed response takes the place of the answer: in the history, for the calls and in the summary', async () => {
  use({
    afterModel: ({ response }) => ({
      ...response,
      text: response.text.toUpperCase(),
      tool_calls: response.tool_calls.map((call) => ({ ...call, args: { what: 7 } })),
    }),
  })
  looked.length = 0
  const model = script([lookAt(1), { text: 'Done.' }])
  const run = await runs.run(await runs.createAgent({ tools: ['look'] }))
  assert.deepEqual(looked, [{ what: 7 }])
  assert.equal(run.summary, 'DONE.')
  assert.deepEqual(model.requests[1]?.prompt[2]?.content, [
    { type: 'text', text: 'I LOOK AT 1.' },
    { type: 'tool-call', toolCallId: 'call_1_1', toolName: 'look', input: { what: 7 } },
  ])
  const steps = await runs.steps(run.id)
  assert.deepEqual(
    steps.map((step) => (step.kind === 'model' ? step.text : step.kind === 'tool' && step.args)),
    ['I LOOK AT 1.', { what: 7 }, 'DONE.'],
  )
})

test('a response whose calls are taken out is an answer', async () => {
  use({ afterModel: ({ response }) => ({ ...response, tool_calls: [] }) })
  looked.length = 0
  script([lookAt(1)])
  const run = await runs.run(await runs.createAgent({ tools: ['look'] }))
  assert.deepEqual([run.status, run.summary, looked], ['completed', 'I look at 1.', []])
})

test('a filtered answer may be made a polite one', async () => {
  use({
    afterModel: ({ response }) =>
      response.finish_reason === 'content-filter' ? { ...response, text: 'Sorry.', finish_reason: 'stop' } : undefined,
  })
  script([{ text: 'half', finishReason: 'content-filter' }])
  assert.deepEqual(errorOf(await runs.run(await runs.createAgent())), ['completed', null, null])
})

test('a tool that was taken out of the request cannot be called', async () => {
  use({ beforeModel: ({ request }) => ({ ...request, tools: request.tools.filter(({ name }) => name !== 'look') }) })
  looked.length = 0
  const model = script([lookAt(1), { text: 'Done.' }])
  const run = await runs.run(await runs.createAgent({ tools: ['look', 'send'] }))
  assert.deepEqual(
    model.requests[0]?.tools.map(({ name }) => name),
    ['send'],
  )
  const [, refused] = await runs.steps(run.id)
  assert.match(JSON.stringify(refused), /There is no tool called \\"look\\". The tools are: send\./)
  assert.deepEqual(looked, [])
})

test('a throw in beforeModel fails the run with MIDDLEWARE_ERROR, and no model is called', async () => {
  use({}, { beforeModel: () => Promise.reject(new Error('not today')) })
  const model = script([{ text: 'Done.' }])
  const run = await runs.run(await runs.createAgent())
  assert.deepEqual(errorOf(run), ['failed', 'MIDDLEWARE_ERROR', 'middleware[1].beforeModel threw: not today'])
  assert.equal(model.requests.length, 0)
  assert.equal(run.usage.total_tokens, 0)
})

test('a throw in afterModel fails the run with MIDDLEWARE_ERROR; the call is paid, and its text is stored nowhere', async () => {
  use({
    afterModel: ({ ctx }) => {
      if (ctx.step === 2) throw new Error('a secret was said')
      return undefined
    },
  })
  script([lookAt(1), { text: 'The password is swordfish.' }])
  const run = await runs.run(await runs.createAgent({ tools: ['look'] }))
  assert.deepEqual(errorOf(run), ['failed', 'MIDDLEWARE_ERROR', 'middleware[0].afterModel threw: a secret was said'])
  assert.deepEqual([run.usage.total_tokens, run.step_count, run.summary], [30, 1, 'I look at 1.'])
  const { rows } = await pool.query('select data from run_events where run_id = $1', [run.id])
  assert.doesNotMatch(JSON.stringify(rows), /swordfish/)
})

const circular: { self?: unknown } = {}
circular.self = circular
const returned: [string, (value: object) => unknown, RegExp][] = [
  [
    'a text',
    () => 'no',
    /middleware\[0\]\.(before|after)Model returned a (request|response) that does not fit: .*expected object/,
  ],
  ['another type', (value) => ({ ...value, system: 1, text: 1 }), /does not fit: (system|text): .*expected string/],
  ['a field too many', (value) => ({ ...value, more: 1 }), /does not fit: Unrecognized key: "more"/],
  ['a function', (value) => ({ ...value, text: () => 'x' }), /that holds a function, which is not JSON/],
  ['a date', (value) => ({ ...value, text: new Date() }), /that holds a Date, which is not JSON/],
  ['a number that is not a number', (value) => ({ ...value, temperature: Number.NaN }), /that holds NaN/],
  ['a bigint', (value) => ({ ...value, temperature: 1n }), /that holds a bigint/],
  ['a circle', (value) => ({ ...value, tools: circular }), /that refers to itself/],
  ['too much', (value) => ({ ...value, text: 'x'.repeat(17_000_000) }), /of more than 16777216 bytes/],
  [
    'a getter that throws',
    () => ({
      get text() {
        throw new Error('boo')
      },
    }),
    /cannot be read as JSON: boo/,
  ],
]

test('parts that a hook does not return stay, and system messages join the instructions', async () => {
  use(
    { beforeModel: ({ request }) => ({ messages: [...request.messages, { role: 'system', content: 'Be brief.' }] }) },
    { afterModel: () => ({ text: 'Changed.' }) },
  )
  const model = script([{ text: 'Done.' }])
  const run = await runs.run(await runs.createAgent({ prompt: 'Look.' }))
  assert.deepEqual([run.status, run.summary, run.usage.total_tokens], ['completed', 'Changed.', 15])
  assert.deepEqual(
    model.requests[0]?.prompt.map(({ role }) => role),
    ['system', 'user'],
  )
  assert.equal(model.requests[0]?.prompt[0]?.content, 'Look.\n\nBe brief.')
})

test('the value that a model hook returns is checked, and the error names the hook and the problem', async () => {
  const agent = await runs.createAgent()
  script(() => ({ text: 'Done.' }))
  for (const [name, value, message] of returned) {
    // The types allow none of these; JavaScript does.
    use({ beforeModel: ({ request }) => value(request) as MiddlewareRequest })
    const before = await runs.run(agent)
    use({ afterModel: ({ response }) => value(response) as never })
    const after = await runs.run(agent)
    for (const run of [before, after]) {
      assert.equal(run.error_code, 'MIDDLEWARE_ERROR', name)
      assert.match(run.error_message ?? '', message, name)
    }
  }
  const cases: [Middleware, RegExp][] = [
    [
      { beforeModel: ({ request }) => ({ ...request, messages: [] }) },
      /beforeModel returned .*does not fit: messages: /,
    ],
    [
      { beforeModel: ({ request }) => ({ ...request, max_output_tokens: 5_000 }) },
      /max_output_tokens is 5000, and may be 4096/,
    ],
    [
      { afterModel: ({ response }) => ({ ...response, usage: { ...response.usage, input_tokens: 0 } }) },
      /usage cannot be changed/,
    ],
    [{ beforeModel: ({ request }) => ({ ...request, system: 'x'.repeat(1_000_000) }) }, /made the request longer/],
  ]
  for (const [hooks, message] of cases) {
    use(hooks)
    assert.match((await runs.run(agent)).error_message ?? '', message)
  }
})

test('hooks of a step that is tried again are called again; those of finished steps are not', async () => {
  const told: string[] = []
  use({
    beforeModel: ({ ctx }) => void told.push(`before ${ctx.step}`),
    afterModel: ({ ctx }) => void told.push(`after ${ctx.step}`),
  })
  script([
    lookAt(1),
    { text: 'half', fail: { message: '503', isRetryable: true, retryAfterMs: 1 } },
    { text: 'half', finishReason: 'interrupted' },
    { text: 'Done.' },
  ])
  assert.equal((await runs.run(await runs.createAgent({ tools: ['look'] }))).status, 'completed')
  assert.deepEqual(told, ['before 1', 'after 1', 'before 2', 'before 2', 'before 2', 'after 2'])
})

for (const at of ['beforeModel', 'afterModel'] as const) {
  test(`after the death of an owner within ${at} the hook is called again with the same step, and finished steps are not touched`, async () => {
    const told: number[] = []
    const reached = Promise.withResolvers<void>()
    let isHeld = true
    use({
      [at]: async ({ ctx }: { ctx: MiddlewareContext }) => {
        told.push(ctx.step)
        if (ctx.step !== 2 || !isHeld) return
        reached.resolve()
        await never
      },
    })
    const model = script((request) => (request.prompt.length > 2 ? { text: 'Done.' } : lookAt(1)))
    const { id } = await runs.start(await runs.createAgent({ tools: ['look'] }))
    await reached.promise
    isHeld = false
    await declareDead()
    runs.worker.onReady()
    const run = await runs.finished(id)
    assert.deepEqual([run.status, run.summary], ['completed', 'Done.'])
    assert.deepEqual(told, [1, 2, 2])
    assert.equal(model.requests.length, at === 'beforeModel' ? 2 : 3)
  })
}

for (const at of ['beforeModel', 'afterModel'] as const) {
  test(`a cancel ends a run whose ${at} hangs, and the hook's signal fires`, async () => {
    const reached = Promise.withResolvers<AbortSignal>()
    use({
      [at]: ({ signal }: { signal: AbortSignal }) => {
        reached.resolve(signal)
        return never
      },
    })
    script(() => ({ text: 'Nobody has seen this.' }))
    const { id } = await runs.start(await runs.createAgent())
    const signal = await reached.promise
    await cancelRuns(runs, projectId, [id])
    const run = await runs.finished(id)
    assert.deepEqual([run.status, run.summary], ['cancelled', null])
    assert.equal(signal.aborted, true)
    assert.equal(run.usage.total_tokens, at === 'beforeModel' ? 0 : 15)
  })

  test(`a run whose ${at} hangs pauses at the deadline, after its grace`, async () => {
    await runs.set({ grace_period: 100 })
    const steps: number[] = []
    use({
      [at]: ({ ctx }: { ctx: MiddlewareContext }) => {
        steps.push(ctx.step)
        return never
      },
    })
    script(() => ({ text: 'Nobody has seen this.' }))
    const run = await runs.run(await runs.createAgent(), { timeout: 50 })
    assert.deepEqual([run.status, run.pause_reason, run.summary], ['paused', 'timeout', null])
    // The hook is called for the work and for the summary; a timer may fire a moment early.
    assert.deepEqual([steps.length >= 2, new Set(steps)], [true, new Set([1])])
  })

  test(`${at} that hangs takes no longer than tool_timeout`, async () => {
    await runs.set({ tool_timeout: 60 })
    use({ [at]: () => never })
    script(() => ({ text: 'Done.' }))
    const run = await runs.run(await runs.createAgent())
    await runs.set({ tool_timeout: 60_000 })
    assert.deepEqual(errorOf(run), ['failed', 'MIDDLEWARE_ERROR', `middleware[0].${at} did not finish within 60 ms.`])
  })
}

test('a hook that hangs does not delay a stop: another process goes on with the run', async () => {
  const reached = Promise.withResolvers<void>()
  const hanging: Middleware = {
    beforeModel: () => {
      reached.resolve()
      return never
    },
  }
  const first = await createTestRuns({ middleware: [hanging] })
  first.models.set('script', createScriptedModel([{ text: 'Done.' }]))
  const { id } = await first.start(await first.createAgent())
  await reached.promise
  first.worker.hurry()
  await first.worker.stop()
  const told: number[] = []
  const second = await createTestRuns({
    database: first,
    middleware: [{ beforeModel: ({ ctx }) => void told.push(ctx.step) }],
  })
  assert.equal((await second.finished(id)).status, 'completed')
  assert.deepEqual(told, [1])
})

test('tokens are reserved for the request as the hooks have made it', async () => {
  use({ beforeModel: ({ request }) => ({ ...request, system: 'long '.repeat(10_000) }) })
  const reached = Promise.withResolvers<void>()
  const gate = Promise.withResolvers<void>()
  script(() => {
    reached.resolve()
    return { text: 'Done.', waitFor: gate.promise }
  })
  const agent = await runs.createAgent({ token_allocation: 1_000_000 })
  const { id } = await runs.start(agent)
  await reached.promise
  const { rows } = await pool.query<{ reserved: number }>('select reserved from agent_tokens where agent_id = $1', [
    agent.id,
  ])
  gate.resolve()
  await runs.finished(id)
  assert.ok((rows[0]?.reserved ?? 0) > 12_500 + 4_096, `${rows[0]?.reserved} tokens were reserved`)
  const after = await pool.query('select reserved from agent_tokens where agent_id = $1', [agent.id])
  assert.equal(after.rows[0]?.reserved, 0)
})

test('a hook that fails leaves no reservation behind', async () => {
  const agent = await runs.createAgent({ token_allocation: 1_000_000 })
  script(() => ({ text: 'Done.' }))
  for (const at of ['beforeModel', 'afterModel'] as const) {
    use({ [at]: () => Promise.reject(new Error('no')) })
    assert.equal((await runs.run(agent)).error_code, 'MIDDLEWARE_ERROR')
  }
  const { rows } = await pool.query('select reserved, used from agent_tokens where agent_id = $1', [agent.id])
  assert.deepEqual(rows, [{ reserved: 0, used: 15 }])
})

test('the call that shortens a long history passes the hooks, too', async () => {
  const asked: string[] = []
  use({
    beforeModel: ({ request }) => {
      const last = request.messages.at(-1)
      if (last?.role === 'user') asked.push(last.content)
      return undefined
    },
    afterModel: ({ response }) => ({ ...response, text: response.text.replace('secret', 'hidden') }),
  })
  const long = 'x'.repeat(2_000)
  const model = script(
    (request, call) => {
      const prompt = JSON.stringify(request.prompt)
      if (request.toolChoice === 'none') return { text: 'The secret summary.' }
      const usage = { inputTokens: Math.ceil(prompt.length / 4), outputTokens: 10 }
      if (prompt.includes('hidden summary')) return { text: 'Done.', usage }
      return { text: long, calls: [{ name: 'look', args: { call } }], usage }
    },
    { contextTokens: 3_000 },
  )
  const choice = { provider: 'test', name: 'script', max_output_tokens: 100 }
  const run = await runs.run(await runs.createAgent({ tools: ['look'], model: choice }))
  assert.equal(run.status, 'completed')
  assert.ok((await runs.kinds(run.id)).includes('context.compacted'), 'the history was not shortened')
  assert.ok(asked.some((text) => text.startsWith('The conversation above is about to be shortened')))
  assert.match(JSON.stringify(model.requests.at(-1)?.prompt), /The hidden summary/)
})

test('text is held back until afterModel has seen it; with live the text is shown as it comes', async () => {
  const soFar: (string | undefined)[] = []
  script(() => ({ textParts: ['The ', 'secret.'] }))
  for (const live of [false, true]) {
    use({
      ...(live ? { live } : {}),
      afterModel: ({ response, ctx }) => {
        soFar.push(runs.worker.texts.soFar(ctx.run_id)?.text)
        return { ...response, text: 'The ***.' }
      },
    })
    const run = await runs.run(await runs.createAgent())
    assert.equal(run.summary, 'The ***.')
  }
  assert.deepEqual(soFar, [undefined, 'The secret.'])
})

test('if text is held back, no text of an answer that was cut off is kept either', async () => {
  use({ afterModel: () => undefined })
  const reached = Promise.withResolvers<void>()
  script((_request, call) => {
    if (call === 1) return { text: 'a secret', fail: { message: '503', isRetryable: true, retryAfterMs: 1 } }
    reached.resolve()
    return { text: 'a secret', waitFor: 'abort' }
  })
  const { id } = await runs.start(await runs.createAgent())
  await reached.promise
  await cancelRuns(runs, projectId, [id])
  assert.equal((await runs.finished(id)).summary, null)
  const { rows } = await pool.query('select data from run_events where run_id = $1', [id])
  assert.doesNotMatch(JSON.stringify(rows), /secret/)
})

test('a hook may be a method of an object with a state of its own', async () => {
  class Counter implements Middleware {
    count = 0
    beforeModel(): undefined {
      this.count += 1
    }
  }
  const counter = new Counter()
  use(counter)
  script([{ text: 'Done.' }])
  await runs.run(await runs.createAgent())
  assert.equal(counter.count, 1)
})
