import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ChatMessage } from '../kernel/chat.ts'
import { idFrom } from '../kernel/id.ts'
import { readMessages } from './chat.ts'

const said = (role: ChatMessage['role'], ...texts: string[]): ChatMessage => ({
  role,
  parts: texts.map((text) => ({ type: 'text', text })),
})

test('the newest message of the user is the task; earlier messages are given separately', () => {
  const messages = [
    said('system', 'Be kind.'),
    said('user', 'One'),
    said('assistant', 'Two'),
    said('user', 'Three', 'Four'),
  ]
  assert.deepEqual(readMessages(messages), {
    task: 'Three\nFour',
    earlier: [
      { role: 'system', content: 'Be kind.' },
      { role: 'user', content: 'One' },
      { role: 'assistant', content: 'Two' },
    ],
    message: idFrom('3 Three\nFour'),
    hasId: false,
  })
})

test('an answer after the newest message of the user does not count, nor do parts without text', () => {
  const messages: ChatMessage[] = [
    { role: 'assistant', parts: [{ type: 'step-start' }, { type: 'data-x', data: { text: 'no' } }] },
    {
      role: 'assistant',
      parts: [{ type: 'step-start' }, { type: 'text', text: 'Hello.' }, { type: 'file', url: 'x' }],
    },
    said('user', 'Again'),
    said('assistant', 'Half an'),
  ]
  assert.deepEqual(readMessages(messages), {
    task: 'Again',
    earlier: [{ role: 'assistant', content: 'Hello.' }],
    message: idFrom('2 Again'),
    hasId: false,
  })
})

for (const [what, messages] of [
  ['there is no message', []],
  ['there is no message of the user', [said('assistant', 'Hello.')]],
  ['the newest message is blank', [said('user', 'Hello.'), said('user', ' \n')]],
  ['the newest message has no text', [{ role: 'user', parts: [] }]],
  [
    'the newest message has a file',
    [
      {
        role: 'user',
        parts: [
          { type: 'text', text: 'Look' },
          { type: 'file', url: 'x' },
        ],
      },
    ],
  ],
] as [string, ChatMessage[]][]) {
  test(`INVALID_REQUEST where ${what}`, () => {
    assert.throws(() => readMessages(messages), { code: 'INVALID_REQUEST' })
  })
}

test('the newest fifty of many earlier messages are given to the model', () => {
  const many = Array.from({ length: 80 }, (_, place) => said('user', `message ${place}`))
  const { earlier } = readMessages([...many, said('user', 'Now')])
  assert.deepEqual([earlier.length, earlier[0]?.content, earlier.at(-1)?.content], [50, 'message 30', 'message 79'])
})

test('as many long earlier messages are given as fit, and each message that is too long is cut', () => {
  const { earlier } = readMessages([
    said('user', 'x'.repeat(30_000)),
    said('assistant', `${'y'.repeat(9_993)}😀${'y'.repeat(10_000)}`),
    said('assistant', 'z'.repeat(9_000)),
    said('assistant', 'w'.repeat(9_000)),
    said('user', 'Now'),
  ])
  const shown = earlier.map(({ content }) => [content[0], content.length])
  assert.deepEqual(shown, [
    ['x', 10_000],
    ['y', 9_993 + 6],
    ['z', 9_000],
    ['w', 9_000],
  ])
  assert.ok(
    earlier.every(({ content }) => content.isWellFormed()),
    'no character is cut in two, because half a character cannot be stored',
  )
  const tooMuch = Array.from({ length: 8 }, (_, place) => said('user', `${place}`.repeat(9_000)))
  assert.deepEqual(
    readMessages([...tooMuch, said('user', 'Now')]).earlier.map(({ content }) => content[0]),
    ['4', '5', '6', '7'],
  )
})
