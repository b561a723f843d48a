// Chats with the supervisor, through the AI SDK's own client: the parts of useChat in @ai-sdk/react, over HTTP.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Chat } from '@ai-sdk/react'
import { DefaultChatTransport, parseJsonEventStream, type UIMessage, uiMessageChunkSchema } from 'ai'
import { ADMIN_TOKEN } from '../../../test/kit/app.ts'
import { createSupervisor, finish, type Replies } from '../../../test/kit/supervisor.ts'
import { newId } from '../../kernel/id.ts'

type Kit = Awaited<ReturnType<typeof start>>
type Message = UIMessage<{ run_id: string; status?: string; error?: { code: string } }>

async function start(replies: Replies = {}) {
  const kit = await createSupervisor(replies, { firstBackoffMs: 1 })
  const address = await kit.app.listen({ port: 0, host: '127.0.0.1' })
  return { ...kit, api: `${address}/v1/agent/chat` }
}

/** A chat like that of useChat, with all the data parts that came. */
function openChat({ api, headers }: Pick<Kit, 'api' | 'headers'>, init: { id?: string; messages?: Message[] } = {}) {
  const data: { type: string; data: unknown }[] = []
  const chat = new Chat<Message>({
    id: newId(),
    ...init,
    transport: new DefaultChatTransport({ api, headers: { authorization: `Bearer ${ADMIN_TOKEN}`, ...headers } }),
    onData: (part) => void data.push(part),
  })
  return Object.assign(chat, { data })
}

const textOf = (message: Message | undefined): string =>
  (message?.parts ?? []).map((part) => (part.type === 'text' ? part.text : '')).join('')
const shown = (chat: { messages: Message[] }): string[] => chat.messages.map((each) => `${each.role}: ${textOf(each)}`)
const runOf = (chat: { messages: Message[] }): string => chat.messages.at(-1)?.metadata?.run_id ?? assert.fail()
const user = (text: string) => ({ id: newId(), role: 'user' as const, parts: [{ type: 'text' as const, text }] })

async function until(holds: () => unknown): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 5))
}

/** A finalizer that says `first`, and waits for the test before it says the rest. */
function halting(first: string, rest: string) {
  const gate = Promise.withResolvers<void>()
  const said = { textParts: [first], text: '', waitFor: gate.promise.then(() => undefined) }
  return {
    gate,
    reply: { ...said, fail: { message: 'Cut.', isRetryable: true } },
    again: { textParts: [first, rest], text: '' },
  }
}

test('an answer comes as text, with the run’s id as metadata and the progress as transient data', async () => {
  const kit = await start({ finalizer: { textParts: ['Paris is ', 'the capital.'], text: '' } })
  const chat = openChat(kit)
  await chat.sendMessage({ text: 'What is the capital of France?' })
  assert.equal(chat.error, undefined)
  assert.equal(chat.status, 'ready')
  assert.deepEqual(shown(chat), ['user: What is the capital of France?', 'assistant: Paris is the capital.'])
  const [, answer] = chat.messages
  assert.deepEqual(
    answer?.parts.map(({ type }) => type),
    ['step-start', 'text'],
  )
  assert.deepEqual(answer?.metadata, { run_id: runOf(chat), status: 'DONE' })
  assert.equal((await kit.read(runOf(chat))).body.result.output?.content, 'Paris is the capital.')
  assert.ok(chat.data.every(({ type }) => type === 'data-status'))
  assert.deepEqual(
    chat.data.map(({ data }) => (data as { active_agent: string | null }).active_agent),
    ['supervisor', null, 'finalizer'],
  )
})

