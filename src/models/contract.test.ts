// The same cases for every provider that speaks to a server: through its row in the database, the SDK built from it and
// the one way out, to a third party's mock of its wire format.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LanguageModelV4Prompt } from '@ai-sdk/provider'
import { atEnd } from '../../test/kit/at-end.ts'
import { createTestDatabase } from '../../test/kit/database.ts'
import {
  findClosedUrl,
  MODEL_KEY,
  type ProviderSubject,
  providerSubjects,
  startBareServer,
  startModelServer,
} from '../../test/kit/model-server.ts'
import { createEgress, type Fetch } from '../egress/egress.ts'
import { modelChoice } from '../kernel/agent.ts'
import type { ModelOutcome, ModelRequest } from '../kernel/model-call.ts'
import { systemActor } from '../kernel/principal.ts'
import { createCipher } from '../secrets/cipher.ts'
import { createLanguageModels } from './language-models.ts'
import { createProvider } from './providers.ts'

const { pool } = await createTestDatabase()
const { url, mock } = await startModelServer()
const cipher = createCipher('test-secret-key')
const egress = createEgress({ allow: [] })
atEnd(() => egress.close())

let sent: { url: string; body: string; headers: Headers } | undefined
const recordingFetch: Fetch = (input, init) => {
  sent = { url: String(input), body: String(init?.body), headers: new Headers(init?.headers) }
  return egress.fetch('trusted')(input, init)
}
const models = createLanguageModels({ db: pool, cipher, fetch: recordingFetch })

const SENTENCE = 'The quick brown fox jumps over the lazy dog.'
const usage = {
  prompt_tokens: 12,
  completion_tokens: 5,
  total_tokens: 17,
  input_tokens: 12,
  output_tokens: 5,
  promptTokenCount: 12,
  candidatesTokenCount: 5,
  totalTokenCount: 17,
}
const search = (id: string, query: string) => ({ id, name: 'search', arguments: JSON.stringify({ query }) })

mock.onMessage('say it', { content: SENTENCE, usage }, { chunkSize: 6 })
mock.onMessage('say it slowly', { content: SENTENCE, usage }, { chunkSize: 6, latency: 20 })
mock.onMessage('cut it', { content: SENTENCE, usage }, { chunkSize: 6, latency: 5, truncateAfterChunks: 6 })
mock.onMessage('limit me', { error: { message: 'Rate limit reached' }, status: 429, retryAfter: 7 })
mock.onMessage('break down', { error: { message: 'Something exploded' }, status: 500 })
mock.onMessage('refuse me', { error: { message: 'This is not a request' }, status: 400 })
mock.onMessage('judge it', { content: '{"ok":true}', usage })
for (const { model, finishReason } of [
  // The real service says STOP where the mock would say FUNCTION_CALL.
  { model: /gemini/, finishReason: { finishReason: 'stop' } },
  { model: /^(?!gemini)/, finishReason: {} },
]) {
  const answer = { usage, ...finishReason }
  mock.on({ userMessage: 'find cats', model, hasToolResult: true }, { content: 'Cats were found.', ...answer })
  mock.on({ userMessage: 'find cats', model }, { toolCalls: [search('c1', 'cats')], ...answer })
  mock.on({ userMessage: 'find both', model }, { toolCalls: [search('c1', 'cats'), search('c2', 'dogs')], ...answer })
  mock.on(
    { userMessage: 'stumble', model },
    { toolCalls: [{ id: 'c1', name: 'search', arguments: '{"query":"ca' }], ...answer },
  )
}

const tools: ModelRequest['tools'] = [
  {
    type: 'function',
    name: 'search',
    description: 'Finds things.',
    inputSchema: { type: 'object', properties: { query: { type: 'string' } }, required: ['query'] },
  },
]
const user = (text: string): LanguageModelV4Prompt[number] => ({ role: 'user', content: [{ type: 'text', text }] })

function requestOf(text: string, more: Partial<ModelRequest> = {}): ModelRequest {
  const prompt: LanguageModelV4Prompt = [{ role: 'system', content: 'You are terse.' }, user(text)]
  return { prompt, tools: [], toolChoice: 'auto', maxOutputTokens: 200, ...more }
}

interface Asked {
  provider: string
  model: string
  request: ModelRequest
  signal?: AbortSignal
  onText?: (delta: string) => void
}

async function ask({ provider, model, request, signal, onText }: Asked) {
  const resolved = await models.resolve(modelChoice.parse({ provider, name: model }))
  assert.ok(resolved)
  const heard: string[] = []
  const outcome = await resolved.call(request, {
    signal: signal ?? new AbortController().signal,
    onText: (delta) => {
      heard.push(delta)
      onText?.(delta)
    },
  })
  return { outcome, heard, price: resolved.price }
}

function answered(outcome: ModelOutcome) {
  assert.ok(outcome.kind === 'answered', JSON.stringify(outcome))
  return outcome
}

function failed(outcome: ModelOutcome) {
  assert.ok(outcome.kind === 'failed', JSON.stringify(outcome))
  return outcome
}

