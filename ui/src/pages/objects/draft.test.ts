import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addField, changeField, changesOf, type Draft, inMode, newDraft, problemsAt, readDraft } from './draft.ts'

const stored = { name: 'Ada', age: 36, alive: false, tags: ['a'], boss: null }

test('properties that nobody touches are read as they were', () => {
  assert.deepEqual(readDraft(newDraft(stored)), { properties: stored })
})

test('each field keeps its kind, and a wrong value is told at its field', () => {
  const draft = newDraft(stored)
  assert.deepEqual(
    draft.fields.map(({ kind }) => kind),
    ['text', 'number', 'yes or no', 'JSON', 'JSON'],
  )
  const wrong = changeField(changeField(draft, 1, { text: 'old' }), 3, { text: '[' })
  const read = readDraft(wrong)
  assert.ok('problems' in read)
  assert.equal(read.problems.get('value 1'), 'This is no number.')
  assert.match(read.problems.get('value 3') ?? '', /^This is no JSON/)
})

test('a new field needs a name of its own', () => {
  const draft = addField(addField(newDraft({ name: 'Ada' })))
  const read = readDraft(changeField(draft, 2, { name: 'name' }))
  assert.ok('problems' in read)
  assert.deepEqual([...read.problems.keys()], ['name 1', 'name 2'])
})

test('a name that objects have by nature is an ordinary name', () => {
  const read = readDraft(changeField(addField(newDraft({})), 0, { name: '__proto__', text: 'x' }))
  assert.ok('properties' in read)
  assert.deepEqual(Object.keys(read.properties), ['__proto__'])
})

test('the form becomes JSON and comes back, and JSON that is no object stays JSON', () => {
  const asJson = inMode(newDraft(stored), 'json', stored) as Draft // the draft is valid
  assert.deepEqual(JSON.parse(asJson.json), stored)
  const back = inMode({ ...asJson, json: '{"name":"Grace","born":1906}' }, 'form', stored) as Draft // the draft is valid
  assert.deepEqual(
    back.fields.map(({ name, isNew }) => [name, isNew]),
    [
      ['name', false],
      ['born', true],
    ],
  )
  const bad = inMode({ ...asJson, json: '[1]' }, 'form', stored)
  assert.ok('problems' in bad)
  assert.equal(bad.problems.get('json'), 'This must be a JSON object.')
})

test('only what changed is sent, and a property that is left out is named', () => {
  assert.deepEqual(changesOf(stored, { ...stored, age: 37, born: 1815 }), {
    changed: { age: 37, born: 1815 },
    missing: [],
  })
  assert.deepEqual(changesOf({ a: 1, b: 2 }, { a: 1 }), { changed: {}, missing: ['b'] })
})

test('problems that the API found stand at their fields', () => {
  const issues = new Map([
    ['properties.age', 'is too large'],
    ['type', 'must not be blank'],
  ])
  assert.deepEqual([...problemsAt(newDraft(stored), issues)], [['value 1', 'is too large']])
  assert.deepEqual([...problemsAt({ ...newDraft(stored), mode: 'json' }, issues)], [['json', 'is too large']])
})
