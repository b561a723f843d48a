import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createPace } from './pace.ts'

const open = (): AbortSignal => new AbortController().signal

/** A pace with a clock that the test moves. `go` lets the time pass and the promises settle. */
function makePace(t: TestContext, burst: number, perSecond: number) {
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'] })
  const started: number[] = []
  const pace = createPace({ burst, perSecond })
  const enter = (rank: number, signal = open()): Promise<void> =>
    pace.enter(rank, signal).then(() => void started.push(rank))
  const go = async (ms: number): Promise<void> => {
    t.mock.timers.tick(ms)
    await new Promise((resolve) => setImmediate(resolve))
  }
  return { started, enter, go }
}

test('as many reads as the burst start at once, the lowest ranks first, the others at the rate', async (t) => {
  const { started, enter, go } = makePace(t, 2, 10)
  for (const rank of [3, 1, 2, 0, 4]) void enter(rank)
  await go(0)
  assert.deepEqual(started, [0, 1])
  await go(100)
  assert.deepEqual(started, [0, 1, 2])
  await go(100)
  await go(100)
  assert.deepEqual(started, [0, 1, 2, 3, 4])
})

test('after a rest a burst may start again, and no more than that', async (t) => {
  const { started, enter, go } = makePace(t, 2, 10)
  void enter(0)
  void enter(1)
  await go(0)
  await go(60_000)
  for (const rank of [2, 3, 4]) void enter(rank)
  await go(0)
  assert.deepEqual(started, [0, 1, 2, 3])
})

test('a read that is given up while it waits takes no place', async (t) => {
  const { started, enter, go } = makePace(t, 1, 10)
  const stop = new AbortController()
  void enter(0)
  const given = enter(1, stop.signal)
  void enter(2)
  await go(0)
  stop.abort(new Error('left'))
  await assert.rejects(given, /left/)
  await go(100)
  assert.deepEqual(started, [0, 2])
  await assert.rejects(enter(3, stop.signal), /left/)
})
