import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { StoredEvent } from '../../journal/entries.ts'
import { createHub, type LiveText, type Watcher } from '../../journal/hub.ts'
import { createPatientHub } from './patient-hub.ts'

const event = (seq: number, data = '{}'): StoredEvent => ({ runId: 'run', seq, kind: 'x', data, at: new Date(0) })
const text = (offset: number, words: string): LiveText => ({ runId: 'run', step: 1, offset, text: words })

/** A reader, the texts that reached it, and the texts that it missed. */
function setUp(whole: LiveText | null = null) {
  const heard: string[] = []
  const reader = { isBlocked: false, missed: 0 }
  const watcher: Watcher = {
    onEvents: (events) => heard.push(...events.map(({ seq }) => `event ${seq}`)),
    onText: (said) => heard.push(`text ${said.text}`),
    onPoke: () => heard.push('poke'),
    onGone: () => heard.push('gone'),
  }
  const inner = createHub()
  const { hub, onTaken } = createPatientHub(
    { hub: inner, soFar: () => whole },
    {
      isBlocked: () => reader.isBlocked,
      miss: (characters) => {
        reader.missed += characters
      },
    },
  )
  return { inner, reader, heard, onTaken, leave: hub.watch('run', watcher) }
}

test('a reader that keeps up gets all events at once', () => {
  const { inner, heard, reader, leave } = setUp()
  inner.publishText('run', text(0, 'a'))
  inner.publish([event(1), event(2)])
  inner.poke('run')
  assert.deepEqual(heard, ['text a', 'event 1', 'event 2', 'poke'])
  assert.equal(reader.missed, 0)
  leave()
  assert.deepEqual(inner.watched(), [])
})

test('nothing is kept for a blocked reader, and the characters it misses are counted', () => {
  const { inner, heard, reader, onTaken } = setUp(text(0, 'whole'))
  reader.isBlocked = true
  inner.publish([event(1, '12345')])
  inner.publishText('run', text(0, 'who'))
  inner.publishText('run', text(3, 'le'))
  assert.deepEqual(heard, ['poke'])
  assert.equal(reader.missed, 10)
  reader.isBlocked = false
  onTaken()
  onTaken()
  assert.deepEqual(heard, ['poke', 'text whole'], 'the text so far, once')
})

test('a text that is over by the time the reader is back is not shown', () => {
  const { inner, heard, reader, onTaken } = setUp(null)
  reader.isBlocked = true
  inner.publishText('run', text(0, 'gone'))
  reader.isBlocked = false
  onTaken()
  assert.deepEqual(heard, [])
})

test('the characters that wait before the first read are bounded too', () => {
  const { inner, heard, onTaken } = setUp(text(0, 'whole'))
  const large = 'x'.repeat(400_000)
  for (let seq = 1; seq <= 4; seq++) inner.publish([event(seq, large)])
  inner.publishText('run', text(0, 'who'))
  assert.deepEqual(heard, ['event 1', 'event 2', 'poke', 'poke'])
  onTaken()
  inner.publish([event(5, large)])
  assert.deepEqual(heard.slice(4), ['text whole', 'event 5'])
})
