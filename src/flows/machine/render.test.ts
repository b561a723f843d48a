import assert from 'node:assert/strict'
import { test } from 'node:test'
import { onlyPlaceholder, placeholdersIn, readPlaceholder } from './placeholders.ts'
import { MissingValue, render } from './render.ts'

const scope = {
  input: { name: 'Ada', list: [1, { two: 2 }], nothing: null, 'a-b': 'dash' },
  previous: 'before',
  item: 7,
  results: { first: { text: 'one' }, 'step-2': [true] },
}

const cases: { name: string; value: unknown; rendered: unknown }[] = [
  { name: 'a text without placeholders', value: 'plain', rendered: 'plain' },
  { name: 'one placeholder keeps the type', value: '{{input.list}}', rendered: [1, { two: 2 }] },
  { name: 'also with blanks', value: '{{ item }}', rendered: 7 },
  { name: 'null is a value', value: '{{input.nothing}}', rendered: null },
  { name: 'in a text values become text', value: 'Dear {{input.name}}, {{item}}!', rendered: 'Dear Ada, 7!' },
  { name: 'in a text objects become JSON', value: 'x {{input.list}}', rendered: 'x [1,{"two":2}]' },
  { name: 'in a text null is nothing', value: 'x{{input.nothing}}x', rendered: 'xx' },
  { name: 'an index of a list', value: '{{input.list.1.two}}', rendered: 2 },
  { name: 'a result by id', value: '{{results.first.text}}', rendered: 'one' },
  { name: 'an id with a dash', value: '{{results.step-2.0}}', rendered: true },
  { name: 'a path that may be missing, as the whole text', value: '{{input.nobody.at.all?}}', rendered: null },
  { name: 'a path that may be missing, in a text', value: 'a{{input.nobody?}}b', rendered: 'ab' },
  {
    name: 'a path that may be missing and is there',
    value: ['{{ item? }}', 'x{{input.name?}}'],
    rendered: [7, 'xAda'],
  },
  { name: 'an unknown root stays text', value: '{{secrets.key}}', rendered: '{{secrets.key}}' },
  { name: 'lists and objects, however deep', value: [{ a: ['{{previous}}'] }], rendered: [{ a: ['before'] }] },
  { name: 'names of properties stay', value: { '{{item}}': 1 }, rendered: { '{{item}}': 1 } },
  { name: 'numbers, truths and null', value: [1, true, null], rendered: [1, true, null] },
  { name: 'no prototype', value: '{{input.constructor.constructor?}}', rendered: null },
  { name: 'no length', value: '{{input.name.length?}}', rendered: null },
  { name: 'no code', value: "{{constructor.constructor('x')()}}", rendered: "{{constructor.constructor('x')()}}" },
  { name: 'four braces', value: '{{{{input.name}}}}', rendered: '{{Ada}}' },
]
for (const { name, value, rendered } of cases) {
  test(`a placeholder: ${name}`, () => assert.deepEqual(render(value, scope), rendered))
}

test('a placeholder in an inserted value is not filled in', () => {
  assert.equal(render('{{previous}}', { ...scope, previous: '{{input.name}}' }), '{{input.name}}')
  assert.equal(render('a {{previous}} b', { ...scope, previous: '{{input.name}}' }), 'a {{input.name}} b')
})

test('only a text that is a placeholder as a whole counts as a placeholder', () => {
  for (const text of ['{{input}}', '{{ results.a.b }}', '{{item?}}']) assert.ok(onlyPlaceholder(text), text)
  for (const text of ['x {{input}}', '{{input}}{{input}}', 'input', '{{other}}', '']) {
    assert.equal(onlyPlaceholder(text), null, text)
  }
})

const gaps: [text: string, message: string][] = [
  ['{{input.topic}}', '{{input.topic}} is not there: the input has name, list, nothing, a-b.'],
  ['About {{ input.topic }}.', '{{ input.topic }} is not there: the input has name, list, nothing, a-b.'],
  ['{{input.list.1.three}}', '{{input.list.1.three}} is not there: input.list.1 has two.'],
  ['{{input.list.7}}', '{{input.list.7}} is not there: input.list is a list of 2.'],
  ['{{input.name.length}}', '{{input.name.length}} is not there: input.name is a text.'],
  ['{{input.nothing.at.all}}', '{{input.nothing.at.all}} is not there: input.nothing is null.'],
  ['{{previous.text}}', '{{previous.text}} is not there: previous is a text.'],
  ['{{item.key}}', '{{item.key}} is not there: the item is a number.'],
  ['{{results.later}}', '{{results.later}} is not there: later has given no result so far.'],
  ['{{results.first.txt}}', '{{results.first.txt}} is not there: results.first has text.'],
]
for (const [text, message] of gaps) {
  test(`a value that is not there is named: ${text}`, () => {
    assert.throws(
      () => render({ deep: [text] }, scope),
      new MissingValue(message, text.startsWith('{{results') ? 'results' : 'input'),
    )
  })
}

