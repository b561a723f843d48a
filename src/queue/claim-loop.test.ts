import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLog } from '../kernel/log.ts'
import { createClaimLoop } from './claim-loop.ts'
import { NO_PROJECT } from './queue-table.ts'
import { createSlots } from './slots.ts'

interface Item {
  id: string
  project_id: string
}

/** A loop over a list of waiting rows; the test ends the work on each row. */
function setUp(slots: number, options: { endsMakeReady?: boolean } = {}) {
  const waiting: Item[] = []
  const suspects: Item[] = []
  const under = new Map<string, (isSettled: boolean) => void>()
  const seen = {
    full: 0,
    claims: 0,
    failNext: false,
    freed: [] as string[][],
    held: null as string | null,
    losesAnswer: false,
    gate: Promise.resolve(),
    claimGate: Promise.resolve(),
    keepsSlots: false,
  }
  const loop = createClaimLoop<Item>({
    name: 'items',
    slots: createSlots(slots),
    ownerId: () => 'me',
    claim: async ({ free, kept }) => {
      seen.claims++
      await seen.claimGate
      if (seen.failNext) {
        seen.failNext = false
        throw new Error('the database is away')
      }
      return {
        claimed: waiting.splice(0, seen.keepsSlots ? free - kept : free),
        cursor: NO_PROJECT,
        mayHaveMore: false,
        passedOver: [],
      }
    },
    claimSuspect: async () => {
      if (seen.held !== null) return null
      const suspect = suspects.shift() ?? null
      seen.held = suspect?.id ?? null
      if (seen.losesAnswer) throw new Error('the connection was cut')
      return suspect
    },
    releaseSuspect: async () => {
      if (seen.held !== null && under.has(seen.held)) return false
      seen.held = null
      return true
    },
    work: ({ id }) => {
      const { promise, resolve } = Promise.withResolvers<boolean>()
      under.set(id, resolve)
      return promise.finally(() => under.delete(id))
    },
    freeStrays: async (_, inHand) => {
      seen.freed.push(inHand.map((item) => item.id))
      await seen.gate
    },
    onFull: () => {
      seen.full++
    },
    makesReady: () => options.endsMakeReady ?? true,
    log: silentLog,
  })
  const add = (...ids: string[]): void => void waiting.push(...ids.map((id) => ({ id, project_id: 'p' })))
  return { loop, waiting, suspects, under, seen, add }
}

const SEEN = { has_ready: true, has_suspects: true }
const settle = async (): Promise<void> => {
  for (let turns = 0; turns < 10; turns++) await new Promise(setImmediate)
}

test('as many rows are under way as there are slots, and a slot that becomes free takes the next row', async () => {
  const { loop, under, seen, add } = setUp(2)
  add('a', 'b', 'c')
  loop.poke()
  await settle()
  assert.deepEqual([...under.keys()], ['a', 'b'])
  assert.equal(seen.full, 1, 'other processes are told that there may be more rows')
  under.get('a')?.(true)
  await settle()
  assert.deepEqual([...under.keys()], ['b', 'c'])
})

test('slots that become free during a claim are filled too, though the claim had no room for all rows', async () => {
  const { loop, under, waiting, seen, add } = setUp(10, { endsMakeReady: false })
  add(...'abcd')
  loop.poke()
  await settle()
  assert.equal(under.size, 4)
  // Of the six slots that are free two are kept, so this claim takes four rows of six; the first four end meanwhile.
  add(...'efghij')
  const gate = Promise.withResolvers<void>()
  seen.claimGate = gate.promise
  seen.keepsSlots = true
  loop.poke()
  await settle()
  for (const end of [...under.values()]) end(true)
  await settle()
  gate.resolve()
  await settle()
  assert.deepEqual([[...under.keys()].join(''), waiting.length], ['efghij', 0])
})

test('many pokes at once make few claims, and no poke is lost', async () => {
  const { loop, under, seen, add } = setUp(100)
  for (let index = 0; index < 50; index++) {
    add(`${index}`)
    loop.poke()
  }
  await settle()
  assert.equal(under.size, 50)
  assert.ok(seen.claims <= 4, `${seen.claims}`)
})

test('a claim that fails is made again at the next poke', async () => {
  const { loop, under, seen, add } = setUp(1)
  seen.failNext = true
  add('a')
  loop.poke()
  await settle()
  assert.equal(under.size, 0)
  loop.poke()
  await settle()
  assert.equal(under.size, 1)
})

test('an end that makes nothing ready is followed by a claim only if rows were left behind', async () => {
  const { loop, under, seen, add } = setUp(10, { endsMakeReady: false })
  add('a')
  loop.poke()
  await settle()
  const before = seen.claims
  under.get('a')?.(true)
  await settle()
  assert.equal(seen.claims, before)
  add(...'bcdefghijklm')
  loop.poke()
  await settle()
  under.get('b')?.(true)
  await settle()
  assert.ok(seen.claims > before + 1)
})

