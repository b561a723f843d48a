import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import type { JsonSchema } from '../kernel/tool.ts'
import { type Arguments, jsonSchemaArguments, remoteArguments, zodArguments } from './arguments.ts'

const order = z.strictObject({
  id: z.string().min(2).describe('The number of the order.'),
  count: z.int().max(5).optional(),
  size: z.enum(['small', 'large']).default('small'),
  lines: z.array(z.object({ price: z.number() })).optional(),
  to: z.union([z.string(), z.null()]).optional(),
})

const orderSchema: JsonSchema = {
  $schema: 'http://json-schema.org/draft-07/schema#',
  properties: {
    id: { type: 'string', minLength: 2 },
    count: { type: 'integer', maximum: 5 },
    size: { type: 'string', enum: ['small', 'large'], default: 'small' },
    lines: { type: 'array', items: { $ref: '#/definitions/line' } },
    to: { type: ['string', 'null'] },
  },
  required: ['id'],
  additionalProperties: false,
  definitions: { line: { type: 'object', properties: { price: { type: 'number' } }, required: ['price'] } },
}

const ways: [string, Arguments][] = [
  ['a zod schema', zodArguments(order)],
  ['a JSON schema', jsonSchemaArguments(orderSchema)],
  ['the schema of an MCP server', remoteArguments(orderSchema)],
]

const wrong: [unknown, RegExp[]][] = [
  [{}, [/^- id: is required \(string\)$/m]],
  [{ id: 7 }, [/^- id: expected string, received number$/m]],
  [{ id: 'x' }, [/^- id: .*>=2 characters$/m]],
  [{ id: 'xx', count: 1.5 }, [/^- count: expected int/m]],
  [{ id: 'xx', size: 'huge' }, [/^- size: .*"small"\|"large"$/m]],
  [{ id: 'xx', lines: [{ price: 1 }, { price: '2' }] }, [/^- lines\[1\]\.price: expected number, received string$/m]],
  [{ id: 'xx', to: 1 }, [/^- to: .*expected string.*expected null/m]],
  [{ id: 'xx', colour: 'red' }, [/^- \(the arguments\): .*"colour"$/m]],
  [{ id: 1, count: 9 }, [/^- id: /m, /^- count: .*<=5$/m]],
  ['{"id":"xx"}', [/expected object, received string/]],
  [null, [/expected object, received null/]],
  [[], [/expected object, received array/]],
]

for (const [what, { parse, inputSchema }] of ways) {
  test(`${what} says which argument is wrong and what is expected`, () => {
    for (const [args, patterns] of wrong) {
      const parsed = parse(args)
      assert.equal(parsed.ok, false, JSON.stringify(args))
      for (const pattern of patterns) assert.match(parsed.message, pattern)
    }
  })

  test(`${what} lets good arguments through, with defaults filled in`, () => {
    assert.deepEqual(parse({ id: 'xx' }), { ok: true, args: { id: 'xx', size: 'small' } })
    const full = { id: 'xx', count: 2, size: 'large', lines: [{ price: 0.5 }], to: null }
    assert.deepEqual(parse(full), { ok: true, args: full })
  })

  test(`${what} is shown to the model as the schema of an object`, () => {
    assert.equal(inputSchema.type, 'object')
    assert.ok(!('$schema' in zodArguments(order).inputSchema))
  })
}

test('the schema for the model requires only the arguments that the model must send', () => {
  assert.deepEqual(zodArguments(order).inputSchema.required, ['id'])
})

test('a required argument without a description of its own is asked for', () => {
  const parsed = jsonSchemaArguments({ type: 'object', required: ['a'] }).parse({})
  assert.ok(!parsed.ok && /^- a: /m.test(parsed.message))
})

test('only a bounded number of problems is listed', () => {
  const names = Array.from({ length: 30 }, (_, at) => `field${at}`)
  const parsed = zodArguments(z.object(Object.fromEntries(names.map((name) => [name, z.string()])))).parse({})
  assert.ok(!parsed.ok)
  assert.equal(parsed.message.split('\n').length, 12)
  assert.match(parsed.message, /- and 20 more$/)
})

const unknownKeywords: [JsonSchema, RegExp][] = [
  [{ type: 'object', if: { required: ['a'] }, else: { required: ['b'] } }, /if\/then\/else/],
  [{ type: 'object', not: { required: ['a'] } }, /not is not supported/],
  [{ type: 'object', properties: { a: { $ref: 'https://example.com/a.json' } } }, /External \$ref/],
  [{ type: 'object', properties: { a: { $ref: '#/nowhere' } } }, /Reference not found/],
  [{ type: 'array' }, /must describe an object/],
]

