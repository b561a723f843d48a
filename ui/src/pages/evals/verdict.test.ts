import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CaseResult, Eval } from '../../../../src/kernel/eval.ts'
import { casesOf, filterCases, meaningOf, percent, points, verdictOf, wordOf } from './verdict.ts'

const result = (index: number, passed: boolean | null, more: Partial<CaseResult> = {}): CaseResult => ({
  index,
  task: `Task ${index}`,
  passed,
  status: passed === null ? null : 'DONE',
  route: [],
  output: null,
  reason: null,
  latency: null,
  tokens: null,
  run_id: null,
  ...more,
})

const none = { pass_rate: null, latency: null, tokens: null }

function made(outcomes: Record<string, (boolean | null)[]>, more: Partial<Eval> = {}): Eval {
  const compared = Object.keys(outcomes)
  const rate = (passed: (boolean | null)[]): number | null => {
    const known = passed.filter((each) => each !== null)
    return known.length === 0 ? null : known.filter(Boolean).length / known.length
  }
  const first = rate(outcomes[compared[0] ?? ''] ?? [])
  const total = Math.max(...Object.values(outcomes).map(({ length }) => length))
  const variants = Object.entries(outcomes).map(([name, passed], place) => {
    const own = rate(passed)
    const delta = own === null || first === null ? null : own - first
    const versus = {
      deltas: { ...none, pass_rate: delta },
      intervals: { ...none, pass_rate: more.intervals?.pass_rate ?? null },
    }
    const correctness = { status: null, routing: null, escalation: null }
    const cases = passed.map((each, index) => result(index, each))
    return [
      name,
      { pass_rate: own, latency: null, tokens: null, correctness, versus_first: place === 0 ? null : versus, cases },
    ]
  })
  const changed = Array.from({ length: total }, (_, index) => index).flatMap((index) => {
    const passed = compared.map((name) => outcomes[name]?.[index] ?? null).filter((each) => each !== null)
    return new Set(passed).size > 1 ? [{ index, task: `Task ${index}`, passed: {} }] : []
  })
  return {
    id: 'e',
    project_id: 'p',
    name: 'An eval',
    status: 'completed',
    error_message: null,
    compared,
    progress: { done: total, total },
    created_at: '2026-01-01T00:00:00.000Z',
    completed_at: null,
    variants: Object.fromEntries(variants),
    deltas: none,
    intervals: none,
    changed,
    ...more,
  }
}

test('shares and differences are written for people', () => {
  assert.deepEqual(
    [percent(0.666), percent(null), points(0.2), points(-0.01), points(0)],
    ['67 %', '–', '+20 points', '−1 point', 'no difference'],
  )
})

const meanings: [delta: number | null, interval: [number, number] | null, isMoreBetter: boolean, meaning: string][] = [
  [0.2, [0.1, 0.3], true, 'better'],
  [-0.2, [-0.3, -0.1], true, 'worse'],
  [-120, [-200, -40], false, 'better'],
  [120, [40, 200], false, 'worse'],
  [0.2, [-0.1, 0.5], true, 'chance'],
  [0.2, null, true, 'unknown'],
  [null, null, true, 'unknown'],
]

for (const [delta, interval, isMoreBetter, meaning] of meanings) {
  test(`a delta of ${delta} within ${JSON.stringify(interval)} is ${meaning} where ${isMoreBetter ? 'more' : 'less'} is better`, () => {
    assert.equal(meaningOf(delta, interval, isMoreBetter), meaning)
  })
}

test('a finished eval says what each variant passes, and whether the difference may be chance', () => {
  const one = made({ blue: [true, false], green: [true, true] }, { intervals: { ...none, pass_rate: [-0.5, 1] } })
  assert.deepEqual(verdictOf(one), {
    tone: 'completed',
    text: 'blue passes 50 %. green passes 100 %, +50 points, which may be chance.',
  })
  const worse = made({ blue: [true, true], green: [false, false] }, { intervals: { ...none, pass_rate: [-1, -0.2] } })
  assert.deepEqual(verdictOf(worse).tone, 'blocked')
})

test('an eval under way, a cancelled and a failed one say so', () => {
  const running = made({ blue: [true, null] }, { status: 'running', progress: { done: 1, total: 2 } })
  assert.deepEqual(verdictOf(running), { tone: 'running', text: '1 of 2 results are there. blue passes 100 %.' })
  const cancelled = made({ blue: [null] }, { status: 'cancelled', progress: { done: 0, total: 1 } })
  assert.equal(verdictOf(cancelled).text, 'The eval was cancelled after 0 of 1 results.')
  const failed = made({ blue: [null] }, { status: 'failed', error_message: 'No system.' })
  assert.deepEqual(verdictOf(failed), { tone: 'failed', text: 'No system.' })
})

test('cases that changed come first, then those that failed, each by number', () => {
  const rows = casesOf(made({ blue: [true, false, true, true], green: [true, false, true, false] }), true)
  assert.deepEqual(
    rows.map(({ index, isChanged }) => [index, isChanged]),
    [
      [3, true],
      [1, false],
      [0, false],
      [2, false],
    ],
  )
  assert.deepEqual(
    [filterCases(rows, 'changed'), filterCases(rows, 'failed')].map((shown) => shown.map(({ index }) => index)),
    [[3], [3, 1]],
  )
})

test('the rows of an eval under way keep the order of the cases', () => {
  const rows = casesOf(made({ blue: [true, false], green: [true, true] }), false)
  assert.deepEqual(
    rows.map(({ index }) => index),
    [0, 1],
  )
})

test('a case without an outcome is under way', () => {
  const rows = casesOf(made({ blue: [true, null], green: [true, true] }, { status: 'running' }), false)
  assert.deepEqual(
    filterCases(rows, 'under way').map(({ index }) => index),
    [1],
  )
  assert.deepEqual(
    [wordOf(null), wordOf(result(0, null, { status: 'RUNNING' })), wordOf(result(0, false)), wordOf(result(0, true))],
    ['pending', 'running', 'failed', 'passed'],
  )
})