test('suspects take one slot, one after the other, while everything else is served', async () => {
  const { loop, suspects, under, add } = setUp(3)
  add('a')
  suspects.push({ id: 's', project_id: 'p' }, { id: 't', project_id: 'p' })
  await loop.sweep(SEEN)
  await settle()
  assert.deepEqual([...under.keys()].toSorted(), ['a', 's'])
  await loop.sweep(SEEN)
  await settle()
  assert.deepEqual([...under.keys()].toSorted(), ['a', 's'], 'one suspect at a time')
  under.get('s')?.(true)
  await settle()
  await loop.sweep(SEEN)
  await settle()
  assert.deepEqual([...under.keys()].toSorted(), ['a', 't'])
})

test('rows that this process owns in the database but does not work on are freed, and nothing is claimed meanwhile', async () => {
  const { loop, under, seen, add } = setUp(2)
  await loop.sweep(SEEN)
  assert.deepEqual(seen.freed, [[]], 'at first there may be such rows')
  await loop.sweep(SEEN)
  assert.equal(seen.freed.length, 1)
  add('a', 'b')
  loop.poke()
  await settle()
  under.get('a')?.(false)
  await settle()
  await loop.sweep(SEEN)
  assert.deepEqual(seen.freed.at(-1), ['b'])
})

test('nothing is claimed while strays are looked for, because a new row would be taken for a stray', async () => {
  const { loop, under, seen, add } = setUp(2)
  const gate = Promise.withResolvers<void>()
  seen.gate = gate.promise
  const sweeping = loop.sweep(SEEN)
  add('a')
  loop.poke()
  await settle()
  assert.equal(seen.claims, 0)
  assert.equal(loop.reserve('p'), false)
  gate.resolve()
  await sweeping
  await settle()
  assert.deepEqual([...under.keys()], ['a'])
})

test('after close nothing is claimed, and stop waits for the rows under way', async () => {
  const { loop, waiting, under, add } = setUp(2)
  add('a')
  loop.poke()
  await settle()
  loop.close()
  add('b')
  loop.poke()
  let isStopped = false
  const stopping = loop.stop().then(() => {
    isStopped = true
  })
  await settle()
  assert.deepEqual([...under.keys()], ['a'])
  assert.equal(isStopped, false)
  under.get('a')?.(true)
  await stopping
  assert.deepEqual(
    waiting.map((item) => item.id),
    ['b'],
  )
})

test('a process without slots claims nothing', async () => {
  const { loop, seen, add } = setUp(0)
  add('a')
  loop.poke()
  await settle()
  assert.equal(seen.claims, 0)
})

test('a suspect whose claim got no answer is freed and passed on, and other rows are claimed meanwhile', async () => {
  const { loop, under, seen, suspects, add } = setUp(4)
  await loop.sweep({ has_ready: false, has_suspects: false })
  suspects.push({ id: 's', project_id: 'p' })
  add('a')
  seen.losesAnswer = true
  await assert.rejects(loop.sweep(SEEN), /connection was cut/)
  seen.losesAnswer = false
  await settle()
  assert.deepEqual([...under.keys()], ['a'])
  assert.equal(seen.held, 's')
  const freedBefore = seen.freed.length
  suspects.push({ id: 't', project_id: 'p' })
  await loop.sweep({ has_ready: false, has_suspects: true })
  await loop.sweep({ has_ready: false, has_suspects: true })
  assert.ok(seen.freed.length > freedBefore, 'strays were not freed')
  assert.ok(under.has('t'), 'no suspect is taken any more')
  for (const end of under.values()) end(true)
  await loop.stop()
})

test('a burst of rows that need no claim takes no more slots than there are, and leaves the kept slots free', async () => {
  const { loop, under, seen, add } = setUp(9)
  const reserved = Array.from({ length: 30 }, () => loop.reserve('p')).filter(Boolean)
  assert.equal(reserved.length, 8)
  assert.equal(loop.reserve('newcomer'), true)
  for (let index = 0; index < 7; index++) loop.adopt({ id: `r${index}`, project_id: 'p' })
  loop.adopt({ id: 'n', project_id: 'newcomer' })
  assert.equal(under.size, 8)
  add('a')
  loop.poke()
  await settle()
  assert.equal(seen.claims, 0, 'no slot was free')
  // The eighth row was not stored.
  loop.unreserve('p')
  await settle()
  assert.ok(under.has('a'))
  for (const end of under.values()) end(true)
  await loop.stop()
})
