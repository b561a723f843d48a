// Middleware around the tool calls of runs.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { createTestRuns, testTool } from '../../test/kit/run-worker.ts'
import { buryWorker } from '../../test/kit/runs.ts'
import { createScriptedModel, type Script, type ScriptedAnswer } from '../../test/kit/scripted-model.ts'
import { loadApp } from '../app-modules/load-app.ts'
import { setHalted } from '../identity/projects.ts'
import { wakeHalted } from '../journal/wake.ts'
import type { Middleware, MiddlewareContext } from '../kernel/middleware.ts'
import { systemActor } from '../kernel/principal.ts'
import { cancelRuns } from './cancel.ts'
import type { AskHuman } from './owned-run.ts'

const made: string[] = []
const watched = (name: string, effect: 'readonly' | 'keyed' | 'unsafe') =>
  testTool(
    name,
    async () => {
      made.push(name)
      return { by: name }
    },
    { effect },
  )
const broken = testTool('broken', async () => Promise.reject(new Error('out of order')))
const asked = new Set<string>()
const askHuman: AskHuman = {
  ask: async ({ taskId }) => void asked.add(taskId),
  answers: async (ids) => new Map(ids.map((id) => [id, { answer: 'Yes.', isRefused: false }])),
}
/** The hooks of the test under way. */
const middleware: Middleware[] = []
const tools = [watched('look', 'readonly'), watched('pay', 'keyed'), watched('send', 'unsafe'), broken]
const runs = await createTestRuns({ tools, middleware, askHuman, leaseMs: 900 })
const { pool, projectId } = runs

const use = (...hooks: Middleware[]): void => void middleware.splice(0, middleware.length, ...hooks)
const script = (answers: readonly ScriptedAnswer[] | Script) => {
  const model = createScriptedModel(answers)
  runs.models.set('script', model)
  return model
}
const calling = (...calls: [name: string, args?: object][]) => ({
  text: 'I act.',
  calls: calls.map(([name, args = {}]) => ({ name, args })),
})
const once = (answer: ScriptedAnswer) => script((request) => (request.prompt.length > 2 ? { text: 'Done.' } : answer))
const never = new Promise<never>(() => {})
const resultsOf = async (runId: string) =>
  (await runs.steps(runId)).flatMap((step) =>
    step.kind === 'tool' ? [{ name: step.name, result: step.result, is_error: step.is_error }] : [],
  )
const toolKinds = async (runId: string) => (await runs.kinds(runId)).filter((kind) => kind.startsWith('tool.'))

/** Declares the only worker dead: its runs are free, and it comes back under another name. */
async function declareDead(): Promise<void> {
  const workers = () => pool.query<{ id: string }>('select id from workers')
  while ((await workers()).rowCount === 0) await new Promise(setImmediate)
  for (const { id } of (await workers()).rows) await buryWorker(pool, id)
}

/** A hook that hangs at its first call, until the owner of the run is declared dead. */
function hangingOnce() {
  const told: number[] = []
  const reached = Promise.withResolvers<void>()
  const hook = async ({ ctx }: { ctx: MiddlewareContext }): Promise<undefined> => {
    told.push(ctx.step)
    if (told.length > 1) return
    reached.resolve()
    await never
  }
  return { told, reached: reached.promise, hook }
}

test('hooks see every call and every result, in order, as plain data', async () => {
  const told: unknown[] = []
  const telling = (name: string): Middleware => ({
    beforeTool: async ({ call, ctx }) => {
      await new Promise(setImmediate)
      told.push([name, call, ctx])
      return undefined
    },
    afterTool: async ({ call, result, is_error, ctx }) => {
      await new Promise(setImmediate)
      told.push([name, call.id, result, is_error, ctx.step])
    },
  })
  use(telling('a'), telling('b'))
  const model = once(calling(['look', { q: 1 }]))
  const agent = await runs.createAgent({ tools: ['look'] })
  const run = await runs.run(agent)
  const call = { id: 'call_1_1', name: 'look', args: { q: 1 } }
  const ctx = { run_id: run.id, project_id: projectId, agent: agent.name, step: 1 }
  assert.deepEqual(told, [
    ['a', call, ctx],
    ['b', call, ctx],
    ['a', 'call_1_1', { by: 'look' }, false, 1],
    ['b', 'call_1_1', { by: 'look' }, false, 1],
  ])
  assert.equal(model.requests.length, 2)
  assert.deepEqual(await resultsOf(run.id), [{ name: 'look', result: { by: 'look' }, is_error: false }])
})

