import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Expectation } from '../kernel/eval.ts'
import { correctnessOf, judgeCase, type RunEnd } from './judge.ts'

const done = (over: Partial<RunEnd> = {}): RunEnd => ({
  status: 'DONE',
  output: 'Paris is the capital.',
  route: ['research_agent'],
  error: null,
  ...over,
})
const failed = done({ status: 'FAILED', output: null, route: [], error: { code: 'MODEL_ERROR', message: 'It broke.' } })

const table: [name: string, expect: Expectation, end: RunEnd, reason: string | null][] = [
  ['nothing is expected', {}, done(), null],
  ['an escalation of which nothing is expected', {}, done({ status: 'ESCALATE' }), null],
  ['a failure never passes unseen', {}, failed, 'The run is FAILED (MODEL_ERROR: It broke.).'],
  ['an expected failure passes', { status: 'FAILED' }, failed, null],
  ['the status', { status: 'DONE' }, done(), null],
  ['another status', { status: 'DONE' }, done({ status: 'ESCALATE' }), 'The status is ESCALATE; expected was DONE.'],
  [
    'a failure in place of a status',
    { status: 'DONE' },
    failed,
    'The status is FAILED (MODEL_ERROR: It broke.); expected was DONE.',
  ],
  ['a part of the output', { contains: 'capital' }, done(), null],
  ['case counts', { contains: 'paris' }, done(), 'The output does not contain "paris".'],
  ['there is no output', { contains: 'a', status: 'FAILED' }, failed, 'The output does not contain "a".'],
  ['the route', { route: ['research_agent'] }, done(), null],
  ['no specialist', { route: [] }, done({ route: [] }), null],
  [
    'one specialist too many',
    { route: ['research_agent'] },
    done({ route: ['research_agent', 'research_agent'] }),
    'The route is research_agent → research_agent; expected was research_agent.',
  ],
  ['another order', { route: ['a', 'b'] }, done({ route: ['b', 'a'] }), 'The route is b → a; expected was a → b.'],
  ['a specialist where none was expected', { route: [] }, done(), 'The route is research_agent; expected was empty.'],
  ['as many steps as allowed', { max_steps: 1 }, done(), null],
  [
    'more steps than allowed',
    { max_steps: 1 },
    done({ route: ['a', 'a'] }),
    'Specialists worked 2 times; at most 1 were expected.',
  ],
  [
    'every failed expectation is named',
    { status: 'ESCALATE', contains: 'Rome', route: [], max_steps: 0 },
    done(),
    'The status is DONE; expected was ESCALATE. The output does not contain "Rome". ' +
      'The route is research_agent; expected was empty. Specialists worked 1 times; at most 0 were expected.',
  ],
]

for (const [name, expect, end, reason] of table) {
  test(`judged: ${name}`, () => assert.equal(judgeCase(expect, end), reason))
}

test('a reason stays short', () => {
  const route = Array.from({ length: 1_000 }, () => 'x'.repeat(200))
  const reason = judgeCase({ contains: `${'😀'.repeat(5_000)}`, route }, done()) ?? ''
  assert.ok(reason.length < 5_000, `${reason.length}`)
  assert.match(reason, /980 more/)
  assert.ok(reason.isWellFormed())
})

test('correctness: statuses, routing and escalation, each over the cases that expect one', () => {
  const ends: Parameters<typeof correctnessOf>[0] = [
    { expect: { status: 'DONE' }, end: { status: 'DONE', route: [] } },
    { expect: { status: 'DONE' }, end: { status: 'FAILED', route: [] } },
    { expect: { status: 'ESCALATE' }, end: { status: 'DONE', route: [] } },
    { expect: { status: 'ESCALATE', route: ['a'] }, end: { status: 'ESCALATE', route: ['a'] } },
    { expect: { route: ['a', 'b'] }, end: { status: 'DONE', route: ['b', 'a'] } },
    { expect: {}, end: { status: 'FAILED', route: ['c'] } },
  ]
  assert.deepEqual(correctnessOf(ends), { status: 0.5, routing: 0.5, escalation: 0.75 })
  assert.deepEqual(correctnessOf([]), { status: null, routing: null, escalation: null })
})
