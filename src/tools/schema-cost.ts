// The cost of checking a foreign JSON schema, found without checking: references are followed once and multiplied, so a
// schema that grows with the power of its depth is recognised while it is read.
import { isRecord } from '../kernel/is-record.ts'
import type { JsonSchema } from '../kernel/tool.ts'

export interface SchemaCost {
  /** The schemas that are built, with every reference written out. */
  schemas: number
  /** The most schemas that one and the same value is checked against. */
  perValue: number
  isRecursive: boolean
}

const DEEPEST = 64
/** Keywords whose schemas stand beside each other; all are about the same value. */
const BESIDE = ['anyOf', 'oneOf', 'allOf'] as const
const ONE_BELOW = ['items', 'additionalItems', 'additionalProperties', 'propertyNames', 'contains'] as const
const LISTS_BELOW = ['prefixItems', 'items'] as const

interface Walk {
  root: JsonSchema
  known: Map<string, Size>
  open: Set<string>
  isRecursive: boolean
}

/** The number of schemas in a schema and below it, and the number of those among them that stand beside another. */
interface Size {
  schemas: number
  branches: number
}

/** Throws if the schema is nested too deeply to be read. */
export function schemaCost(schema: JsonSchema): SchemaCost {
  const walk: Walk = { root: schema, known: new Map(), open: new Set(), isRecursive: false }
  const { schemas, branches } = sizeOf(schema, walk, 1)
  return { schemas, perValue: 1 + branches, isRecursive: walk.isRecursive }
}

function sizeOf(node: unknown, walk: Walk, depth: number): Size {
  if (!isRecord(node)) return { schemas: 1, branches: 0 }
  if (depth > DEEPEST) throw new Error(`The schema is nested deeper than ${DEEPEST} levels.`)
  const size: Size = { schemas: 1, branches: 0 }
  const addSize = (below: Size, branches: number): void => {
    size.schemas += below.schemas
    size.branches += below.branches + branches
  }
  const add = (child: unknown, branches: number): void => addSize(sizeOf(child, walk, depth + 1), branches)
  if (typeof node.$ref === 'string') addSize(referredSize(node.$ref, walk, depth), 0)
  for (const keyword of BESIDE) for (const child of listOf(node[keyword])) add(child, 1)
  for (const keyword of LISTS_BELOW) for (const child of listOf(node[keyword])) add(child, 0)
  for (const keyword of ONE_BELOW) if (isRecord(node[keyword])) add(node[keyword], keyword === 'contains' ? 1 : 0)
  if (isRecord(node.properties)) for (const child of Object.values(node.properties)) add(child, 0)
  // A schema with several types counts once for each type, with everything below it.
  const types = Math.max(1, listOf(node.type).length)
  const values = listOf(node.enum).length
  return { schemas: size.schemas * types + values, branches: (size.branches + (types > 1 ? 1 : 0)) * types + values }
}

function referredSize(ref: string, walk: Walk, depth: number): Size {
  const known = walk.known.get(ref)
  if (known) return known
  if (walk.open.has(ref)) {
    walk.isRecursive = true
    return { schemas: 1, branches: 0 }
  }
  walk.open.add(ref)
  const size = sizeOf(targetOf(ref, walk.root), walk, depth + 1)
  walk.open.delete(ref)
  walk.known.set(ref, size)
  return size
}

/** References lead to the whole or to its definitions; the check refuses any other. */
function targetOf(ref: string, root: JsonSchema): unknown {
  const [, group = '', name = ''] = ref.split('/')
  if (ref === '#' || ref === '#/') return root
  const definitions = root[group]
  return isRecord(definitions) ? definitions[name.replaceAll('~1', '/').replaceAll('~0', '~')] : undefined
}

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
