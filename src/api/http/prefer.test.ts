import assert from 'node:assert/strict'
import { test } from 'node:test'
import { preferenceOf } from './prefer.ts'

const cases: [header: string | string[] | undefined, waitMs: number | null, applied?: string][] = [
  [undefined, null],
  ['', null],
  ['respond-async', 0, 'respond-async'],
  ['wait=5, Respond-Async; x=1', 0, 'respond-async'],
  ['wait=0', 0, 'wait=0'],
  ['wait=10', 10_000, 'wait=10'],
  [' WAIT = "7" ; a', 7_000, 'wait=7'],
  ['return=minimal, wait=3', 3_000, 'wait=3'],
  [['handling=strict', 'wait=3'], 3_000, 'wait=3'],
  ['wait=600', 600_000, 'wait=600'],
  ['wait=601', 600_000, 'wait=600'],
  [`wait=${'9'.repeat(400)}`, 600_000, 'wait=600'],
  ['wait=-1', null],
  ['wait=1.5', null],
  ['wait=soon', null],
  ['wait', null],
  ['waiting=5', null],
]
for (const [header, waitMs, applied] of cases) {
  test(`Prefer: ${String(header).slice(0, 40)} is ${applied ?? 'no wait of its own'}`, () => {
    assert.deepEqual(preferenceOf(header), waitMs === null ? null : { waitMs, applied })
  })
}
