import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createSpacedReads } from './spaced-reads.ts'

const TICK_MS = 50

function start(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'] })
  const readAt: number[] = []
  const began = Date.now()
  const time = (): number => Date.now() - began
  const reads = createSpacedReads(() => readAt.push(time()), { afterMs: 200, everyMs: 1_000, now: time })
  // The mocked clock shows the end of a tick to all timers in it, so the ticks are short.
  const go = (ms: number): void => {
    for (let gone = 0; gone < ms; gone += TICK_MS) t.mock.timers.tick(TICK_MS)
  }
  return { reads, readAt, go }
}

test('a busy feed causes one read in a second, and never none', (t) => {
  const { reads, readAt, go } = start(t)
  for (let ms = 0; ms < 3_000; ms += 50) {
    reads.note()
    go(50)
  }
  assert.deepEqual(readAt, [200, 1_200, 2_200])
  go(1_000)
  assert.deepEqual(readAt, [200, 1_200, 2_200, 3_200], 'the last change has its read')
  go(60_000)
  assert.equal(readAt.length, 4, 'nothing is read without a change')
})

test('after a rest a change is read soon, and nothing is read after the stop', (t) => {
  const { reads, readAt, go } = start(t)
  reads.note()
  go(10_000)
  reads.note()
  go(200)
  assert.deepEqual(readAt, [200, 10_200])
  reads.note()
  reads.stop()
  go(10_000)
  assert.equal(readAt.length, 2)
})

test('after a stop nothing is read, until something is noted again', (t) => {
  const { reads, readAt, go } = start(t)
  reads.note()
  reads.stop()
  go(2_000)
  assert.deepEqual(readAt, [])
  reads.note()
  go(1_000)
  assert.deepEqual(readAt, [2_200])
})
