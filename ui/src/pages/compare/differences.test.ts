import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Run } from '../../../../src/kernel/run.ts'
import type { ToolStep } from '../../api/shapes.ts'
import { tokens } from '../../parts/figures.ts'
import type { Turn } from './align.ts'
import { differencesOf, figuresOf, moreOrLess } from './differences.ts'

const call: ToolStep = {
  kind: 'tool',
  step: 1,
  seq: 2,
  call_id: 'c',
  name: 'search',
  args: { q: 'a' },
  result: [1],
  is_error: false,
  blocked: null,
  started_at: '2026-01-01T00:00:00Z',
  duration: 1,
}
const turn = (text: string, tools: ToolStep[]): Turn =>
  ({
    step: 1,
    isInherited: false,
    tools,
    model: { text, tool_calls: tools.map(({ call_id: id, name, args }) => ({ id, name, args })) },
  }) as Turn // the fields that are compared

test('equal turns differ in nothing, and a turn alone has no difference', () => {
  assert.deepEqual(differencesOf({ left: turn('a', [call]), right: turn('a', [call]) }), [])
  assert.equal(differencesOf({ left: turn('a', []), right: null }), null)
})

test('each part that differs is named', () => {
  const cases: [ToolStep, string][] = [
    [{ ...call, args: { q: 'b' } }, 'arguments'],
    [{ ...call, result: [2] }, 'results'],
    [{ ...call, is_error: true }, 'outcome'],
    [{ ...call, blocked: 'capability' }, 'outcome'],
    [{ ...call, name: 'get' }, 'tool calls'],
  ]
  for (const [other, name] of cases) {
    assert.deepEqual(differencesOf({ left: turn('a', [call]), right: turn('a', [other]) }), [name])
  }
  assert.deepEqual(differencesOf({ left: turn('a', []), right: turn('b', []) }), ['text'])
})

test('numbers are told with their difference and its share', () => {
  assert.equal(moreOrLess(1_000, 1_500, tokens), '+500 (+50 %)')
  assert.equal(moreOrLess(200, 100, tokens), '−100 (−50 %)')
  assert.equal(moreOrLess(0, 100, tokens), '+100')
  assert.equal(moreOrLess(5, 5, tokens), null)
  assert.equal(moreOrLess(null, null, tokens), 'not known')
  assert.equal(moreOrLess(null, 5, tokens), 'not known')
})

test('the figures of two runs name what differs', () => {
  const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2, estimated: false, cost_usd: null }
  const run = {
    status: 'completed',
    pause_reason: null,
    input: { a: 1, b: 2 },
    step_count: 2,
    usage,
    duration: 500,
    summary: 'Yes.',
    error_message: null,
  } as unknown as Run
  const other = { ...run, input: { b: 2, a: 1 }, summary: 'No.', duration: 1_000 } as Run
  assert.deepEqual(
    figuresOf(run, other).flatMap(({ name, difference }) => (difference ? [[name, difference]] : [])),
    [
      ['Cost', 'not known'],
      ['Took', '+500 ms (+100 %)'],
      ['Answer', 'differs'],
    ],
  )
})

test('the models of two runs are told if they differ', () => {
  const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2, estimated: false, cost_usd: null }
  const of = (model: Run['model']): Run => ({ status: 'completed', pause_reason: null, usage, model }) as unknown as Run
  const owl = { provider: 'local', name: 'owl' }
  const models = (left: Run['model'], right: Run['model']): string[][] =>
    figuresOf(of(left), of(right)).flatMap((each) => (each.name === 'Model' ? [[each.left, each.right]] : []))
  assert.deepEqual(models(owl, { ...owl }), [])
  assert.deepEqual(models(owl, null), [['owl of local', '–']])
})
