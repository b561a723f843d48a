// Every route of the OpenAPI document, under several identities, with bodies made from its own schemas and then broken.
// No request may give a 5xx or an undocumented status. Every error has the envelope, answers fit their schemas (the
// test kit parses each), and a refused request changes no row. A new route is in the document, so this test covers it.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createTestApp } from '../../../test/kit/app.ts'
import { dumpRows } from '../../../test/kit/database.ts'
import { howMany } from '../../../test/kit/how-many.ts'
import { signInByLink } from '../../../test/kit/people.ts'
import { isSystem } from '../../../test/kit/tiers.ts'
import { inTransaction } from '../../db/transaction.ts'
import { newId } from '../../kernel/id.ts'
import { errorSchema } from './errors.ts'

interface Schema {
  $ref?: string
  const?: unknown
  type?: string | string[]
  properties?: Record<string, Schema>
  required?: string[]
  enum?: unknown[]
  anyOf?: Schema[]
  oneOf?: Schema[]
  items?: Schema
  format?: string
  minimum?: number
  maximum?: number
  minLength?: number
  minItems?: number
  maxItems?: number
}

interface Operation {
  route: string
  body: Schema | null
  statuses: string[]
}

const RUNS_PER_ROUTE = Number(process.env.MUSTER_FUZZ_RUNS ?? howMany(isSystem ? 5 : 3, 200))
const seed = Number(process.env.MUSTER_FUZZ_SEED ?? Date.now() % 1_000_000)

const kit = await createTestApp({ signInLimit: 0, waits: { waitMs: 50 } })
const project = await kit.createProject('fuzzed')
const other = await kit.createProject('other')
const identities = {
  nobody: { token: null },
  viewer: { token: (await kit.createKey(project.id, 'viewer')).key },
  member: { token: (await kit.createKey(project.id, 'member')).key },
  admin: { token: (await kit.createKey(project.id, 'admin')).key },
  other_admin: { token: (await kit.createKey(other.id, 'admin')).key },
  person: { cookie: (await signInByLink(kit, { member: { projectId: project.id, role: 'admin' } })).cookie },
  instance: {},
}
interface Document {
  paths: Record<string, Record<string, never>>
  components: { schemas: Record<string, Schema> }
}
const document = (await kit.call<Document>('GET /openapi.json')).body
const operations = readOperations(document)
/** Values of each named schema. Some are within themselves: a flow has nodes within nodes. */
const named = fc.letrec<Record<string, unknown>>((tie) =>
  Object.fromEntries(Object.entries(document.components.schemas).map(([name, schema]) => [name, valid(schema, tie)])),
)

test('the document lists the routes', () => assert.ok(operations.length >= 30, `${operations.length}`))

for (const operation of operations) {
  test(`${operation.route} withstands random requests (MUSTER_FUZZ_SEED=${seed})`, async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...(Object.keys(identities) as (keyof typeof identities)[])),
        bodyOf(operation),
        idArbitrary(operation),
        async (identity, body, id) => {
          const before = await dump()
          const answer = await kit.call(operation.route.replace(/:\w+/g, id), {
            ...identities[identity],
            ...(body === undefined ? {} : { body }),
            ...(asksForStream(operation, body) ? { headers: { accept: 'application/json' } } : {}),
          })
          const shown = `${identity} ${answer.status} ${answer.text.slice(0, 300)}`
          assert.ok(answer.status < 500, shown)
          if (answer.status < 400) {
            assert.ok(operation.statuses.includes(String(answer.status)), `undocumented: ${shown}`)
            return
          }
          assert.ok(errorSchema.safeParse(answer.body).success, `no envelope: ${shown}`)
          assert.deepEqual(await dump(), before, `a refused request changed a row: ${shown}`)
        },
      ),
      { numRuns: RUNS_PER_ROUTE, seed },
    )
  })
}

/** No worker runs here, so the stream of a run would not end. These requests accept no stream, and are refused. */
const asksForStream = ({ route }: Operation, body: unknown): boolean =>
  route === 'POST /v1/agent/chat' || (JSON.stringify(body)?.includes('"stream":true') ?? false)

/** Ids of this project and another, unknown ids and malformed ones. DELETE of the project itself would end the test. */
function idArbitrary(operation: Operation): fc.Arbitrary<string> {
  const mine = /^(DELETE) \/api\/projects\/:\w+$/.test(operation.route) ? newId() : project.id
  return fc.oneof(
    { weight: 4, arbitrary: fc.constant(mine) },
    fc
      .constantFrom(other.id === mine ? newId() : newId(), newId(), 'x', '%00', "'or 1=1", '..', 'offline'.repeat(20))
      .map(encodeURIComponent),
  )
}

