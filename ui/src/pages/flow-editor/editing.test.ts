import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseJson } from '../../parts/json-text.ts'
import { type Action, type Editing, editingOf, isSameFlow, nextEditing, textOf } from './editing.ts'
import { inputSketch } from './input-sketch.ts'
import { inReadingOrder } from './reading-order.ts'

const root = { type: 'sequential', steps: [{ type: 'task', agent: 'A' }] }
const after = (...actions: Action[]): Editing => actions.reduce(nextEditing, editingOf({ name: 'n', root }))
const other = { type: 'task', agent: 'B' }

test('an edit is undone and redone, and a new edit ends the future', () => {
  const edited = after({ type: 'edit', root: other })
  assert.equal(edited.now.root, other)
  const undone = nextEditing(edited, { type: 'undo' })
  assert.equal(undone.now.root, root)
  assert.equal(nextEditing(undone, { type: 'redo' }).now.root, other)
  assert.equal(nextEditing(undone, { type: 'edit', root: 1 }).future.length, 0)
  assert.equal(after({ type: 'undo' }).now.root, root)
})

test('the letters of one field are undone together, and choosing a node ends the word', () => {
  const typed = after(
    { type: 'edit', root: 1, tag: 'goal' },
    { type: 'edit', root: 2, tag: 'goal' },
    { type: 'select', path: 'root' },
    { type: 'edit', root: 3, tag: 'goal' },
  )
  assert.deepEqual([typed.past.length, nextEditing(typed, { type: 'undo' }).now.root], [2, 2])
})

test('a right JSON text changes the tree and stays as it is written; a wrong one keeps the last good tree', () => {
  const right = after({ type: 'json', text: '{"type":   "task"}' })
  assert.deepEqual([right.now.root, right.text, right.problem], [{ type: 'task' }, '{"type":   "task"}', null])
  const wrong = nextEditing(right, { type: 'json', text: '{"type":' })
  assert.deepEqual(wrong.now.root, { type: 'task' })
  assert.equal(wrong.problem?.line, 1)
  assert.equal(nextEditing(wrong, { type: 'discard' }).text, null)
  assert.deepEqual(nextEditing(wrong, { type: 'undo' }).now.root, { type: 'task' })
  assert.equal(nextEditing(right, { type: 'edit', root: other }).text, null)
})

test('the chosen node stays chosen while it is there', () => {
  const chosen = after({ type: 'select', path: 'root.steps[0]' })
  assert.equal(chosen.now.selected, 'root.steps[0]')
  assert.equal(nextEditing(chosen, { type: 'json', text: '{"type":"task"}' }).now.selected, 'root')
})

test('another name leaves a JSON text that is not yet right alone', () => {
  const named = after({ type: 'json', text: '{' }, { type: 'name', name: 'm' })
  assert.deepEqual([named.now.name, named.text, named.problem !== null], ['m', '{', true])
})

test('flows are the same if their JSON is', () => {
  assert.ok(isSameFlow({ name: 'a', root }, { name: 'a', root: JSON.parse(textOf(root)) }))
  assert.ok(
    isSameFlow({ name: 'a', root: { x: 1, y: { a: 1, b: 2 } } }, { name: 'a', root: { y: { b: 2, a: 1 }, x: 1 } }),
  )
  assert.ok(!isSameFlow({ name: 'a', root: [1, 2] }, { name: 'a', root: [2, 1] }))
  assert.ok(!isSameFlow({ name: 'a', root }, { name: 'b', root }))
})

test('the fields of a stored tree are put into the order of the guide, and none is lost', () => {
  const stored = {
    id: 'x',
    type: 'loop',
    body: { id: 'b', args: { input: 1, prompt: 'p' }, type: 'task', retry: { backoff: 1 }, function: 'muster.ask' },
    until: 'g',
    extra: [{ type: 'task', id: 'kept as it is' }],
    max_iterations: 3,
  }
  const read = inReadingOrder(stored)
  assert.equal(
    JSON.stringify(read),
    '{"type":"loop","id":"x","body":{"type":"task","id":"b","function":"muster.ask","args":{"prompt":"p","input":1},"retry":{"backoff":1}},"max_iterations":3,"until":"g","extra":[{"type":"task","id":"kept as it is"}]}',
  )
  assert.deepEqual(read, stored)
  for (const wrong of [null, 5, 'x', [1], {}]) assert.deepEqual(inReadingOrder(wrong), wrong)
})

const problemOf = (text: string) => {
  const parsed = parseJson(text)
  return 'problem' in parsed ? parsed.problem : assert.fail('it is JSON')
}

test('wrong JSON is named by its line and column', () => {
  const problem = problemOf('{\n  "a": 1,\n  "b": x\n}')
  assert.deepEqual([problem.line, problem.column, problem.offset], [3, 8, 19])
  assert.equal(problem.message, 'Expected a value, found "x".')
  const places: [string, number][] = [
    ['{"a"', 4],
    ['{"a": 1 "b"', 8],
    ['{"a": 1,}', 8],
    ['[1, 2', 5],
    ['[1]]', 3],
    ['{"a": "b\n"}', 6],
    ["{'a': 1}", 1],
    ['[01]', 2],
    ['{"a": [1, {"b": }]}', 16],
    ['[}', 1],
  ]
  for (const [text, offset] of places) assert.equal(problemOf(text).offset, offset, text)
  assert.match(problemOf('[1, 2').message, /^The text ends too early/)
  assert.equal(problemOf('').message, 'The text is empty.')
})

test('an input to begin with has the names of the templates', () => {
  const tree = {
    a: '{{input.topic}} {{input.who.name?}}',
    b: ['{{input.list.0.x}}', '{{input}}', '{{input.__proto__.x}}'],
  }
  assert.deepEqual(inputSketch(tree), { topic: '', who: { name: '' }, list: [] })
  assert.equal(inputSketch({ a: '{{previous}}' }), null)
  assert.deepEqual(inputSketch(['{{input.a}}', '{{input.a.b}}']), { a: { b: '' } })
})