test('a JSON schema that cannot be checked is refused with the reason', () => {
  for (const [schema, reason] of unknownKeywords) assert.throws(() => jsonSchemaArguments(schema), reason)
  assert.throws(() => zodArguments(z.object({ at: z.date() })), /Date/)
  assert.throws(() => zodArguments(z.string()), /must describe an object/)
})

test('the same schema of an MCP server leaves the check to the server, but wants an object', () => {
  const loop: JsonSchema = { $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/a' } } }
  for (const schema of [...unknownKeywords.slice(0, 4).map(([each]) => each), loop]) {
    const { parse } = remoteArguments(schema)
    assert.deepEqual(parse({ any: 1 }), { ok: true, args: { any: 1 } })
    assert.equal(parse('text').ok, false)
  }
})

test('an expression of an MCP server is never run here', () => {
  const properties = { pattern: { type: 'string' }, a: { type: 'string', pattern: '^(a+)+$' } }
  const { parse, inputSchema } = remoteArguments({ type: 'object', properties })
  const args = { a: `${'a'.repeat(100_000)}!`, pattern: 'x' }
  assert.deepEqual(parse(args), { ok: true, args })
  assert.equal(parse({ pattern: 1 }).ok, false)
  assert.deepEqual(inputSchema.properties, properties)
})

test('a check that throws is an answer, not an exception', () => {
  const { parse } = zodArguments(z.object({ a: z.string().refine(async () => true) }))
  const parsed = parse({ a: 'x' })
  assert.ok(!parsed.ok && parsed.message.startsWith('The arguments could not be checked: '))
})

const REFS = 40
const doubled = (of: (next: JsonSchema) => JsonSchema): JsonSchema => {
  const names = Array.from({ length: REFS }, (_, at) => `d${at}`)
  const $defs = Object.fromEntries(names.map((name, at) => [name, of({ $ref: `#/$defs/d${at + 1}` })]))
  return {
    type: 'object',
    properties: { a: { $ref: '#/$defs/d0' } },
    $defs: { ...$defs, [`d${REFS}`]: { type: 'string' } },
  }
}
const nested = (depth: number, inner: unknown): unknown => (depth === 0 ? inner : { x: nested(depth - 1, inner) })
const tree: JsonSchema = {
  type: 'object',
  properties: { a: { $ref: '#/$defs/node' } },
  $defs: {
    node: {
      anyOf: [1, 2].map(() => ({ type: 'object', properties: { x: { $ref: '#/$defs/node' } }, required: ['x'] })),
    },
  },
}
const twice = (depth: number): JsonSchema =>
  depth === 0 ? { type: 'string' } : { type: ['object', 'object'], properties: { x: twice(depth - 1) } }

// Each of these would take 2^40 checks. The end of the test shows that the checks are not made.
const endless: Record<string, [JsonSchema, unknown]> = {
  'choices that refer twice to the same schema': [doubled((next) => ({ anyOf: [next, next] })), { a: 1 }],
  'demands that refer twice to the same schema': [doubled((next) => ({ allOf: [next, next] })), { a: 1 }],
  'choices that refer to themselves': [tree, { a: nested(40, 1) }],
  'a type given twice at each level': [{ type: 'object', properties: { a: twice(40) } }, { a: nested(40, 1) }],
}
for (const [what, [schema, args]] of Object.entries(endless)) {
  test(`a schema of an MCP server with ${what} leaves the check to the server`, () => {
    const { parse } = remoteArguments(schema)
    assert.deepEqual(parse(args), { ok: true, args })
    assert.equal(parse('text').ok, false)
  })
}

test('a schema of an MCP server that refers to itself, without choices, is checked', () => {
  const node = { type: 'object', properties: { next: { $ref: '#/$defs/node' }, name: { type: 'string' } } }
  const { parse } = remoteArguments({ type: 'object', properties: { a: { $ref: '#/$defs/node' } }, $defs: { node } })
  assert.equal(parse({ a: { next: { next: { name: 'x' } } } }).ok, true)
  assert.equal(parse({ a: { next: { next: { name: 1 } } } }).ok, false)
})

test('more values than there is time to check against every choice are left to the server', () => {
  const items = { anyOf: Array.from({ length: 100 }, () => ({ type: 'string' })) }
  const { parse } = remoteArguments({ type: 'object', properties: { a: { type: 'array', items } } })
  assert.equal(parse({ a: [1] }).ok, false)
  assert.equal(parse({ a: Array.from({ length: 10_000 }, () => 1) }).ok, true)
})
