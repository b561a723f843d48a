import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type BudgetFacts,
  type CallVerdict,
  type ContextFacts,
  guardBudget,
  guardContext,
  guardModelCall,
  guardSteps,
  guardSwitches,
  guardTime,
  judgeEnding,
  type ModelCallFacts,
  type StepFacts,
  type TimeFacts,
} from './guards.ts'

type AllFacts = ModelCallFacts & BudgetFacts

/** A verdict in short: `go`, `wind_down step_limit`, `paused budget`. */
const short = (verdict: CallVerdict): string =>
  verdict.verdict === 'stop'
    ? `${verdict.status} ${verdict.reason ?? ''}`.trim()
    : [verdict.verdict, 'reason' in verdict ? verdict.reason : ''].join(' ').trim()

const steps: [Partial<StepFacts>, string][] = [
  [{ stepsDone: 0, maxSteps: null }, 'go'],
  [{ stepsDone: 100_000, maxSteps: null }, 'go'],
  [{ stepsDone: 0, maxSteps: 1 }, 'go'],
  [{ stepsDone: 1, maxSteps: 1 }, 'wind_down step_limit'],
  [{ stepsDone: 49, maxSteps: 50 }, 'go'],
  [{ stepsDone: 50, maxSteps: 50 }, 'wind_down step_limit'],
  [{ stepsDone: 51, maxSteps: 50, hasWoundDown: true }, 'paused step_limit'],
]

const time: [Partial<TimeFacts>, string][] = [
  [{ timeoutMs: null, elapsedMs: 1e9 }, 'go'],
  [{ timeoutMs: 1000, elapsedMs: 999 }, 'go'],
  [{ timeoutMs: 1000, elapsedMs: 1000 }, 'wind_down timeout'],
  [{ timeoutMs: 1000, elapsedMs: 30_999 }, 'wind_down timeout'],
  [{ timeoutMs: 1000, elapsedMs: 31_000 }, 'paused timeout'],
  [{ timeoutMs: 1000, elapsedMs: 1500, hasWoundDown: true }, 'paused timeout'],
  [{ timeoutMs: 1000, elapsedMs: 1000, graceMs: 0 }, 'paused timeout'],
]

const budget: [Partial<BudgetFacts>, string][] = [
  [{ allocation: null, used: 1e12 }, 'go'],
  [{ allocation: 1000, used: 0, bound: 1000 }, 'go'],
  [{ allocation: 1000, used: 500, reserved: 200, bound: 300 }, 'go'],
  [{ allocation: 1000, used: 500, reserved: 200, bound: 301 }, 'wait budget'],
  [{ allocation: 1000, used: 999, reserved: 0, bound: 5000 }, 'go'],
  [{ allocation: 1000, used: 999, reserved: 1, bound: 5000 }, 'wait budget'],
  [{ allocation: 1000, used: 1000, isFirstCall: false }, 'paused budget'],
  [{ allocation: 1000, used: 1000, isFirstCall: true }, 'failed BUDGET_EXHAUSTED'],
  [{ allocation: 1000, used: 4000, reserved: 10, isFirstCall: false }, 'paused budget'],
  [{ allocation: 0, used: 0, isFirstCall: true }, 'failed BUDGET_EXHAUSTED'],
]

const context: [Partial<ContextFacts>, string][] = [
  [{ promptTokens: 799, contextTokens: 1000 }, 'go'],
  [{ promptTokens: 800, contextTokens: 1000 }, 'compact'],
  [{ promptTokens: 5000, contextTokens: 1000 }, 'compact'],
  [{ promptTokens: 900, contextTokens: 1000, isCompacted: true }, 'go'],
  [{ promptTokens: 1000, contextTokens: 1000, isCompacted: true }, 'paused context'],
]

const calm: AllFacts = {
  isCancelled: false,
  isHalted: false,
  elapsedMs: 0,
  timeoutMs: null,
  graceMs: 30_000,
  stepsDone: 0,
  maxSteps: null,
  hasWoundDown: false,
  promptTokens: 1,
  contextTokens: 1000,
  isCompacted: false,
  allocation: null,
  used: 0,
  reserved: 0,
  bound: 100,
  isFirstCall: true,
}

for (const [name, guard, rows] of [
  ['steps', guardSteps, steps],
  ['time', guardTime, time],
  ['budget', guardBudget, budget],
  ['context', guardContext, context],
] as const) {
  for (const [facts, expected] of rows) {
    test(`${name} ${JSON.stringify(facts)}: ${expected}`, () => {
      assert.equal(short(guard({ ...calm, ...facts })), expected)
    })
  }
}

const order: [Partial<AllFacts>, string][] = [
  [{}, 'go'],
  [{ isCancelled: true, isHalted: true, timeoutMs: 0, maxSteps: 0 }, 'cancelled'],
  [{ isHalted: true, timeoutMs: 0, maxSteps: 0 }, 'wait halted'],
  [{ timeoutMs: 0, maxSteps: 0, promptTokens: 5000 }, 'wind_down timeout'],
  [{ maxSteps: 0, promptTokens: 5000, allocation: 0 }, 'wind_down step_limit'],
  [{ promptTokens: 5000, allocation: 0 }, 'compact'],
  [{ allocation: 0 }, 'failed BUDGET_EXHAUSTED'],
]

for (const [facts, expected] of order) {
  test(`of several reasons the first counts: ${JSON.stringify(facts)}: ${expected}`, () => {
    const verdict = guardModelCall({ ...calm, ...facts })
    assert.equal(short(verdict.verdict === 'go' ? guardBudget({ ...calm, ...facts }) : verdict), expected)
  })
}

test('without a switch a call is made', () => {
  assert.equal(short(guardSwitches({ isCancelled: false, isHalted: false })), 'go')
})

test('twenty runs that ask at once overshoot by one call at most', () => {
  const allocation = 1_000
  const bound = 300
  let used = 0
  let reserved = 0
  for (let round = 0; round < 50; round++) {
    const admitted = Array.from({ length: 20 }).filter(() => {
      const verdict = guardBudget({ allocation, used, reserved, bound, isFirstCall: false })
      if (verdict.verdict === 'go') reserved += bound
      return verdict.verdict === 'go'
    })
    used += admitted.length * bound
    reserved = 0
  }
  assert.ok(used <= allocation + bound, `${used}`)
  assert.ok(used >= allocation)
})

const endings: [reason: string, calls: number, text: string, expected: string][] = [
  ['stop', 0, 'done', 'complete'],
  ['stop', 0, '', 'retry'],
  ['stop', 2, '', 'act'],
  ['stop', 2, 'first this', 'act'],
  ['tool-calls', 1, '', 'act'],
  ['tool-calls', 0, 'I call', 'retry'],
  ['length', 0, 'half', 'fail'],
  ['length', 1, '', 'fail'],
  ['content-filter', 0, 'half', 'fail'],
  ['content-filter', 1, '', 'fail'],
  ['interrupted', 0, 'half', 'retry'],
  ['interrupted', 1, 'half', 'retry'],
  ['error', 0, 'half', 'retry'],
  ['other', 0, 'half', 'fail'],
  ['something new', 0, 'half', 'fail'],
]

for (const [reason, calls, text, expected] of endings) {
  test(`an ending with ${reason}, ${calls} calls and the text "${text}": ${expected}`, () => {
    assert.equal(judgeEnding(reason, calls, text).ending, expected)
  })
}
