import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decisionOf, readDecision } from './decision.ts'
import {
  type Component,
  componentSchema,
  componentsOf,
  type Layout,
  layoutContext,
  layoutSchema,
  MOST_COMPONENTS,
  scenarioOf,
} from './genui.ts'
import { newId } from './id.ts'

const taskId = newId()
const text = (id: string, value = 'x'): Component => ({ type: 'text', id, value })

/** One of each type, with every field that it has. */
const every: { readonly [Type in Component['type']]: Extract<Component, { type: Type }> } = {
  text: { type: 'text', id: 'a1', value: 'Title', style: 'title', tone: 'good' },
  input: { type: 'input', id: 'a2', label: 'Field', placeholder: 'p', multiline: true, required: true },
  select: { type: 'select', id: 'a3', label: 'Choice', options: [{ value: 'a', label: 'A' }], required: true },
  button: {
    type: 'button',
    id: 'a4',
    label: 'Answer',
    action: { type: 'answer', task_id: taskId, from: 'a2' },
    emphasis: 'primary',
  },
  table: {
    type: 'table',
    id: 'a5',
    title: 'T',
    columns: [{ label: 'A', align: 'right' }, { label: 'B' }],
    rows: [{ cells: [1, null], open: { target: 'run', id: taskId } }, { cells: ['<b>', true] }],
    note: 'n',
  },
  diff: {
    type: 'diff',
    id: 'a6',
    title: 'D',
    changes: [{ field: 'f', kind: 'changed', before: '<b>', after: null }],
    unchanged: 1,
    is_whole: true,
  },
  chart: {
    type: 'chart',
    id: 'a7',
    title: 'C',
    kind: 'bar',
    unit: '%',
    categories: ['x', 'y'],
    series: [{ label: 's', values: [1, null] }],
  },
  markdown: { type: 'markdown', id: 'a8', value: '**b** [l](https://a.example)' },
  group: { type: 'group', id: 'a9', title: 'G', components: [{ type: 'text', id: 'a10', value: 'x' }] },
}

test('every type of component fits, and so do all of them together', () => {
  for (const component of Object.values(every)) assert.deepEqual(componentSchema.parse(component), component)
  const layout = { components: Object.values(every) }
  assert.deepEqual(layoutSchema.parse(layout), layout)
  assert.deepEqual(
    componentsOf(layout).map(({ id }) => id),
    ['a1', 'a2', 'a3', 'a4', 'a5', 'a6', 'a7', 'a8', 'a9', 'a10'],
  )
})

const { table, chart, button, select } = every
const refused: [name: string, component: unknown][] = [
  ['an unknown type', { type: 'iframe', id: 'a', src: 'https://a.example' }],
  ['no type', { id: 'a', value: 'x' }],
  ['an unknown property', { ...every.text, onclick: 'alert(1)' }],
  ['an id with other characters', { ...every.text, id: 'a"b' }],
  ['an id that begins with a digit', { ...every.text, id: '1' }],
  ['no id', { type: 'text', value: 'x' }],
  ['HTML in a text', { ...every.text, value: 'a <b>c</b>' }],
  ['HTML in a label', { ...every.input, label: '<i>' }],
  ['HTML in a title', { ...every.table, title: '</td>' }],
  ['HTML in markdown', { ...every.markdown, value: '<img src=x onerror=alert(1)>' }],
  ['a script behind a link', { ...every.markdown, value: '[a](javascript:alert(1))' }],
  ['an image', { ...every.markdown, value: '![a](https://a.example)' }],
  ['a long text', { ...every.text, value: 'x'.repeat(2_001) }],
  ['a long markdown', { ...every.markdown, value: 'x'.repeat(20_001) }],
  ['an unknown action', { ...button, action: { type: 'delete', task_id: taskId } }],
  ['an address as an action', { ...button, action: { type: 'open', href: 'https://a.example' } }],
  ['an action without an id', { ...button, action: { type: 'approve' } }],
  ['an action with a malformed id', { ...button, action: { type: 'approve', task_id: '../x' } }],
  ['an action on another thing', { ...button, action: { type: 'open', target: 'key', id: taskId } }],
  ['a button without words', { ...button, label: '' }],
  ['a row with a missing cell', { ...table, rows: [{ cells: [1] }] }],
  ['a cell that is an object', { ...table, rows: [{ cells: [1, {}] }] }],
  ['a table without columns', { ...table, columns: [], rows: [] }],
  ['too many rows', { ...table, rows: Array(201).fill({ cells: [1, 2] }) }],
  ['a series with a missing value', { ...chart, series: [{ label: 's', values: [1] }] }],
  ['a value that is no number', { ...chart, series: [{ label: 's', values: [1, Number.POSITIVE_INFINITY] }] }],
  ['a choice that occurs twice', { ...select, options: Array(2).fill({ value: 'a', label: 'A' }) }],
  ['no choice', { ...select, options: [] }],
  ['a group within a group', { ...every.group, components: [every.group] }],
]