test('a {result} of beforeTool replaces the call: no tool is called, and no call is announced', async () => {
  const seen: unknown[] = []
  use(
    { beforeTool: ({ call }) => (call.name === 'send' ? { result: { blocked: 'by policy' } } : undefined) },
    { beforeTool: ({ call }) => void seen.push(['before', call.name]) },
    { afterTool: ({ call, result }) => void seen.push(['after', call.name, result]) },
  )
  made.length = 0
  const model = once(calling(['send'], ['look']))
  const run = await runs.run(await runs.createAgent({ tools: ['look', 'send'] }))
  assert.equal(run.status, 'completed')
  assert.deepEqual(made, ['look'])
  assert.deepEqual(seen.toSorted(), [
    ['after', 'look', { by: 'look' }],
    ['after', 'send', { blocked: 'by policy' }],
    ['before', 'look'],
  ])
  const { rows } = await pool.query(
    `select data->>'name' as name from run_events where run_id = $1 and kind = 'tool.started'`,
    [run.id],
  )
  assert.deepEqual(rows, [{ name: 'look' }])
  assert.deepEqual(model.requests[1]?.prompt[3]?.content, [
    ...[
      {
        type: 'tool-result',
        toolCallId: 'call_1_1',
        toolName: 'send',
        output: { type: 'json', value: { blocked: 'by policy' } },
      },
    ],
    ...[
      {
        type: 'tool-result',
        toolCallId: 'call_1_2',
        toolName: 'look',
        output: { type: 'json', value: { by: 'look' } },
      },
    ],
  ])
})

test('a replacement may be an error, and may be empty', async () => {
  use({ beforeTool: ({ call }) => (call.args.bad ? { result: 'no', is_error: true } : { result: null }) })
  once(calling(['look', { bad: true }], ['look']))
  const run = await runs.run(await runs.createAgent({ tools: ['look'] }))
  assert.deepEqual(await resultsOf(run.id), [
    { name: 'look', result: 'no', is_error: true },
    { name: 'look', result: null, is_error: false },
  ])
})

test('writes, sub-agents and questions to people are tool calls, too; the exit of a loop is not', async () => {
  runs.models.set(
    'child',
    createScriptedModel(() => ({ text: 'Child.' })),
  )
  const child = await runs.createAgent({ name: 'child', model: { provider: 'test', name: 'child' } })
  const calls: [string, object][] = [
    ['object_create', { type: 'Note', properties: { text: 'x' } }],
    ['spawn_agent', { agent: child.name, input: 'Go.' }],
    ['ask_human', { question: 'May I?' }],
  ]
  const names = calls.map(([name]) => name)
  const script = () => once(calling(...calls))
  const objects = async () => (await pool.query(`select from objects where project_id = $1`, [projectId])).rowCount
  const agent = await runs.createAgent({ tools: names })

  use({ beforeTool: () => ({ result: 'no' }) })
  script()
  asked.clear()
  const refused = await runs.run(agent)
  assert.equal(refused.status, 'completed')
  assert.deepEqual(
    await resultsOf(refused.id),
    names.map((name) => ({ name, result: 'no', is_error: false })),
  )
  const { rowCount: children } = await pool.query('select from agent_runs where parent_run_id = $1', [refused.id])
  assert.deepEqual([await objects(), children, asked.size], [0, 0, 0])

  use({ afterTool: ({ call, result }) => ({ seen: call.name, was: typeof result }) })
  script()
  const { id } = await runs.start(agent)
  const changed = await runs.finished(id)
  assert.equal(changed.status, 'completed')
  assert.deepEqual(
    (await resultsOf(id)).toSorted((a, b) => names.indexOf(a.name) - names.indexOf(b.name)),
    [
      { name: 'object_create', result: { seen: 'object_create', was: 'object' }, is_error: false },
      { name: 'spawn_agent', result: { seen: 'spawn_agent', was: 'object' }, is_error: false },
      { name: 'ask_human', result: { seen: 'ask_human', was: 'string' }, is_error: false },
    ],
  )
  assert.equal(await objects(), 1)

  const told: string[] = []
  use({ beforeTool: ({ call }) => void told.push(call.name), afterTool: ({ call }) => void told.push(call.name) })
  runs.models.set(
    'loop',
    createScriptedModel(() => calling(['finish_loop', { result: 'out' }])),
  )
  const loop = await runs.run(await runs.createAgent({ flow_type: 'loop', model: { provider: 'test', name: 'loop' } }))
  assert.deepEqual([loop.summary, told], ['out', []])
})

