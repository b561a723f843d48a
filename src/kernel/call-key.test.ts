import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type CallCounts, callKey, countCall, identityOf, uncountCall } from './call-key.ts'

const refund = (args: unknown): string => identityOf({ name: 'refund', args, effect: 'keyed' })

const same: [string, unknown, unknown][] = [
  ['the order of keys', { a: 1, b: { c: 2, d: 3 } }, { b: { d: 3, c: 2 }, a: 1 }],
  ['the form of numbers', JSON.parse('{"amount": 1.50}'), JSON.parse('{"amount": 15e-1}')],
  ['an instant in place of its text', { at: new Date(0) }, { at: '1970-01-01T00:00:00.000Z' }],
  ['values that are left out', { order: 1, note: undefined }, { order: 1 }],
]
for (const [name, one, other] of same) {
  test(`${name} does not change the identity of a call`, () => {
    assert.equal(refund(one), refund(other))
  })
}

test('arguments that steer Muster are not part of a change of the graph', () => {
  const change = (args: object) => identityOf({ name: 'object_create', args: { type: 'A', ...args }, effect: 'run' })
  assert.equal(change({ reasoning: 'Because.' }), change({ reasoning: 'Why not.' }))
  assert.equal(change({ apply: 'execute' }), change({ muster_apply: 'suggest' }))
})

const different: [string, unknown, unknown][] = [
  ['another value', { order: 1 }, { order: 2 }],
  ['another instant', { at: new Date(0) }, { at: new Date(1) }],
  ['a text in place of a number', { order: 1 }, { order: '1' }],
  ['another order of a list', { orders: [1, 2] }, { orders: [2, 1] }],
  ["a tool's own argument that is called apply", { order: 1, apply: 'plan' }, { order: 1, apply: 'destroy' }],
  ['a reasoning deeper inside', { order: { reasoning: 'a' } }, { order: { reasoning: 'b' } }],
]
for (const [name, one, other] of different) {
  test(`${name} makes another call`, () => {
    assert.notEqual(refund(one), refund(other))
  })
}

test('the tool, the scope and the occurrence are parts of the key', () => {
  const identity = refund({})
  const keys = [
    callKey('one', identity, 1),
    callKey('one', identity, 2),
    callKey('two', identity, 1),
    callKey('one', identityOf({ name: 'mail', args: {}, effect: 'unsafe' }), 1),
  ]
  assert.equal(new Set(keys).size, keys.length)
  assert.equal(callKey('one', identity, 1), keys[0])
})

test('calls with one identity are counted from 1', () => {
  const counts: CallCounts = new Map()
  assert.deepEqual([countCall(counts, 'a'), countCall(counts, 'b'), countCall(counts, 'a')], [1, 1, 2])
})

test('a call without a result is no occurrence: the next one takes its place', () => {
  const counts: CallCounts = new Map()
  for (let times = 0; times < 3; times++) countCall(counts, 'a')
  uncountCall(counts, 'a', 2)
  uncountCall(counts, 'a', 1)
  assert.deepEqual([countCall(counts, 'a'), countCall(counts, 'a'), countCall(counts, 'a')], [1, 2, 4])
})