test('a value without items, input and earlier steps: only the item is missing', () => {
  const bare = { input: undefined, previous: undefined, results: {} }
  assert.deepEqual(render(['{{input}}', '{{previous}}', '{{results}}', '{{item?}}'], bare), [null, null, {}, null])
  assert.equal(render('<{{input}}>', bare), '<>')
  assert.throws(() => render('{{item}}', bare), /\{\{item\}\} is not there: this leaf is not about one item/)
  assert.throws(() => render('{{input.topic}}', bare), /the input is null/)
})

test('long names and many names do not make the error long', () => {
  const input = Object.fromEntries(Array.from({ length: 1_000 }, (_, place) => [`${place} ${'x'.repeat(1_000)}`, 1]))
  const given = { ...scope, input }
  assert.throws(
    () => render(`{{input.${'y'.repeat(100_000)}}}`, given),
    ({ message }: Error) => message.length < 1_000 && message.endsWith('and 990 more.'),
  )
})

const read: [inner: string, is: 'placeholder' | 'text' | RegExp][] = [
  [' input.a-b.0 ', 'placeholder'],
  ['results', 'placeholder'],
  ['item.what?', 'placeholder'],
  ['foo', /none of input, previous, item and results$/],
  ['inputs.topic', /Did you mean "input"\?$/],
  ['result.x?', /Did you mean "results"\?$/],
  ['input topic', /names with dots/],
  ['input[0]', /brackets are not read, write \{\{input\.0\}\}$/],
  [' input.topic[0].name? ', /write \{\{ input\.topic\.0\.name\? \}\}$/],
  [`results.list['a b']`, /names with dots/],
  [`results.list["name"][-1]`, /write \{\{results\.list\.name\.-1\}\}$/],
  ['input.odd[name]', 'placeholder'],
  ['results.x | upper', /names with dots/],
  ['input.', /names with dots/],
  ['input..x', /names with dots/],
  [" whiteSpace: 'pre-wrap' ", 'text'],
  ["constructor.constructor('x')()", /none of input, previous, item and results$/],
  ['', 'text'],
  ['1 + 1', 'text'],
]
for (const [inner, is] of read) {
  test(`double braces around "${inner}" are ${is instanceof RegExp ? 'wrong' : `a ${is}`}`, () => {
    const placeholder = readPlaceholder(inner)
    if (is === 'text') assert.equal(placeholder, null)
    else if (is === 'placeholder') assert.ok(placeholder && 'root' in placeholder)
    else assert.match(placeholder && 'wrong' in placeholder ? placeholder.wrong : '', is)
  })
}

test('placeholders are found in the order of the value, each with its place', () => {
  const found = placeholdersIn({ a: ['x {{input}} {{foo}}', { b: '{{item}}' }], '{{key}}': 1, c: '{{previous}}' })
  assert.deepEqual(
    found.map(({ at, text }) => [at.join('.'), text]),
    [
      ['a.0', '{{input}}'],
      ['a.0', '{{foo}}'],
      ['a.1.b', '{{item}}'],
      ['c', '{{previous}}'],
    ],
  )
})

const open: [text: string, found: readonly string[]][] = [
  ['About {{input.topic}', ['{{input.topic']],
  ['{{input.topic and {{item}}', ['{{input.topic and ', '{{item}}']],
  ['{{ results', ['{{ results']],
  ['{{{input}}}', ['{{input}}']],
  ['{{inputs.topic} {{', []],
  ['function () {{ return 1 }', []],
]
for (const [text, found] of open) {
  test(`braces that are not closed are wrong where a root follows them: ${text}`, () => {
    const uses = placeholdersIn(text)
    assert.deepEqual(
      uses.map((use) => use.text),
      found,
    )
    for (const { text: shown, placeholder } of uses) assert.equal('wrong' in placeholder, !shown.endsWith('}}'))
  })
}
