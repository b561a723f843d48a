import assert from 'node:assert/strict'
import { test } from 'node:test'
import { changedPieces, propertyChanges } from './property-diff.ts'

test('each property is added, removed, changed or the same, with its values as text', () => {
  assert.deepEqual(
    propertyChanges({ name: 'Ada', born: 1815, gone: true }, { name: 'Ada', born: '1815', phone: '+44' }),
    [
      { name: 'name', kind: 'same', was: '"Ada"', willBe: '"Ada"' },
      { name: 'born', kind: 'changed', was: '1815', willBe: '"1815"' },
      { name: 'gone', kind: 'removed', was: 'true', willBe: null },
      { name: 'phone', kind: 'added', was: null, willBe: '"+44"' },
    ],
  )
})

test('an object that does not exist yet has only added properties', () => {
  const properties: Record<string, unknown> = JSON.parse('{"__proto__": 1, "a": null}')
  assert.deepEqual(
    propertyChanges(null, properties).map(({ name, kind, willBe }) => [name, kind, willBe]),
    [
      ['__proto__', 'added', '1'],
      ['a', 'added', 'null'],
    ],
  )
})

test('a mark that hides or turns text is shown', () => {
  const [change] = propertyChanges({ file: 'a' }, { file: 'safe\u202etxt.exe' })
  assert.equal(change?.willBe, '"safe⟨U+202E⟩txt.exe"')
})

test('of long texts that are alike only the words that changed are marked', () => {
  const was = 'The quick brown fox jumps over the lazy dog, every single day.'
  const pieces = changedPieces(was, was.replace('lazy', 'sleepy'))
  assert.deepEqual(
    pieces?.filter(({ kind }) => kind !== 'same'),
    [
      { text: 'lazy', kind: 'removed' },
      { text: 'sleepy', kind: 'added' },
    ],
  )
})

test('short texts, and texts with little in common, are shown whole', () => {
  assert.equal(changedPieces('"a"', '"b"'), null)
  assert.equal(
    changedPieces('a b c d e f g h i j k l m n o p q r s t', 'Something else entirely stands here now, really.'),
    null,
  )
  assert.equal(changedPieces('x '.repeat(20_000), 'x '.repeat(20_001)), null)
})
