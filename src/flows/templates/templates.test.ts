import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestFlows } from '../../../test/kit/flows.ts'
import { createBuiltInFunctions } from '../definition/built-in-functions.ts'
import { validateFlow } from '../definition/validate.ts'
import { builtInPatterns } from '../machine/built-in-patterns.ts'
import { createMachine } from '../machine/machine.ts'
import { findFlowTemplate, flowTemplates } from './templates.ts'

const asked: { projectId: string; prompt: string }[] = []
const functions = createBuiltInFunctions({
  ask: async ({ projectId }, prompt) => {
    asked.push({ projectId, prompt })
    return /yes or no/.test(prompt) ? 'Yes, it does.' : 'first finding\nsecond finding'
  },
})
const flows = await createTestFlows({ functions: Object.fromEntries(functions) })

const isKnownToTheMachine = ({ root, example }: (typeof flowTemplates)[number]): boolean => {
  const machine = createMachine(root, example.input, builtInPatterns)
  return machine.begin().length > 0
}
const runnable = flowTemplates.filter(isKnownToTheMachine)

test('Flow templates library: the four named templates exist, each with its pattern', () => {
  const patterns = ['code_review', 'data_pipeline', 'research', 'swarm_test'].map((name) => [
    name,
    findFlowTemplate(name)?.pattern,
  ])
  assert.deepEqual(patterns, [
    ['code_review', 'sequential'],
    ['data_pipeline', 'pipeline'],
    ['research', 'fork_join'],
    ['swarm_test', 'parallel'],
  ])
  assert.equal(findFlowTemplate('nothing'), null)
})

for (const { name, title, description, usage, pattern, root, example } of flowTemplates) {
  test(`${name} validates in a project without agents, and says how it is used`, () => {
    const known = { isAgent: () => false, isFunction: (called: string) => functions.has(called) }
    assert.deepEqual(validateFlow(root, known, builtInPatterns), { isValid: true, root })
    assert.equal(pattern, root.type)
    assert.ok(title && description && usage)
    for (const key of Object.keys(example.input)) assert.match(usage, new RegExp(`\\b${key}\\b`))
  })
}

test('the names of templates are unique', () => {
  assert.equal(new Set(flowTemplates.map(({ name }) => name)).size, flowTemplates.length)
})

test('the machine knows the patterns of all templates', () => {
  const others = flowTemplates.filter((template) => !runnable.includes(template)).map(({ name }) => name)
  assert.deepEqual(others, [])
})

for (const { name, root, example } of runnable) {
  test(`${name} runs to completion on its example, without an agent`, async () => {
    asked.length = 0
    const { status, error, output, progress } = await flows.play(root, { input: example.input })
    assert.deepEqual([status, error], ['completed', null])
    assert.ok(output !== null && output !== '' && JSON.stringify(output) !== '[]')
    assert.deepEqual([progress.failed, progress.running, progress.pending], [0, 0, 0])
    assert.ok(progress.completed > 1)
    assert.ok(asked.length > 0)
    assert.ok(asked.every(({ projectId }) => projectId === flows.projectId))
    for (const { prompt } of asked) assert.doesNotMatch(prompt, /\{\{|undefined|\[object/)
  })
}

const leastInputs = { research: { question: 'Why?' }, queen_led_analysis: { goal: 'Find out' } }
for (const [name, input] of Object.entries(leastInputs)) {
  test(`${name} needs no more input than its usage asks for`, async () => {
    const { status, error } = await flows.play(templateOf(name).root, { input })
    assert.deepEqual([status, error], ['completed', null])
  })
}

test('a template without its input fails and names what is missing', async () => {
  const { status, error } = await flows.play(templateOf('swarm_test').root, { input: { topic: 'x' } })
  assert.equal(status, 'failed')
  assert.match(error ?? '', /\{\{input\.subject\}\} is not there: the input has topic\./)
})

test('research analyzes each source that was gathered, then synthesizes once', async () => {
  asked.length = 0
  const { root, example } = templateOf('research')
  await flows.play(root, { input: example.input })
  const starts = asked.map(({ prompt }) => prompt.slice(0, prompt.indexOf(' ')))
  assert.deepEqual(starts, ['Gather', 'Analyze', 'Analyze', 'Synthesize'])
  const analyzed = asked.filter(({ prompt }) => prompt.startsWith('Analyze')).map(({ prompt }) => prompt)
  assert.ok(analyzed.some((prompt) => prompt.includes('first finding')))
  assert.ok(analyzed.some((prompt) => prompt.includes('second finding')))
})

test('refine gives the judge the draft, and stops when it says yes', async () => {
  asked.length = 0
  const { root, example } = templateOf('refine')
  const { output } = await flows.play(root, { input: example.input })
  assert.equal(asked.length, 2)
  assert.match(asked[1]?.prompt ?? '', /first finding/)
  assert.equal(output, 'first finding\nsecond finding')
})

test('an adaptive batch asks about every item once, and keeps their order', async () => {
  asked.length = 0
  const { root } = templateOf('adaptive_batch')
  const items = Array.from({ length: 19 }, (_, place) => `item ${place}.`)
  const { output } = await flows.play(root, { input: { prompt: 'Which?', items } })
  const seen = items.map((item) => asked.filter(({ prompt }) => prompt.includes(`\n${item}\n`)).length)
  assert.deepEqual(
    seen,
    items.map(() => 1),
  )
  assert.ok(Array.isArray(output))
  assert.equal(output.length, 8)
  assert.equal(output.flat().length, items.length)
})

function templateOf(name: string) {
  const template = findFlowTemplate(name)
  assert.ok(template)
  return template
}