test('calls that are refused pass no hook, because they are not made', async () => {
  const told: string[] = []
  use({ beforeTool: ({ call }) => void told.push(call.name), afterTool: ({ call }) => void told.push(call.name) })
  script((request) =>
    request.prompt.length > 2
      ? { text: 'Done.' }
      : {
          calls: [
            { name: 'nothing', args: {} },
            { name: 'look', input: 'no JSON' },
          ],
        },
  )
  const run = await runs.run(await runs.createAgent({ tools: ['look'] }))
  assert.deepEqual([run.status, told], ['completed', []])
})

test('the model sees a changed result, which is cut like any other', async () => {
  await runs.set({ tool_output_limit: 1_024 })
  use(
    { afterTool: ({ result }) => ({ ...(result as object), note: 'checked' }) },
    { afterTool: ({ call }) => (call.name === 'pay' ? 'x'.repeat(5_000) : undefined) },
  )
  const model = once(calling(['look'], ['pay'], ['broken']))
  const run = await runs.run(await runs.createAgent({ tools: ['look', 'pay', 'broken'] }))
  await runs.set({ tool_output_limit: 262_144 })
  const results = new Map((await resultsOf(run.id)).map((each) => [each.name, each]))
  assert.deepEqual(results.get('look'), { name: 'look', result: { by: 'look', note: 'checked' }, is_error: false })
  assert.match(String(results.get('pay')?.result), /^x+\n\[cut: only the beginning is shown, 5000 bytes in all\]$/)
  // An error stays an error.
  assert.deepEqual(results.get('broken'), {
    name: 'broken',
    result: { error: 'out of order', note: 'checked' },
    is_error: true,
  })
  assert.match(JSON.stringify(model.requests[1]?.prompt), /"by":"look","note":"checked"/)
})

test('a throw in a tool hook is that call’s error result, and the run goes on', async () => {
  use({
    beforeTool: ({ call }) => {
      if (call.name === 'send') throw new Error('not you')
      return undefined
    },
    afterTool: ({ call }) => (call.name === 'pay' ? Promise.reject(new Error('not that')) : undefined),
  })
  made.length = 0
  once(calling(['send'], ['pay'], ['look']))
  const run = await runs.run(await runs.createAgent({ tools: ['look', 'pay', 'send'] }))
  assert.equal(run.status, 'completed')
  assert.deepEqual(made.toSorted(), ['look', 'pay'])
  const results = new Map((await resultsOf(run.id)).map(({ name, ...each }) => [name, each]))
  const threw = (what: string) => ({ result: { error: `MIDDLEWARE_ERROR: middleware[0].${what}` }, is_error: true })
  assert.deepEqual(results.get('send'), threw('beforeTool threw: not you'))
  assert.deepEqual(results.get('pay'), threw('afterTool threw: not that'))
  assert.deepEqual(results.get('look'), { result: { by: 'look' }, is_error: false })
})

const wrong: [Middleware, RegExp][] = [
  [
    { beforeTool: () => 'no' as never },
    /middleware\[0\]\.beforeTool must return nothing, or an object \{result, is_error\?\}/,
  ],
  [{ beforeTool: () => ({ args: {} }) as never }, /beforeTool must return nothing, or an object/],
  [{ beforeTool: () => ({ result: 1, more: 1 }) as never }, /beforeTool must return nothing, or an object/],
  [{ beforeTool: () => ({ result: 1, is_error: 'yes' }) as never }, /beforeTool must return nothing, or an object/],
  [{ beforeTool: () => ({ result: new Date() }) }, /beforeTool returned a result that holds a Date, which is not JSON/],
  [{ afterTool: () => new Map() }, /afterTool returned a result that holds a Map, which is not JSON/],
  [{ afterTool: () => ({ at: 1n }) }, /afterTool returned a result that holds a bigint/],
]

test('the value that a tool hook returns is checked, and the error names the hook and the problem', async () => {
  const agent = await runs.createAgent({ tools: ['look'] })
  for (const [hooks, message] of wrong) {
    use(hooks)
    once(calling(['look']))
    const run = await runs.run(agent)
    assert.equal(run.status, 'completed')
    const [result] = await resultsOf(run.id)
    assert.equal(result?.is_error, true)
    assert.match(JSON.stringify(result?.result), message)
  }
})

test('after the death of an owner within beforeTool the hook is asked again, the model is not, and the call is made once', async () => {
  const { told, reached, hook } = hangingOnce()
  use({ beforeTool: hook })
  made.length = 0
  const model = once(calling(['send']))
  const { id } = await runs.start(await runs.createAgent({ tools: ['send'] }))
  await reached
  assert.deepEqual(await toolKinds(id), [])
  await declareDead()
  runs.worker.onReady()
  // If the unsafe call had been announced, a person would be asked about it now.
  const run = await runs.finished(id)
  // No model call was under way, so none was lost.
  assert.deepEqual([run.status, run.usage.total_tokens], ['completed', 30])
  assert.deepEqual([told, made, model.requests.length], [[1, 1], ['send'], 2])
})

