import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inspect } from 'node:util'
import { createCipher, type SecretContext, SecretUnreadable, type UnreadableReason } from './cipher.ts'

const context = { owner: 'project-a', name: 'openai' }
const canary = 'CANARY-sk-very-secret'

function unreadable(reason: UnreadableReason) {
  return (error: unknown) => {
    assert.ok(error instanceof SecretUnreadable)
    assert.equal(error.reason, reason)
    assert.ok(!inspect(error).includes('CANARY'))
    return true
  }
}

test('a sealed value opens to the value that was sealed, whatever its bytes', () => {
  const cipher = createCipher('key')
  for (const plain of ['', 'x', canary, 'ünï ✓ \u0000', 'long '.repeat(100_000)]) {
    assert.equal(cipher.open(cipher.seal(plain, context), context).toString(), plain)
  }
  const bytes = Buffer.from([0, 255, 1, 254])
  assert.deepEqual(cipher.open(cipher.seal(bytes, context), context), bytes)
})

test('a sealed value reveals neither the plain text nor whether two values are the same', () => {
  const cipher = createCipher('key')
  const sealed = cipher.seal(canary, context)
  assert.ok(!sealed.includes(canary))
  assert.notDeepEqual(sealed, cipher.seal(canary, context))
})

test('every altered byte, every cut and every addition is found', () => {
  const cipher = createCipher('key')
  const sealed = cipher.seal(canary, context)
  for (let index = 0; index < sealed.length; index += 1) {
    for (const bit of [1, 128]) {
      const altered = Buffer.from(sealed)
      altered.writeUInt8(altered.readUInt8(index) ^ bit, index)
      assert.throws(() => cipher.open(altered, context), SecretUnreadable, `byte ${index}`)
    }
    assert.throws(() => cipher.open(sealed.subarray(0, index), context), SecretUnreadable, `cut at ${index}`)
  }
  assert.throws(() => cipher.open(Buffer.concat([sealed, Buffer.of(0)]), context), unreadable('altered'))
})

test('a value does not open for another owner or name, however the two are joined', () => {
  const cipher = createCipher('key')
  const cases: [SecretContext, SecretContext][] = [
    [context, { owner: 'project-b', name: 'openai' }],
    [context, { owner: 'project-a', name: 'google' }],
    [
      { owner: 'ab', name: 'c' },
      { owner: 'a', name: 'bc' },
    ],
    [
      { owner: 'a', name: '' },
      { owner: '', name: 'a' },
    ],
  ]
  for (const [sealedFor, openedFor] of cases) {
    const sealed = cipher.seal(canary, sealedFor)
    assert.throws(() => cipher.open(sealed, openedFor), unreadable('altered'))
    assert.equal(cipher.open(sealed, sealedFor).toString(), canary)
  }
})

test('another key is recognised before anything is opened, and an empty key is refused', () => {
  const sealed = createCipher('key').seal(canary, context)
  assert.throws(() => createCipher('other').open(sealed, context), unreadable('unknown_key'))
  assert.throws(() => createCipher('key').open(Buffer.from('not sealed'), context), unreadable('format'))
  assert.throws(() => createCipher(''), /empty/)
})

test('the fingerprint is the same for the same key only, and does not contain the key', () => {
  assert.equal(createCipher('key').fingerprint(), createCipher('key', ['old']).fingerprint())
  assert.notEqual(createCipher('key').fingerprint(), createCipher('kez').fingerprint())
  assert.match(createCipher('key').fingerprint(), /^[0-9a-f]{64}$/)
  assert.match(createCipher('key').keyId, /^[0-9a-f]{16}$/)
  assert.notEqual(createCipher('key').keyId, createCipher('kez').keyId)
})

test('after a rotation old values open, new ones use the new key, and the old key alone opens only the old', () => {
  const old = createCipher('old')
  const rotated = createCipher('new', ['older', 'old'])
  const before = old.seal(canary, context)
  const after = rotated.seal(canary, context)
  assert.equal(rotated.open(before, context).toString(), canary)
  assert.equal(rotated.open(after, context).toString(), canary)
  const keyIdIn = (sealed: Buffer): string => sealed.subarray(1, 9).toString('hex')
  assert.deepEqual([keyIdIn(before), keyIdIn(after)], [old.keyId, rotated.keyId])
  assert.throws(() => old.open(after, context), unreadable('unknown_key'))
})
