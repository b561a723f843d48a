import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fieldsOf, readComponents } from './genui-read.ts'

const text = { type: 'text', id: 't', value: 'Hello' }
const input = { type: 'input', id: 'i', label: 'Name', required: true }
const kinds = (components: unknown[]) => readComponents(components).map(({ kind }) => kind)

test('a component of an unknown type, or of a wrong shape, leaves the others as they are', () => {
  assert.deepEqual(kinds([text, { type: 'hologram', id: 'h' }, { type: 'text', id: 'x' }, null, 7, input]), [
    ...['leaf', 'unknown', 'unknown', 'unknown', 'unknown', 'leaf'],
  ])
  const [unknown, nameless] = readComponents([{ type: 'hologram', id: 'h' }, {}])
  assert.ok(unknown?.kind === 'unknown' && nameless?.kind === 'unknown')
  assert.deepEqual([unknown.type, nameless.type], ['hologram', 'nameless'])
})

test('an unknown component within a group leaves the rest of the group as it is', () => {
  const [group] = readComponents([{ type: 'group', id: 'g', title: 'More', components: [text, { type: 'x' }] }])
  assert.ok(group?.kind === 'group')
  assert.deepEqual([group.title, group.children.map(({ kind }) => kind)], ['More', ['leaf', 'unknown']])
})

test('text with markup is not drawn', () => {
  assert.deepEqual(kinds([{ type: 'markdown', id: 'm', value: '<img src=x onerror=alert(1)>' }]), ['unknown'])
})

test('the fields of a layout are found within groups, too', () => {
  const select = { type: 'select', id: 's', label: 'Which', options: [{ value: 'a', label: 'A' }] }
  const fields = fieldsOf(readComponents([text, input, { type: 'group', id: 'g', components: [select] }]))
  assert.deepEqual(
    [...fields],
    [
      ['i', { isRequired: true }],
      ['s', { isRequired: false }],
    ],
  )
})
