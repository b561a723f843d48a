import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ModelRequest } from '../kernel/model-call.ts'
import { changeRequest, requestChanges, requestView } from './request-view.ts'

const signature = { google: { thoughtSignature: 'abc' } }
const look = {
  type: 'function' as const,
  name: 'look',
  description: 'Looks.',
  inputSchema: { type: 'object' as const },
}
const send = {
  type: 'function' as const,
  name: 'send',
  description: 'Sends.',
  inputSchema: { type: 'object' as const },
}

const request = (): ModelRequest => ({
  prompt: [
    { role: 'system', content: 'Be brief.' },
    {
      role: 'user',
      content: [
        { type: 'text', text: 'The task.' },
        { type: 'text', text: 'What happened so far.' },
      ],
    },
    {
      role: 'assistant',
      content: [
        { type: 'reasoning', text: 'Hm.', providerOptions: signature },
        { type: 'text', text: 'I look.' },
        { type: 'tool-call', toolCallId: 'c1', toolName: 'look', input: { q: 1 }, providerOptions: signature },
        { type: 'tool-call', toolCallId: 'c2', toolName: 'look', input: { q: 2 } },
      ],
    },
    {
      role: 'tool',
      content: [
        { type: 'tool-result', toolCallId: 'c1', toolName: 'look', output: { type: 'json', value: { found: [1] } } },
        { type: 'tool-result', toolCallId: 'c2', toolName: 'look', output: { type: 'error-text', value: 'no' } },
      ],
    },
  ],
  tools: [look, send],
  toolChoice: 'auto',
  maxOutputTokens: 100,
})

const view = {
  system: 'Be brief.',
  messages: [
    { role: 'user', content: 'The task.\n\nWhat happened so far.' },
    {
      role: 'assistant',
      content: 'I look.',
      tool_calls: [
        { id: 'c1', name: 'look', args: { q: 1 }, metadata: signature },
        { id: 'c2', name: 'look', args: { q: 2 } },
      ],
      reasoning: [{ text: 'Hm.', metadata: signature }],
    },
    {
      role: 'tool',
      results: [
        { call_id: 'c1', name: 'look', result: { found: [1] }, is_error: false },
        { call_id: 'c2', name: 'look', result: 'no', is_error: true },
      ],
    },
  ],
  tools: [
    { name: 'look', description: 'Looks.', input_schema: { type: 'object' } },
    { name: 'send', description: 'Sends.', input_schema: { type: 'object' } },
  ],
  tool_choice: 'auto',
  max_output_tokens: 100,
  temperature: null,
  answer_schema: null,
} as const

type View = ReturnType<typeof requestView>

function change(edit: (view: View) => void, from = request()): ModelRequest {
  const after = requestView(from)
  edit(after)
  const changed = changeRequest(from, requestView(from), after)
  return changed.ok ? changed.request : assert.fail(changed.problem)
}

test('a request is shown whole, as plain data', () => {
  assert.deepEqual(requestView(request()), view)
  const asked = { ...request(), temperature: 0.5, answerSchema: { name: 'task_plan', schema: { type: 'object' } } }
  assert.deepEqual(requestView(asked), {
    ...view,
    temperature: 0.5,
    answer_schema: { name: 'task_plan', schema: { type: 'object' } },
  })
})

test('nothing of the request can be changed through its view', () => {
  const original = request()
  const shown = requestView(original) as unknown as { messages: { results?: { result: { found: number[] } }[] }[] }
  shown.messages[2]?.results?.[0]?.result.found.push(2)
  shown.messages.length = 0
  assert.deepEqual(original, request())
})

test('messages that are left alone are sent unchanged, whatever happens around them', () => {
  const original = request()
  const changed = change((shown) => {
    shown.system = 'Be long.'
    shown.messages.push({ role: 'user', content: 'Mind the policy.' })
  }, original)
  assert.deepEqual(changed.prompt[0], { role: 'system', content: 'Be long.' })
  for (const place of [1, 2, 3]) assert.equal(changed.prompt[place], original.prompt[place], `message ${place}`)
  assert.deepEqual(changed.prompt[4], { role: 'user', content: [{ type: 'text', text: 'Mind the policy.' }] })
})