test('the stream keeps to the protocol: its header, chunks that fit its schema, [DONE]', async () => {
  const kit = await start({ finalizer: { textParts: ['Hel', 'lo.'], text: '' } })
  const answer = await kit.call('POST /v1/agent/chat', {
    headers: kit.headers,
    body: {
      id: 'c1',
      messages: [user('Hi')],
      trigger: 'submit-message',
      messageId: undefined,
      and: { more: ['fields'] },
    },
  })
  assert.equal(answer.status, 200, answer.text)
  assert.equal(answer.headers['x-vercel-ai-ui-message-stream'], 'v1')
  assert.equal(answer.headers['content-type'], 'text/event-stream; charset=utf-8')
  const runId = String(answer.headers['x-run-id'])
  const blocks = answer.text.trimEnd().split('\n\n')
  assert.equal(blocks.at(-1), 'data: [DONE]')
  assert.ok(
    blocks.every((block) => /^data: .*$/.test(block)),
    answer.text,
  )
  const parsed = parseJsonEventStream({ stream: new Blob([answer.text]).stream(), schema: uiMessageChunkSchema })
  const types: string[] = []
  for await (const chunk of parsed) {
    assert.ok(chunk.success, JSON.stringify(chunk))
    types.push(chunk.value.type)
    if (chunk.value.type === 'data-status') assert.equal(chunk.value.transient, true)
    if (chunk.value.type === 'finish') {
      assert.deepEqual(chunk.value, {
        type: 'finish',
        finishReason: 'stop',
        messageMetadata: { run_id: runId, status: 'DONE' },
      })
    }
  }
  // A text that is complete before the reader has seen its beginning may come in fewer pieces.
  const told = types.filter((type) => type !== 'data-status')
  assert.deepEqual(
    told.filter((type, place) => type !== 'text-delta' || told[place - 1] !== type),
    ['start', 'start-step', 'text-start', 'text-delta', 'text-end', 'finish-step', 'finish'],
  )
})

test('the text of a repeated model call is shown once, and the earlier text is removed', async () => {
  const seen: string[] = []
  const { gate, reply } = halting('The answer is ', '')
  const kit = await start({
    finalizer: (_request, call) => (call === 0 ? reply : { textParts: ['I think ', 'it is red.'], text: '' }),
  })
  const chat = openChat(kit)
  const sent = chat.sendMessage({ text: 'Which colour?' })
  await until(() => textOf(chat.messages[1]) === 'The answer is ')
  chat['~registerMessagesCallback'](() => seen.push(textOf(chat.messages[1])))
  gate.resolve()
  await sent
  assert.deepEqual(shown(chat), ['user: Which colour?', 'assistant: I think it is red.'])
  assert.equal(chat.messages[1]?.parts.length, 2, 'the void part is gone')
  assert.ok(!seen.some((text) => /The answer is .*I think/.test(text)), 'both texts were never shown together')
  assert.equal(chat.status, 'ready')
})

test('earlier messages reach the supervisor as CONTEXT_METADATA.messages, the chat’s id as its context', async () => {
  const kit = await start()
  const chat = openChat(kit, { id: 'My Chat' })
  await chat.sendMessage({ text: 'First.' })
  await chat.sendMessage({ text: 'Second.' })
  const prompts = kit.asked('supervisor').map(({ prompt }) => JSON.stringify(prompt).replaceAll('\\', ''))
  assert.match(prompts[0] ?? '', /First\..*"messages":\[\]/)
  assert.match(
    prompts[1] ?? '',
    /Second\..*"messages":\[\{"role":"user","content":"First\."\},\{"role":"assistant","content":"The final answer\."\}\],"context_id":"My Chat"/,
  )
  const runs = await kit.get<{ items: { trigger: { chat_id?: string } }[] }>('/runs')
  assert.deepEqual(
    runs.items.map(({ trigger }) => trigger.chat_id),
    ['My Chat', 'My Chat'],
  )
})

