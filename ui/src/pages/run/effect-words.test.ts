import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RunEffect } from '../../../../src/kernel/run.ts'
import type { Step } from '../../api/shapes.ts'
import { effectsAfter, repeatSentence, resumeSentence } from './effect-words.ts'

const AT = '2026-01-02T03:04:05.000Z'
const effect = (change: Partial<RunEffect> = {}): RunEffect => ({
  run_id: 'r',
  step: 1,
  call_id: 'c',
  tool: 'refund',
  args: {},
  result: {},
  key: 'k',
  effect: 'unsafe',
  outcome: 'finished',
  at: AT,
  ...change,
})

test('Resume says where it continues, and which calls are not repeated', () => {
  const after = (step_count: number, ...effects: RunEffect[]) =>
    resumeSentence({ step_count }, { items: effects, truncated: false })
  const unknown = effect({ outcome: 'unknown' })
  assert.equal(after(0), 'Begins with its first step.')
  assert.equal(after(4), 'Continues after step 4.')
  assert.equal(after(4, effect()), 'Continues after step 4; 1 call took effect and is not repeated.')
  assert.equal(after(4, effect(), effect()), 'Continues after step 4; 2 calls took effect and are not repeated.')
  assert.equal(
    after(1, unknown),
    'Continues after step 1. The outcome of 1 call is unknown. You will be asked about it.',
  )
  assert.equal(
    after(2, effect(), unknown, unknown),
    'Continues after step 2; 1 call took effect and is not repeated. The outcome of 2 calls is unknown. You will be asked about them.',
  )
  assert.equal(after(1, effect({ outcome: 'unknown', effect: 'keyed' })), 'Continues after step 1.')
  assert.equal(after(1, effect({ outcome: 'unknown', effect: 'run' })), 'Continues after step 1.')
  assert.equal(
    resumeSentence({ step_count: 1 }, { items: [effect()], truncated: true }),
    'Continues after step 1; more than 1 call took effect and is not repeated.',
  )
})

test('the calls that a new start may repeat are counted', () => {
  assert.equal(repeatSentence([effect()]), 'This call may be made a second time:')
  assert.equal(repeatSentence([effect(), effect()]), 'These 2 calls may be made a second time:')
})

test('a fork may repeat the calls after its step, and those that sub-runs made after it', () => {
  const at = (second: number): string => `2026-01-02T03:04:0${second}.000Z`
  const model = (step: number, second: number) => ({ kind: 'model', step, started_at: at(second) }) as Step
  const tool = (step: number, call_id: string) => ({ kind: 'tool', step, call_id, started_at: at(0) }) as Step
  const steps = [model(1, 1), tool(1, 'a'), model(2, 3), model(3, 6), tool(3, 'a')]
  const effects = [
    effect({ step: 1, call_id: 'a', at: at(2) }),
    // A sub-run counts its own steps.
    effect({ run_id: 'below', step: 1, call_id: 'x', at: at(4) }),
    effect({ step: 3, call_id: 'a', at: at(7) }),
  ]
  const after = (step: number) => effectsAfter(effects, steps, step).map((each) => [each.run_id, each.step])
  assert.deepEqual(after(0).length, 3)
  assert.deepEqual(after(1), [
    ['below', 1],
    ['r', 3],
  ])
  assert.deepEqual(after(2), [['r', 3]])
  assert.deepEqual(after(3), [])
})