const closedUrl = await findClosedUrl()
const silentUrl = await startBareServer(() => undefined)
const nonsenseUrl = await startBareServer((request, response) => {
  request.resume()
  response.writeHead(200, { 'content-type': 'text/event-stream' }).end('<html>Welcome to the hotel network</html>')
})
const brokenEventUrl = await startBareServer((request, response) => {
  request.resume()
  response.writeHead(200, { 'content-type': 'text/event-stream' }).end('data: {"choices": [{"del\n\n')
})
const chattyUrl = await startBareServer((request, response) => {
  request.resume()
  response
    .writeHead(401, { 'content-type': 'text/plain' })
    .end(`Wrong key: ${request.headers.authorization ?? ''} ${JSON.stringify(request.headers)}`)
})

for (const subject of providerSubjects) {
  const row = subject.rowAt(url)
  await createProvider(pool, cipher, row, systemActor)
  const asking = (text: string, more?: Partial<ModelRequest>): Asked => ({
    provider: row.name,
    model: subject.model,
    request: requestOf(text, more),
  })
  const contract = (what: string, check: () => Promise<void>) => test(`${subject.label}: ${what}`, check)

  contract('text arrives in pieces, with the usage of the provider and the price of the row', async () => {
    const { outcome, heard, price } = await ask(asking('say it'))
    const { text, calls, finishReason, usage: used } = answered(outcome)
    assert.equal(text, SENTENCE)
    assert.ok(heard.length > 3)
    assert.equal(heard.join(''), SENTENCE)
    assert.deepEqual(calls, [])
    assert.equal(finishReason, 'stop')
    assert.deepEqual(used, { inputTokens: 12, outputTokens: 5, isEstimated: false })
    assert.deepEqual(price, { input: 1, output: 2 })
    assert.match(sent?.body ?? '', /You are terse/)
    assert.match(JSON.stringify([...(sent?.headers ?? [])]), new RegExp(MODEL_KEY))
  })

  contract('a tool is called, and its result goes back', async () => {
    const { outcome } = await ask(asking('find cats', { tools }))
    const { calls, finishReason } = answered(outcome)
    assert.deepEqual(
      calls.map(({ name, input }) => [name, JSON.parse(input)]),
      [['search', { query: 'cats' }]],
    )
    assert.equal(finishReason, 'tool-calls')
    assert.match(sent?.body ?? '', /Finds things/)
    const [call] = calls
    assert.ok(call)
    const { id: toolCallId, name: toolName, metadata } = call
    const prompt: LanguageModelV4Prompt = [
      user('find cats'),
      {
        role: 'assistant',
        content: [
          {
            type: 'tool-call',
            toolCallId,
            toolName,
            input: JSON.parse(call.input),
            ...(metadata && { providerOptions: metadata }),
          },
        ],
      },
      {
        role: 'tool',
        content: [{ type: 'tool-result', toolCallId, toolName, output: { type: 'text', value: 'seven cats' } }],
      },
    ]
    const second = answered((await ask({ ...asking(''), request: requestOf('', { prompt, tools }) })).outcome)
    assert.equal(second.text, 'Cats were found.')
    assert.equal(second.finishReason, 'stop')
    assert.match(sent?.body ?? '', /seven cats/)
  })

  contract('tools that may not be called are still shown, or left out altogether', async () => {
    answered((await ask(asking('say it', { tools, toolChoice: 'none' }))).outcome)
    const body = sent?.body ?? ''
    if (body.includes('Finds things')) assert.match(body, /"(?:none|NONE)"/)
  })

  contract('two tools are called at once', async () => {
    const { calls } = answered((await ask(asking('find both', { tools }))).outcome)
    assert.deepEqual(
      calls.map(({ input }) => JSON.parse(input)),
      [{ query: 'cats' }, { query: 'dogs' }],
    )
    assert.equal(new Set(calls.map(({ id }) => id)).size, 2)
  })

  if (subject.hasRawArguments) {
    contract('broken arguments come through as they are', async () => {
      const { calls } = answered((await ask(asking('stumble', { tools }))).outcome)
      assert.deepEqual(
        calls.map(({ input }) => input),
        ['{"query":"ca'],
      )
    })
  }

  contract('the schema of an answer is sent', async () => {
    const schema = {
      type: 'object',
      properties: { ok: { type: 'boolean' } },
      required: ['ok'],
      additionalProperties: false,
    }
    const { text } = answered((await ask(asking('judge it', { answerSchema: { name: 'verdict', schema } }))).outcome)
    assert.deepEqual(JSON.parse(text), { ok: true })
    assert.match(sent?.body ?? '', /"ok":\{"type":"boolean"\}/)
    if (!subject.sendsSchemaName) return
    assert.match(sent?.body ?? '', /"name":"verdict"/)
    assert.match(sent?.body ?? '', /"strict":true/)
    const open = { type: 'object', properties: { ok: { type: 'boolean' } } }
    await ask(asking('judge it', { answerSchema: { name: 'verdict', schema: open } }))
    assert.match(sent?.body ?? '', /"strict":false/)
  })

  const refusals = [
    { text: 'limit me', isRetryable: true, retryAfterMs: 7_000, message: '429: Rate limit reached.' },
    { text: 'break down', isRetryable: true, retryAfterMs: null, message: '500: Something exploded.' },
    { text: 'refuse me', isRetryable: false, retryAfterMs: null, message: '400: This is not a request.' },
  ]
  for (const { text, message, ...expected } of refusals) {
    contract(`an answer of ${message.slice(0, 3)} is a failure`, async () => {
      assert.deepEqual((await ask(asking(text))).outcome, {
        kind: 'failed',
        ...expected,
        message: `${row.name} answered ${message}`,
        text: '',
        usage: { inputTokens: 0, outputTokens: 0, isEstimated: false },
      })
    })
  }

  contract('a cut stream is a failure that may pass, with the text so far', async () => {
    const { text, isRetryable, usage: used } = failed((await ask(asking('cut it'))).outcome)
    assert.equal(isRetryable, true)
    assert.ok(text.length > 0 && text.length < SENTENCE.length && SENTENCE.startsWith(text), text)
    assert.equal(used.isEstimated, true)
  })

  contract('an abort ends the call with the text so far', async () => {
    const controller = new AbortController()
    const { outcome } = await ask({
      ...asking('say it slowly'),
      signal: controller.signal,
      onText: () => controller.abort(),
    })
    assert.equal(outcome.kind, 'aborted')
    assert.ok(outcome.text.length > 0 && SENTENCE.startsWith(outcome.text) && outcome.text !== SENTENCE)
    assert.equal(outcome.usage.isEstimated, true)
  })

  contract('silence is a failure that may pass', async () => {
    const { message, isRetryable } = failed((await askAt(subject, silentUrl, { idle_timeout_ms: 40 })).outcome)
    assert.equal(isRetryable, true)
    assert.match(message, /sent nothing for 40 ms/)
  })

  for (const [what, at] of [
    ['no event stream', nonsenseUrl],
    ['a broken event', brokenEventUrl],
  ] as const) {
    contract(`a body that is ${what} is no clean ending`, async () => {
      const { outcome } = await askAt(subject, at)
      assert.ok(
        outcome.kind !== 'answered' || !/^(?:stop|tool-calls)$/.test(outcome.finishReason),
        JSON.stringify(outcome),
      )
      assert.ok(outcome.kind !== 'failed' || outcome.isRetryable, JSON.stringify(outcome))
    })
  }

  contract('a key that a provider repeats is not in the message', async () => {
    const { message, isRetryable } = failed((await askAt(subject, chattyUrl)).outcome)
    assert.equal(isRetryable, false)
    assert.match(message, /answered 401: /)
    assert.ok(!message.includes(MODEL_KEY), message)
  })

  contract('a server that is not there is a failure that may pass', async () => {
    const { message, isRetryable } = failed((await askAt(subject, closedUrl)).outcome)
    assert.equal(isRetryable, true)
    assert.match(message, /could not be reached: ECONNREFUSED/)
  })
}

