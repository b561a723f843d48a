import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LanguageModelV4FunctionTool, LanguageModelV4Prompt } from '@ai-sdk/provider'
import { countCharacters } from '../../test/kit/count-characters.ts'
import type { ModelOutcome, ModelRequest } from '../kernel/model-call.ts'
import { callModel } from './call-model.ts'
import { createOfflineModel } from './offline-model.ts'

const model = createOfflineModel('offline')

const user = (text: string): LanguageModelV4Prompt[number] => ({ role: 'user', content: [{ type: 'text', text }] })

function called(toolName: string, input: unknown, value: string, type: 'text' | 'error-text' = 'text') {
  const call: LanguageModelV4Prompt[number] = {
    role: 'assistant',
    content: [{ type: 'tool-call', toolCallId: 'c', toolName, input }],
  }
  const result: LanguageModelV4Prompt[number] = {
    role: 'tool',
    content: [{ type: 'tool-result', toolCallId: 'c', toolName, output: { type, value } }],
  }
  return [call, result]
}

function tool(name: string, properties: Record<string, object> = {}, required = Object.keys(properties)) {
  // The values are plain objects, but the schema's type does not accept a record.
  const inputSchema = { type: 'object', properties, required } as LanguageModelV4FunctionTool['inputSchema']
  return { type: 'function' as const, name, inputSchema }
}

const text = { type: 'string' }
const tools = [
  tool('search', { query: text }),
  tool('http_fetch', { url: text, method: { enum: ['GET', 'POST'] } }, ['url', 'method']),
  tool('ask_human', { question: text }),
  tool('spawn_agent', { agent: text, input: text }),
  tool('finish_loop'),
  tool('add', { a: { type: 'number' }, b: { type: 'integer' }, loud: { type: 'boolean' } }),
]

async function ask(prompt: LanguageModelV4Prompt, more: Partial<ModelRequest> = {}) {
  const heard: string[] = []
  const outcome = await callModel(
    model,
    { prompt, tools, toolChoice: 'auto', maxOutputTokens: 4_096, ...more },
    { signal: new AbortController().signal, onText: (delta) => heard.push(delta), idleTimeoutMs: 60_000 },
  )
  assert.ok(outcome.kind === 'answered')
  return { ...outcome, heard }
}

const callOf = ({ calls, finishReason }: Extract<ModelOutcome, { kind: 'answered' }>) => {
  assert.equal(finishReason, calls.length > 0 ? 'tool-calls' : 'stop')
  return calls.map(({ name, input }) => [name, JSON.parse(input)])
}

test('the model answers word by word, the same every time, and counts words', async () => {
  const [first, second] = [await ask([user('Good morning to you')]), await ask([user('Good morning to you')])]
  assert.deepEqual(first, second)
  assert.match(first.text, /^I have read your message, "Good morning to you"\. .*\(Written by the offline model\.\)$/)
  assert.ok(first.heard.length > 5)
  assert.equal(first.heard.join(''), first.text)
  const schemas = tools.map((entry) => JSON.stringify(entry)).join(' ')
  assert.deepEqual(first.usage, {
    inputTokens: 4 + schemas.split(/\s+/).length,
    outputTokens: first.text.split(/\s+/).length,
    isEstimated: false,
  })
})

const cases: [message: string, ...calls: unknown[]][] = [
  ['Please search {"query": "a } in \\" quotes"} now', ['search', { query: 'a } in " quotes' }]],
  ['Use search to find cats', ['search', { query: 'find cats' }]],
  ['Call search {not json', ['search', { query: '{not json' }]],
  ['What does https://example.com/a?b=1 say?', ['http_fetch', { url: 'https://example.com/a?b=1', method: 'GET' }]],
  ['POST to https://example.com/.', ['http_fetch', { url: 'https://example.com/', method: 'POST' }]],
  ['Ask whether we may ship', ['ask_human', { question: 'Ask whether we may ship' }]],
  ['Delegate this to researcher: read the report', ['spawn_agent', { agent: 'researcher', input: 'read the report' }]],
  ['Spawn an agent named "night-owl" to watch', ['spawn_agent', { agent: 'night-owl', input: 'watch' }]],
  ['add 2.5 and 40', ['add', { a: 2.5, b: 40, loud: false }]],
  ['Research the asking price of humans'],
  ['call finish_loop'],
]
for (const [message, ...calls] of cases) {
  test(`"${message}" ${calls.length === 0 ? 'calls nothing' : 'calls a tool'}`, async () => {
    assert.deepEqual(callOf(await ask([user(message)])), calls)
  })
}

