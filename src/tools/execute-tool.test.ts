import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLog } from '../kernel/log.ts'
import type { CallTool, ToolContext } from '../kernel/tool.ts'
import { executeTool, type ToolLimits, type ToolOutcome } from './execute-tool.ts'

const LIMITS: ToolLimits = { timeoutMs: 60_000, outputLimitBytes: 1_000 }

function toolThat(execute: (args: unknown, context: ToolContext) => unknown): CallTool {
  return {
    kind: 'call',
    name: 'probe',
    description: 'A tool of this test.',
    inputSchema: { type: 'object' },
    parse: (args) => ({ ok: true, args }),
    effect: 'readonly',
    isPoller: false,
    timeoutMs: null,
    execute: async (args, context) => execute(args, context),
  }
}

function run(
  execute: (args: unknown, context: ToolContext) => unknown,
  limits: Partial<ToolLimits> = {},
  context: Partial<ToolContext> = {},
): Promise<ToolOutcome> {
  const full: ToolContext = {
    signal: new AbortController().signal,
    key: 'k',
    attempt: 1,
    run_id: 'r',
    project_id: 'p',
    log: silentLog,
    emit: () => {},
    ...context,
  }
  return executeTool(toolThat(execute), { a: 1 }, full, { ...LIMITS, ...limits })
}

const errorOf = (outcome: ToolOutcome): string => {
  assert.equal(outcome.isError, true)
  assert.deepEqual(Object.keys(outcome.result as object), ['error']) // asserted right here
  return (outcome.result as { error: string }).error
}

function nested(levels: number): unknown {
  let value: unknown = 'bottom'
  for (let level = 0; level < levels; level++) value = { in: value }
  return value
}

test('JSON comes back as the very value that was returned', async () => {
  for (const value of [null, true, 0, 'text', '', [], {}, { a: [1, 'b', null, { c: false }] }, nested(64)]) {
    const outcome = await run(() => value, { outputLimitBytes: 100_000 })
    assert.equal(outcome.result, value)
    assert.deepEqual({ ...outcome, result: null }, { result: null, isError: false, cause: 'ok' })
  }
})

test('a tool that returns nothing has the result null, and an undefined property is absent', async () => {
  assert.equal((await run(() => undefined)).result, null)
  assert.deepEqual((await run(() => ({ a: undefined, b: [undefined, 1] }))).result, { b: [null, 1] })
})

class Money {}
const itself: unknown[] = []
itself.push({ itself })
const doubling = (): unknown => {
  let value: unknown = ['x']
  for (let level = 0; level < 60; level++) value = [value, value]
  return value
}

const notJson: [string, unknown, RegExp][] = [
  ['a function', { run: () => 1 }, /a function/],
  ['a BigInt', [1n], /a bigint/],
  ['a symbol', Symbol('s'), /a symbol/],
  ['a cycle', itself, /refers to itself/],
  ['a Date', { at: new Date() }, /a Date/],
  ['a Map', new Map(), /a Map/],
  ['a class instance', new Money(), /a Money/],
  ['NaN', { n: Number.NaN }, /NaN/],
  ['Infinity', Number.POSITIVE_INFINITY, /Infinity/],
  ['bytes', { file: Buffer.from('abc') }, /binary data \(3 bytes\)/],
  ['an ArrayBuffer', new ArrayBuffer(8), /binary data \(8 bytes\)/],
  ['a graph that doubles at every level', doubling(), /more than 1000000 values/],
  [
    'a getter that throws',
    {
      get a() {
        throw new Error('no a')
      },
    },
    /no a/,
  ],
]
for (const [what, value, reason] of notJson) {
  test(`a result with ${what} is an error that names the tool`, async () => {
    const outcome = await run(() => value)
    assert.match(errorOf(outcome), /^The result of the tool "probe" /)
    assert.match(errorOf(outcome), reason)
    assert.equal(outcome.cause, 'error')
  })
}

test('a value is cut at 64 levels of nesting, however deep it is', async () => {
  for (const levels of [65, 100_000]) {
    const outcome = await run(() => nested(levels), { outputLimitBytes: 100_000 })
    assert.equal(outcome.isError, false)
    const text = JSON.stringify(outcome.result)
    assert.equal(text.split('{').length - 1, 64)
    assert.match(text, /cut: nested deeper than 64 levels/)
  }
})

