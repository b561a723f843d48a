import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { startStageClock } from './stage-clock.ts'

/** Lets the promises of a timer that rang settle. */
const settled = (): Promise<void> => new Promise((resolve) => queueMicrotask(() => queueMicrotask(() => resolve())))

test('the time of a stage stands still while its call waits, and a check may give it more', async () => {
  let nowMs = 0
  mock.timers.enable({ apis: ['setTimeout'] })
  const clockNow = mock.method(performance, 'now', () => nowMs)
  const tick = async (ms: number): Promise<void> => {
    nowMs += ms
    mock.timers.tick(ms)
    for (let turn = 0; turn < 5; turn++) await settled()
  }
  try {
    let late = 0
    const clock = startStageClock(100, () => void late++)
    const wait = Promise.withResolvers<void>()
    const waited = clock.whileIdle(() => wait.promise)
    await tick(500)
    assert.equal(late, 0, 'it waits')
    wait.resolve()
    await waited
    let isUnbegun = false
    clock.lateIf(async () => isUnbegun)
    await tick(99)
    await tick(1)
    assert.equal(late, 0, 'the run has begun')
    isUnbegun = true
    await tick(100)
    assert.equal(late, 1)
  } finally {
    clockNow.mock.restore()
    mock.timers.reset()
  }
})
