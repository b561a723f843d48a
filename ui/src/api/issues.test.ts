import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApiError } from './client.ts'
import { issuesOf, plainMessage, refusalOf } from './issues.ts'

const refused = (message: string, details: unknown = null) => new ApiError(400, 'INVALID_REQUEST', message, details)

test('a message names its fields as people do, and three problems at most', () => {
  for (const [path, message, plain] of [
    ['alert_factor', 'must be at least 1', 'Alert factor must be at least 1.'],
    ['steps.0.prompt', 'is missing', 'Steps 1, prompt is missing.'],
    ['reaction_config.objectTypes', 'must not be empty', 'Reaction config, object types must not be empty.'],
    ['tools', 'There is no tool called "x".', 'Tools: There is no tool called "x".'],
    ['', 'has no field "x".', 'The request has no field "x".'],
  ] as const) {
    assert.equal(plainMessage('body…', { issues: [{ path, message }] }), plain)
  }
  const many = ['a', 'b', 'c', 'd'].map((path) => ({ path, message: 'is missing' }))
  assert.equal(plainMessage('body…', { issues: many }), 'A is missing. B is missing. C is missing.')
  for (const details of [null, {}, { issues: [] }, { issues: [7] }, { version: 3 }]) {
    assert.equal(plainMessage('There is one already.', details), 'There is one already.')
  }
})

test('each problem stands at its field, that of an item at its list, and the rest is told', () => {
  const issues = [
    { path: 'name', message: 'must not be blank' },
    { path: 'name', message: 'is told once' },
    { path: 'hosts.2', message: 'must be a host' },
    { path: 'named', message: 'is missing' },
  ]
  assert.deepEqual(refusalOf(refused('body…', { issues }), ['name', 'hosts']), {
    fields: { name: 'Must not be blank.', hosts: 'Must be a host.' },
    rest: 'Named is missing.',
  })
  assert.deepEqual([...issuesOf(refused('body…', { issues: issues.slice(2, 3) }))], [['hosts.2', 'Must be a host.']])
})

test('a refusal that names its field in the message stands there, another one is told as it is', () => {
  const fields = ['low', 'high']
  assert.deepEqual(refusalOf(refused('high must not be below low.'), fields), {
    fields: { high: 'Must not be below low.' },
    rest: null,
  })
  assert.deepEqual(refusalOf(refused('high: there is none.'), fields).fields, { high: 'There is none.' })
  assert.deepEqual(refusalOf(refused('highest is taken.'), fields), { fields: {}, rest: 'highest is taken.' })
  assert.deepEqual(refusalOf(new Error('Muster does not answer.'), fields).rest, 'Muster does not answer.')
})