test('anthropic: broken arguments and the signature of a thought come through as they are', async () => {
  const events = [
    {
      type: 'message_start',
      message: {
        id: 'm',
        model: 'claude',
        role: 'assistant',
        content: [],
        usage: { input_tokens: 9, output_tokens: 1 },
      },
    },
    { type: 'content_block_start', index: 0, content_block: { type: 'thinking', thinking: '', signature: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: 'Cats, then.' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'signature_delta', signature: 'signed' } },
    { type: 'content_block_stop', index: 0 },
    { type: 'content_block_start', index: 1, content_block: { type: 'tool_use', id: 'c1', name: 'search', input: {} } },
    { type: 'content_block_delta', index: 1, delta: { type: 'input_json_delta', partial_json: '{"query":"ca' } },
    { type: 'content_block_stop', index: 1 },
    { type: 'message_delta', delta: { stop_reason: 'tool_use', stop_sequence: null }, usage: { output_tokens: 4 } },
    { type: 'message_stop' },
  ]
  const place = await startBareServer((request, response) => {
    request.resume()
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.end(events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(''))
  })
  const subject = providerSubjects.find(({ label }) => label === 'anthropic')
  assert.ok(subject)
  const { outcome } = await askAt(subject, place)
  assert.deepEqual(outcome, {
    kind: 'answered',
    text: '',
    reasoning: [{ text: 'Cats, then.', metadata: { anthropic: { signature: 'signed' } } }],
    calls: [{ id: 'c1', name: 'search', input: '{"query":"ca' }],
    finishReason: 'tool-calls',
    usage: { inputTokens: 9, outputTokens: 4, isEstimated: false },
  })
})

let rows = 0
async function askAt(subject: ProviderSubject, place: string, options: Record<string, unknown> = {}) {
  const row = subject.rowAt(place)
  rows += 1
  const provider = `elsewhere-${rows}`
  await createProvider(pool, cipher, { ...row, name: provider, options: { ...row.options, ...options } }, systemActor)
  return ask({ provider, model: subject.model, request: requestOf('say it') })
}
