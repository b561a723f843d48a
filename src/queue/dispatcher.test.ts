import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLog } from '../kernel/log.ts'
import { createDispatcher } from './dispatcher.ts'

/** A dispatcher over a list of waiting runs, whose work ends when the test says so. */
function setUp(slots: number) {
  const waiting: string[] = []
  const suspects: string[] = []
  const under = new Map<string, () => void>()
  const seen = { full: 0, yields: [] as boolean[], claims: 0, failNext: false }
  const dispatcher = createDispatcher({
    slots,
    claim: async (limit, isSuspect) => {
      seen.claims++
      if (seen.failNext) {
        seen.failNext = false
        throw new Error('the database is away')
      }
      return (isSuspect ? suspects : waiting).splice(0, limit).map((id) => ({ id }))
    },
    isSuspectWaiting: async () => suspects.length > 0,
    work: ({ id }) => {
      const { promise, resolve } = Promise.withResolvers<void>()
      under.set(id, resolve)
      return promise.finally(() => under.delete(id))
    },
    onFull: () => {
      seen.full++
    },
    onYield: (isUrgent) => {
      seen.yields.push(isUrgent)
    },
    log: silentLog,
  })
  return { dispatcher, waiting, suspects, under, seen }
}
const settle = async (): Promise<void> => {
  for (let turns = 0; turns < 10; turns++) await new Promise(setImmediate)
}

test('as many runs as there are slots are under way, and a slot that frees up takes the next', async () => {
  const { dispatcher, waiting, under, seen } = setUp(2)
  waiting.push('a', 'b', 'c')
  dispatcher.poke()
  await settle()
  assert.deepEqual([...under.keys()], ['a', 'b'])
  assert.equal(dispatcher.free(), 0)
  assert.equal(seen.full, 1, 'others are told that there may be more')
  under.get('a')?.()
  await settle()
  assert.deepEqual([...under.keys()], ['b', 'c'])
})

test('many pokes at once are few claims, and none is lost', async () => {
  const { dispatcher, waiting, under, seen } = setUp(100)
  for (let index = 0; index < 50; index++) {
    waiting.push(`${index}`)
    dispatcher.poke()
  }
  await settle()
  assert.equal(under.size, 50)
  assert.ok(seen.claims <= 3, `${seen.claims}`)
})

test('a claim that fails is made again at the next poke', async () => {
  const { dispatcher, waiting, under, seen } = setUp(1)
  seen.failNext = true
  waiting.push('a')
  dispatcher.poke()
  await settle()
  assert.equal(under.size, 0)
  dispatcher.poke()
  await settle()
  assert.equal(under.size, 1)
})

test('a suspect waits until the others have left, runs alone, and then the rest goes on', async () => {
  const { dispatcher, waiting, suspects, under, seen } = setUp(3)
  waiting.push('a', 'b')
  dispatcher.poke()
  await settle()
  suspects.push('s')
  const swept = dispatcher.sweep()
  await settle()
  assert.deepEqual(seen.yields, [false])
  waiting.push('c')
  dispatcher.poke()
  await settle()
  assert.deepEqual([...under.keys()], ['a', 'b'], 'nothing is claimed beside or before it')
  under.get('a')?.()
  under.get('b')?.()
  await settle()
  assert.deepEqual([...under.keys()], ['s'])
  dispatcher.poke()
  await settle()
  assert.deepEqual([...under.keys()], ['s'])
  under.get('s')?.()
  await swept
  await settle()
  assert.deepEqual([...under.keys()], ['c'])
})

test('after close nothing is claimed, and stop waits for what is under way', async () => {
  const { dispatcher, waiting, under } = setUp(2)
  waiting.push('a')
  dispatcher.poke()
  await settle()
  dispatcher.close()
  waiting.push('b')
  dispatcher.poke()
  let isStopped = false
  const stopping = dispatcher.stop().then(() => {
    isStopped = true
  })
  await settle()
  assert.deepEqual([...under.keys()], ['a'])
  assert.equal(isStopped, false)
  under.get('a')?.()
  await stopping
  assert.deepEqual(waiting, ['b'])
})

test('a process without slots claims nothing', async () => {
  const { dispatcher, waiting, seen } = setUp(0)
  waiting.push('a')
  dispatcher.poke()
  await settle()
  assert.equal(seen.claims, 0)
})
