import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import { schemaInstance } from './schema-instance.ts'

const node = z.object({
  name: z.string(),
  get children() {
    return z.array(node)
  },
})

const schemas: Record<string, z.ZodType> = {
  strings: z.object({
    short: z.string().max(3),
    long: z.string().min(20),
    when: z.iso.datetime(),
    id: z.uuid(),
    mail: z.email(),
  }),
  numbers: z.object({
    least: z.number().min(5),
    most: z.number().max(-5),
    above: z.int().gt(7),
    below: z.number().lt(0),
    step: z.number().multipleOf(4).min(6),
  }),
  choices: z.object({
    one: z.enum(['a', 'b']),
    two: z.literal(7),
    three: z.union([z.boolean(), z.string()]),
    four: z.string().nullable(),
  }),
  lists: z.object({ none: z.array(z.string()), two: z.array(z.object({ n: z.int() })).min(2) }),
  optional: z.object({ here: z.boolean(), gone: z.string().optional(), given: z.string().default('x') }),
  both: z.intersection(z.object({ a: z.string() }), z.object({ b: z.number() })),
  'trees of themselves': node,
}

for (const [what, schema] of Object.entries(schemas)) {
  test(`an instance of ${what} fits`, () => {
    // z.toJSONSchema gives a plain object.
    const json = z.toJSONSchema(schema) as Record<string, unknown>
    assert.doesNotThrow(() => schema.parse(schemaInstance(json)))
  })
}

test('an instance holds only the required properties', () => {
  const schema = { type: 'object', properties: { a: { type: 'string' }, b: { type: 'string' } }, required: ['b'] }
  assert.deepEqual(schemaInstance(schema), { b: 'offline' })
})

test('a schema that requires itself without end ends', () => {
  const schema = {
    $ref: '#/$defs/a',
    $defs: { a: { type: 'object', properties: { a: { $ref: '#/$defs/a' } }, required: ['a'] } },
  }
  assert.match(JSON.stringify(schemaInstance(schema)), /^(?:\{"a":)+null\}+$/)
  assert.equal(schemaInstance({ $ref: '#/nowhere' }), 'offline')
  assert.equal(typeof schemaInstance({ $ref: '#' }), 'string')
})

const list = (items: object): object => ({ type: 'array', minItems: 1_000, items })
const required = Array.from({ length: 50 }, (_, at) => `p${at}`)
const endless: Record<string, Record<string, unknown>> = {
  'lists within lists': { ...list(list(list(list({ type: 'string' })))) },
  'many properties that are the whole schema again': {
    type: 'object',
    required,
    properties: Object.fromEntries(required.map((name) => [name, { $ref: '#' }])),
  },
  'a large value many times': { ...list({ const: 'x'.repeat(100_000) }) },
  'the same demands many times': {
    ...list({ allOf: required.map(() => ({ $ref: '#/$defs/a' })) }),
    $defs: { a: { required } },
  },
}
for (const [what, schema] of Object.entries(endless)) {
  test(`an instance that would be endless is refused: ${what}`, () => {
    assert.throws(
      () => schemaInstance(schema),
      /smallest value that fits the schema takes more than 1048576 characters/,
    )
  })
}
