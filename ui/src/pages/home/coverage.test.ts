import assert from 'node:assert/strict'
import { test } from 'node:test'
import { coverageLine, isPart, nextReads } from './coverage.ts'

const of = (read: number, wanted: number, all: number, hasMore = false) => ({ read, wanted, all, hasMore })

test('figures of all projects need no words, also while few projects are being read', () => {
  assert.equal(coverageLine(of(3, 3, 3)), null)
  assert.equal(coverageLine(of(1, 24, 24)), null)
  assert.equal(coverageLine(of(41, 41, 41)), null)
  assert.ok(!isPart(of(1, 24, 24)))
})

test('figures of a part say which part', () => {
  assert.equal(coverageLine(of(0, 24, 41)), 'Of the newest 24 of your 41 projects.')
  assert.equal(coverageLine(of(124, 124, 300)), 'Of the newest 124 of your 300 projects.')
  assert.equal(coverageLine(of(5000, 5000, 5000, true)), 'Of the newest 5000 of your 5000+ projects.')
  assert.ok(isPart(of(5000, 5000, 5000, true)))
})

test('while many projects are being read, the words say how far it is', () => {
  assert.equal(coverageLine(of(30, 41, 41)), '30 of your 41 projects are read so far.')
  assert.equal(coverageLine(of(30, 124, 300)), '30 of the newest 124 of your 300 projects are read so far.')
})

test('the button reads the rest, or a hundred more', () => {
  assert.deepEqual(nextReads(of(24, 24, 41)), { label: 'Read all 41', most: 41 })
  assert.deepEqual(nextReads(of(24, 24, 300)), { label: 'Read 100 more', most: 124 })
  assert.deepEqual(nextReads(of(4990, 4990, 5000, true)), { label: 'Read 10 more', most: 5000 })
  assert.equal(nextReads(of(41, 41, 41)), null)
  assert.equal(nextReads(of(5000, 5000, 5000, true)), null)
})
