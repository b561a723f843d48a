import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AgentDefinition } from '../../../../src/kernel/agent.ts'
import {
  blankDefinition,
  changesIn,
  definitionFrom,
  draftOf,
  firstDefinition,
  parseDefinition,
  splitNames,
  suggestedTools,
} from './agent-draft.ts'

const full: AgentDefinition = {
  name: 'Writer',
  role: 'writes',
  prompt: 'Write.\nWell.',
  prompt_id: null,
  model: { provider: 'p', name: 'org/m', temperature: 0, max_output_tokens: 100, context_tokens: 8_000 },
  tools: ['object_search', 'mcp:x/*'],
  flow_type: 'sequential',
  steps: [{ prompt: 'One' }, { prompt: 'Two', tools: [] }],
  max_iterations: 3,
  flow: null,
  max_steps: 7,
  default_timeout: 1_500,
  trigger_type: 'reaction',
  cron_schedule: '0 9 * * 1-5',
  timezone: 'Europe/Berlin',
  catch_up: 'all',
  reaction_config: {
    objectTypes: ['Person'],
    events: ['created'],
    ignoreSelfTriggered: false,
    ignoreAgentTriggered: true,
    concurrencyStrategy: 'parallel',
  },
  execution_mode: 'hybrid',
  capabilities: { canCreateObjects: false, canUpdateObjects: true, canDeleteObjects: false, allowedObjectTypes: [] },
  require_approval: ['http_fetch'],
  senior_id: '0199a6f0-5f3e-7c1a-9d52-8f6b1e2c3d4e',
  competencies: ['prose'],
  token_allocation: 0,
  enabled: false,
}

test('every field of a definition survives the form', () => {
  for (const definition of [full, blankDefinition, { ...full, prompt: null, prompt_id: 'writer' }]) {
    assert.deepEqual(definitionFrom(draftOf(definition)), definition)
    assert.deepEqual(changesIn(definitionFrom(draftOf(definition)), definition), {})
  }
})

test('only the changed fields are sent', () => {
  const draft = { ...draftOf(full), max_steps: '', trigger_type: 'webhook' as const }
  assert.deepEqual(changesIn(definitionFrom(draft), full), { max_steps: null, trigger_type: 'webhook' })
})

test('steps and a flow go with the way of working that has them', () => {
  const draft = { ...draftOf(full), flow_type: 'flow' as const, flow: 'research' }
  assert.deepEqual(changesIn(definitionFrom(draft), full), { flow_type: 'flow', flow: 'research', steps: [] })
})

test('a prompt of the library replaces the text, and the other way round', () => {
  assert.deepEqual(changesIn(definitionFrom({ ...draftOf(full), isFromLibrary: true, prompt_id: 'p' }), full), {
    prompt: null,
    prompt_id: 'p',
  })
})

for (const [provider, name, expected] of [
  ['', '', null],
  ['', 'openai/gpt', { provider: 'openai', name: 'gpt' }],
  ['local', 'org/gpt', { provider: 'local', name: 'org/gpt' }],
  ['', 'gpt', { provider: '', name: 'gpt' }],
] as const) {
  test(`the provider "${provider}" and the model "${name}" mean ${JSON.stringify(expected)}`, () => {
    const draft = draftOf(blankDefinition)
    const { model } = definitionFrom({ ...draft, model: { ...draft.model, provider, name } })
    assert.deepEqual(model, expected && { ...expected, max_output_tokens: 4_096 })
  })
}

test('the order of keys is no difference', () => {
  const { canCreateObjects, canUpdateObjects, canDeleteObjects } = blankDefinition.capabilities
  const same = { ...blankDefinition, capabilities: { canDeleteObjects, canUpdateObjects, canCreateObjects } }
  assert.deepEqual(changesIn(same, blankDefinition), {})
})

test('a definition in JSON is filled with the defaults; all else is refused in words', () => {
  assert.deepEqual(parseDefinition('{"name": "A"}'), { definition: { ...blankDefinition, name: 'A' } })
  assert.deepEqual(parseDefinition('{"tools": 1, "naem": "A"}'), {
    problems: ['name is missing.', 'tools must be a list.', 'The agent has no field "naem". Did you mean "name"?'],
  })
  const unread = parseDefinition('{')
  assert.match('problems' in unread ? String(unread.problems) : '', /^This is no JSON: /)
})

test('names are split at commas and lines, once each, but not those that were there', () => {
  assert.deepEqual(splitNames(['x, y', 'a, b', 'b', ' ', 'c\nd'], ['x, y']), ['x, y', 'a', 'b', 'c', 'd'])
})

test('the nearest tool is suggested first', () => {
  const names = ['http_fetch', 'fetch_all', 'fetch', 'object_get']
  assert.deepEqual(suggestedTools(names, ' Fetch'), ['fetch', 'fetch_all', 'http_fetch'])
  assert.deepEqual(suggestedTools(names, 'mcp:x/*'), [])
})

test('the form of a new agent begins without the right to delete; JSON without it has the default of the API', () => {
  const { canDeleteObjects, ...rest } = firstDefinition.capabilities
  assert.deepEqual([canDeleteObjects, rest], [false, { canCreateObjects: true, canUpdateObjects: true }])
  const parsed = parseDefinition('{"name": "A"}')
  assert.equal('definition' in parsed && parsed.definition.capabilities.canDeleteObjects, true)
})
