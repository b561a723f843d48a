import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isWellFormedKey, makeKey } from './key-format.ts'

test('a key holds 256 random bits, starts with its prefix, and is well formed', () => {
  const { key, prefix } = makeKey()
  assert.ok(key.startsWith(prefix))
  assert.ok(isWellFormedKey(key))
  assert.equal(Buffer.from(key.slice(3, 46), 'base64url').length, 32)
})

test('a key with any one character changed is refused without a look-up', () => {
  const { key } = makeKey()
  for (let at = 0; at < key.length; at++) {
    const changed = key.slice(0, at) + (key[at] === 'A' ? 'B' : 'A') + key.slice(at + 1)
    assert.equal(isWellFormedKey(changed), false, `position ${at}`)
  }
})

test('a made-up key is refused', () => {
  for (const text of ['', 'mk_', `mk_${'a'.repeat(49)}`, 'x'.repeat(52), `${makeKey().key}=`]) {
    assert.equal(isWellFormedKey(text), false)
  }
})