test('an escalation asks its question as text; the next message answers it and continues the same run', async () => {
  const kit = await start({
    supervisor: [{ plan: [], action: 'escalate' }, finish(), finish()],
    escalation: 'Which colour?',
    finalizer: ['It is red.', 'Anything else.'],
  })
  const chat = openChat(kit)
  await chat.sendMessage({ text: 'Paint it.' })
  assert.deepEqual(chat.messages[1]?.metadata?.status, 'ESCALATE')
  const runId = runOf(chat)
  await chat.sendMessage({ text: 'Red, please.' })
  assert.deepEqual(shown(chat), [
    'user: Paint it.',
    'assistant: Which colour?',
    'user: Red, please.',
    'assistant: It is red.',
  ])
  assert.equal(runOf(chat), runId)
  assert.notEqual(chat.messages[1]?.id, chat.messages[3]?.id)
  const { items } = await kit.get<{ items: { status: string; result: string }[] }>('/tasks?kind=escalation')
  assert.deepEqual(
    items.map(({ status, result }) => [status, result]),
    [['completed', 'Red, please.']],
  )
  await chat.sendMessage({ text: 'And now?' })
  assert.notEqual(runOf(chat), runId, 'a completed run is not continued')
})

test('a failure is an error with a plain message; a message that is sent again starts a new run', async () => {
  const kit = await start({
    finalizer: [
      { textParts: ['Half an '], text: '', fail: { message: 'No such model.', isRetryable: false } },
      'Whole.',
    ],
  })
  const chat = openChat(kit)
  await chat.sendMessage({ text: 'Try it.' })
  assert.equal(chat.status, 'error')
  assert.equal(chat.error?.message, 'No such model.')
  assert.deepEqual(chat.messages[1]?.metadata?.error, { code: 'MODEL_ERROR', message: 'No such model.' })
  const failed = runOf(chat)
  await chat.regenerate()
  assert.deepEqual(shown(chat), ['user: Try it.', 'assistant: Whole.'])
  assert.notEqual(runOf(chat), failed)
})

test('regenerate starts a new run, even if the question of the last run is open', async () => {
  const kit = await start({ supervisor: [{ plan: [], action: 'escalate' }, finish()] })
  const chat = openChat(kit)
  await chat.sendMessage({ text: 'Paint it.' })
  const asked = runOf(chat)
  await chat.regenerate()
  assert.deepEqual(shown(chat), ['user: Paint it.', 'assistant: The final answer.'])
  assert.notEqual(runOf(chat), asked)
  assert.equal((await kit.read(asked)).body.result.status, 'ESCALATE')
})

test('a reader who leaves ends nothing, and may read the answer again from its beginning, in the same message', async () => {
  const { gate, reply, again } = halting('One, ', 'two.')
  const kit = await start({ finalizer: (_request, call) => (call === 0 ? reply : again) })
  const chat = openChat(kit)
  void chat.sendMessage({ text: 'Count.' })
  await until(() => textOf(chat.messages[1]) === 'One, ')
  await chat.stop()
  assert.equal(chat.status, 'ready')
  assert.equal((await kit.read(runOf(chat))).body.result.status, 'RUNNING')
  const later = openChat(kit, { id: chat.id, messages: structuredClone(chat.messages) })
  const resumed = later.resumeStream()
  await until(() => later.status === 'streaming')
  await until(() => textOf(later.messages[1]) === 'One, ')
  gate.resolve()
  await resumed
  assert.deepEqual(shown(later), ['user: Count.', 'assistant: One, two.'])
  assert.deepEqual([later.messages[1]?.id, runOf(later)], [chat.messages[1]?.id, runOf(chat)])
  assert.equal(later.status, 'ready')
})

test('a reader without the history of the chat gets the answer under way as a message', async () => {
  const { gate, reply, again } = halting('One, ', 'two.')
  const kit = await start({ finalizer: (_request, call) => (call === 0 ? reply : again) })
  const chat = openChat(kit)
  const sent = chat.sendMessage({ text: 'Count.' })
  await until(() => textOf(chat.messages[1]) === 'One, ')
  const other = openChat(kit, { id: chat.id })
  const resumed = other.resumeStream()
  await until(() => textOf(other.messages[0]) === 'One, ')
  gate.resolve()
  await Promise.all([sent, resumed])
  assert.deepEqual([shown(other), shown(chat)[1]], [['assistant: One, two.'], 'assistant: One, two.'])
})

