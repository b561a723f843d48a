// Finds tools by the names that agents list: built-in ones, the app module's, and `mcp:<server>/<tool>` or
// `mcp:<server>/*`. An agent without MCP tools costs a few map lookups: no query, no connection.
import { createHash } from 'node:crypto'
import type { Db } from '../db/pool.ts'
import type { Page } from '../kernel/fields.ts'
import type { ListedTool } from '../kernel/listed-tool.ts'
import type { McpToolEntry } from '../kernel/mcp-server.ts'
import { didYouMean } from '../kernel/nearest.ts'
import type { CallTool, Tool, ToolEffect } from '../kernel/tool.ts'
import { findNames, listNames } from '../queue/process-names.ts'

export interface McpTools {
  /** The names of the approved tools by server; a server that is not registered is absent. */
  approvedNames(db: Db, projectId: string, servers: readonly string[]): Promise<Map<string, readonly string[]>>
  /** The tools under the names their server gives them; null if the server is not registered. Opens no connection. */
  toolsOf(projectId: string, server: string): Promise<CallTool[] | null>
  /** The approved tools of the project's servers after the named one, as many as fit into a page. */
  approvedTools(projectId: string, after: string | null): Promise<ApprovedTools>
}

export interface ApprovedTools {
  servers: { server: string; tools: readonly McpToolEntry[] }[]
  /** The server after which the next page begins; null on the last one. */
  next: string | null
}

export interface ToolRegistry {
  /** The built-in tools and those of the app module, by name. */
  ownNames: readonly string[]
  /** The sentence that says which tool no live process has, or null. */
  check(db: Db, projectId: string, names: readonly string[]): Promise<string | null>
  /** Each tool once, in the order of `names`, MCP tools last, under the names that the model sees. */
  resolve(projectId: string, names: readonly string[]): Promise<{ tools: Tool[]; missing: string[] }>
  /** Every tool that an agent may name, by page; the cursor is an MCP server's name. Opens no connection. */
  list(projectId: string, cursor: string | null): Promise<Page<ListedTool>>
}

export interface RegistryOptions {
  builtIns: readonly Tool[]
  appTools: readonly CallTool[]
  /** Null if this process uses no MCP servers. */
  mcp: McpTools | null
}

/** Throws if two tools have the same name, or one has a name that no provider takes. */
export function createToolRegistry({ builtIns, appTools, mcp }: RegistryOptions): ToolRegistry {
  const own = new Map<string, Tool>()
  for (const tool of [...builtIns, ...appTools]) {
    if (!MODEL_NAME.test(tool.name))
      throw new Error(`"${tool.name}" is no tool name: use letters, digits, "_" and "-".`)
    if (own.has(tool.name)) throw new Error(`There are two tools called "${tool.name}".`)
    own.set(tool.name, tool)
  }

  return {
    ownNames: [...own.keys()],
    async check(db, projectId, names) {
      const remote = names.map(parseMcpName).filter((name) => name !== null)
      const notHere = names.filter((name) => parseMcpName(name) === null && !own.has(name))
      const elsewhere = notHere.length === 0 ? new Set<string>() : await findNames(db, 'tools', notHere)
      const unknown = notHere.find((name) => !elsewhere.has(name))
      if (unknown !== undefined) {
        const known = new Set([...own.keys(), ...(await listNames(db, 'tools'))])
        return `There is no tool called "${unknown}".${didYouMean(unknown, known)}`
      }
      if (remote.length === 0) return null
      const servers = [...new Set(remote.map(({ server }) => server))]
      const approved = (await mcp?.approvedNames(db, projectId, servers)) ?? new Map<string, readonly string[]>()
      for (const { server, tool } of remote) {
        const offered = approved.get(server)
        if (offered === undefined) {
          const names = (await mcp?.approvedTools(projectId, null))?.servers.map((each) => each.server) ?? []
          return `There is no MCP server called "${server}" in this project.${didYouMean(server, names)}`
        }
        if (tool !== '*' && !offered.includes(tool)) {
          return `The MCP server "${server}" has no tool called "${tool}".${didYouMean(tool, offered)}`
        }
      }
      return null
    },

    async resolve(projectId, names) {
      const found = new Map<string, Tool>()
      const missing: string[] = []
      for (const name of names) {
        const tool = own.get(name)
        if (tool) found.set(name, tool)
      }
      const taken = new Set(found.keys())
      const seen = new Set<string>()
      const servers = new Map<string, CallTool[] | null>()
      for (const name of new Set(names)) {
        if (own.has(name)) continue
        const remote = parseMcpName(name)
        if (remote === null || mcp === null) {
          missing.push(name)
          continue
        }
        const { server, tool } = remote
        if (!servers.has(server)) servers.set(server, await mcp.toolsOf(projectId, server))
        const offered = servers.get(server) ?? null
        const chosen = offered?.filter((each) => tool === '*' || each.name === tool) ?? []
        if (offered === null || (chosen.length === 0 && tool !== '*')) missing.push(name)
        for (const each of chosen) {
          const origin = `${server}/${each.name}`
          if (seen.has(origin)) continue
          seen.add(origin)
          const shown = modelToolName(server, each.name, taken)
          taken.add(shown)
          found.set(shown, { ...each, name: shown, origin: `mcp:${origin}` })
        }
      }
      return { tools: [...found.values()], missing }
    },

    async list(projectId, cursor) {
      const { servers, next } = (await mcp?.approvedTools(projectId, cursor)) ?? { servers: [], next: null }
      const ours = [...builtIns.map((tool) => listed(tool, 'built_in')), ...appTools.map((tool) => listed(tool, 'app'))]
      const items = [
        ...(cursor === null ? ours : []),
        ...servers.flatMap(({ server, tools }) =>
          tools.map(
            ({ name, description, effect, input_schema }): ListedTool => ({
              name: `mcp:${server}/${name}`,
              source: 'mcp',
              description,
              effect,
              input_schema,
            }),
          ),
        ),
      ]
      return { items, next_cursor: next }
    },
  }
}

function listed(tool: Tool, source: 'built_in' | 'app'): ListedTool {
  const { name, description, inputSchema } = tool
  return { name, source, description, effect: effectOf(tool), input_schema: { ...inputSchema } }
}

/** The run carries out the other kinds once per key, also after a takeover; the exit of a loop changes nothing. */
function effectOf(tool: Tool): ToolEffect {
  if (tool.kind === 'call') return tool.effect
  return tool.kind === 'finish_loop' ? 'readonly' : 'keyed'
}

/** Every provider accepts these names for functions. */
const MODEL_NAME = /^[a-zA-Z0-9_-]{1,64}$/
const MAX_NAME = 64
const HASH_LENGTH = 10

export function parseMcpName(name: string): { server: string; tool: string } | null {
  const match = /^mcp:([^/]+)\/(.+)$/s.exec(name)
  return match?.[1] && match[2] ? { server: match[1], tool: match[2] } : null
}

/** The same server and tool get the same name, unless another tool of the agent has it already. */
export function modelToolName(server: string, tool: string, taken: ReadonlySet<string>): string {
  const plain = `mcp_${server}_${tool}`
  if (MODEL_NAME.test(plain) && !taken.has(plain)) return plain
  const clean = plain.replace(/[^a-zA-Z0-9_-]/g, '_').slice(0, MAX_NAME - HASH_LENGTH - 1)
  for (let attempt = 0; ; attempt++) {
    const hash = createHash('sha256')
      .update(JSON.stringify([server, tool, attempt]))
      .digest('hex')
    const name = `${clean}_${hash.slice(0, HASH_LENGTH)}`
    if (!taken.has(name)) return name
  }
}
