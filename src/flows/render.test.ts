import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isTemplate, render } from './render.ts'

const scope = {
  input: { name: 'Ada', list: [1, { two: 2 }], nothing: null, 'a-b': 'dash' },
  previous: 'before',
  item: 7,
  results: { first: { text: 'one' }, 'step-2': [true] },
}

const cases: { name: string; value: unknown; rendered: unknown }[] = [
  { name: 'a text without templates', value: 'plain', rendered: 'plain' },
  { name: 'one template keeps the type', value: '{{input.list}}', rendered: [1, { two: 2 }] },
  { name: 'also with blanks', value: '{{ item }}', rendered: 7 },
  { name: 'null is a value', value: '{{input.nothing}}', rendered: null },
  { name: 'in a text values become text', value: 'Dear {{input.name}}, {{item}}!', rendered: 'Dear Ada, 7!' },
  { name: 'in a text objects become JSON', value: 'x {{input.list}}', rendered: 'x [1,{"two":2}]' },
  { name: 'in a text null is nothing', value: 'x{{input.nothing}}x', rendered: 'xx' },
  { name: 'an index of a list', value: '{{input.list.1.two}}', rendered: 2 },
  { name: 'a result by id', value: '{{results.first.text}}', rendered: 'one' },
  { name: 'an id with a dash', value: '{{results.step-2.0}}', rendered: true },
  { name: 'an unknown path', value: '{{input.nobody.at.all}}', rendered: '' },
  { name: 'an unknown path in a text', value: 'a{{input.nobody}}b', rendered: 'ab' },
  { name: 'an unknown root stays text', value: '{{secrets.key}}', rendered: '{{secrets.key}}' },
  { name: 'lists and objects, however deep', value: [{ a: ['{{previous}}'] }], rendered: [{ a: ['before'] }] },
  { name: 'names of properties stay', value: { '{{item}}': 1 }, rendered: { '{{item}}': 1 } },
  { name: 'numbers, truths and null', value: [1, true, null], rendered: [1, true, null] },
  { name: 'no prototype', value: '{{input.constructor.constructor}}', rendered: '' },
  { name: 'no length', value: '{{input.name.length}}', rendered: '' },
  { name: 'no code', value: "{{constructor.constructor('x')()}}", rendered: "{{constructor.constructor('x')()}}" },
  { name: 'four braces', value: '{{{{input.name}}}}', rendered: '{{Ada}}' },
]
for (const { name, value, rendered } of cases) {
  test(`a template: ${name}`, () => assert.deepEqual(render(value, scope), rendered))
}

test('what is put in is not looked at again', () => {
  assert.equal(render('{{previous}}', { ...scope, previous: '{{input.name}}' }), '{{input.name}}')
  assert.equal(render('a {{previous}} b', { ...scope, previous: '{{input.name}}' }), 'a {{input.name}} b')
})

test('only a text that is one template is called one', () => {
  for (const text of ['{{input}}', '{{ results.a.b }}']) assert.ok(isTemplate(text), text)
  for (const text of ['x {{input}}', '{{input}}{{input}}', 'input', '{{other}}', '']) assert.ok(!isTemplate(text), text)
})
