import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AgentRunAnswer } from '../../../../src/kernel/supervisor.ts'
import type { Message } from './kept-chats.ts'
import { IDLE, isCancelled, nextDoing, problemOf, withAnswer } from './words.ts'

const todo = { id: '1', description: 'Look it up', status: 'PENDING' as const }

test('a part names only what changed', () => {
  const planned = nextDoing(IDLE, { type: 'data-status', data: { run_id: 'r', plan: [todo] } })
  assert.deepEqual(planned, { agent: null, plan: [todo] })
  const working = nextDoing(planned, { type: 'data-status', data: { active_agent: 'research_agent' } })
  assert.deepEqual(working, { agent: 'research_agent', plan: [todo] })
  assert.deepEqual(nextDoing(working, { type: 'data-status', data: { active_agent: null } }).agent, null)
})

test('parts of other kinds and shapes change nothing', () => {
  for (const part of [
    { type: 'data-other', data: { active_agent: 'x' } },
    { type: 'data-status', data: { plan: 'none' } },
    { type: 'data-status', data: null },
  ]) {
    assert.equal(nextDoing(IDLE, part), IDLE)
  }
})

test('a failure is told in the words of Muster, or in plain ones', () => {
  assert.equal(
    problemOf(undefined, new Error('{"error":{"code":"X","message":"The project is halted."}}')),
    'The project is halted.',
  )
  assert.equal(problemOf(undefined, new Error('The model refused.')), 'The model refused.')
  assert.equal(problemOf(undefined, new Error('{}')), '{}')
  assert.equal(problemOf(undefined, new TypeError('Failed to fetch')), 'Muster does not answer. Is it running?')
})

test('a run that was cancelled is no failure', () => {
  const message = { id: 'm', role: 'assistant' as const, parts: [] }
  const error = { code: 'CANCELLED', message: 'It was cancelled.' }
  assert.ok(isCancelled({ ...message, metadata: { run_id: 'r', status: 'FAILED', error } }))
  assert.ok(!isCancelled({ ...message, metadata: { run_id: 'r', status: 'DONE' } }))
  assert.ok(!isCancelled(undefined))
})

test('the failure of an answer is told also after a reload, and a stop is no problem', () => {
  const message: Message = { id: 'm', role: 'assistant', parts: [] }
  const failed = (code: string): Message => ({
    ...message,
    metadata: { run_id: 'r', status: 'FAILED', error: { code, message: 'So it is.' } },
  })
  assert.equal(problemOf(failed('MODEL_ERROR'), undefined), 'So it is.')
  assert.equal(problemOf(failed('CANCELLED'), new Error('So it is.')), null)
  assert.equal(problemOf(message, undefined), null)
})

test('an answer that was completed meanwhile takes the place of the part that was kept', () => {
  const part: Message = {
    id: 'm',
    role: 'assistant' as const,
    metadata: { run_id: 'r' },
    parts: [{ type: 'text', text: 'One, ' }],
  }
  const result = (fields: object) => fields as AgentRunAnswer['result'] // the fields that are read
  const done = result({ status: 'DONE', output: { type: 'text', content: 'One, two.' } })
  assert.deepEqual(withAnswer([part], 'm', done), [
    { ...part, parts: [{ type: 'text', text: 'One, two.' }], metadata: { run_id: 'r', status: 'DONE' } },
  ])
  assert.deepEqual(withAnswer([part], 'm', result({ status: 'RUNNING', output: null })), [part])
  const failed = withAnswer(
    [part],
    'm',
    result({ status: 'FAILED', output: null, error: { code: 'X', message: 'No.' } }),
  )
  assert.equal(problemOf(failed[0], undefined), 'No.')
})