test('several tools that are mentioned are called one after the other, each once, and then reported', async () => {
  const prompt = [user('search {"query":"a"} then search {"query":"b"} then search {"query":"a"}')]
  const first = await ask(prompt)
  assert.deepEqual(callOf(first), [['search', { query: 'a' }]])
  prompt.push(...called('search', { query: 'a' }, 'found A'))
  const second = await ask(prompt)
  assert.deepEqual(callOf(second), [['search', { query: 'b' }]])
  assert.notEqual(first.calls[0]?.id, second.calls[0]?.id)
  prompt.push(...called('search', { query: 'b' }, 'no luck', 'error-text'))
  const last = await ask(prompt)
  assert.deepEqual(callOf(last), [])
  assert.match(last.text, /^I was asked to search .* search gave "found A"\. search failed with "no luck"\. \(/)
})

test('a new message starts anew', async () => {
  const prompt = [
    user('search {"query":"a"}'),
    ...called('search', { query: 'a' }, 'found A'),
    user('search {"query":"a"}'),
  ]
  assert.deepEqual(callOf(await ask(prompt)), [['search', { query: 'a' }]])
})

test('a loop ends after something was said', async () => {
  const said: LanguageModelV4Prompt[number] = { role: 'assistant', content: [{ type: 'text', text: 'A draft.' }] }
  assert.deepEqual(callOf(await ask([user('Write a draft')])), [])
  assert.deepEqual(callOf(await ask([user('Write a draft'), said, user('Go on')])), [['finish_loop', {}]])
})

test('with tools forbidden the model sums up, even if no tool is offered', async () => {
  const prompt = [user('search {"query":"a"} and search {"query":"b"}'), ...called('search', { query: 'a' }, 'found A')]
  for (const offered of [tools, []]) {
    const { text, calls } = await ask(prompt, { toolChoice: 'none', tools: offered })
    assert.match(text, /^Summary so far: .*found A/)
    assert.deepEqual(calls, [])
  }
})

test('asked for JSON the model fits the schema, after the tool calls', async () => {
  const answerSchema = {
    name: 'verdict',
    schema: {
      type: 'object',
      properties: { verdict: { enum: ['yes', 'no'] }, notes: { type: 'array', items: text }, extra: text },
      required: ['verdict', 'notes'],
    },
  }
  assert.deepEqual(callOf(await ask([user('search cats')], { answerSchema })), [['search', { query: 'cats' }]])
  const { text: json } = await ask([user('search cats')], { answerSchema, tools: [] })
  assert.deepEqual(JSON.parse(json), { verdict: 'yes', notes: [] })
})

test('the model keeps to the output tokens that it is given', async () => {
  const { text, finishReason, usage } = await ask([user('Good morning')], { maxOutputTokens: 3 })
  assert.equal(text.trim(), 'I have read')
  assert.equal(finishReason, 'length')
  assert.equal(usage.outputTokens, 3)
})

test('generating and streaming give the same answer', async () => {
  const streamed = await ask([user('search cats')])
  const { content } = await model.doGenerate({ prompt: [user('search cats')], tools })
  assert.deepEqual(content, [
    { type: 'tool-call', toolCallId: streamed.calls[0]?.id, toolName: 'search', input: '{"query":"cats"}' },
  ])
})

test('a model that is slowed down still says everything, and stops when aborted', async () => {
  const slow = createOfflineModel('offline', { delayMs: 1 })
  const request: ModelRequest = { prompt: [user('Hello')], tools: [], toolChoice: 'auto', maxOutputTokens: 100 }
  const { signal } = new AbortController()
  const whole = await callModel(slow, request, { signal, onText: () => undefined, idleTimeoutMs: 60_000 })
  assert.equal(whole.kind === 'answered' && whole.text, (await ask(request.prompt)).text)
  const stop = new AbortController()
  const cut = await callModel(slow, request, { signal: stop.signal, onText: () => stop.abort(), idleTimeoutMs: 60_000 })
  assert.deepEqual([cut.kind, cut.kind === 'aborted' && cut.text], ['aborted', 'I '])
})

test('an event of the graph is answered as the prompt says, for the object of the event', async () => {
  const update = tool('object_update', { id: text, properties: { type: 'object' } })
  const event = { actor: { id: null, type: 'user' }, event: 'created', object: { id: 'o-1', type: 'Ticket' } }
  const prompt: LanguageModelV4Prompt = [
    { role: 'system', content: 'Triage it: object_update {"properties": {"status": "seen"}}.' },
    user(JSON.stringify(event)),
  ]
  const asked = await ask(prompt, { tools: [update] })
  const args = { id: 'o-1', properties: { status: 'seen' } }
  assert.deepEqual(callOf(asked), [['object_update', args]])
  const answered = await ask([...prompt, ...called('object_update', args, 'ok')], { tools: [update] })
  assert.deepEqual(callOf(answered), [])
  for (const said of ['{"event": "created"}', '{"event": "created", "object": null}', '{not json', '[]']) {
    assert.deepEqual(
      callOf(await ask([{ role: 'system', content: 'object_update' }, user(said)], { tools: [update] })),
      [],
    )
  }
})

const long: Record<string, (length: number) => string> = {
  'the name of a tool again and again': (length) => 'search '.repeat(length / 7),
  'the name of a tool with text that is not JSON': (length) => 'search {'.repeat(length / 8),
  'an address that ends in stops': (length) => `see http://${'.'.repeat(length)}x`,
  'words that hand over to nobody': (length) => 'delegate '.repeat(length / 9),
  'words that begin a name': (length) => `spawn ${'.'.repeat(length)} `,
}
for (const [what, textOf] of Object.entries(long)) {
  test(`a long message is read in one pass: ${what}`, async () => {
    const work = (length: number): number =>
      countCharacters(() => model.doGenerate({ prompt: [user(textOf(length))], tools }))
    assert.ok(work(40_000) <= 2.5 * work(20_000), `${work(20_000)} characters, then ${work(40_000)}`)
    assert.ok(work(1_000_000) <= 4_000_000, `${work(1_000_000)} characters`)
  })
}

test('choices are looked for in a long message at once', () => {
  const choices = Array.from({ length: 5_000 }, (_, at) => `choice${at}`)
  const asked = tool('pick', { one: { enum: choices } })
  const prompt = [user(`pick ${'nothing of it '.repeat(7_000)}`)]
  assert.ok(countCharacters(() => model.doGenerate({ prompt, tools: [asked] })) <= 4_000_000)
})