function bodyOf({ body }: Operation): fc.Arbitrary<unknown> {
  if (body === null) return fc.oneof(fc.constant(undefined), fc.constant({}), fc.jsonValue({ maxDepth: 2 }))
  return fc.oneof(
    { weight: 3, arbitrary: valid(body) },
    { weight: 3, arbitrary: broken(body) },
    fc.jsonValue({ maxDepth: 3 }),
  )
}

/** Values that the schema allows, as far as its keywords say; `of` gives those of a named schema. */
function valid(schema: Schema, of = (name: string): fc.Arbitrary<unknown> => valuesOf(name)): fc.Arbitrary<unknown> {
  if (schema.$ref) return of(nameIn(schema.$ref))
  const members = schema.anyOf ?? schema.oneOf
  // The first members of a union that is within itself are leaves.
  if (members) return fc.oneof({ maxDepth: 3, depthIdentifier: 'nested' }, ...members.map((each) => valid(each, of)))
  if (schema.const !== undefined) return fc.constant(schema.const)
  if (schema.enum) return fc.constantFrom(...schema.enum)
  switch ([schema.type].flat()[0]) {
    case 'object': {
      const fields = Object.fromEntries(
        Object.entries(schema.properties ?? {}).map(([name, field]) => [name, valid(field, of)]),
      )
      return fc.record(fields, { requiredKeys: schema.required ?? [] })
    }
    case 'array': {
      const { items = {}, minItems: minLength = 0, maxItems = 3 } = schema
      return fc.array(valid(items, of), { minLength, maxLength: Math.max(minLength, Math.min(maxItems, 3)) })
    }
    case 'integer':
      return fc.integer({ min: schema.minimum ?? -5, max: Math.min(schema.maximum ?? 1_000_000, 2_000_000_000) })
    case 'number':
      return fc.double({ min: schema.minimum ?? -5, max: schema.maximum ?? 1e6, noNaN: true })
    case 'boolean':
      return fc.boolean()
    case 'null':
      return fc.constant(null)
    default:
      return text(schema)
  }
}

function nameIn(ref: string): string {
  return ref.replace('#/components/schemas/', '')
}

function valuesOf(name: string): fc.Arbitrary<unknown> {
  const values = named[name]
  assert.ok(values, `the document has no ${name}`)
  return values
}

function text(schema: Schema): fc.Arbitrary<string> {
  if (schema.format === 'email') return fc.uuid().map((id) => `${id}@example.com`)
  if (schema.format === 'date-time') return fc.constantFrom('2099-01-01T00:00:00Z', '1999-01-01T00:00:00Z')
  if (schema.format === 'uuid') return fc.uuid()
  return fc.oneof(
    fc.string({ unit: 'grapheme', minLength: schema.minLength ?? 1, maxLength: 250 }),
    fc.constantFrom('a', '<script>', '\u202e', "'; drop table x;--"),
  )
}

/** A valid body with one thing wrong. */
function broken(schema: Schema): fc.Arbitrary<unknown> {
  const whole = schema.$ref ? document.components.schemas[nameIn(schema.$ref)] : schema
  const names = Object.keys(whole?.properties ?? {})
  return fc
    .tuple(valid(schema), fc.constantFrom('extra', ...names), fc.jsonValue({ maxDepth: 2 }))
    .map(([body, name, value]) => (typeof body === 'object' && body !== null ? { ...body, [name]: value } : body))
}

function readOperations({ paths }: Document): Operation[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]: [string, { requestBody?: unknown; responses?: object }]) => {
      const content = operation.requestBody as { content?: Record<string, { schema: Schema }> } | undefined
      return {
        route: `${method.toUpperCase()} ${path.replace(/\{(\w+)\}/g, ':$1')}`,
        body: content?.content?.['application/json']?.schema ?? null,
        statuses: Object.keys(operation.responses ?? {}),
      }
    }),
  )
}

/** All rows, without the last use of credentials and the refused sign-ins, which change by design. */
async function dump(): Promise<unknown> {
  const {
    'auth.sessions': _sessions,
    'public.audit_log': log = [],
    ...rest
  } = await inTransaction(kit.pool, async (tx) => {
    // An open stream checks its key again from time to time; until the transaction ends it cannot note the time.
    await tx.query('update api_keys set last_used_at = null')
    return dumpRows(tx)
  })
  return { ...rest, log: log.filter((line) => !/user\.(sign_in|password)_refused/.test(line)) }
}
