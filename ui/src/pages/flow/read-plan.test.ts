import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readPlan, statusOfSubtask } from './read-plan.ts'

test('the plan is read from the answer of a queen, with words around it or not', () => {
  const plan = JSON.stringify({
    subtasks: [{ id: 'a', title: 'Read', depends_on: [] }, { id: 'b', depends_on: ['a'] }, {}],
  })
  const read = [
    { id: 'a', title: 'Read', depends_on: [] },
    { id: 'b', title: 'b', depends_on: ['a'] },
  ]
  assert.deepEqual(readPlan(plan), read)
  assert.deepEqual(readPlan(`Here it is:\n${plan}\n`), read)
  for (const text of [null, '', 'no plan', '{"subtasks": 3}', '{ broken }']) assert.deepEqual(readPlan(text), [])
})

test('a subtask that nobody has begun is pending', () => {
  assert.equal(statusOfSubtask([]), 'pending')
})
