import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { APICallError, type LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { createStreamedModel, finishPart, partStream, textPart } from '../../test/kit/streamed-model.ts'
import type { ModelRequest } from '../kernel/model-call.ts'
import { type CallSettings, callModel } from './call-model.ts'

const request: ModelRequest = {
  prompt: [{ role: 'user', content: [{ type: 'text', text: 'x'.repeat(384) }] }],
  tools: [],
  toolChoice: 'auto',
  maxOutputTokens: 100,
}
/** 384 characters and the 16 that a message adds. */
const INPUT_ESTIMATE = 100

function settings(more: Partial<CallSettings> = {}): CallSettings & { heard: string[] } {
  const heard: string[] = []
  return {
    signal: new AbortController().signal,
    onText: (delta) => heard.push(delta),
    idleTimeoutMs: 60_000,
    providerName: 'acme',
    heard,
    ...more,
  }
}

const answering = (...parts: LanguageModelV4StreamPart[]) => createStreamedModel(() => partStream(parts))

test('text, reasoning, calls, the reason of the end and the usage are gathered', async () => {
  const options = settings()
  const outcome = await callModel(
    answering(
      { type: 'stream-start', warnings: [] },
      { type: 'reasoning-start', id: 'r1' },
      { type: 'reasoning-delta', id: 'r1', delta: 'Let me ' },
      { type: 'reasoning-delta', id: 'r1', delta: 'think.' },
      { type: 'reasoning-end', id: 'r1', providerMetadata: { acme: { signature: 's' } } },
      { type: 'text-start', id: 't' },
      textPart('One '),
      textPart(''),
      textPart('two.'),
      { type: 'text-end', id: 't' },
      { type: 'tool-input-start', id: 'c1', toolName: 'search' },
      { type: 'tool-input-delta', id: 'c1', delta: '{"q":1}' },
      { type: 'tool-input-end', id: 'c1' },
      {
        type: 'tool-call',
        toolCallId: 'c1',
        toolName: 'search',
        input: '{"q":1}',
        providerMetadata: { acme: { thought: 't' } },
      },
      { type: 'tool-call', toolCallId: 'c2', toolName: 'clock', input: '' },
      { type: 'tool-call', toolCallId: 'c3', toolName: 'own', input: '{}', providerExecuted: true },
      finishPart('tool-calls', 11, 5),
    ),
    request,
    options,
  )
  assert.deepEqual(outcome, {
    kind: 'answered',
    text: 'One two.',
    reasoning: [{ text: 'Let me think.', metadata: { acme: { signature: 's' } } }],
    calls: [
      { id: 'c1', name: 'search', input: '{"q":1}', metadata: { acme: { thought: 't' } } },
      { id: 'c2', name: 'clock', input: '{}' },
    ],
    finishReason: 'tool-calls',
    usage: { inputTokens: 11, outputTokens: 5, isEstimated: false },
  })
  assert.deepEqual(options.heard, ['One ', 'two.'])
})

test('the request reaches the model as it is', async () => {
  let seen: unknown
  const model = createStreamedModel(({ abortSignal: _signal, ...options }) => {
    seen = options
    return partStream([finishPart()])
  })
  const tool = { type: 'function' as const, name: 'search', inputSchema: { type: 'object' as const } }
  await callModel(
    model,
    {
      ...request,
      tools: [tool],
      toolChoice: 'none',
      temperature: 0,
      answerSchema: { name: 'verdict', schema: { type: 'object' } },
    },
    settings({ providerOptions: { acme: { store: false } } }),
  )
  assert.deepEqual(seen, {
    prompt: request.prompt,
    maxOutputTokens: 100,
    temperature: 0,
    tools: [tool],
    toolChoice: { type: 'none' },
    responseFormat: { type: 'json', name: 'verdict', schema: { type: 'object' } },
    providerOptions: { acme: { store: false } },
  })
})

for (const reason of ['length', 'content-filter', 'error', 'interrupted', 'other'] as const) {
  test(`an answer that ended as ${reason} says so`, async () => {
    const outcome = await callModel(answering(textPart('half'), finishPart(reason)), request, settings())
    assert.equal(outcome.kind === 'answered' && outcome.finishReason, reason)
  })
}

const figures: [string, number | undefined, number | undefined][] = [
  ['absent', undefined, undefined],
  ['half there', 7, undefined],
  ['negative', -1, 3],
  ['not numbers', 7, Number.NaN],
  ['without end', Number.POSITIVE_INFINITY, 3],
  ['zero and zero', 0, 0],
]
for (const [what, input, output] of figures) {
  test(`figures that are ${what} are replaced by an estimate`, async () => {
    const part = finishPart('stop')
    assert.ok(part.type === 'finish')
    part.usage.inputTokens.total = input
    part.usage.outputTokens.total = output
    const outcome = await callModel(answering(textPart('y'.repeat(40)), part), request, settings())
    assert.deepEqual(outcome.usage, { inputTokens: INPUT_ESTIMATE, outputTokens: 10, isEstimated: true })
  })
}

const KEY = 'secret-key-of-the-provider'
function refusal(statusCode: number | undefined, message: string, responseHeaders: Record<string, string> = {}) {
  return new APICallError({
    message,
    url: `https://acme.test/?key=${KEY}`,
    requestBodyValues: {},
    responseHeaders,
    ...(statusCode !== undefined && { statusCode }),
  })
}
const lost = (code: string) => Object.assign(new TypeError('fetch failed'), { cause: { code, message: '10.1.2.3' } })

interface FailureRow {
  what: string
  error: unknown
  isRetryable: boolean
  message: string
  retryAfterMs?: number
  isFree?: boolean
  reason?: string
}

const refusals: FailureRow[] = [
  ...[408, 429, 500, 502, 503, 504, 529].map((status) => ({
    what: `status ${status}`,
    error: refusal(status, 'Try later'),
    isRetryable: true,
    message: `acme answered ${status}: Try later.`,
    isFree: true,
  })),
  ...[400, 401, 403, 404, 422].map((status) => ({
    what: `status ${status}`,
    error: refusal(status, 'No such thing.'),
    isRetryable: false,
    message: `acme answered ${status}: No such thing.`,
    isFree: true,
  })),
  {
    what: 'Retry-After in seconds',
    error: refusal(429, 'Slow down', { 'retry-after': '7' }),
    isRetryable: true,
    message: 'acme answered 429: Slow down.',
    retryAfterMs: 7_000,
    isFree: true,
  },
  {
    what: 'retry-after-ms',
    error: refusal(429, 'Slow down', { 'retry-after': '7', 'retry-after-ms': '1250' }),
    isRetryable: true,
    message: 'acme answered 429: Slow down.',
    retryAfterMs: 1_250,
    isFree: true,
  },
  {
    what: 'a Retry-After that has passed',
    error: refusal(503, 'Slow down', { 'retry-after': 'Wed, 21 Oct 2015 07:28:00 GMT' }),
    isRetryable: true,
    message: 'acme answered 503: Slow down.',
    retryAfterMs: 0,
    isFree: true,
  },
  {
    what: 'a Retry-After that says nothing',
    error: refusal(429, 'Slow down', { 'retry-after': 'soon' }),
    isRetryable: true,
    message: 'acme answered 429: Slow down.',
    isFree: true,
  },
  {
    what: 'a wait in the body',
    error: Object.assign(refusal(429, 'Quota'), { responseBody: '{"details":[{"retryDelay": "34.5s"}]}' }),
    isRetryable: true,
    message: 'acme answered 429: Quota.',
    retryAfterMs: 34_500,
    isFree: true,
  },
  {
    what: 'a refusal that repeats the key',
    error: refusal(401, `Incorrect API key\nprovided: ${KEY}`),
    isRetryable: false,
    message: 'acme answered 401: Incorrect API key provided: [redacted].',
    isFree: true,
  },
  {
    what: 'a connection that cannot be made',
    error: lost('ECONNREFUSED'),
    isRetryable: true,
    message: 'acme could not be reached: ECONNREFUSED.',
    isFree: true,
  },
  {
    what: 'a connection lost before the answer',
    error: lost('UND_ERR_SOCKET'),
    isRetryable: true,
    message: 'acme did not answer: UND_ERR_SOCKET.',
  },
  {
    what: 'a wrong setting',
    error: new Error('Google Vertex project setting is missing'),
    isRetryable: false,
    message: 'acme could not be called: Google Vertex project setting is missing.',
    isFree: true,
  },
  {
    what: 'a body that cannot be read',
    error: refusal(200, 'Failed to process successful response'),
    isRetryable: true,
    message: 'acme could not be called: Failed to process successful response.',
  },
  {
    what: 'something that is no error',
    error: undefined,
    isRetryable: false,
    message: 'acme could not be called: it gave no reason.',
    isFree: true,
  },
]

for (const { what, error, isRetryable, message, retryAfterMs = null, isFree = false } of refusals) {
  test(`before the answer: ${what}`, async () => {
    const model = createStreamedModel(() => Promise.reject(error))
    const usage = isFree
      ? { inputTokens: 0, outputTokens: 0, isEstimated: false }
      : { inputTokens: INPUT_ESTIMATE, outputTokens: 0, isEstimated: true }
    assert.deepEqual(await callModel(model, request, settings({ secrets: [KEY] })), {
      kind: 'failed',
      isRetryable,
      retryAfterMs,
      message,
      text: '',
      usage,
    })
  })
}

test('a Retry-After in the future is a wait until then', async () => {
  const at = new Date(Date.now() + 3_600_000).toUTCString()
  const model = createStreamedModel(() => Promise.reject(refusal(429, 'Later', { 'retry-after': at })))
  const outcome = await callModel(model, request, settings())
  assert.ok(outcome.kind === 'failed' && outcome.retryAfterMs !== null)
  assert.ok(outcome.retryAfterMs > 3_000_000 && outcome.retryAfterMs <= 3_600_000)
})

const breaks: FailureRow[] = [
  {
    what: 'a cut connection',
    error: Object.assign(new TypeError('terminated'), { cause: { code: 'UND_ERR_SOCKET' } }),
    isRetryable: true,
    message: 'acme broke off its answer: UND_ERR_SOCKET.',
  },
  {
    what: 'an overload',
    error: { type: 'overloaded_error', message: 'Overloaded' },
    isRetryable: true,
    message: 'acme broke off its answer: Overloaded.',
  },
  {
    what: 'an overload with its status',
    error: refusal(529, 'Overloaded', { 'retry-after': '2' }),
    isRetryable: true,
    message: 'acme answered 529: Overloaded.',
    retryAfterMs: 2_000,
  },
  {
    what: 'a refusal by its word',
    error: { type: 'error', error: { type: 'invalid_request_error', message: 'The prompt is too long.' } },
    isRetryable: false,
    message: 'acme broke off its answer: The prompt is too long.',
    reason: 'context',
  },
  {
    what: 'a refusal by its code',
    error: { error: { code: 403, message: 'Not for you' } },
    isRetryable: false,
    message: 'acme answered 403: Not for you.',
  },
  { what: 'a word', error: 'oops', isRetryable: true, message: 'acme broke off its answer: oops.' },
]

for (const { what, error, isRetryable, message, reason, retryAfterMs = null } of breaks) {
  for (const way of ['an error part', 'an error of the stream'] as const) {
    test(`within the answer, as ${way}: ${what}`, async () => {
      const model = createStreamedModel(() =>
        way === 'an error part'
          ? partStream([textPart('half'), { type: 'error', error }, textPart('more'), finishPart()])
          : partStream([textPart('half')], { error }),
      )
      const options = settings()
      assert.deepEqual(await callModel(model, request, options), {
        kind: 'failed',
        isRetryable,
        retryAfterMs,
        ...(reason === undefined ? {} : { reason }),
        message,
        text: 'half',
        usage: { inputTokens: INPUT_ESTIMATE, outputTokens: 1, isEstimated: true },
      })
      assert.deepEqual(options.heard, ['half'])
    })
  }
}

test('a stream that ends without a finish is a failure that may pass', async () => {
  const outcome = await callModel(answering(textPart('half')), request, settings())
  assert.ok(outcome.kind === 'failed' && outcome.isRetryable)
  assert.equal(outcome.message, 'acme broke off its answer: it ended without a finish.')
  assert.equal(outcome.text, 'half')
})

test('a model that throws where it should reject fails the call', async () => {
  const model = createStreamedModel(() => partStream([]))
  model.doStream = () => {
    throw new Error('no such model')
  }
  const outcome = await callModel(model, request, settings())
  assert.ok(outcome.kind === 'failed' && !outcome.isRetryable)
})

test('an aborted signal makes no call', async () => {
  let isCalled = false
  const model = createStreamedModel(() => {
    isCalled = true
    return partStream([finishPart()])
  })
  assert.deepEqual(await callModel(model, request, settings({ signal: AbortSignal.abort() })), {
    kind: 'aborted',
    text: '',
    usage: { inputTokens: 0, outputTokens: 0, isEstimated: false },
  })
  assert.equal(isCalled, false)
})

test('an abort ends the call at once with its text, though the provider ignores it', async () => {
  const controller = new AbortController()
  const cancelled = Promise.withResolvers<void>()
  const model = createStreamedModel(() => partStream([textPart('half')], 'silence', cancelled.resolve))
  const options = settings({ signal: controller.signal, onText: () => setImmediate(() => controller.abort()) })
  assert.deepEqual(await callModel(model, request, options), {
    kind: 'aborted',
    text: 'half',
    usage: { inputTokens: INPUT_ESTIMATE, outputTokens: 1, isEstimated: true },
  })
  await cancelled.promise
})

test('an abort before the answer is passed on, and a stream that comes late is thrown away', async () => {
  const controller = new AbortController()
  const answer = Promise.withResolvers<ReadableStream<LanguageModelV4StreamPart>>()
  const cancelled = Promise.withResolvers<void>()
  let passedOn: AbortSignal | undefined
  const model = createStreamedModel(({ abortSignal }) => {
    passedOn = abortSignal
    return answer.promise
  })
  const options = settings({ signal: controller.signal })
  const call = callModel(model, request, options)
  controller.abort()
  assert.equal((await call).kind, 'aborted')
  assert.equal(passedOn?.aborted, true)
  answer.resolve(partStream([textPart('late'), finishPart()], 'close', cancelled.resolve))
  await cancelled.promise
  assert.deepEqual(options.heard, [])
})

test('silence is a failure that may pass, and every part restarts the timer', async (context) => {
  context.after(() => mock.timers.reset())
  mock.timers.enable({ apis: ['setInterval', 'setTimeout'] })
  let controller: ReadableStreamDefaultController<LanguageModelV4StreamPart> | undefined
  const cancelled = Promise.withResolvers<void>()
  const model = createStreamedModel(
    () =>
      new ReadableStream({
        start: (own) => {
          controller = own
        },
        cancel: () => cancelled.resolve(),
      }),
  )
  let arrived = Promise.withResolvers<void>()
  const call = callModel(model, request, settings({ idleTimeoutMs: 1_000, onText: () => arrived.resolve() }))
  for (const piece of ['one ', 'two']) {
    mock.timers.tick(1_000)
    controller?.enqueue(textPart(piece))
    await arrived.promise
    arrived = Promise.withResolvers<void>()
  }
  mock.timers.tick(1_000)
  let isOver = false
  void call.then(() => {
    isOver = true
  })
  await Promise.resolve()
  assert.equal(isOver, false)
  mock.timers.tick(250)
  const outcome = await call
  assert.ok(outcome.kind === 'failed' && outcome.isRetryable)
  assert.equal(outcome.message, 'acme sent nothing for 1000 ms.')
  assert.equal(outcome.text, 'one two')
  await cancelled.promise
})

test('a call that takes too long in all is a failure that may pass', async (context) => {
  context.after(() => mock.timers.reset())
  mock.timers.enable({ apis: ['setInterval', 'setTimeout'] })
  const model = createStreamedModel(() => partStream([], 'silence'))
  const call = callModel(model, request, settings({ totalTimeoutMs: 5_000 }))
  mock.timers.tick(5_000)
  const outcome = await call
  assert.ok(outcome.kind === 'failed' && outcome.isRetryable)
  assert.equal(outcome.message, 'acme took longer than 5000 ms.')
})

test('an answer without end is ended as length', async () => {
  const endless: LanguageModelV4StreamPart[] = [
    textPart('word '),
    { type: 'reasoning-delta', id: 'r', delta: 'hm ' },
    { type: 'tool-input-delta', id: 'c', delta: '{{{{' },
  ]
  for (const part of endless) {
    const cancelled = Promise.withResolvers<void>()
    const stream = () =>
      new ReadableStream<LanguageModelV4StreamPart>({
        pull: (controller) => controller.enqueue(part),
        cancel: () => cancelled.resolve(),
      })
    const outcome = await callModel(createStreamedModel(stream), request, settings({ maxTextLength: 1_000 }))
    assert.equal(outcome.kind === 'answered' && outcome.finishReason, 'length', part.type)
    assert.equal(outcome.usage.isEstimated, true)
    await cancelled.promise
  }
})

test('a call leaves no listener on the signal and no timer behind', async () => {
  const controller = new AbortController()
  const added: unknown[] = []
  const { signal } = controller
  const add = signal.addEventListener.bind(signal)
  const remove = signal.removeEventListener.bind(signal)
  signal.addEventListener = (...args: Parameters<typeof add>) => {
    added.push(args[1])
    add(...args)
  }
  signal.removeEventListener = (...args: Parameters<typeof remove>) => {
    added.splice(added.indexOf(args[1]), 1)
    remove(...args)
  }
  const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length
  const before = timers()
  await callModel(answering(finishPart()), request, settings({ signal, totalTimeoutMs: 1_000 }))
  await callModel(answering(textPart('x')), request, settings({ signal, totalTimeoutMs: 1_000 }))
  assert.deepEqual(added, [])
  assert.equal(timers(), before)
})
