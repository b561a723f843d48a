import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createBoundedBuffer } from './bounded-buffer.ts'

/** True if the promise has resolved by the time that all other pending work is done. */
async function isDone(promise: Promise<unknown>): Promise<boolean> {
  let isSettled = false
  void promise.then(() => {
    isSettled = true
  })
  await new Promise(setImmediate)
  return isSettled
}

test('a place is held from before an item is made until the item is taken', async () => {
  const buffer = createBoundedBuffer<{ n: number }>(2)
  await buffer.hold()
  await buffer.hold()
  const third = buffer.hold()
  assert.equal(await isDone(third), false)
  buffer.put({ n: 1 })
  assert.deepEqual(await buffer.next(), { n: 1 })
  assert.equal(await isDone(third), false)
  buffer.take()
  assert.equal(await isDone(third), true)
})

test('a place that is given back is free again', async () => {
  const buffer = createBoundedBuffer<{ n: number }>(1)
  await buffer.hold()
  const second = buffer.hold()
  assert.equal(await isDone(second), false)
  buffer.free()
  assert.equal(await isDone(second), true)
})

test('the taker waits for the next item, and learns of the end after the last', async () => {
  const buffer = createBoundedBuffer<{ n: number }>(1)
  const next = buffer.next()
  assert.equal(await isDone(next), false)
  await buffer.hold()
  buffer.put({ n: 1 })
  buffer.end()
  assert.deepEqual(await next, { n: 1 })
  buffer.take()
  assert.equal(await buffer.next(), null)
})

test('a buffer that begins with too many items takes no other until it has room', async () => {
  const buffer = createBoundedBuffer(2, [{ n: 1 }, { n: 2 }, { n: 3 }])
  const hold = buffer.hold()
  buffer.take()
  assert.equal(await isDone(hold), false)
  buffer.take()
  assert.equal(await isDone(hold), true)
  assert.deepEqual(await buffer.next(), { n: 3 })
})
