// The arguments of a tool: the JSON schema for the model, and zod's check. Zod's JSON schema reader knows all but
// conditions, `not`, dependencies and unevaluated properties.

import { z } from 'zod'
import { cutText } from '../kernel/cut-text.ts'
import { isRecord } from '../kernel/is-record.ts'
import type { JsonSchema, ParsedArguments, ToolFace } from '../kernel/tool.ts'
import { schemaCost } from './schema-cost.ts'

export type Arguments = Pick<ToolFace, 'inputSchema' | 'parse'>

/** Throws if the schema is not that of an object, or has no form in JSON schema (a date, a map). */
export function zodArguments(schema: z.ZodType): Arguments {
  const { $schema: _, ...shown } = z.toJSONSchema(schema, { io: 'input' })
  return { inputSchema: asObjectSchema(shown), parse: (args) => check(schema, args) }
}

/** Throws, naming the keyword, if the schema asks for something the check does not know. */
export function jsonSchemaArguments(schema: JsonSchema): Arguments {
  const inputSchema = asObjectSchema(schema)
  const checked = z.fromJSONSchema(withRequired(inputSchema))
  return { inputSchema, parse: (args) => check(checked, args) }
}

/**
 * For schemas of MCP servers, which check arguments themselves. Left to the server: keywords that the check does not
 * know, every pattern (a server's regular expression could block our process for ever), and schemas that take too many
 * checks.
 */
export function remoteArguments(schema: JsonSchema): Arguments {
  const inputSchema = asObjectSchema(schema)
  let checked: RemoteCheck | null = null
  return {
    inputSchema,
    parse: (args) => {
      checked ??= readLeniently(inputSchema)
      return check(hasMoreValues(args, MOST_CHECKS / checked.perValue) ? ANY_OBJECT : checked.schema, args)
    },
  }
}

interface RemoteCheck {
  schema: z.ZodType
  /** The most schemas that one value is checked against. */
  perValue: number
}

const ANY_OBJECT = z.record(z.string(), z.unknown())
/** The most checks of one call's arguments; each takes about a microsecond. */
const MOST_CHECKS = 200_000
/** The most schemas of one tool, with every reference written out. */
const MOST_SCHEMAS = 5_000

function readLeniently(schema: JsonSchema): RemoteCheck {
  try {
    const { schemas, perValue, isRecursive } = schemaCost(schema)
    // The number of checks would multiply with the number of choices at each level of a value.
    if (schemas > MOST_SCHEMAS || (isRecursive && perValue > 1)) return { schema: ANY_OBJECT, perValue: 1 }
    const checked = z.fromJSONSchema(withRequired(withoutPatterns(schema) as JsonSchema)) // a copy of an object
    // A reference that leads to itself shows only when something is checked.
    checked.safeParse({})
    return { schema: checked, perValue }
  } catch {
    return { schema: ANY_OBJECT, perValue: 1 }
  }
}

/** Tells whether a value holds more than `most` values, and stops counting there. */
function hasMoreValues(value: unknown, most: number): boolean {
  let left = most
  const waiting: unknown[] = [value]
  while (waiting.length > 0) {
    const next = waiting.pop()
    if (next === null || typeof next !== 'object') continue
    const below = Array.isArray(next) ? next : Object.values(next)
    left -= below.length
    if (left < 0) return true
    for (const each of below) waiting.push(each)
  }
  return false
}

/** zod requires only properties that are described as well. */
function withRequired(schema: JsonSchema): JsonSchema {
  if (schema.type !== 'object' || !Array.isArray(schema.required)) return schema
  const described = isRecord(schema.properties) ? schema.properties : {}
  const required = schema.required.filter((name) => typeof name === 'string')
  return { ...schema, properties: { ...Object.fromEntries(required.map((name) => [name, {}])), ...described } }
}

/** Models are asked for an object; a schema that does not say so would let anything through. */
function asObjectSchema(schema: JsonSchema): JsonSchema {
  if (schema.type === 'object' || '$ref' in schema || 'anyOf' in schema || 'oneOf' in schema || 'allOf' in schema) {
    return schema
  }
  if (schema.type !== undefined) throw new Error('The input schema must describe an object.')
  return { ...schema, type: 'object' }
}

function withoutPatterns(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withoutPatterns)
  if (schema === null || typeof schema !== 'object') return schema
  const kept = Object.entries(schema).filter(([key, value]) => !isPattern(key, value))
  return Object.fromEntries(kept.map(([key, value]) => [key, withoutPatterns(value)]))
}

/** A property may be called "pattern": then a schema follows, not a text. */
const isPattern = (key: string, value: unknown): boolean =>
  (key === 'pattern' && typeof value === 'string') || key === 'patternProperties'

function check(schema: z.ZodType, args: unknown): ParsedArguments {
  const parsed = safeParse(schema, args)
  if (parsed instanceof Error) return { ok: false, message: `The arguments could not be checked: ${parsed.message}` }
  if (parsed.success) return { ok: true, args: parsed.data }
  const problems = parsed.error.issues.slice(0, MAX_PROBLEMS).map((issue) => `- ${describe(issue)}`)
  const more = parsed.error.issues.length - problems.length
  if (more > 0) problems.push(`- and ${more} more`)
  return { ok: false, message: `The arguments are not valid:\n${problems.join('\n')}` }
}

/** A refinement of an app's schema may throw, or be asynchronous, which zod throws for. */
function safeParse(schema: z.ZodType, args: unknown): z.ZodSafeParseResult<unknown> | Error {
  try {
    return schema.safeParse(args)
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error))
  }
}

const MAX_PROBLEMS = 10
const LONGEST_PROBLEM = 2_000

type Issue = z.core.$ZodIssue

function describe(issue: Issue): string {
  return cutText(`${pathOf(issue.path)}: ${requirement(issue)}`, LONGEST_PROBLEM, '…')
}

function pathOf(path: readonly PropertyKey[]): string {
  if (path.length === 0) return '(the arguments)'
  return path.map((part, at) => (typeof part === 'number' ? `[${part}]` : `${at ? '.' : ''}${String(part)}`)).join('')
}

function requirement(issue: Issue): string {
  if (issue.code === 'invalid_type') {
    const isAbsent = issue.input === undefined && / undefined$/.test(issue.message)
    return isAbsent ? `is required (${issue.expected})` : plain(issue.message)
  }
  if (issue.code === 'invalid_union' && issue.errors.length > 0) {
    const branches = issue.errors.map((branch) => {
      const first = branch[0]
      return first === undefined ? 'invalid' : first.path.length > 0 ? describe(first) : requirement(first)
    })
    return `fits none of the choices (${[...new Set(branches)].join('; ')})`
  }
  return plain(issue.message)
}

const plain = (message: string): string => message.replace(/^Invalid input: /, '')
