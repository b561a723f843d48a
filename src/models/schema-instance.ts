// The smallest value that fits a JSON schema: required properties only, the first of several choices, arrays as short
// as they may be. Patterns and other keywords that need a search are ignored.

export interface Fill {
  text(name: string, schema: SchemaNode): string
  number(name: string): number | null
  choice(values: readonly unknown[]): unknown
}

export type SchemaNode = Readonly<Record<string, unknown>>

export const plainFill: Fill = { text: () => 'offline', number: () => null, choice: (values) => values[0] }

const DEEPEST = 16
/** Work is counted in characters of the value and of the names and values in the schemas that were read to make it. */
const MOST_WORK = 1_048_576

/** Throws if making the smallest value takes more than MOST_WORK. */
export function schemaInstance(schema: SchemaNode, fill: Fill = plainFill, name = ''): unknown {
  let left = MOST_WORK
  const spend = (work: number): void => {
    left -= work
    if (left < 0) throw new Error(`The smallest value that fits the schema takes more than ${MOST_WORK} characters.`)
  }
  return instance(schema, { root: schema, fill, depth: 0, spend }, name)
}

interface Walk {
  root: SchemaNode
  fill: Fill
  depth: number
  /** Throws when more work is spent than is left. */
  spend: (work: number) => void
}

function instance(node: unknown, walk: Walk, name: string): unknown {
  const schema = resolved(node, walk)
  const below = { ...walk, depth: walk.depth + 1 }
  if (below.depth > DEEPEST) return null
  if ('const' in schema) return spent(schema.const, walk)
  if (Array.isArray(schema.enum) && schema.enum.length > 0) return spent(walk.fill.choice(schema.enum), walk)
  if ('default' in schema) return spent(schema.default, walk)
  const choices = schema.anyOf ?? schema.oneOf
  if (Array.isArray(choices) && choices.length > 0)
    return instance({ ...schema, anyOf: undefined, oneOf: undefined, ...record(choices[0]) }, below, name)
  if (Array.isArray(schema.allOf)) return instance(merged(schema, walk), below, name)
  switch (typeOf(schema)) {
    case 'object':
      return objectInstance(schema, below)
    case 'array':
      return Array.from({ length: amount(schema.minItems) }, () => instance(schema.items, below, name))
    case 'boolean':
      return false
    case 'null':
      return null
    case 'number':
    case 'integer':
      return numberInstance(schema, walk.fill.number(name))
    default:
      return spent(textInstance(schema, walk.fill.text(name, schema)), walk)
  }
}

/** A value that the schema gives costs its length every time it is used. */
function spent(value: unknown, { spend }: Walk): unknown {
  if (typeof value === 'string') spend(value.length)
  else if (value !== null && typeof value === 'object') spend(JSON.stringify(value).length)
  return value
}

function objectInstance(schema: SchemaNode, walk: Walk): Record<string, unknown> {
  const properties = record(schema.properties)
  const required = Array.isArray(schema.required) ? schema.required.filter((name) => typeof name === 'string') : []
  return Object.fromEntries(
    required.map((name) => {
      walk.spend(name.length)
      return [name, instance(Object.hasOwn(properties, name) ? properties[name] : {}, walk, name)]
    }),
  )
}

function numberInstance(schema: SchemaNode, wanted: number | null): number {
  const step = typeof schema.multipleOf === 'number' && schema.multipleOf > 0 ? schema.multipleOf : null
  const grain = step ?? (schema.type === 'integer' ? 1 : 0)
  const above = typeof schema.exclusiveMinimum === 'number' ? schema.exclusiveMinimum + (grain || 1) : null
  const below = typeof schema.exclusiveMaximum === 'number' ? schema.exclusiveMaximum - (grain || 1) : null
  const least = numberOr(schema.minimum, above) ?? Number.NEGATIVE_INFINITY
  const most = numberOr(schema.maximum, below) ?? Number.POSITIVE_INFINITY
  const value = Math.min(most, Math.max(least, wanted ?? 0))
  return grain === 0 ? value : Math.ceil(value / grain) * grain
}

const FORMATS: Readonly<Record<string, string>> = {
  'date-time': '2000-01-01T00:00:00Z',
  date: '2000-01-01',
  time: '00:00:00Z',
  uuid: '00000000-0000-4000-8000-000000000000',
  email: 'offline@example.com',
  uri: 'https://example.com/',
}

function textInstance(schema: SchemaNode, wanted: string): string {
  const format = typeof schema.format === 'string' ? FORMATS[schema.format] : undefined
  const text = format !== undefined && wanted === plainFill.text('', schema) ? format : wanted
  return text.padEnd(amount(schema.minLength), '.').slice(0, numberOr(schema.maxLength, null) ?? undefined)
}

function typeOf(schema: SchemaNode): string {
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type
  if (typeof type === 'string') return type
  return schema.properties === undefined ? (schema.items === undefined ? 'string' : 'array') : 'object'
}

function resolved(node: unknown, { root, spend }: Walk): SchemaNode {
  let schema = record(node)
  for (let hops = 0; hops < DEEPEST && typeof schema.$ref === 'string'; hops += 1) {
    spend(schema.$ref.length)
    let target: unknown = root
    for (const key of schema.$ref.replace(/^#\/?/, '').split('/').filter(Boolean)) target = record(target)[key]
    schema = record(target)
  }
  spend(1 + Object.keys(schema).length)
  return schema
}

function merged(schema: SchemaNode, walk: Walk): SchemaNode {
  const { allOf, ...own } = schema
  const parts = [own, ...(Array.isArray(allOf) ? allOf.map((part) => resolved(part, walk)) : [])]
  for (const part of parts) walk.spend(Object.keys(record(part.properties)).length + listOf(part.required).length)
  return {
    ...Object.assign({}, ...parts),
    properties: Object.assign({}, ...parts.map((part) => part.properties)),
    required: [...new Set(parts.flatMap((part) => listOf(part.required)))],
  }
}

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

const record = (value: unknown): SchemaNode =>
  // Any object is a record of unknown values.
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as SchemaNode) : {}

const numberOr = (value: unknown, other: number | null): number | null => (typeof value === 'number' ? value : other)
const amount = (value: unknown): number => Math.min(1_000, Math.max(0, numberOr(value, 0) ?? 0))
