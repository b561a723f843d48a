import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Run } from '../../../../src/kernel/run.ts'
import { partnersOf } from './partners.ts'

const run = (id: string, more: Partial<Run> = {}): Run =>
  ({ id, agent_id: 'a', forked_from: null, resumed_from: null, ...more }) as Run // the fields that are read

test('the origin comes first, then runs that came from it, then other runs of the same agent', () => {
  const fork = run('fork', { forked_from: 'origin' })
  const recent = [run('new'), fork, run('child', { resumed_from: 'fork' }), run('other', { agent_id: 'b' })]
  assert.deepEqual(
    partnersOf(fork, run('origin'), recent).map(({ run: { id }, relation }) => [id, relation]),
    [
      ['origin', 'The run that this one was forked from'],
      ['child', 'The run that continues this one'],
      ['new', null],
    ],
  )
})

test('an origin that is among the recent runs stands there once', () => {
  const origin = run('origin')
  const resumed = run('resumed', { resumed_from: 'origin' })
  assert.deepEqual(
    partnersOf(resumed, origin, [resumed, origin]).map(({ run: { id } }) => id),
    ['origin'],
  )
})
