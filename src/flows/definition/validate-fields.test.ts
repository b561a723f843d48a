// Every field of every pattern, given values of each kind: a refusal names the field, and says what the field takes.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import { workField } from '../../kernel/flow.ts'
import { builtInPatterns } from '../machine/built-in-patterns.ts'
import { validateFlow } from './validate.ts'

const known = { isAgent: () => true, isFunction: () => true }
const values = ['three', '', 7, -1, 0.5, true, null, [], [7], {}, { type: 'parallel' }]

const problemsOf = (root: object): [string, string][] => {
  const checked = validateFlow(root, known, builtInPatterns)
  return checked.isValid ? [] : checked.problems.map(({ path, message }) => [path, message])
}

for (const { type, schema, guide } of builtInPatterns.all) {
  test(`${type}: a wrong value of a field is refused with the field's name and what it takes`, () => {
    assert.ok(schema instanceof z.ZodObject && guide)
    for (const [field, inner] of Object.entries(schema.shape)) {
      if (field === 'type') continue
      const takesWork = inner === workField || (inner instanceof z.ZodOptional && inner.unwrap() === workField)
      for (const value of values) {
        for (const [path, message] of problemsOf({ ...guide.example.root, [field]: value })) {
          const said = `${field}: ${JSON.stringify(value)} gives ${path}: ${message}`
          if (!path.startsWith(`root.${field}`)) continue
          assert.match(message, /^(must|expected|is|has|Too|there|Unrecognized|Invalid (string|option))/, said)
          assert.doesNotMatch(message, /^Invalid input/, said)
          if (!takesWork && !/^(tasks|stages)/.test(field)) assert.doesNotMatch(message, /must be a leaf/, said)
        }
        const isRefused = schema.safeParse({ ...guide.example.root, [field]: value }).success === false
        const paths = problemsOf({ ...guide.example.root, [field]: value }).map(([path]) => path)
        if (isRefused)
          assert.ok(
            paths.some((path) => path.startsWith(`root.${field}`)),
            `${field}: ${paths}`,
          )
      }
    }
  })
}

for (const [what, root, expected] of [
  [
    'workers that are a word',
    { type: 'adaptive', workers: 'three', tasks: [{ type: 'task', function: 'f' }] },
    ['root.workers', 'must be the number of workers, or the list of their names'],
  ],
  [
    'a worker without a name',
    { type: 'adaptive', workers: ['a', 7], tasks: [{ type: 'task', function: 'f' }] },
    ['root.workers[1]', 'must be a text'],
  ],
  [
    'work with a field too many',
    {
      type: 'parallel',
      branches: [{ type: 'task', function: 'f' }],
      aggregate: { type: 'task', function: 'f', arg: 1 },
    },
    ['root.aggregate', 'has no field "arg". Did you mean "args"?'],
  ],
  [
    'a stage with a wrong retry',
    { type: 'pipeline', source: [], stages: [{ type: 'task', agent: 'a', retry: 3 }] },
    ['root.stages[0].retry', 'must be an object'],
  ],
  [
    'a wrong timeout of a leaf whose result is used',
    {
      type: 'sequential',
      steps: [
        { type: 'task', id: 'dry', function: 'f', timeout: '5s' },
        { type: 'task', function: 'f', args: '{{results.dry}}' },
      ],
    },
    ['root.steps[0].timeout', 'must be a number, not a text'],
  ],
  [
    'a wrong pattern around a leaf whose result is used',
    {
      type: 'sequential',
      steps: [
        { type: 'paralel', branches: [{ type: 'task', id: 'dry', function: 'f' }] },
        { type: 'task', function: 'f', args: '{{results.dry}}' },
      ],
    },
    [
      'root.steps[0]',
      `has the type "paralel"; types are task, ${builtInPatterns.all.map(({ type }) => type).join(', ')}. Did you mean "parallel"?`,
    ],
  ],
  [
    'a result of no leaf, among two leaves',
    {
      type: 'sequential',
      steps: [
        { type: 'task', id: 'dry', function: 'f' },
        { type: 'task', id: 'wet', function: 'f', args: '{{results.dy}}' },
      ],
    },
    ['root.steps[1].args', '{{results.dy}}: there is no leaf called dy. The ids are dry, wet.'],
  ],
  [
    'a result of no leaf, named twice in one text',
    { type: 'task', id: 'dry', function: 'f', args: '{{results.dy}} {{results.dy}}' },
    ['root.args', '{{results.dy}}: there is no leaf called dy. The ids are dry.'],
  ],
  [
    'a result of no leaf, among twelve leaves',
    {
      type: 'sequential',
      steps: Array.from('abcdefghijkl', (id) => ({
        type: 'task',
        id,
        function: 'f',
        args: id === 'a' ? '{{results.z}}' : 1,
      })),
    },
    [
      'root.steps[0].args',
      '{{results.z}}: there is no leaf called z. The ids are a, b, c, d, e, f, g, h, i, j, and 2 more.',
    ],
  ],
  [
    'a pattern as work',
    { type: 'parallel', branches: [{ type: 'task', function: 'f' }], aggregate: { type: 'sequential', steps: [] } },
    [
      'root.aggregate',
      'must be a leaf, {"type": "task", …}, or the name of a function; patterns nest in steps, branches and body',
    ],
  ],
] as const) {
  test(`${what}: the error says it`, () => assert.deepEqual(problemsOf(root), [expected]))
}