test('after an answer in the inbox the result comes as a message of its own', async () => {
  const { gate, reply, again } = halting('It is ', 'red.')
  const kit = await start({
    supervisor: [{ plan: [], action: 'escalate' }, finish()],
    escalation: 'Which colour?',
    finalizer: (_request, call) => (call === 0 ? reply : again),
  })
  const chat = openChat(kit)
  await chat.sendMessage({ text: 'Paint it.' })
  const resume = (id: string) => kit.call(`GET /v1/agent/chat/${id}/stream`, { headers: kit.headers })
  assert.equal((await resume(chat.id)).status, 204, 'a question that nobody has answered is at rest')
  const { items } = await kit.get<{ items: { id: string }[] }>('/tasks?kind=escalation')
  await kit.call(`PATCH ${kit.base}/tasks/${items[0]?.id}`, { body: { status: 'completed', result: 'Red.' } })
  const resumed = chat.resumeStream()
  await until(() => chat.messages.length === 3)
  gate.resolve()
  await resumed
  assert.deepEqual(shown(chat), ['user: Paint it.', 'assistant: Which colour?', 'assistant: It is red.'])
  // A page that comes back later gets the answer. A page that has the answer already puts it in the same place.
  const late = openChat(kit, { id: chat.id, messages: chat.messages.slice(0, 2) })
  await late.resumeStream()
  await chat.resumeStream()
  for (const each of [late, chat]) {
    assert.deepEqual(shown(each), ['user: Paint it.', 'assistant: Which colour?', 'assistant: It is red.'])
  }
  await chat.sendMessage({ text: 'Thanks.' })
  assert.equal((await resume(chat.id)).status, 204)
})

test('a chat without an answer under way, an unknown chat and a malformed id give 204', async () => {
  const kit = await start()
  const chat = openChat(kit)
  await chat.sendMessage({ text: 'Hello.' })
  for (const id of [chat.id, 'unknown', '%00', 'x'.repeat(400), encodeURIComponent('a/b ü'), '..%2f']) {
    const answer = await kit.call(`GET /v1/agent/chat/${id}/stream`, { headers: kit.headers })
    assert.deepEqual([answer.status, answer.text], [204, ''], id)
  }
  await chat.resumeStream()
  assert.deepEqual([chat.status, chat.messages.length], ['ready', 2])
})

test('the same chat id in two projects is two chats', async () => {
  const { gate, reply } = halting('Mine ', 'alone.')
  const kit = await start({ supervisor: [{ plan: [], action: 'escalate' }, finish()], finalizer: reply })
  const other = await kit.createProject('Another')
  await kit.call(`PUT /api/projects/${other.id}/systems/blue`, { body: kit.config })
  const theirs = { api: kit.api, headers: { 'x-project-id': other.id } }
  const mine = openChat(kit, { id: 'chat' })
  await mine.sendMessage({ text: 'Paint it.' })
  assert.equal(mine.messages[1]?.metadata?.status, 'ESCALATE')
  const their = openChat(theirs, { id: 'chat' })
  const sent = their.sendMessage({ text: 'Red.' })
  await until(() => textOf(their.messages[1]) === 'Mine ')
  assert.notEqual(runOf(their), runOf(mine), 'they did not answer my question')
  assert.equal((await kit.read(runOf(mine))).body.result.status, 'ESCALATE')
  const resumed = await kit.call('GET /v1/agent/chat/chat/stream', { headers: kit.headers })
  assert.equal(resumed.status, 204, 'the answer of another project cannot be read')
  await their.stop()
  gate.resolve()
  await sent
})