test('after the death of an owner within afterTool of a write the write is made once, and the hook sees its result again', async () => {
  const { told, reached, hook } = hangingOnce()
  use({ afterTool: hook })
  once(calling(['object_create', { type: 'Once', properties: {} }]))
  const { id } = await runs.start(await runs.createAgent({ tools: ['object_create'] }))
  await reached
  await declareDead()
  runs.worker.onReady()
  assert.equal((await runs.finished(id)).status, 'completed')
  assert.deepEqual(told, [1, 1])
  const { rowCount } = await pool.query(`select from objects where type = 'Once'`)
  assert.equal(rowCount, 1)
  assert.deepEqual(await toolKinds(id), ['tool.started', 'tool.written', 'tool.completed'])
})

test('after the death of an owner within afterTool of a keyed call the call is made again under its key', async () => {
  const { told, reached, hook } = hangingOnce()
  use({ afterTool: hook })
  made.length = 0
  once(calling(['pay']))
  const { id } = await runs.start(await runs.createAgent({ tools: ['pay'] }))
  await reached
  await declareDead()
  runs.worker.onReady()
  assert.equal((await runs.finished(id)).status, 'completed')
  assert.deepEqual(
    [told, made],
    [
      [1, 1],
      ['pay', 'pay'],
    ],
  )
})

test('the hooks of finished steps are not repeated, whichever process goes on with the run', async () => {
  const told: string[] = []
  const gate = hangingOnce()
  use({
    beforeTool: ({ call, ctx }) => void told.push(`before ${call.name} ${ctx.step}`),
    afterTool: ({ call, ctx }) => void told.push(`after ${call.name} ${ctx.step}`),
    beforeModel: ({ ctx }) => (ctx.step === 2 ? gate.hook({ ctx }) : undefined),
  })
  once(calling(['look']))
  const { id } = await runs.start(await runs.createAgent({ tools: ['look'] }))
  await gate.reached
  await declareDead()
  runs.worker.onReady()
  assert.equal((await runs.finished(id)).status, 'completed')
  assert.deepEqual(told, ['before look 1', 'after look 1'])
})

for (const at of ['beforeTool', 'afterTool'] as const) {
  test(`a cancel ends a run whose ${at} hangs`, async () => {
    const reached = Promise.withResolvers<AbortSignal>()
    use({
      [at]: ({ signal }: { signal: AbortSignal }) => {
        reached.resolve(signal)
        return never
      },
    })
    made.length = 0
    once(calling(['send']))
    const { id } = await runs.start(await runs.createAgent({ tools: ['send'] }))
    const signal = await reached.promise
    await cancelRuns(runs, projectId, [id])
    assert.equal((await runs.finished(id)).status, 'cancelled')
    assert.equal(signal.aborted, true)
    if (at === 'beforeTool') return assert.deepEqual([made, await resultsOf(id)], [[], []])
    const [result] = await resultsOf(id)
    assert.deepEqual(made, ['send'])
    assert.match(JSON.stringify(result?.result), /This call was made\. Its result was not kept/)
  })

  test(`at the deadline the call of a run whose ${at} hangs is given up, and the run sums up and pauses`, async () => {
    use({ [at]: () => never })
    const model = script((request) =>
      request.toolChoice === 'none'
        ? { text: 'So far.' }
        : calling(['look'], ['object_create', { type: 'Late', properties: {} }]),
    )
    const agent = await runs.createAgent({ tools: ['look', 'object_create'] })
    const run = await runs.run(agent, { timeout: 300 })
    assert.deepEqual([run.status, run.pause_reason, run.summary], ['paused', 'timeout', 'So far.'])
    const rows = (await runs.steps(run.id)).flatMap((step) =>
      step.kind === 'tool' ? [[step.is_error, step.blocked]] : [],
    )
    assert.deepEqual(rows[0], [true, 'timeout'])
    assert.equal(model.requests.length, 2)
  })

  test(`${at} takes no longer than tool_timeout, even if it hangs`, async () => {
    await runs.set({ tool_timeout: 60 })
    use({ [at]: () => never })
    once(calling(['look']))
    const run = await runs.run(await runs.createAgent({ tools: ['look'] }))
    await runs.set({ tool_timeout: 60_000 })
    assert.equal(run.status, 'completed')
    const [result] = await resultsOf(run.id)
    assert.match(JSON.stringify(result?.result), new RegExp(`${at} did not finish within 60 ms`))
  })
}

