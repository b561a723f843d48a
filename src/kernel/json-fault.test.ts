import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { jsonFault } from './json-fault.ts'

const cases: [text: string, expected: string][] = [
  ['', 'Line 1, column 1: a value was expected, and the end was found.'],
  ['{"a": }', 'Line 1, column 7: a value was expected, and "}" was found.'],
  ['{\n  "a": 1,\n}', 'Line 3, column 1: a property name in double quotes was expected, and "}" was found.'],
  ['[1, 2', 'Line 1, column 6: "," or "]" was expected, and the end was found.'],
  ['[1,]', 'Line 1, column 4: a value was expected, and "]" was found.'],
  ["{'a': 1}", 'Line 1, column 2: a property name in double quotes or "}" was expected, and "\'" was found.'],
  ['{"a" 1}', 'Line 1, column 6: ":" was expected, and "1" was found.'],
  ['{"a": 1 "b": 2}', 'Line 1, column 9: "," or "}" was expected, and "\\"" was found.'],
  ['{} {}', 'Line 1, column 4: the end was expected, and "{" was found.'],
  ['{"a": tru}', 'Line 1, column 7: a value was expected, and "t" was found.'],
  ['[01]', 'Line 1, column 3: "," or "]" was expected, and "1" was found.'],
  ['"abc', 'Line 1, column 5: the double quote that ends a text was expected, and the end was found.'],
  ['["\\x"]', 'Line 1, column 4: an escape such as \\n or \\u0041 was expected, and "x" was found.'],
  ['[\u00a01]', 'Line 1, column 2: a value was expected, and the character U+00a0 was found.'],
]

for (const [text, expected] of cases) {
  test(`the fault of ${JSON.stringify(text)} has its place`, () => assert.equal(jsonFault(text), expected))
}

test('a fault is found exactly where JSON.parse refuses the text', () => {
  const mark = fc.constantFrom(...'{}[]",:\\tn0-1.e \n\'x\u0000é')
  const text = fc.tuple(fc.json({ maxDepth: 3 }), fc.nat(), fc.nat(2), fc.array(mark, { maxLength: 2 }))
  fc.assert(
    fc.property(text, ([json, place, left, marks]) => {
      const at = place % (json.length + 1)
      const changed = json.slice(0, at) + marks.join('') + json.slice(at + left)
      let isJson = true
      try {
        JSON.parse(changed)
      } catch {
        isJson = false
      }
      assert.equal(jsonFault(changed) === null, isJson, changed)
    }),
    { numRuns: 3_000 },
  )
})

test('a deep and a long text take one pass, and no secret is repeated', () => {
  assert.match(jsonFault('['.repeat(1_000_000)) ?? '', /column 1000001/)
  assert.match(jsonFault(`"${'\\n'.repeat(500_000)}`) ?? '', /the end was found/)
  assert.doesNotMatch(jsonFault('{"key": sk-secret-4711}') ?? '', /secret|4711/)
})
