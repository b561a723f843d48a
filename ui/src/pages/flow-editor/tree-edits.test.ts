import assert from 'node:assert/strict'
import { test } from 'node:test'
import { placeProblems, problemsAt } from './problems.ts'
import { childrenOf, nearestPath, placeOf, rowsOf, titleOf, valueAt, withValue } from './tree.ts'
import {
  addAfter,
  addInside,
  addNode,
  asPattern,
  blankAgent,
  duplicateNode,
  moveIn,
  moveNode,
  moveOut,
  removeNode,
  unwrapNode,
  wrapNode,
} from './tree-edits.ts'

const leaf = (id: string) => ({ type: 'task', id, function: 'f' })
const [a, b, c] = [leaf('a'), leaf('b'), leaf('c')]
const tree = {
  type: 'sequential',
  steps: [a, { type: 'parallel', branches: [b, c], aggregate: 'merge' }, { type: 'loop', body: c, until: 'g' }],
}

test('a path leads to its node, and a changed value leaves the old tree alone', () => {
  assert.equal(valueAt(tree, 'root.steps[1].branches[0]'), b)
  assert.equal(valueAt(tree, 'root.steps[9].branches[0]'), undefined)
  assert.equal(valueAt(tree, 'root.constructor'), undefined)
  const next = withValue(tree, 'root.steps[1].branches[0].id', 'x')
  assert.equal(valueAt(next, 'root.steps[1].branches[0].id'), 'x')
  assert.equal(b.id, 'b')
  assert.deepEqual(Object.keys(withValue(b, 'root.id', undefined) as object), ['type', 'function'])
  assert.deepEqual(placeOf('root.steps[1].body'), { parent: 'root.steps[1]', field: 'body', index: null })
})

test('the rows are the nodes, leaves and functions, in reading order; words such as merge are none', () => {
  assert.deepEqual(
    rowsOf(tree).map(({ path, depth }) => `${depth} ${path}`),
    [
      '0 root',
      '1 root.steps[0]',
      '1 root.steps[1]',
      '2 root.steps[1].branches[0]',
      '2 root.steps[1].branches[1]',
      '1 root.steps[2]',
      '2 root.steps[2].body',
      '2 root.steps[2].until',
    ],
  )
  assert.equal(rowsOf(tree, new Set(['root.steps[1]'])).length, 6)
  for (const wrong of [null, 5, [], 'x', {}, { type: 'swarm' }, { type: 'sequential', steps: 'no' }]) {
    assert.equal(rowsOf(wrong).length, 1, JSON.stringify(wrong))
    assert.equal(typeof titleOf(wrong), 'string')
  }
})

test('a path that is gone leads to the nearest node around it', () => {
  assert.equal(nearestPath(tree, 'root.steps[1].branches[7]'), 'root.steps[1]')
  assert.equal(nearestPath(tree, 'root.steps[0].agent'), 'root.steps[0]')
  assert.equal(nearestPath(tree, 'nonsense'), 'root')
})

test('a node is added inside a pattern, after a leaf, and beside a lone leaf by a sequence', () => {
  assert.equal(addInside(tree, 'root.steps[1]', blankAgent)?.path, 'root.steps[1].branches[2]')
  const after = addAfter(tree, 'root.steps[1].branches[0]', blankAgent)
  assert.equal(valueAt(after?.root, 'root.steps[1].branches[1]'), blankAgent)
  assert.deepEqual(addNode(a, 'root', blankAgent), {
    root: { type: 'sequential', steps: [a, blankAgent] },
    path: 'root.steps[1]',
  })
  assert.equal(addNode(tree, 'root.steps[2].body', blankAgent)?.path, 'root.steps[2].body.steps[1]')
  const nested = { type: 'sequential', steps: [a] }
  assert.equal(addInside({ type: 'pipeline', stages: [a] }, 'root', nested), null, 'a stage is a leaf')
  assert.equal(addNode({ type: 'fork_join', split: a }, 'root.split', nested), null)
  assert.equal(addInside({ type: 'loop' }, 'root', a)?.path, 'root.body', 'an empty place is filled')
})

test('a removed node gives its place to the next one, and the root stays', () => {
  assert.equal(removeNode(tree, 'root'), null)
  assert.equal(removeNode(tree, 'root.steps[2]')?.path, 'root.steps[1]')
  const gone = removeNode(tree, 'root.steps[2].until')
  assert.deepEqual([gone?.path, valueAt(gone?.root, 'root.steps[2].until')], ['root.steps[2]', undefined])
  assert.equal(removeNode({ type: 'sequential', steps: [a] }, 'root.steps[0]')?.path, 'root')
})

