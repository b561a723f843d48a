import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defaultSettings } from '../../../../src/kernel/project.ts'
import { aboutLimit, changesIn, LIMIT_GROUPS, limitProblem, typedFrom } from './limit-fields.ts'

test('every setting has a field and a sentence about it', () => {
  const shown = LIMIT_GROUPS.flatMap(({ fields }) => fields.map(({ name }) => name))
  const others = ['default_model', 'idempotent_hosts']
  assert.deepEqual([...shown, ...others].sort(), Object.keys(defaultSettings).sort())
  for (const name of shown) assert.ok(aboutLimit(name).length > 20, name)
})

test('only changes are sent: seconds as milliseconds, an emptied limit as null', () => {
  const settings = { ...defaultSettings, monthly_token_limit: 5_000 }
  const typed = typedFrom(settings)
  assert.deepEqual(changesIn(typed, settings), {})
  assert.equal(typed.tool_timeout, 60)
  assert.deepEqual(
    changesIn(
      {
        ...typed,
        tool_timeout: 0.25,
        monthly_token_limit: '',
        max_concurrent_runs: 3,
        poll_interval: '',
        idempotent_hosts: 'a.example\n b.example ',
      },
      settings,
    ),
    {
      tool_timeout: 250,
      monthly_token_limit: null,
      max_concurrent_runs: 3,
      idempotent_hosts: ['a.example', 'b.example'],
    },
  )
})

test('a problem has the unit of its field, and names other fields by their labels', () => {
  assert.equal(limitProblem('poll_interval', 'Must be at least 100.'), 'Must be at least 0.1 s.')
  assert.equal(limitProblem('alert_factor', 'Must be at least 1.'), 'Must be at least 1.')
  assert.equal(
    limitProblem('doom_loop_stop', 'Must not be below doom_loop_warn.'),
    'Must not be below “Identical calls: refused from”.',
  )
  assert.equal(limitProblem('alert_factor', undefined), null)
})