test('of two messages at once one answers the question; the other is a task of its own', async () => {
  const kit = await start({
    supervisor: (_request, call) => (call === 0 ? { plan: [], action: 'escalate' } : finish()),
  })
  const chat = openChat(kit)
  await chat.sendMessage({ text: 'Paint it.' })
  const runId = runOf(chat)
  const both = await Promise.all(
    ['Red.', 'Blue.'].map((text) =>
      kit.call('POST /v1/agent/chat', { headers: kit.headers, body: { id: chat.id, messages: [user(text)] } }),
    ),
  )
  const runs = both.map(({ headers }) => headers['x-run-id'])
  assert.equal(runs.filter((each) => each === runId).length, 1)
  assert.ok(both.every(({ text }) => text.includes('The final answer.') && text.endsWith('data: [DONE]\n\n')))
})

test('a message that is repeated with its Idempotency-Key gives the same run', async () => {
  const kit = await start()
  const body = { id: 'c', messages: [user('Hi')] }
  const once = () => kit.call('POST /v1/agent/chat', { headers: { ...kit.headers, 'idempotency-key': 'k' }, body })
  const [first, second] = [await once(), await once()]
  assert.equal(second.headers['x-run-id'], first.headers['x-run-id'])
  assert.equal(second.headers['idempotency-replayed'], 'true')
  assert.match(second.text, /The final answer\./)
})

test('a message that is sent again without a key gets its first answer', async () => {
  const kit = await start({
    supervisor: [{ plan: [], action: 'escalate' }, finish()],
    finalizer: ['Red it is.', { text: '', fail: { message: 'No.', isRetryable: false } }, 'Anew.'],
  })
  const send = async (message: object) =>
    (await kit.call('POST /v1/agent/chat', { headers: kit.headers, body: { id: 'c', messages: [message] } })).headers[
      'x-run-id'
    ]
  const [task, answer] = [user('Paint it.'), user('Red.')]
  const [first, again] = await Promise.all([send(task), send(task)])
  assert.equal(again, first, 'also if both come at once, to a new chat')
  assert.equal(await send(answer), first)
  assert.equal(await send(answer), first, 'an answer is never a task')
  const { body } = await kit.call<{ items: unknown[] }>(`GET ${kit.base}/runs`)
  assert.equal(body.items.length, 1)
  const failed = await send({ ...answer, parts: task.parts })
  assert.notEqual(failed, first, 'other words are another message')
  assert.notEqual(await send({ ...answer, parts: task.parts }), failed, 'a failed message is tried anew')
})

