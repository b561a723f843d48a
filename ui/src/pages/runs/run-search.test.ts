import assert from 'node:assert/strict'
import { test } from 'node:test'
import { filterOf, placeOf } from './run-search.ts'

const now = Date.parse('2026-03-08T10:00:42.123Z')
const given = (filter: object): object => Object.fromEntries(Object.entries(filter).filter(([, value]) => value))

test('the address is read as a filter of the API', () => {
  assert.deepEqual(given(filterOf({}, now)), {})
  assert.deepEqual(given(filterOf({ q: ' owl ', period: 'hour', subruns: 'hidden', status: 'failed' }, now)), {
    q: 'owl',
    created_after: '2026-03-08T09:00:00.000Z',
    parent_run_id: 'none',
    status: 'failed',
  })
  assert.deepEqual(given(filterOf({ period: 'week' }, now)), { created_after: '2026-03-01T10:00:00.000Z' })
})

test('values that nobody can choose are passed over', () => {
  for (const period of ['year', 'toString']) assert.deepEqual(given(filterOf({ period, q: ' ' }, now)), {})
  assert.deepEqual(given(filterOf({ subruns: 'hidden', agent: 'a' }, now)), { agent_id: 'a' })
})

test('empty parameters do not stand in the address', () => {
  assert.deepEqual(placeOf({ q: '', status: undefined, period: 'day' }), { period: 'day' })
})
