import assert from 'node:assert/strict'
import { test } from 'node:test'
import { problemsIn, timingProblem } from './agent-problems.ts'

const refused = (message: string, details: unknown = null, status = 400): Error =>
  Object.assign(new Error(message), { status, details })
const everywhere = (): boolean => true

for (const [message, field, shown] of [
  ['cron_schedule: the hour is 24, which must be between 0 and 23.', 'cron_schedule', /^The hour is 24/],
  ['cron_schedule must have five fields.', 'cron_schedule', /^Must have five fields\.$/],
  ['timezone: there is no time zone called X.', 'timezone', /^There is no time zone/],
  ['model.provider: There is no provider called "x".', 'model.provider', /^There is no provider/],
  ['tools: There is no tool called "x". Did you mean "y"?', 'tools', /mean "y"\?$/],
  ['steps are missing: a sequential agent needs them.', 'steps', /^Are missing/],
  ['flow: there is no flow and no template called "x".', 'flow', /^There is no flow/],
  ['reaction_config is missing: a reaction agent needs it.', 'reaction_config.objectTypes', /^Is missing/],
  ['senior_id would make the agent its own senior.', 'senior_id', /^Would make/],
] as const) {
  test(`"${message}" stands beside ${field}`, () => {
    const { fields, others } = problemsIn(refused(message), everywhere)
    assert.deepEqual(Object.keys(fields), [field])
    assert.match(fields[field] ?? '', shown)
    assert.deepEqual(others, [])
  })
}

test('the issues of a body stand beside their fields, those of items beside the list', () => {
  const issues = [
    { path: 'name', message: 'must not be blank' },
    { path: 'tools.2', message: 'must be a tool name' },
    { path: 'steps.1.prompt', message: 'is missing' },
    { path: 'steps.0.tools.3', message: 'must be a tool name' },
    { path: 'capabilities.allowedObjectTypes.0', message: 'must not be "*"' },
    { path: '', message: 'has no field "nmae".' },
  ]
  assert.deepEqual(problemsIn(refused('…', { issues }), everywhere), {
    fields: {
      name: 'Must not be blank.',
      tools: 'Must be a tool name.',
      'steps.1.prompt': 'Is missing.',
      'steps.0.tools': 'Must be a tool name.',
      'capabilities.allowedObjectTypes': 'Must not be "*".',
    },
    others: ['Has no field "nmae".'],
  })
})

test('the bounds of a timeout are told in seconds, as the field has them', () => {
  const issues = [{ path: 'default_timeout', message: 'must be at most 31536000000' }]
  assert.deepEqual(problemsIn(refused('…', { issues }), everywhere).fields, {
    default_timeout: 'Must be at most 31536000 s.',
  })
})

test('a name that is taken, a hidden field and an unreachable server are told', () => {
  const taken = refused('There is an agent called A already.', null, 409)
  assert.deepEqual(problemsIn(taken, everywhere).fields, { name: 'There is an agent called A already.' })
  assert.deepEqual(
    problemsIn(refused('cron_schedule must have five fields.'), () => false),
    { fields: {}, others: ['Cron schedule must have five fields.'] },
  )
  assert.deepEqual(problemsIn(refused('Muster does not answer.', null, 0), everywhere).others, [
    'Muster does not answer.',
  ])
})

test('the preview of times names the field of its problem', () => {
  assert.deepEqual(timingProblem(refused('timezone: there is no time zone called X.')), {
    path: 'timezone',
    message: 'There is no time zone called X.',
  })
  assert.equal(timingProblem(refused('…', null, 0)), null)
})
