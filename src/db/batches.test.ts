import assert from 'node:assert/strict'
import { test } from 'node:test'
import { unavailable } from '../kernel/errors.ts'
import { type BatchOptions, createBatches } from './batches.ts'

/** Requests are numbers, answered with their double; the batches are noted. */
function doubles(options: BatchOptions<number> = {}, fails: (requests: readonly number[]) => void = () => {}) {
  const batches: (readonly number[])[] = []
  const ask = createBatches<number, number>(async (requests) => {
    batches.push(requests)
    fails(requests)
    return requests.map((request) => 2 * request)
  }, options)
  return { ask, batches, askAll: (requests: number[]) => Promise.all(requests.map(ask)) }
}

const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index)

test('requests of the same moment go out together, in their order, up to a hundred', async () => {
  const { askAll, batches } = doubles()
  assert.deepEqual(
    await askAll(upTo(250)),
    upTo(250).map((request) => 2 * request),
  )
  assert.deepEqual(
    batches.map((batch) => batch.length),
    [100, 100, 50],
  )
  assert.deepEqual(batches.flat(), upTo(250))
})

test('a batch holds no more requests than its limit', async () => {
  const { askAll, batches } = doubles({ atOnce: 20 })
  await askAll(upTo(45))
  assert.deepEqual(
    batches.map((batch) => batch.length),
    [20, 20, 5],
  )
})

test('large requests are spread over batches, and a request that is too large for any batch goes alone', async () => {
  const { askAll, batches } = doubles({ size: { of: (request) => request, most: 10 } })
  await askAll([4, 6, 1, 99, 3, 3, 3, 3])
  assert.deepEqual(batches, [[4, 6], [1], [99], [3, 3, 3], [3]])
})

test('a large batch is settled in halves: the first half sends its next requests before the second half continues', async () => {
  const { ask, batches } = doubles({ inTurnsFrom: 10 })
  const again = async (request: number): Promise<number> => ask(await ask(request))
  assert.deepEqual(
    await Promise.all(upTo(10).map(again)),
    upTo(10).map((request) => 4 * request),
  )
  assert.deepEqual(batches, [upTo(10), [0, 2, 4, 6, 8], [10, 12, 14, 16, 18]])
})

test('a request that fails does not fail the others, unless the database cannot be reached', async () => {
  const { ask, batches } = doubles({}, (requests) => {
    if (requests.includes(2)) throw new Error('not this one')
  })
  const outcomes = await Promise.allSettled(upTo(4).map(ask))
  assert.deepEqual(
    outcomes.map((outcome) => (outcome.status === 'fulfilled' ? outcome.value : outcome.reason.message)),
    [0, 2, 'not this one', 6],
  )
  assert.deepEqual(batches, [upTo(4), [0], [1], [2], [3]])

  const away = doubles({}, () => {
    throw unavailable('away')
  })
  const failed = await Promise.allSettled(upTo(3).map(away.ask))
  assert.ok(failed.every((outcome) => outcome.status === 'rejected'))
  assert.equal(away.batches.length, 1)
})
