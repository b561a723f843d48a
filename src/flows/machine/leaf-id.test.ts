import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { flowTrees } from '../../../test/kit/flow-tree.ts'
import { howMany, seeds } from '../../../test/kit/how-many.ts'
import { builtInPatterns } from './built-in-patterns.ts'
import type { FlowLeaf } from './flow-leaf.ts'
import { format, type LeafId, type Mark, parse } from './leaf-id.ts'
import { createMachine } from './machine.ts'

const cases: [id: string, read: LeafId][] = [
  ['root', { name: 'root', marks: [], keys: [] }],
  ['root~2', { name: 'root', marks: ['~2'], keys: [] }],
  ['read_all', { name: 'read_all', marks: [], keys: [] }],
  ['draft#3~1', { name: 'draft', marks: ['#3', '~1'], keys: [] }],
  ['root/0/1', { name: 'root', marks: [], keys: steps('0', '1') }],
  ['root/2~3/aggregate', { name: 'root', marks: [], keys: [{ key: '2', attempt: 3 }, ...steps('aggregate')] }],
  ['a#2/until 12', { name: 'a', marks: ['#2'], keys: steps('until 12') }],
  ['root/map 0', { name: 'root', marks: [], keys: steps('map 0') }],
  ['root/whole/1/should_split', { name: 'root', marks: [], keys: steps('whole', '1', 'should_split') }],
  ['root/plan 1', { name: 'root', marks: [], keys: steps('plan 1') }],
  ['root/plan 1 again', { name: 'root', marks: [], keys: steps('plan 1 again') }],
  ['root/1/do 1 read/write~2 0', { name: 'root', marks: [], keys: steps('1', 'do 1 read/write~2 0') }],
  ['root/adjust 2 a~7', { name: 'root', marks: [], keys: steps('adjust 2 a~7') }],
  ['root/part 1 / 0', { name: 'root', marks: [], keys: steps('part 1 / 0') }],
]

function steps(...keys: string[]): LeafId['keys'] {
  return keys.map((key) => ({ key, attempt: 1 }))
}

for (const [id, read] of cases) {
  test(`the id ${id} is read and written`, () => {
    assert.deepEqual(parse(id), read)
    assert.equal(format(read), id)
  })
}

const number = fc.integer({ min: 1, max: 10_000 })
const name = fc.oneof(fc.constant('root'), fc.stringMatching(/^[A-Za-z0-9_-]{1,64}$/))
const mark = fc.tuple(fc.constantFrom('#', '~'), number).map(([kind, each]) => `${kind}${each}` as Mark) // one of both
// Marks are left out where all of them are 1.
const marks = fc
  .array(mark, { maxLength: 6 })
  .map((all) => (all.every((each) => each === '#1' || each === '~1') ? [] : all))
const word = fc.constantFrom('aggregate', 'until', 'items', 'map', 'reduce', 'partition', 'problem', 'whole', 'join')
const key = fc.oneof(
  fc.nat(100_000).map(String),
  word,
  fc.tuple(word, fc.nat(100_000)).map(([each, place]) => `${each} ${place}`),
)
const step = fc.tuple(key, fc.oneof(fc.constant(1), number)).map(([each, attempt]) => ({ key: each, attempt }))
// The words of a model are any text.
const text = fc
  .tuple(fc.constantFrom('do', 'part', 'adjust', 'plan', 'review'), number, fc.string({ minLength: 1 }))
  .map(([each, round, words]) => [{ key: `${each} ${round} ${words}`, attempt: 1 }])
const ids: fc.Arbitrary<LeafId> = fc
  .tuple(name, marks, fc.array(step, { maxLength: 6 }), fc.oneof(fc.constant([]), text))
  .map(([named, around, way, last]) => ({ name: named, marks: around, keys: [...way, ...last] }))

test('every id is read as it was written', () => {
  for (const seed of seeds(1)) {
    fc.assert(
      fc.property(ids, (id) => assert.deepEqual(parse(format(id)), id)),
      { seed, numRuns: howMany(2_000, 200_000) },
    )
  }
})

test('every leaf that a machine starts has an id that the grammar allows', () => {
  for (const seed of seeds(1)) {
    fc.assert(
      fc.property(flowTrees, (root) => {
        const machine = createMachine(root, [1, 2], builtInPatterns)
        const waiting: FlowLeaf[] = machine.begin()
        for (let next = waiting.shift(); next; next = waiting.shift()) {
          assert.equal(format(parse(next.id)), next.id)
          if (next.part) assert.deepEqual(parse(next.part.of).keys.length, parse(next.id).keys.length)
          waiting.push(...machine.settle(next.id, { status: 'completed', value: [[1, 2]] }))
        }
      }),
      { seed, numRuns: howMany(30, 3_000) },
    )
  }
})