test('the hooks of a real app module work on its own tools', async () => {
  const app = await loadApp(fileURLToPath(new URL('../../test/fixtures/middleware-app.ts', import.meta.url)))
  const own = await createTestRuns({ tools: app.tools, middleware: app.middleware })
  const model = createScriptedModel((request) =>
    request.prompt.length > 2
      ? { text: 'Done.' }
      : { text: 'I greet.', calls: ['nobody', 'Ada'].map((name) => ({ name: 'greet', args: { name } })) },
  )
  own.models.set('script', model)
  const run = await own.run(await own.createAgent({ prompt: 'Greet.', tools: ['greet'] }))
  assert.equal(run.summary, 'Done. [checked]')
  assert.deepEqual(
    (await own.steps(run.id)).map((step) => (step.kind === 'tool' ? step.result : step.kind === 'model' && step.text)),
    ['I greet. [checked]', 'Nobody is greeted.!', 'Hello, Ada!', 'Done. [checked]'],
  )
  assert.deepEqual(model.requests[0]?.prompt[0], { role: 'system', content: 'Greet.\nBe polite.' })
})

test('a question that a person has answered is not lost to a hook that hangs while the server stops', async () => {
  const reached = Promise.withResolvers<void>()
  const hanging: Middleware = {
    afterTool: () => {
      reached.resolve()
      return never
    },
  }
  const first = await createTestRuns({ askHuman, middleware: [hanging] })
  const model = (request: { prompt: unknown[] }) =>
    request.prompt.length > 2 ? { text: 'Done.' } : calling(['ask_human', { question: 'May I?' }])
  first.models.set('script', createScriptedModel(model))
  const { id } = await first.start(await first.createAgent({ tools: ['ask_human'] }))
  await reached.promise
  first.worker.hurry()
  await first.worker.stop()
  const second = await createTestRuns({ askHuman, database: first })
  assert.equal((await second.finished(id)).status, 'completed')
  const results = (await second.steps(id)).flatMap((step) => (step.kind === 'tool' ? [step.result] : []))
  assert.deepEqual(results, ['Yes.'])
})

test('an unsafe call that has answered is known to be made, although its hook hangs while the server stops', async () => {
  const reached = Promise.withResolvers<void>()
  const hanging: Middleware = {
    afterTool: () => {
      reached.resolve()
      return never
    },
  }
  made.length = 0
  const first = await createTestRuns({ tools, middleware: [hanging] })
  first.models.set(
    'script',
    createScriptedModel((request) => (request.prompt.length > 2 ? { text: 'Done.' } : calling(['send']))),
  )
  const { id } = await first.start(await first.createAgent({ tools: ['send'] }))
  await reached.promise
  first.worker.hurry()
  await first.worker.stop()
  const second = await createTestRuns({ tools, database: first })
  // No person is asked for the outcome of the call.
  assert.equal((await second.finished(id)).status, 'completed')
  const [, result] = await second.steps(id)
  assert.match(JSON.stringify(result), /This call was made\. Its result was not kept/)
  assert.deepEqual(made, ['send'])
})

test('if the off switch is used while a hook is at work, nothing is called after the hook', async () => {
  const halted = async (isHalted: boolean): Promise<void> => {
    await setHalted(pool, projectId, isHalted, systemActor)
    await pool.query(`select pg_notify('muster_halt', '')`)
    while (runs.worker.isHalted(projectId) !== isHalted) await new Promise(setImmediate)
  }
  for (const at of ['beforeModel', 'beforeTool'] as const) {
    const reached = Promise.withResolvers<void>()
    const gate = Promise.withResolvers<undefined>()
    use({
      [at]: () => {
        reached.resolve()
        return gate.promise
      },
    })
    made.length = 0
    const model = once(calling(['send']))
    const { id } = await runs.start(await runs.createAgent({ tools: ['send'] }))
    await reached.promise
    await halted(true)
    gate.resolve(undefined)
    assert.equal((await runs.finished(id)).pause_reason, 'halted')
    assert.deepEqual([model.requests.length, made], [at === 'beforeModel' ? 0 : 1, []])
    await halted(false)
    await wakeHalted(pool, projectId)
    runs.worker.onReady()
    while ((await runs.get(id)).completed_at === null) await new Promise(setImmediate)
    assert.deepEqual([(await runs.get(id)).status, made], ['completed', ['send']])
  }
})
