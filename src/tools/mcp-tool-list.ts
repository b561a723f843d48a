// The tools of an MCP server, as approved: name, description, schema and effect. A server that changes any of these
// after the approval has another tool.
import { createHash } from 'node:crypto'
import type { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { ListToolsResultSchema, type Tool } from '@modelcontextprotocol/sdk/types.js'
import { canonicalJson } from '../kernel/canonical-json.ts'
import type { McpToolEntry } from '../kernel/mcp-server.ts'
import type { ToolEffect } from '../kernel/tool.ts'

const MAX_TOOLS = 500
const MAX_PAGES = 50
const MAX_LIST_BYTES = 1_048_576

/** Throws the reason if the list cannot be kept. */
export async function readToolList(
  client: Client,
  options: { signal?: AbortSignal; timeout: number },
): Promise<McpToolEntry[]> {
  const entries: McpToolEntry[] = []
  let cursor: string | undefined
  for (let page = 0; page < MAX_PAGES; page++) {
    const params = cursor === undefined ? {} : { cursor }
    const list = await client.request({ method: 'tools/list', params }, ListToolsResultSchema, options)
    entries.push(...list.tools.map(toEntry))
    cursor = list.nextCursor
    if (cursor === undefined || entries.length > MAX_TOOLS) break
  }
  requireKeepable(entries)
  return entries
}

function toEntry(tool: Tool): McpToolEntry {
  const entry = {
    name: tool.name,
    description: tool.description ?? '',
    input_schema: tool.inputSchema,
    effect: effectOf(tool),
  }
  return { ...entry, hash: createHash('sha256').update(canonicalJson(entry)).digest('hex') }
}

function effectOf({ annotations }: Tool): ToolEffect {
  if (annotations?.readOnlyHint) return 'readonly'
  return annotations?.idempotentHint ? 'keyed' : 'unsafe'
}

function requireKeepable(entries: readonly McpToolEntry[]): void {
  if (entries.length > MAX_TOOLS) throw new Error(`it offers more than ${MAX_TOOLS} tools`)
  const names = new Set<string>()
  for (const { name } of entries) {
    if (name === '' || name.length > 128) throw new Error('it offers a tool whose name is empty or too long')
    if (names.has(name)) throw new Error(`it offers two tools called "${name}"`)
    names.add(name)
  }
  if (Buffer.byteLength(JSON.stringify(entries)) > MAX_LIST_BYTES) {
    throw new Error(`its list of tools is longer than ${MAX_LIST_BYTES} bytes`)
  }
}
