import assert from 'node:assert/strict'
import { test } from 'node:test'
import { backoffMs, type FailedTry, judgeFailure, type TriesSoFar, triedOften } from './retry.ts'

const HOUR = 3_600_000
const passing: FailedTry = { isRetryable: true, retryAfterMs: null }
const first: TriesSoFar = {
  attempts: 0,
  waitedMs: 0,
  waits: 0,
  isAway: false,
  triedForMs: 0,
  patienceMs: HOUR,
  leftMs: null,
  mayWait: true,
}

const cases: [
  what: string,
  failure: FailedTry,
  tries: Partial<TriesSoFar>,
  verdict: string,
  from?: number,
  to?: number,
][] = [
  ['the first failure', passing, {}, 'retry', 375, 625],
  ['the fourth failure', passing, { attempts: 3, waitedMs: 3_500 }, 'retry', 3_000, 5_000],
  ['the fifth failure', passing, { attempts: 4, waitedMs: 7_500 }, 'wait', 1_500, 2_500],
  ['the fifth failure without a wait', passing, { attempts: 4, mayWait: false }, 'fail'],
  ['the first failure without a wait, the provider is away', passing, { isAway: true, mayWait: false }, 'retry'],
  ['a short Retry-After', { ...passing, retryAfterMs: 7_000 }, {}, 'retry', 7_000, 7_000],
  ['a Retry-After beyond a minute', { ...passing, retryAfterMs: 90_000 }, {}, 'wait', 90_000, 90_000],
  ['a Retry-After of a day', { ...passing, retryAfterMs: 24 * HOUR }, {}, 'wait', 24 * HOUR, 24 * HOUR],
  ['Retry-Afters that add up', { ...passing, retryAfterMs: 40_000 }, { attempts: 1, waitedMs: 40_000 }, 'wait', 40_000],
  ['a used-up quota', { ...passing, reason: 'quota' }, {}, 'wait', 1_500, 2_500],
  ['a used-up quota of a request', { ...passing, reason: 'quota' }, { mayWait: false }, 'fail'],
  ['a 402', { isRetryable: false, retryAfterMs: null, reason: 'quota' }, {}, 'wait'],
  ['another 4xx', { isRetryable: false, retryAfterMs: null }, {}, 'fail'],
  ['a context that is too long', { isRetryable: false, retryAfterMs: null, reason: 'context' }, {}, 'compact'],
  ['a provider that is known to be away', passing, { isAway: true }, 'wait', 1_500, 2_500],
  ['the failure after the first wait', passing, { attempts: 5, waits: 1 }, 'wait', 3_000, 5_000],
  ['the failure after the twentieth wait', passing, { attempts: 24, waits: 20 }, 'wait', 225_000, 375_000],
  ['the end of patience', passing, { attempts: 9, waits: 5, triedForMs: HOUR }, 'fail'],
  ['no patience at all', passing, { attempts: 4, patienceMs: 0 }, 'fail'],
  ['no patience at all, the provider is away', passing, { isAway: true, patienceMs: 0 }, 'retry'],
  ['a retry that the deadline does not allow', passing, { leftMs: 100 }, 'wait'],
]

for (const [what, failure, tries, verdict, from = 0, to = Number.POSITIVE_INFINITY] of cases) {
  test(`${what}: ${verdict}`, () => {
    for (let round = 0; round < 20; round++) {
      const judged = judgeFailure(failure, { ...first, ...tries })
      assert.equal(judged.verdict, verdict)
      if (!('waitMs' in judged)) continue
      assert.ok(judged.waitMs >= from && judged.waitMs <= to, `${judged.waitMs} ms`)
    }
  })
}

test('waits double from 2 s to 5 min', () => {
  assert.deepEqual([0, 1, 2, 3, 7, 8, 1_000].map(backoffMs), [2_000, 4_000, 8_000, 16_000, 256_000, 300_000, 300_000])
})

test('a call that failed for good says how often and how long it was tried', () => {
  assert.equal(triedOften(0), '')
  assert.equal(triedOften(0, 2_000), ' (tried once in 2 s)')
  assert.equal(triedOften(4), ' (tried 5 times)')
  assert.equal(triedOften(4, 61_000), ' (tried 5 times in 61 s)')
  assert.equal(triedOften(20, HOUR), ' (tried 21 times in 60 min)')
})
