import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addCase, EXAMPLE, readCases } from './case-text.ts'

test('the example is a list of cases', () => {
  assert.equal(readCases(EXAMPLE).cases?.length, 2)
})

const refused: [text: string, problem: RegExp][] = [
  ['[', /no JSON/],
  ['{}', /a list/],
  ['[]', /at least one/],
  ['["x"]', /Case 1 must be an object/],
  ['[{"task": "a"}, {"task": " "}]', /Case 2 has no task/],
  ['[{"task": "a", "expects": {}}]', /unknown field "expects"/],
  ['[{"task": "a", "expect": {"stauts": "DONE"}}]', /expects "stauts"/],
  ['[{"task": "a", "expect": {"status": "done"}}]', /not DONE, ESCALATE, FAILED/],
  ['[{"task": "a", "expect": []}]', /no object/],
  ['[{"run_id": "x", "expect": {}}]', /nothing else/],
]

for (const [text, problem] of refused) {
  test(`cases are refused: ${text}`, () => {
    assert.match(readCases(text).problem ?? '', problem)
  })
}

test('a case is added from its fields, with the expectations that were given', () => {
  const one = addCase('', { task: 'A', status: 'DONE', contains: '', route: 'research_agent → transform_agent' })
  const two = addCase(one ?? '', { task: 'B', status: null, contains: '', route: '' })
  const three = addCase(two ?? '', { run_id: 'r' })
  assert.deepEqual(JSON.parse(three ?? ''), [
    { task: 'A', expect: { status: 'DONE', route: ['research_agent', 'transform_agent'] } },
    { task: 'B' },
    { run_id: 'r' },
  ])
  assert.equal(addCase('[{', { task: 'A', status: null, contains: '', route: '' }), null)
})
