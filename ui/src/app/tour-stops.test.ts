import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findThings, stopsOf } from './tour-stops.ts'

const read = {
  flows: [
    { id: 'other', pattern: 'parallel', status: 'running' },
    { id: 'ended', pattern: 'hierarchical', status: 'completed' },
    { id: 'live', pattern: 'hierarchical', status: 'running' },
  ],
  failed: [
    { id: 'refused', error_code: 'TOOL_REFUSED' },
    { id: 'loop', error_code: 'DOOM_LOOP' },
  ],
  agents: [
    { id: 'free', name: 'Free', token_used: 9_000, token_allocation: null },
    { id: 'rich', name: 'Rich', token_used: 89, token_allocation: 100 },
    { id: 'books', name: 'Bookkeeper', token_used: 90, token_allocation: 100 },
  ],
  waiting: [
    { id: 'help', kind: 'escalation' },
    { id: 'asked', kind: 'question' },
    { id: 'change', kind: 'suggestion' },
  ],
} as const

test('the things of the demo are found by what they are, a live flow first', () => {
  const { flow, loop, saver, suggestion, question } = findThings(read)
  assert.deepEqual(
    [flow, loop, saver, suggestion, question].map((thing) => thing?.id),
    ['live', 'loop', 'books', 'change', 'asked'],
  )
  assert.equal(findThings({ ...read, flows: read.flows.slice(0, 2) }).flow?.id, 'ended')
  const none = findThings({ flows: [], failed: [], agents: [], waiting: [] })
  assert.ok(Object.values(none).every((thing) => thing === undefined))
})

test('the stops lead to the things of the demo', () => {
  const stops = stopsOf('p', findThings(read))
  assert.deepEqual(
    stops.map(({ address }) => address.replace('/projects/p', '')),
    [
      '/',
      '/flows/live',
      '/flows/live',
      '/runs/loop',
      '/organisation?agent=books',
      '/inbox?item=change',
      '/inbox?item=asked',
      '/playground',
    ],
  )
  assert.match(stops[4]?.text ?? '', /^Bookkeeper has used most of its tokens/)
  assert.deepEqual(
    stops.at(-1)?.links.map(({ address }) => address),
    ['/projects/p/agents/new', '/projects/p/settings/providers'],
  )
})

test('a thing that is gone is replaced by its area, and without the demo all stops explain areas', () => {
  const half = stopsOf('p', { loop: { id: 'loop' } })
  const areas = stopsOf('p', null)
  assert.equal(half.length, areas.length)
  assert.deepEqual(half[1], areas[1])
  assert.notDeepEqual(half[3], areas[3])
  const things = /This (flow|agent)|demo/
  for (const { text, title } of areas) assert.doesNotMatch(text, things, title)
  assert.deepEqual(
    stopsOf(null, null).map(({ address }) => address),
    ['/'],
  )
})
