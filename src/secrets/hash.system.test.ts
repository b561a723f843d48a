import assert from 'node:assert/strict'
import { createHook } from 'node:async_hooks'
import { test } from 'node:test'
import { MusterError } from '../kernel/errors.ts'
import { createSecretCheck, hashPassword, sha256, spendPasswordTime, verifyPassword } from './hash.ts'

test('secrets are equal only when they are the same, also when their lengths differ', () => {
  const cases: [string, string, boolean][] = [
    ['a', 'a', true],
    ['', '', true],
    ['a', 'b', false],
    ['a', 'aa', false],
    ['', 'a', false],
    ['é', 'e\u0301', false],
  ]
  for (const [a, b, equal] of cases) assert.equal(createSecretCheck(a)(b), equal, `${a} ${b}`)
  assert.equal(sha256('abc').toString('hex'), 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad')
})

test('a password verifies against its own hash only, in any Unicode form', async () => {
  const stored = await hashPassword('pässword one')
  assert.match(stored, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/)
  assert.equal(await verifyPassword('pässword one', stored), true)
  assert.equal(await verifyPassword('pa\u0308ssword one', stored), true)
  assert.equal(await verifyPassword('pässword two', stored), false)
  assert.notEqual(await hashPassword('pässword one'), stored)
})

test('the hash is the same as that of other argon2 implementations', async () => {
  // From the reference implementation: echo -n password | argon2 somesalt -id -t 2 -k 65536 -p 1 -l 32 -e
  const stored = '$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc'
  assert.equal(await verifyPassword('password', stored), true)
  assert.equal(await verifyPassword('Password', stored), false)
})

test('a stored value that is no hash of ours is a wrong password, not an error or a stall', async () => {
  for (const stored of [
    '',
    'plain',
    '$argon2i$v=19$m=19456,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc',
    '$argon2id$v=19$m=9999999,t=99,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc',
    '$argon2id$v=19$m=19456,t=0,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc',
  ]) {
    assert.equal(await verifyPassword('password', stored), false, stored)
  }
})

/** The number of Argon2 computations that start while `work` runs, and the most that were under way at once. */
async function watchHashes(work: () => Promise<unknown>): Promise<{ asked: number; most: number }> {
  const underWay = new Set<number>()
  const seen = { asked: 0, most: 0 }
  const hook = createHook({
    init(id, type) {
      if (type !== 'ARGON2REQUEST') return
      underWay.add(id)
      seen.asked += 1
      seen.most = Math.max(seen.most, underWay.size)
    },
    before: (id) => underWay.delete(id),
  }).enable()
  await work()
  hook.disable()
  return seen
}

test('an unknown address costs the same hash as a wrong password', async () => {
  const stored = await hashPassword('right password')
  const wrong = await watchHashes(() => verifyPassword('wrong password', stored))
  const unknown = await watchHashes(() => spendPasswordTime('wrong password'))
  assert.deepEqual([wrong.asked, unknown.asked], [1, 1])
})

test('a burst is hashed two at a time, and requests beyond the queue are told to come back', async () => {
  let results: PromiseSettledResult<void>[] = []
  const seen = await watchHashes(async () => {
    results = await Promise.allSettled(Array.from({ length: 110 }, () => spendPasswordTime('password')))
  })
  assert.deepEqual(seen, { asked: 102, most: 2 })
  const refused = results.filter((result) => result.status === 'rejected')
  assert.equal(refused.length, 110 - 102)
  for (const { reason } of refused) {
    assert.ok(reason instanceof MusterError)
    assert.equal(reason.code, 'UNAVAILABLE')
  }
  assert.equal(await verifyPassword('password', await hashPassword('password')), true)
})
