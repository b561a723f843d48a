import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testTool } from '../../test/kit/run-worker.ts'
import type { CallTool, JsonSchema } from '../kernel/tool.ts'
import { jsonSchemaArguments } from '../tools/arguments.ts'
import { schemaHash } from '../tools/tool-identity.ts'
import { addedArguments, offeredTool } from './offered-tool.ts'

const unsafe = testTool('refund', async () => null, { effect: 'unsafe' })
const withSchema = (schema: JsonSchema): CallTool => ({ ...unsafe, ...jsonSchemaArguments(schema) })
const propertiesOf = ({ inputSchema }: CallTool): string[] => Object.keys(inputSchema.properties ?? {})
const plain = {
  type: 'object',
  properties: { order: { type: 'string' } },
  required: ['order'],
  additionalProperties: false,
}
const own = (...names: string[]): JsonSchema => ({
  type: 'object',
  properties: Object.fromEntries(names.map((name) => [name, { type: 'string' }])),
  additionalProperties: false,
})

test('a tool is offered as it is in execute mode, and when it only reads', () => {
  assert.equal(offeredTool(unsafe, 'execute'), unsafe)
  const reader = testTool('look', async () => null)
  assert.equal(offeredTool(reader, 'suggest'), reader)
})

test('the same tool is offered as the same object, and has the hash of its own schema', () => {
  const tool = withSchema(plain)
  assert.equal(offeredTool(tool, 'suggest'), offeredTool(tool, 'suggest'))
  for (const mode of ['suggest', 'hybrid'] as const) assert.equal(schemaHash(offeredTool(tool, mode)), schemaHash(tool))
})

const cases: { name: string; schema: JsonSchema; mode: 'suggest' | 'hybrid'; added: string[] }[] = [
  { name: 'a plain tool that suggests', schema: plain, mode: 'suggest', added: ['reasoning'] },
  { name: 'a plain tool in hybrid mode', schema: plain, mode: 'hybrid', added: ['apply', 'reasoning'] },
  { name: 'a tool with its own reasoning', schema: own('reasoning'), mode: 'suggest', added: [] },
  { name: 'a tool with its own apply', schema: own('apply'), mode: 'hybrid', added: ['muster_apply', 'reasoning'] },
  { name: 'a tool with both', schema: own('apply', 'reasoning'), mode: 'hybrid', added: ['muster_apply'] },
  {
    name: 'a tool with choices of which one has its own apply',
    schema: { type: 'object', anyOf: [own('a'), own('apply')] },
    mode: 'hybrid',
    added: ['muster_apply', 'reasoning'],
  },
  {
    name: 'a tool whose schema is a reference',
    schema: { $ref: '#/$defs/a', $defs: { a: own('apply') } },
    mode: 'hybrid',
    added: [],
  },
]
for (const { name, schema, mode, added } of cases) {
  test(`${name} gets ${added.join(' and ') || 'nothing'} beside its own arguments`, () => {
    const tool = offeredTool(withSchema(schema), mode)
    assert.deepEqual(tool.offered?.added, added)
    assert.deepEqual(
      propertiesOf(tool).filter((property) => added.includes(property)),
      added,
    )
  })
}

test('the added arguments are checked and taken out, and the own ones stay', () => {
  const suggesting = offeredTool(withSchema(plain), 'suggest')
  assert.deepEqual(suggesting.parse({ order: 'a', reasoning: 'Why.' }), { ok: true, args: { order: 'a' } })
  assert.match(JSON.stringify(suggesting.parse({ order: 'a' })), /reasoning: is required/)
  assert.match(JSON.stringify(suggesting.parse({ order: 'a', reasoning: ' ' })), /must not be blank/)
  assert.match(JSON.stringify(suggesting.parse({ order: 'a', reasoning: 'Why.', other: 1 })), /other/)
  const choosing = offeredTool(withSchema(own('apply', 'reasoning')), 'hybrid')
  const given = { apply: 'lotion', reasoning: 'own', muster_apply: 'execute' }
  assert.deepEqual(choosing.parse(given), { ok: true, args: { apply: 'lotion', reasoning: 'own' } })
  assert.deepEqual(addedArguments(choosing, given), { apply: 'execute' })
  assert.equal(choosing.parse({ ...given, muster_apply: 'maybe' }).ok, false)
  assert.equal(choosing.parse({ apply: 'lotion' }).ok, false)
})

test('a choice of arguments that allows no others still takes the added ones', () => {
  const tool = offeredTool(withSchema({ type: 'object', anyOf: [own('a'), own('b')] }), 'suggest')
  assert.deepEqual(tool.parse({ a: 'x', reasoning: 'Why.' }), { ok: true, args: { a: 'x' } })
  const branches = tool.inputSchema.anyOf as { properties: object }[]
  assert.deepEqual(
    branches.map(({ properties }) => Object.keys(properties)),
    [
      ['a', 'reasoning'],
      ['b', 'reasoning'],
    ],
  )
})

test('a tool whose calls may only read needs a reason for the other calls alone', () => {
  const isWrite = (args: unknown): boolean => (args as { method?: string }).method === 'POST'
  const fetcher: CallTool = { ...unsafe, effectOf: (args) => (isWrite(args) ? 'unsafe' : 'readonly') }
  const tool = offeredTool(fetcher, 'suggest')
  assert.equal(tool.parse({}).ok, true)
  assert.equal(tool.parse({ method: 'POST' }).ok, false)
  assert.equal(tool.parse({ method: 'POST', reasoning: 'Why.' }).ok, true)
  assert.equal(offeredTool(fetcher, 'hybrid').parse({}).ok, true)
})