test('a message that is repeated gets the same answer under the same id, even if its run went on meanwhile', async () => {
  const kit = await start({
    supervisor: [{ plan: [], action: 'escalate' }, { plan: [], action: 'escalate' }, finish()],
    escalation: ['Which colour?', 'Dark or light?'],
    finalizer: 'It is dark red.',
  })
  const say = async (text: string) => {
    const headers = { ...kit.headers, 'idempotency-key': text }
    const answer = await kit.call('POST /v1/agent/chat', {
      headers,
      body: { id: 'c', messages: [{ ...user(text), id: text }] },
    })
    const chunks = answer.text
      .split('\n\n')
      .flatMap((line) => (/^data: \{/.test(line) ? [JSON.parse(line.slice(6))] : []))
    return {
      id: chunks.find(({ type }) => type === 'start').messageId,
      text: chunks.map(({ delta }) => delta ?? '').join(''),
      runId: answer.headers['x-run-id'],
    }
  }
  const ids: string[] = []
  for (const [text, expected] of [
    ['Paint it.', 'Which colour?'],
    ['Red.', 'Dark or light?'],
    ['Dark.', 'It is dark red.'],
  ] as const) {
    const first = await say(text)
    assert.equal(first.text, expected)
    assert.deepEqual(await say(text), first)
    ids.push(first.id)
  }
  assert.equal(new Set(ids).size, 3, 'each answer is a message of its own')
})

test('a chat is removed with its newest run, and not with an older run', async () => {
  const kit = await start()
  const chat = openChat(kit, { id: 'c' })
  await chat.sendMessage({ text: 'One.' })
  const older = runOf(chat)
  await chat.sendMessage({ text: 'Two.' })
  const count = async () => (await kit.pool.query('select from chats')).rowCount
  await kit.pool.query('delete from agent_runs where id = $1', [older])
  assert.equal(await count(), 1)
  await kit.pool.query('delete from agent_runs where id = $1', [runOf(chat)])
  assert.equal(await count(), 0)
  await chat.sendMessage({ text: 'Three.' })
  assert.equal(textOf(chat.messages.at(-1)), 'The final answer.')
})

test('a viewer may neither post a message nor read an answer under way', async () => {
  const kit = await start()
  const { key: token } = await kit.createKey(kit.project.id, 'viewer')
  for (const [route, options] of [
    ['POST /v1/agent/chat', { body: { id: 'c', messages: [user('Hi')] } }],
    ['GET /v1/agent/chat/c/stream', {}],
  ] as const) {
    const answer = await kit.call<{ error: { code: string } }>(route, { token, ...options })
    assert.deepEqual([answer.status, answer.body.error.code], [403, 'FORBIDDEN'], route)
  }
})

const shared = start()
const messages = [user('Hi')]
for (const [what, body] of [
  ['no id', { messages }],
  ['an empty id', { id: '', messages }],
  ['an id with a control character', { id: 'a\nb', messages }],
  ['an id that is too long', { id: 'x'.repeat(201), messages }],
  ['no messages', { id: 'c' }],
  ['messages of nobody', { id: 'c', messages: [] }],
  ['an unknown role', { id: 'c', messages: [{ ...user('Hi'), role: 'tool' }] }],
  ['malformed parts', { id: 'c', messages: [{ role: 'user', content: 'Hi' }] }],
  [
    'a file',
    { id: 'c', messages: [{ role: 'user', parts: [{ type: 'file', url: 'data:,x', mediaType: 'text/plain' }] }] },
  ],
  ['an unknown trigger', { id: 'c', messages, trigger: 'resume-stream' }],
  ['a malformed variant', { id: 'c', messages, system_variant: 'mauve' }],
] as const) {
  test(`INVALID_REQUEST: ${what}`, async () => {
    const kit = await shared
    const answer = await kit.call<{ error: { code: string } }>('POST /v1/agent/chat', { headers: kit.headers, body })
    assert.deepEqual([answer.status, answer.body.error?.code], [400, 'INVALID_REQUEST'], answer.text)
    assert.deepEqual((await kit.pool.query('select from chats')).rowCount, 0)
  })
}

test('a request that accepts no event stream gets STREAM_NOT_SUPPORTED, and nothing is started', async () => {
  const kit = await shared
  const headers = { ...kit.headers, accept: 'application/json' }
  for (const [route, body] of [
    ['POST /v1/agent/chat', { id: 'c', messages }],
    ['GET /v1/agent/chat/c/stream'],
  ] as const) {
    const answer = await kit.call<{ error: { code: string } }>(route, { headers, ...(body ? { body } : {}) })
    assert.deepEqual([answer.status, answer.body.error.code], [400, 'STREAM_NOT_SUPPORTED'])
  }
  assert.deepEqual((await kit.get<{ items: unknown[] }>('/runs')).items, [])
})

test('a chat may choose a variant, and keeps it', async () => {
  const kit = await start()
  await kit.put('mauve', { ...kit.config, traffic: 0 })
  for (const id of ['supervisor_planner', 'finalizer_agent']) {
    const content = [{ role: 'user', content: 'In mauve: {{USER_INPUT}}' }]
    await kit.call(`PUT ${kit.base}/prompts/${id}/variants/mauve`, { body: { messages: content } })
  }
  const ask = (more: object) =>
    kit.call('POST /v1/agent/chat', { headers: kit.headers, body: { id: 'c', messages, ...more } })
  await ask({ system_variant: 'mauve' })
  await ask({})
  const { items } = await kit.get<{ items: { trigger: { system_variant: string } }[] }>('/runs')
  assert.deepEqual(
    items.map(({ trigger }) => trigger.system_variant),
    ['mauve', 'mauve'],
  )
})
