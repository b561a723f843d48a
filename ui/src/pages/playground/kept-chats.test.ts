import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createKeptChats, type Message } from './kept-chats.ts'

function newStore(most = Number.POSITIVE_INFINITY) {
  const kept = new Map<string, string>()
  return {
    kept,
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => {
      if (value.length > most) throw new DOMException('full', 'QuotaExceededError')
      kept.set(key, value)
    },
    removeItem: (key: string) => void kept.delete(key),
  }
}

const said = (text: string): Message => ({ id: text, role: 'user', parts: [{ type: 'text', text }] })
const AT = '2026-01-01T00:00:00Z'

test('a chat is found again with its messages, the newest first', () => {
  const chats = createKeptChats(newStore(), 'me', 'p')
  chats.keep('one', [said('Hello')], AT)
  chats.keep('two', [said('x'.repeat(100))], AT)
  assert.deepEqual(
    chats.list().map(({ id, title }) => [id, title.length]),
    [
      ['two', 60],
      ['one', 5],
    ],
  )
  assert.deepEqual(chats.messages('one'), [said('Hello')])
  chats.forget('one')
  assert.deepEqual(chats.messages('one'), [])
  assert.equal(chats.list().length, 1)
})

test('another person or project sees nothing of it', () => {
  const store = newStore()
  createKeptChats(store, 'me', 'p').keep('one', [said('Hello')], AT)
  assert.deepEqual(createKeptChats(store, 'other', 'p').list(), [])
  assert.deepEqual(createKeptChats(store, 'me', 'q').messages('one'), [])
})

test('the oldest chats go, with their messages', () => {
  const store = newStore()
  const chats = createKeptChats(store, 'me', 'p')
  for (let number = 0; number < 25; number++) chats.keep(`chat ${number}`, [said(`${number}`)], AT)
  assert.equal(chats.list().length, 20)
  assert.deepEqual(chats.messages('chat 0'), [])
  assert.equal(store.kept.size, 21)
})

test('a chat without messages is not kept, and neither a full store nor foreign content stops the page', () => {
  const store = newStore(10)
  const chats = createKeptChats(store, 'me', 'p')
  chats.keep('none', [], AT)
  chats.keep('large', [said('Hello')], AT)
  assert.deepEqual(chats.list(), [])
  store.kept.set('muster.chats me p', '{')
  assert.deepEqual(chats.list(), [])
  store.kept.set('muster.chats me p', '[1]')
  assert.deepEqual(chats.list(), [])
})
