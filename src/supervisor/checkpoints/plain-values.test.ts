import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Overwrite, Send } from '@langchain/langgraph'
import fc from 'fast-check'
import { howMany } from '../../../test/kit/how-many.ts'
import { decodeFields, decodeValue, encodeValue, type OwnClass } from './plain-values.ts'

const again = (value: unknown): unknown => decodeValue(encodeValue('It', value))

class Point {
  x = 1
}

const loop: Record<string, unknown> = {}
loop.self = { loop }

const deep = (levels: number): unknown => (levels === 0 ? 1 : [deep(levels - 1)])

/** A value that counts as two to the power of `levels` values, because its parts are shared. */
const shared = (levels: number): unknown => {
  let value: unknown = 'x'
  for (let level = 0; level < levels; level++) value = [value, value]
  return value
}

const kept: { what: string; value: unknown }[] = [
  {
    what: 'texts, with NUL, halves of surrogate pairs and other scripts',
    value: ['', 'a\0b', '\ud800', '\udc00x', '日本', '😀'],
  },
  { what: 'numbers', value: [0, -0, 1.5, -1e-320, 1.7e308, Number.MAX_SAFE_INTEGER, 1e21] },
  { what: 'nothing', value: [null, undefined, { a: undefined, b: null }, [], {}] },
  { what: 'undefined alone', value: undefined },
  { what: 'the order of keys', value: { b: 1, a: 2, '10': 3, '9': 4 } },
  {
    what: 'keys with a meaning elsewhere',
    value: JSON.parse('{"__proto__": {"a": 1}, "constructor": 1, "toJSON": 2}'),
  },
  { what: 'bytes', value: { a: Uint8Array.of(0, 255, 1), b: new Uint8Array() } },
  { what: 'bytes alone', value: Uint8Array.of(1, 2, 3) },
  { what: 'our own mark', value: { $kept: 'undefined', other: [{ $kept: { $kept: undefined } }] } },
  {
    what: 'a value that LangChain would make an object of',
    value: { lc: 1, type: 'constructor', id: ['langchain', 'x'], kwargs: {} },
  },
  {
    what: 'a value that LangGraph would turn into a Map',
    value: { lc: 2, type: 'constructor', id: ['Map'], args: [[]] },
  },
  { what: 'a value that LangGraph would leave out', value: { lc: 2, type: 'undefined' } },
  { what: 'a date as a text', value: new Date(0).toISOString() },
]

for (const { what, value } of kept) {
  test(`kept exactly: ${what}`, () => {
    assert.deepStrictEqual(again(value), value)
    assert.deepStrictEqual(Object.keys(Object(again(value))), Object.keys(Object(value)))
  })
}

const refused: { what: string; value: unknown; says: string }[] = [
  { what: 'a function', value: { a: [1, () => 1] }, says: 'It.a[1] is a function.' },
  { what: 'a method', value: { toJSON: () => 1 }, says: 'It.toJSON is a function.' },
  { what: 'a symbol', value: { a: Symbol('x') }, says: 'It.a is a symbol.' },
  { what: 'a key that is a symbol', value: { a: { [Symbol('x')]: 1 } }, says: 'It.a has the key Symbol(x), a symbol.' },
  { what: 'a bigint', value: [1n], says: 'It[0] is a bigint.' },
  { what: 'NaN', value: { a: Number.NaN }, says: 'It.a is NaN.' },
  { what: 'infinity', value: -Infinity, says: 'It is -Infinity.' },
  { what: 'a date', value: { when: new Date(0) }, says: 'It.when is an instance of Date.' },
  { what: 'a map', value: { a: new Map() }, says: 'It.a is an instance of Map.' },
  { what: 'a set', value: [[new Set([1])]], says: 'It[0][0] is an instance of Set.' },
  { what: 'a pattern', value: /x/, says: 'It is an instance of RegExp.' },
  { what: 'an error', value: { e: new RangeError('x') }, says: 'It.e is an instance of RangeError.' },
  { what: 'an instance of a class', value: { a: new Point() }, says: 'It.a is an instance of Point.' },
  { what: 'a boxed text', value: { a: Object('x') }, says: 'It.a is an instance of String.' },
  { what: 'a Buffer', value: { a: Buffer.from('x') }, says: 'It.a is an instance of Buffer.' },
  { what: 'other typed arrays', value: { a: new Float64Array(1) }, says: 'It.a is an instance of Float64Array.' },
  { what: 'a promise', value: Promise.resolve(1), says: 'It is an instance of Promise.' },
  {
    what: 'an object without a prototype',
    value: { a: Object.create(null) },
    says: 'It.a is an object without a prototype.',
  },
  {
    what: 'a getter',
    value: Object.defineProperty({}, 'a', { get: () => 1, enumerable: true }),
    says: 'It.a is not a plain field.',
  },
  { what: 'a hidden field', value: Object.defineProperty({}, 'a', { value: 1 }), says: 'It.a is not a plain field.' },
  { what: 'a list with a hole', value: { a: new Array(2) }, says: 'It.a is a list with holes' },
  {
    what: 'a list with fields',
    value: 'ab'.match(/b/),
    says: 'It is a list with holes, or with fields beside its elements.',
  },
  {
    what: 'a list with a hole and a field',
    value: Object.assign(new Array(1), { x: 1 }),
    says: 'It is a list with holes',
  },
  { what: 'a list with a symbol', value: Object.assign([1], { [Symbol('x')]: 1 }), says: 'It is a list with holes' },
  { what: 'a list of a class of its own', value: new (class List extends Array {})(), says: 'It is a list with holes' },
  { what: 'a cycle', value: loop, says: 'It.self.loop holds itself.' },
  { what: 'depth without end', value: deep(1_000), says: 'is more than 200 levels deep.' },
  { what: 'more values than memory holds', value: shared(60), says: 'would hold more than 1000000 values.' },
  {
    what: 'more text than a database takes',
    value: Array(65).fill('x'.repeat(1_048_576)),
    says: 'would hold more than 67108864 characters.',
  },
  { what: 'LangGraph’s own object in a state', value: { a: new Send('x', {}) }, says: 'It.a is an instance of Send.' },
]