test('a message that is changed keeps the data that the provider wants back', () => {
  const changed = change((shown) => {
    const [, said, results] = shown.messages
    if (said?.role === 'assistant') said.content = 'I look twice.'
    if (results?.role === 'tool' && results.results[0]) results.results[0].result = 'cut'
  })
  assert.deepEqual(changed.prompt[2], {
    role: 'assistant',
    content: [
      { type: 'reasoning', text: 'Hm.', providerOptions: signature },
      { type: 'text', text: 'I look twice.' },
      { type: 'tool-call', toolCallId: 'c1', toolName: 'look', input: { q: 1 }, providerOptions: signature },
      { type: 'tool-call', toolCallId: 'c2', toolName: 'look', input: { q: 2 } },
    ],
  })
  assert.deepEqual(changed.prompt[3], {
    role: 'tool',
    content: [
      { type: 'tool-result', toolCallId: 'c1', toolName: 'look', output: { type: 'text', value: 'cut' } },
      { type: 'tool-result', toolCallId: 'c2', toolName: 'look', output: { type: 'error-text', value: 'no' } },
    ],
  })
})

test('an empty system part is left out, and so is an empty message of the model', () => {
  const changed = change((shown) => {
    shown.system = ''
    shown.messages.splice(
      0,
      3,
      { role: 'user', content: 'Go.' },
      { role: 'assistant', content: '', tool_calls: [], reasoning: [] },
    )
  })
  assert.deepEqual(changed.prompt, [{ role: 'user', content: [{ type: 'text', text: 'Go.' }] }])
})

test('tools may be left out or described differently; the others stay the same objects', () => {
  const changed = change((shown) => {
    shown.tools = [
      shown.tools[1] ?? assert.fail(),
      { ...(shown.tools[0] ?? assert.fail()), description: 'Looks once.' },
    ]
  })
  assert.equal(changed.tools[0], send)
  assert.deepEqual(changed.tools[1], { ...look, description: 'Looks once.' })
  assert.deepEqual(change((shown) => void shown.tools.splice(0)).tools, [])
})

test('changed numbers reach the request, and a temperature can be taken away', () => {
  const changed = change(
    (shown) => Object.assign(shown, { tool_choice: 'none', max_output_tokens: 7, temperature: null }),
    { ...request(), temperature: 1 },
  )
  assert.deepEqual([changed.toolChoice, changed.maxOutputTokens, 'temperature' in changed], ['none', 7, false])
  assert.equal(change((shown) => Object.assign(shown, { temperature: 0 })).temperature, 0)
})

const problems: [string, (shown: View) => unknown, RegExp][] = [
  [
    'another schema',
    (shown) => Object.assign(shown, { answer_schema: { name: 'x', schema: {} } }),
    /answer_schema cannot/,
  ],
  ['more output', (shown) => Object.assign(shown, { max_output_tokens: 101 }), /is 101, and may be 100 at most/],
  ['a tool of its own', (shown) => shown.tools.push({ name: 'x', description: '', input_schema: {} }), /names "x"/],
  ['a tool twice', (shown) => shown.tools.push({ ...(shown.tools[0] ?? assert.fail()) }), /names "look"/],
  ['calls without results', (shown) => shown.messages.pop(), /ends with tool calls that have no results/],
  ['results without calls', (shown) => shown.messages.splice(1, 1), /messages\.1: the results/],
  ['a result too few', (shown) => resultsOf(shown).pop(), /messages\.2: the results/],
  ['a message in between', (shown) => shown.messages.splice(2, 0, { role: 'user', content: 'Hm.' }), /messages\.2: /],
]
const resultsOf = ({ messages: [, , last] }: View) => (last?.role === 'tool' ? last.results : assert.fail())

test('a request that no provider takes, or that cannot be stored, is a problem', () => {
  for (const [name, edit, message] of problems) {
    const after = requestView(request())
    edit(after)
    const changed = changeRequest(request(), requestView(request()), after)
    assert.match(changed.ok ? 'no problem' : changed.problem, message, name)
  }
})

test('a history that has lost a call already may still be changed', () => {
  const shortened: ModelRequest = { ...request(), prompt: request().prompt.filter(({ role }) => role !== 'assistant') }
  assert.equal(
    change((shown) => void shown.messages.push({ role: 'user', content: 'Sum up.' }), shortened).prompt.length,
    4,
  )
})

test('the changes name the fields that differ, and one range of messages', () => {
  assert.equal(requestChanges(requestView(request()), requestView(request())), null)
  const after = requestView(request())
  after.messages.splice(1, 2, { role: 'user', content: 'Forget it.' })
  after.max_output_tokens = 5
  assert.deepEqual(requestChanges(requestView(request()), after), {
    max_output_tokens: 5,
    messages: { at: 1, removed: 2, added: [{ role: 'user', content: 'Forget it.' }] },
  })
})
