import { isRecord } from '../kernel/is-record.ts'
import type { JsonSchema } from '../kernel/tool.ts'

/** True if OpenAI's strict mode, which answers 400 to other schemas, takes it: objects closed, properties required. */
export function isStrictSchema(schema: JsonSchema): boolean {
  return isStrict(schema)
}

function isStrict(node: unknown): boolean {
  if (Array.isArray(node)) return node.every(isStrict)
  if (!isRecord(node)) return true
  if (node.type === 'object' || node.properties !== undefined) {
    const required = new Set(Array.isArray(node.required) ? node.required : [])
    const names = isRecord(node.properties) ? Object.keys(node.properties) : []
    if (node.additionalProperties !== false || names.some((name) => !required.has(name))) return false
  }
  const { properties, items, anyOf, oneOf, allOf, $defs, definitions } = node
  if (oneOf !== undefined || allOf !== undefined) return false
  return (
    [properties, $defs, definitions].every((map) => !isRecord(map) || Object.values(map).every(isStrict)) &&
    isStrict(items) &&
    isStrict(anyOf)
  )
}
