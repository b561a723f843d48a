import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type FailedTry, type LiveStep, nextFailure, nextText } from './live-text.ts'

const token = (data: object) => ({ id: null, event: 'token', data: JSON.stringify({ run_id: 'r', step: 1, ...data }) })
const after = (...events: ReturnType<typeof token>[]): LiveStep | null =>
  events.reduce<LiveStep | null>((known, event) => nextText(known, event, 'r'), null)

test('pieces are placed by their offset, and a text that comes again from its start replaces itself', () => {
  const first = token({ offset: 0, text: 'Rain ' })
  const second = token({ offset: 5, text: 'falls' })
  assert.equal(after(first, second)?.text, 'Rain falls')
  assert.equal(after(first, second, first, second)?.text, 'Rain falls')
})

test('a piece after a gap is left out until the text comes again', () => {
  assert.equal(after(token({ offset: 0, text: 'ab' }), token({ offset: 5, text: 'x' }))?.text, 'ab')
})

test('the next step begins with an empty text, and a restarted step has none', () => {
  const first = token({ offset: 0, text: 'one' })
  assert.deepEqual(after(first, token({ step: 2, offset: 0, text: 'two' })), { runId: 'r', step: 2, text: 'two' })
  assert.equal(after(first, { ...token({}), event: 'step.restarted' }), null)
})

test('the text of a sub-run is not shown as that of the run', () => {
  assert.equal(after(token({ run_id: 'below', offset: 0, text: 'x' })), null)
})

test('a failed try is told with the time of the next one, until the model or the run gets further', () => {
  const of = (event: string, data: object) => ({
    id: '1',
    event,
    data: JSON.stringify({ run_id: 'r', at: AT, ...data }),
  })
  const failed = of('step.restarted', { reason: 'failed', message: '429: Slow down.', wait: 20_000 })
  const known = nextFailure(null, failed, 'r')
  assert.deepEqual(known, { message: '429: Slow down.', nextAt: '2026-01-02T03:04:25.000Z' } satisfies FailedTry)
  const after = (event: string, data = {}) => nextFailure(known, of(event, data), 'r')
  assert.equal(after('tool.progress'), known)
  assert.equal(after('run.parked'), known)
  assert.equal(after('token', { run_id: 'below' }), known)
  for (const event of ['token', 'step.completed', 'run.recovered']) assert.equal(after(event), null)
  assert.equal(after('step.restarted', { reason: 'crash' }), null)
})

const AT = '2026-01-02T03:04:05.000Z'
