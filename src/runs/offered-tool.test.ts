import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testTool } from '../../test/kit/run-worker.ts'
import type { CallTool, JsonSchema } from '../kernel/tool.ts'
import { graphTools } from '../objects/object-tools.ts'
import { jsonSchemaArguments } from '../tools/arguments.ts'
import { runTools } from '../tools/run-tools.ts'
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
  assert.equal(offeredTool(unsafe, 'execute', false), unsafe)
  const reader = testTool('look', async () => null)
  assert.equal(offeredTool(reader, 'suggest', false), reader)
})

test('the same tool is offered as the same object, and has the hash of its own schema', () => {
  const tool = withSchema(plain)
  assert.equal(offeredTool(tool, 'suggest', false), offeredTool(tool, 'suggest', false))
  for (const mode of ['suggest', 'hybrid'] as const)
    assert.equal(schemaHash(offeredTool(tool, mode, false)), schemaHash(tool))
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
    const tool = offeredTool(withSchema(schema), mode, false)
    assert.deepEqual(tool.offered?.added, added)
    assert.deepEqual(
      propertiesOf(tool).filter((property) => added.includes(property)),
      added,
    )
  })
}

test('the added arguments are checked and taken out, and the own ones stay', () => {
  const suggesting = offeredTool(withSchema(plain), 'suggest', false)
  assert.deepEqual(suggesting.parse({ order: 'a', reasoning: 'Why.' }), { ok: true, args: { order: 'a' } })
  // The text of the step is the reason then; models are asked for one all the same.
  assert.deepEqual(suggesting.parse({ order: 'a' }), { ok: true, args: { order: 'a' } })
  assert.deepEqual(suggesting.inputSchema.required, ['order', 'reasoning'])
  assert.match(JSON.stringify(suggesting.parse({ order: 'a', reasoning: ' ' })), /must not be blank/)
  assert.match(JSON.stringify(suggesting.parse({ order: 'a', reasoning: 'Why.', other: 1 })), /other/)
  const choosing = offeredTool(withSchema(own('apply', 'reasoning')), 'hybrid', false)
  const given = { apply: 'lotion', reasoning: 'own', muster_apply: 'execute' }
  assert.deepEqual(choosing.parse(given), { ok: true, args: { apply: 'lotion', reasoning: 'own' } })
  assert.deepEqual(addedArguments(choosing, given), { apply: 'execute' })
  assert.equal(choosing.parse({ ...given, muster_apply: 'maybe' }).ok, false)
  assert.equal(choosing.parse({ apply: 'lotion' }).ok, false)
})

test('a choice of arguments that allows no others still takes the added ones', () => {
  const tool = offeredTool(withSchema({ type: 'object', anyOf: [own('a'), own('b')] }), 'suggest', false)
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

test('a tool whose calls may only read asks for nothing that reads do not need', () => {
  const fetcher: CallTool = { ...unsafe, effectOf: () => 'readonly' }
  for (const mode of ['suggest', 'hybrid'] as const) {
    const tool = offeredTool(fetcher, mode, false)
    assert.deepEqual([tool.parse({}).ok, tool.inputSchema.required], [true, undefined])
  }
})

test('a tool that is named takes a reason in each mode, and no choice is asked of the agent', () => {
  const given = { order: 'a', reasoning: 'Why.' }
  const reader = { ...testTool('look', async () => null), ...jsonSchemaArguments(plain) }
  for (const [tool, mode] of [
    [withSchema(plain), 'execute'],
    [withSchema(plain), 'suggest'],
    [withSchema(plain), 'hybrid'],
    [reader, 'execute'],
    [reader, 'suggest'],
  ] as const) {
    const offered = offeredTool(tool, mode, true)
    assert.deepEqual(offered.parse(given), { ok: true, args: { order: 'a' } })
    assert.deepEqual(offered.parse({ order: 'a' }), { ok: true, args: { order: 'a' } })
    assert.equal(schemaHash(offered), schemaHash(tool))
    assert.equal(offeredTool(tool, mode, true), offered)
  }
  assert.equal(offeredTool(withSchema(plain), 'execute', true).parse({ ...given, apply: 'execute' }).ok, false)
})

test('a run tool that is named takes a reason, and keeps its own one', () => {
  const spawn = runTools.find(({ kind }) => kind === 'spawn_agent') ?? assert.fail()
  const own = { agent: 'Payer', input: 'Go.' }
  assert.deepEqual(offeredTool(spawn, 'execute', true).parse({ ...own, reasoning: 'Why.' }), { ok: true, args: own })
  const change = graphTools[0] ?? assert.fail()
  const args = { type: 'Note', properties: {}, reasoning: 'Why.' }
  assert.deepEqual(offeredTool(change, 'execute', true).parse(args), { ok: true, args })
})