test('a copy has new ids, and its templates name them', () => {
  const pair = {
    type: 'sequential',
    id: 'pair',
    steps: [a, { type: 'task', agent: 'x', input: '{{results.a}} {{results.a.b?}} {{results.ab}}' }],
  }
  const copied = duplicateNode({ type: 'parallel', branches: [pair] }, 'root.branches[0]')
  assert.equal(copied?.path, 'root.branches[1]')
  assert.equal(valueAt(copied?.root, 'root.branches[1].id'), 'pair_2')
  assert.equal(valueAt(copied?.root, 'root.branches[1].steps[0].id'), 'a_2')
  assert.equal(
    valueAt(copied?.root, 'root.branches[1].steps[1].input'),
    '{{results.a_2}} {{results.a_2.b?}} {{results.ab}}',
  )
  assert.equal(duplicateNode(tree, 'root'), null)
})

test('nodes move within their list, out of their pattern and into the one before', () => {
  assert.equal(moveNode(tree, 'root.steps[0]', -1), null)
  const down = moveNode(tree, 'root.steps[0]', 1)
  assert.deepEqual([down?.path, valueAt(down?.root, 'root.steps[1]')], ['root.steps[1]', a])
  const out = moveOut(tree, 'root.steps[1].branches[0]')
  assert.deepEqual([out?.path, valueAt(out?.root, 'root.steps[2]')], ['root.steps[2]', b])
  assert.deepEqual(valueAt(out?.root, 'root.steps[1].branches'), [c])
  assert.equal(moveOut(tree, 'root.steps[0]'), null)
  const into = moveIn(tree, 'root.steps[2]')
  assert.equal(into?.path, 'root.steps[1].branches[2]')
  assert.equal(moveIn(tree, 'root.steps[1]'), null, 'the node before is a leaf')
})

test('a node is wrapped where the pattern may stand, and unwrapped again', () => {
  const wrapped = wrapNode(tree, 'root.steps[0]', 'parallel')
  assert.deepEqual(valueAt(wrapped?.root, 'root.steps[0]'), { type: 'parallel', branches: [a] })
  assert.deepEqual(unwrapNode(wrapped?.root, 'root.steps[0]')?.root, tree)
  assert.equal(valueAt(wrapNode(a, 'root', 'loop')?.root, 'root.max_iterations'), 3)
  assert.equal(wrapNode(tree, 'root.steps[2].until', 'loop'), null, 'until takes a leaf or a function')
  assert.equal(wrapNode(tree, 'root.steps[1]', 'pipeline'), null, 'a stage is a leaf')
  assert.equal(unwrapNode(tree, 'root'), null)
  assert.equal(valueAt(unwrapNode(tree, 'root.steps[1]')?.root, 'root.steps[2]'), c)
})

test('another pattern keeps the nodes that fit it, and counts those that do not', () => {
  const { node, lost } = asPattern({ type: 'sequential', id: 's', steps: [a, b] }, 'parallel')
  assert.deepEqual([node, lost], [{ type: 'parallel', id: 's', branches: [a, b] }, 0])
  assert.equal(asPattern(tree, 'pipeline').lost, 2)
  assert.equal(asPattern(tree, 'loop').lost, 2)
  assert.deepEqual(asPattern(a, 'sequential').node, { type: 'sequential', steps: [a] })
  const named = asPattern({ type: 'hierarchical', queen: 'q', workers: ['w'], goal: 'g' }, 'fork_join')
  assert.equal(named.node.workers, 2, 'names of workers are no number of workers')
})

test('a problem is placed at its node and field', () => {
  const placed = placeProblems(tree, [
    { path: 'root.steps[1].branches[0].retry.backoff', message: 'is missing' },
    { path: 'root.steps[2].until', message: 'there is no function called g' },
    { path: 'root', message: 'is wrong' },
  ])
  assert.deepEqual(
    placed.map(({ node, field }) => [node, field]),
    [
      ['root.steps[1].branches[0]', 'retry'],
      ['root.steps[2].until', ''],
      ['root', ''],
    ],
  )
  assert.equal(problemsAt(placed, 'root', ''), 'Is wrong.')
  assert.equal(problemsAt(placed, 'root', 'steps'), null)
})

test('a node in a slot for one thing is its only child there', () => {
  assert.deepEqual(
    childrenOf({ type: 'fork_join', split: 'f', solve: a }, 'root').map(({ path }) => path),
    ['root.split', 'root.solve'],
  )
})