for (const { what, value, says } of refused) {
  test(`refused, with its path: ${what}`, () => {
    assert.throws(
      () => again(value),
      (error) => error instanceof TypeError && error.message.includes(says),
    )
  })
}

test('every value is refused or kept exactly', () => {
  const anything = fc.anything({
    withBigInt: true,
    withBoxedValues: true,
    withDate: true,
    withMap: true,
    withNullPrototype: true,
    withObjectString: true,
    withSet: true,
    withSparseArray: true,
    withTypedArray: true,
    withUnicodeString: true,
    withUndefined: true,
  } as fc.ObjectConstraints)
  let keptCount = 0
  fc.assert(
    fc.property(anything, (value) => {
      let text: string
      try {
        text = encodeValue('It', value)
      } catch (error) {
        return error instanceof TypeError
      }
      keptCount += 1
      assert.deepStrictEqual(decodeValue(text), value)
      assert.deepStrictEqual(decodeFields(`{"a":${text}}`), { a: value })
      return true
    }),
    { numRuns: howMany(2_000, 200_000) },
  )
  assert.ok(keptCount > 200, `only ${keptCount} were kept`)
})

const own: { of: OwnClass; value: unknown; becomes: unknown }[] = [
  { of: 'Send', value: new Send('node', { a: [1] }), becomes: { node: 'node', args: { a: [1] } } },
  { of: 'Send', value: [new Send('node', undefined)], becomes: [{ node: 'node', args: undefined }] },
  { of: 'Overwrite', value: new Overwrite([1]), becomes: { __overwrite__: [1] } },
]

for (const { of, value, becomes } of own) {
  test(`LangGraph’s own ${of} becomes the plain object that LangGraph accepts for it`, () => {
    assert.deepStrictEqual(decodeValue(encodeValue('It', value, { own: of })), becomes)
  })
}

test('the contents of LangGraph’s own objects are checked, and such objects are refused in other places', () => {
  const encode = (value: unknown) => () => encodeValue('It', value, { own: 'Send' })
  assert.throws(encode(new Send('node', { when: new Date() })), /It\.args\.when is an instance of Date/)
  assert.throws(encode(new Overwrite(1)), /It is an instance of Overwrite/)
  assert.throws(encode([[new Send('node', 1)]]), /It\[0\]\[0\] is an instance of Send/)
})

test('texts that PostgreSQL reads must be valid for PostgreSQL', () => {
  const encode = (value: unknown) => () => encodeValue('It', value, { isRead: true })
  assert.throws(encode({ a: 'x\0' }), /It\.a holds NUL/)
  assert.throws(encode({ 'a\ud800': 1 }), /holds NUL or half of a surrogate pair/)
  assert.equal(encode({ a: '😀\\u0000' })(), JSON.stringify({ a: '😀\\u0000' }))
})