for (const [name, component] of refused) {
  test(`a component is refused: ${name}`, () => assert.equal(componentSchema.safeParse(component).success, false))
}

const refusedLayouts: [name: string, components: unknown[], says: RegExp][] = [
  ['no component', [], /./],
  ['two components with one id', [text('a'), text('a')], /two components called a/],
  [
    'two components with one id in a group',
    [text('a'), { ...every.group, components: [text('a')] }],
    /two components called a/,
  ],
  ['a group with the id of another component', [text('a9'), every.group], /two components called a9/],
  ['an answer from an unknown component', [button], /no input/],
  ['an answer from a text component', [button, text('a2')], /no input/],
  [
    'too many components in all',
    Array.from({ length: 5 }, (_, at) => ({
      type: 'group',
      id: `g${at}`,
      components: Array.from({ length: 45 }, (_, inner) => text(`g${at}-${inner}`)),
    })),
    new RegExp(`more than ${MOST_COMPONENTS}`),
  ],
  [
    'a layout that is too large',
    Array.from({ length: 150 }, (_, at) => ({ type: 'markdown', id: `m${at}`, value: 'x'.repeat(20_000) })),
    /too large/,
  ],
]

for (const [name, components, says] of refusedLayouts) {
  test(`a layout is refused: ${name}`, () => {
    const parsed = layoutSchema.safeParse({ components })
    assert.equal(parsed.success, false)
    assert.match(parsed.error?.issues[0]?.message ?? '', says)
  })
}

test('the schema that a model is asked with names every type and every action', () => {
  const { name, schema } = decisionOf('genui_layout')
  assert.equal(name, 'genui_layout')
  const said = JSON.stringify(schema)
  for (const type of Object.keys(every)) assert.ok(said.includes(`"const":"${type}"`), type)
  for (const type of ['approve', 'reject', 'answer', 'open']) assert.ok(said.includes(`"const":"${type}"`), type)
  assert.equal(said.includes('$ref'), false)
  assert.ok(said.length < 30_000, `${said.length} characters`)
})

test('an answer of a model is read like any decision', () => {
  const layout: Layout = { components: [text('a')] }
  assert.deepEqual(readDecision('genui_layout', `Here: ${JSON.stringify(layout)}`), { ok: true, decision: layout })
  assert.equal(readDecision('genui_layout', '{"components":[]}').ok, false)
})

test('an unknown scenario is generic', () => {
  for (const known of ['generic', 'approval', 'run_summary', 'eval_comparison']) assert.equal(scenarioOf(known), known)
  for (const unknown of ['', 'Approval', 'toString', '__proto__']) assert.equal(scenarioOf(unknown), 'generic')
})

test('a context takes any further facts, and checks the ones it knows', () => {
  const context = { scenario: 'generic', title: 'T', customer: { name: 'ACME' } }
  assert.deepEqual(layoutContext.parse(context), context)
  for (const wrong of [{}, { scenario: 1 }, { scenario: 'x', run_id: 'no id' }, { scenario: 'x', fields: 'f' }]) {
    assert.equal(layoutContext.safeParse(wrong).success, false, JSON.stringify(wrong))
  }
})
