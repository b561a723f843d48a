// A tool as people know it: the name under which agents list it, and a hash of the arguments it takes.
import { createHash } from 'node:crypto'
import { canonicalJson } from '../kernel/canonical-json.ts'
import type { JsonSchema, Tool } from '../kernel/tool.ts'

export const listedName = (tool: Tool): string => (tool.kind === 'call' ? (tool.origin ?? tool.name) : tool.name)

/** Equal as long as the tool takes the same arguments, whatever the mode of the agent adds to them. */
export const schemaHash = (tool: Tool): string =>
  createHash('sha256')
    .update(canonicalJson(ownSchema(tool)))
    .digest('hex')

function ownSchema(tool: Tool): JsonSchema {
  if (tool.kind === 'write') return tool.inMode('execute').inputSchema
  return (tool.offered?.tool ?? tool).inputSchema
}