test('a text over the limit is cut between characters and says how long it was', async () => {
  for (const text of ['x'.repeat(5_000), 'ä€😀'.repeat(1_000), `x${'😀'.repeat(900)}`]) {
    const outcome = await run(() => text)
    const shown = String(outcome.result)
    assert.ok(Buffer.byteLength(shown) <= 1_000)
    assert.ok(Buffer.byteLength(shown) > 900, 'the limit is used')
    assert.ok(shown.isWellFormed() && !shown.includes('\ufffd'))
    assert.ok(text.startsWith(shown.slice(0, shown.indexOf('\n[cut'))))
    assert.ok(shown.includes(`${Buffer.byteLength(text)} bytes in all]`))
    assert.equal(outcome.rawBytes, Buffer.byteLength(text))
  }
})

test('other JSON over the limit becomes the beginning of its text, with a mark', async () => {
  const value = { rows: Array.from({ length: 500 }, (_, id) => ({ id })) }
  const outcome = await run(() => value)
  assert.equal(outcome.isError, false)
  assert.match(String(outcome.result), /^\{"rows":\[\{"id":0\},/)
  assert.match(String(outcome.result), /\[cut: only the beginning is shown, as JSON \d+ bytes in all\]$/)
  assert.ok(Buffer.byteLength(String(outcome.result)) <= 1_000)
  assert.equal(outcome.rawBytes, JSON.stringify(value).length)
})

test('a value that only looks long is left whole', async () => {
  const value = { text: 'x'.repeat(900) }
  assert.equal((await run(() => value)).result, value)
  assert.equal((await run(() => 'x'.repeat(1_000))).result, 'x'.repeat(1_000))
})

test('any thrown value becomes a sentence for the model', async () => {
  const thrown: [unknown, string][] = [
    [new Error('the disk is full'), 'the disk is full'],
    [new TypeError(), 'TypeError'],
    ['plain words', 'plain words'],
    [{ code: 7 }, 'The tool failed with {"code":7}.'],
    [undefined, 'The tool failed with undefined.'],
    [Object.create(null), 'The tool failed with {}.'],
    [itself, 'The tool failed with a value that cannot be shown.'],
  ]
  for (const [value, message] of thrown) {
    const outcome = await run(() => {
      throw value
    })
    assert.equal(errorOf(outcome), message)
    assert.equal(outcome.cause, 'error')
  }
  const long = await run(() => {
    throw new Error('x'.repeat(5_000))
  })
  assert.ok(errorOf(long).length <= 1_000)
})

test('a tool that heeds its signal is stopped at its timeout', async () => {
  const outcome = await run(
    (_, { signal }) => new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
    { timeoutMs: 1, drainMs: () => 60_000 },
  )
  assert.equal(outcome.cause, 'timeout')
  assert.match(errorOf(outcome), /"probe" did not answer within 1 ms/)
})

test('a tool that ignores its signal is abandoned, and its late failure disturbs nobody', async () => {
  const late = Promise.withResolvers<never>()
  const emitted: unknown[] = []
  let emit: ToolContext['emit'] = () => {}
  const outcome = await run(
    (_, context) => {
      emit = context.emit
      context.emit({ at: 'start' })
      return late.promise
    },
    { timeoutMs: 1 },
    { emit: (progress) => emitted.push(progress) },
  )
  assert.equal(outcome.cause, 'timeout')
  emit({ at: 'too late' })
  assert.deepEqual(emitted, [{ at: 'start' }])
  // node --test fails the file on an unhandled rejection.
  late.reject(new Error('late'))
  await new Promise((resolve) => setImmediate(resolve))
})

test('the outer signal stops the call', async () => {
  const outer = new AbortController()
  let seen: AbortSignal | null = null
  const running = run(
    (_, { signal }) => {
      seen = signal
      return new Promise(() => {})
    },
    {},
    { signal: outer.signal },
  )
  outer.abort()
  const outcome = await running
  assert.equal(outcome.cause, 'aborted')
  assert.match(errorOf(outcome), /was given up before it answered/)
  assert.equal((seen as AbortSignal | null)?.aborted, true) // assigned inside the tool, which the compiler cannot follow
})

test('a result that comes while the tool drains counts', async () => {
  const outer = new AbortController()
  const running = run(
    (_, { signal }) => new Promise((resolve) => signal.addEventListener('abort', () => resolve('done after all'))),
    { drainMs: () => 60_000 },
    { signal: outer.signal },
  )
  outer.abort()
  assert.deepEqual(await running, { result: 'done after all', isError: false, cause: 'ok' })
})

test('a call whose signal has fired already is never made', async () => {
  let calls = 0
  const outcome = await run(() => calls++, {}, { signal: AbortSignal.abort() })
  assert.equal(outcome.cause, 'aborted')
  assert.equal(calls, 0)
})
