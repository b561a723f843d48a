import assert from 'node:assert/strict'
import { test } from 'node:test'
import { progressLine } from './progress-line.ts'
import { textWidth } from './text-width.ts'

const progress = { total: 12, pending: 4, running: 3, completed: 4, failed: 1, skipped: 0 }
const now = Date.parse('2026-01-01T00:00:00Z')
const facts = { progress, eta: '2026-01-01T00:00:42Z', elapsedMs: 75_000, isCancelling: false }

const text = (columns: number, given: Partial<Parameters<typeof progressLine>[0]> = {}): string =>
  progressLine({ ...facts, ...given }, columns, now)
    .map((span) => (typeof span === 'string' ? span : span.text))
    .join('')

test('a wide window shows the bar and every fact', () => {
  assert.equal(text(200), `${'█'.repeat(13)}${'░'.repeat(17)} 5/12 · 1 failed · 42 s left · 3 running · 1 min so far`)
})

for (const columns of [20, 40, 60, 80, 200]) {
  test(`the line is narrower than a window of ${columns} columns, and names the count`, () => {
    assert.ok(textWidth(text(columns)) < columns)
    assert.match(text(columns), / 5\/12/)
  })
}

test('a narrow window leaves out the facts that matter least', () => {
  assert.match(text(40), /░ 5\/12 · 1 failed · 42 s left$/)
})

test('an empty flow, a finished one and one that is late are shown', () => {
  const none = { total: 0, pending: 0, running: 0, completed: 0, failed: 0, skipped: 0 }
  assert.match(text(40, { progress: none, eta: null }), /^░+ 0\/0 · 1 min so far$/)
  assert.match(text(60, { progress: { ...none, total: 2, completed: 2 }, eta: null }), /^█{30} 2\/2/)
  assert.match(text(80, { eta: '2025-12-31T23:59:59Z' }), / · any moment · /)
  assert.match(text(80, { isCancelling: true }), / 5\/12 · cancelling · /)
})
