import assert from 'node:assert/strict'
import { test } from 'node:test'
import { JsonRefused, MAX_DEPTH, parseStrictJson } from './strict-json.ts'

const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth)

const accepted: string[] = [
  '{}',
  '[]',
  'null',
  '"text"',
  '-12.5e-3',
  '{"a":{"b":[1,2,{"c":"d"}]},"e":[],"f":{}}',
  '{"a":1,"b":{"a":1}}',
  '[{"a":1},{"a":2}]',
  '{"quote\\"d":"back\\\\slash","brace":"}{][,:"}',
  '{"emoji":"\\ud83d\\ude00","raw":"😀"}',
  '{"escaped":"\\u0041"}',
  ' { "spaced" : [ 1 , 2 ] } ',
  '{"":""}',
  '1e308',
  nested(MAX_DEPTH),
]

for (const text of accepted) {
  test(`${text.slice(0, 60)} is read as JSON.parse reads it`, () => {
    assert.deepEqual(parseStrictJson(text), JSON.parse(text))
  })
}

const refused: [name: string, text: string, sentence: RegExp][] = [
  ['nothing', '', /not valid JSON/],
  ['broken JSON', '{"a":', /not valid JSON/],
  ['two values', '{} {}', /not valid JSON/],
  ['a trailing comma', '{"a":1,}', /not valid JSON/],
  ['an escaped NUL in a value', '{"a":"x\\u0000"}', /NUL/],
  ['an escaped NUL in a key', '{"\\u0000":1}', /NUL/],
  ['a lone high surrogate', '{"a":"\\ud800"}', /surrogate/],
  ['a lone low surrogate in a list', '["\\udc00"]', /surrogate/],
  ['reversed surrogates', '["\\ude00\\ud83d"]', /surrogate/],
  ['a lone surrogate in a key', '{"\\ud800":1}', /surrogate/],
  ['a property named twice', '{"a":1,"a":2}', /twice/],
  ['the same property in two spellings', '{"a":1,"\\u0061":2}', /twice/],
  ['a property named twice after a nested object', '{"a":{"b":1},"c":[{}],"a":2}', /twice/],
  ['__proto__', '{"__proto__":{"admin":true}}', /not allowed/],
  ['an escaped __proto__ below', '{"a":[{"\\u005f_proto__":1}]}', /not allowed/],
  ['a number beyond a double', '{"a":1e400}', /too large/],
  ['a negative number beyond a double', '[-1e999]', /too large/],
  ['one level too many', nested(MAX_DEPTH + 1), /deeper than 64/],
  ['fifty thousand levels', nested(50_000), /deeper than 64/],
  ['objects one level too many', `${'{"a":'.repeat(MAX_DEPTH + 1)}1${'}'.repeat(MAX_DEPTH + 1)}`, /deeper than 64/],
]

for (const [name, text, sentence] of refused) {
  test(`${name} is refused`, () => {
    assert.throws(
      () => parseStrictJson(text),
      (error: unknown) => {
        assert.ok(error instanceof JsonRefused)
        assert.match(error.message, sentence)
        return true
      },
    )
  })
}
