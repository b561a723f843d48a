import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FlowNode } from '../../kernel/flow.ts'
import { builtInPatterns } from '../machine/built-in-patterns.ts'
import { flowTemplates } from '../templates/templates.ts'
import { argumentWarnings } from './argument-warnings.ts'

const call = (name: string, args?: unknown): FlowNode => ({
  type: 'task',
  function: `muster.${name}`,
  ...(args === undefined ? {} : { args }),
})
const warn = (root: unknown): unknown[] =>
  argumentWarnings(root as FlowNode, builtInPatterns).map(({ path, message }) => `${path} ${message}`)

const silent: Record<string, unknown> = {
  'arguments that fit': call('ask', { prompt: 'Why?' }),
  'no arguments: what came before is given': call('ask'),
  'a placeholder for all arguments': call('ask', '{{previous}}'),
  'a placeholder in the place of a number': call('chunk', { of: '{{input.text}}', size: '{{input.size}}' }),
  'a placeholder within a list': call('is_larger', { of: ['{{input}}'], than: '{{input.most}}' }),
  'a function of an app module': { type: 'task', function: 'mine', args: { prompt: '' } },
  'an agent': { type: 'task', agent: 'writer', input: '' },
  'the name of a function': { type: 'parallel', branches: [call('identity', 1)], aggregate: 'muster.condense' },
}
for (const [name, root] of Object.entries(silent)) {
  test(`no warning: ${name}`, () => assert.deepEqual(warn(root), []))
}

const told: Record<string, [root: unknown, warnings: string[]]> = {
  'an empty prompt': [call('ask', { prompt: '' }), ['root.args.prompt must not be empty']],
  'a missing prompt beside a placeholder': [call('ask', { input: '{{previous}}' }), ['root.args.prompt is missing']],
  'a number that is too small': [call('chunk', { of: '{{input}}', size: 0 }), ['root.args.size must be at least 1']],
  'a name that is unknown within an argument, beside a placeholder': [
    call('ask_each', { prompt: 'Why?', items: [], share: { of: '{{input.n}}', place: 0, x: 1 } }),
    ['root.args.share has no field "x".'],
  ],
  'a text around a placeholder in the place of a number': [
    call('chunk', { of: '{{input}}', size: 'about {{input.size}}' }),
    ['root.args.size must be a number, not a text'],
  ],
  'the source of items': [
    {
      type: 'map_reduce',
      items: { function: 'muster.ask_list', args: { prompt: '' } },
      workers: 1,
      map: 'f',
      reduce: 'f',
    },
    ['root.items.args.prompt must not be empty'],
  ],
  'the source of a pipeline': [
    { type: 'pipeline', source: { function: 'muster.ask_list', args: { prompt: '' } }, stages: [call('identity', 1)] },
    ['root.source.args.prompt must not be empty'],
  ],
  'the problem of a fork and join': [
    {
      type: 'fork_join',
      problem: { function: 'muster.ask', args: { prompt: '' } },
      should_split: 'f',
      split: 'f',
      solve: 'f',
      join: 'f',
    },
    ['root.problem.args.prompt must not be empty'],
  ],
  'leaves at every place of a pattern': [
    {
      type: 'map_reduce',
      items: [1],
      workers: 1,
      map: call('ask', { prompt: '' }),
      reduce: call('condense', { prompt: '', items: '{{item}}' }),
    },
    ['root.map.args.prompt must not be empty', 'root.reduce.args.prompt must not be empty'],
  ],
  'patterns within patterns': [
    { type: 'sequential', steps: [call('identity', 1), { type: 'parallel', branches: [call('ask', { prompt: '' })] }] },
    ['root.steps[1].branches[0].args.prompt must not be empty'],
  ],
}
for (const [name, [root, warnings]] of Object.entries(told)) {
  test(`a warning: ${name}`, () => assert.deepEqual(warn(root), warnings))
}

test('a wrong name beside a placeholder is told', () => {
  const [first] = warn(call('ask', { prompt: '{{input}}', promt: 'x' }))
  assert.match(String(first), /^root\.args .*promt/)
})

test('a flow of many leaves has a hundred warnings at most', () => {
  const steps = Array.from({ length: 5_000 }, () => call('ask', { prompt: '' }))
  assert.equal(warn({ type: 'sequential', steps }).length, 100)
})

test('no template warns', () => {
  for (const { name, root } of flowTemplates) assert.deepEqual(warn(root), [], name)
})
