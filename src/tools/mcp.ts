// MCP servers bring tools from outside. A server's tools are read when it is registered and kept as the approved list;
// agents see that list without a connection. At a call the connection reads the present tools: a tool that is no longer
// the approved one is not called until someone approves it again.

import { explainFailure } from '../db/failures.ts'
import type { Db, Pool } from '../db/pool.ts'
import type { Egress } from '../egress/egress.ts'
import { conflict, forbidden, notFound } from '../kernel/errors.ts'
import { LARGEST_VALUE_BYTES } from '../kernel/limits.ts'
import type { Log } from '../kernel/log.ts'
import type { McpApproval, McpServer, McpServerInput, McpToolEntry } from '../kernel/mcp-server.ts'
import type { Actor } from '../kernel/principal.ts'
import type { CallTool, ToolContext } from '../kernel/tool.ts'
import type { Cipher } from '../secrets/cipher.ts'
import { remoteArguments } from './arguments.ts'
import type { ConfinedPrograms } from './confine-programs.ts'
import type { McpConnection } from './mcp-client.ts'
import { createMcpConnections } from './mcp-connections.ts'
import { connect, createMcpPlaces } from './mcp-places.ts'
import {
  approvedMcpToolNames,
  approvedMcpTools,
  approveMcpTools,
  createMcpServer,
  deleteMcpServer,
  findMcpServer,
  notePendingTools,
  onceAtATime,
  type StoredMcpServer,
} from './mcp-servers.ts'
import type { McpTools } from './registry.ts'

export interface Mcp extends McpTools {
  /**
   * Asks the server for its tools, outside any transaction, for at most `connectTimeoutMs`. The returned function
   * stores the server or throws the reason, so a repeated request is answered even if the server is gone by now.
   */
  prepare(projectId: string, input: McpServerInput, who: Registrar): Promise<(db: Db) => Promise<McpServer>>
  approve(projectId: string, name: string, approval: McpApproval, actor: Actor): Promise<McpServer>
  remove(projectId: string, name: string, actor: Actor): Promise<void>
  /** Called when projects are gone: ends their connections, calls under way and programs' files. */
  leave(projectIds: ReadonlySet<string>): Promise<void>
  /** Ends all connections and the processes behind them. */
  stop(): Promise<void>
}

interface Registrar {
  actor: Actor
  isInstanceAdmin: boolean
}

export interface McpOptions {
  pool: Pool
  cipher: Cipher
  egress: Pick<Egress, 'fetch' | 'checkUrl'>
  log: Log
  programs: ConfinedPrograms
  connectTimeoutMs?: number
  pingTimeoutMs?: number
  idleMs?: number
  maxMessageBytes?: number
  now?: () => number
}

export function createMcp(options: McpOptions): Mcp {
  const { pool, cipher, egress, log, programs } = options
  const settings = {
    connectTimeoutMs: options.connectTimeoutMs ?? 15_000,
    pingTimeoutMs: options.pingTimeoutMs ?? 5_000,
    maxMessageBytes: options.maxMessageBytes ?? LARGEST_VALUE_BYTES,
  }
  const places = createMcpPlaces({ cipher, egress, programs, settings })
  /** The number of calls of `leave`: a row that was read before the last one may belong to a project that is gone. */
  let departures = 0
  const connections = createMcpConnections<StoredMcpServer>({
    idleMs: options.idleMs ?? 300_000,
    now: options.now ?? Date.now,
    open: async (server, signal) =>
      connect(await places.of(server), { ...settings, signal, onTools: (live) => noteLive(options, server, live) }),
    onLost: ({ project_id, name }, reason) => log.warn({ project_id, server: name, reason }, 'an MCP server failed'),
  })

  function toTool(projectId: string, server: string, entry: McpToolEntry): CallTool {
    return {
      kind: 'call',
      name: entry.name,
      description: entry.description,
      ...remoteArguments(entry.input_schema),
      effect: entry.effect,
      isPoller: false,
      timeoutMs: null,
      execute: (args, context) => call(projectId, server, entry.name, args, context),
    }
  }

  /** Reads the server's row each time: a deletion or approval of a moment ago, in any process, counts. */
  async function call(projectId: string, name: string, tool: string, args: unknown, context: ToolContext) {
    const server = await findCurrent(projectId, name).catch((error: unknown) => {
      throw explainFailure(error) ?? error // a text for a model must not tell of our database
    })
    if (server === null) throw new Error(`The MCP server "${name}" is no longer registered.`)
    return connections.use(server, context.signal, async (connection) => {
      await requireApproved(server, tool, connection)
      return connection.call(tool, args, context)
    })
  }

  async function findCurrent(projectId: string, name: string): Promise<StoredMcpServer | null> {
    const seen = departures
    const server = await findMcpServer(pool, projectId, name)
    return seen === departures ? server : findCurrent(projectId, name)
  }

  return {
    async prepare(projectId, input, { actor, isInstanceAdmin: byInstanceAdmin }) {
      if (input.command !== undefined && !byInstanceAdmin) {
        throw forbidden('Only the instance admin may register an MCP server that is a command. Use a url.')
      }
      const tools = await places.readNew(projectId, input, byInstanceAdmin).catch((error: unknown) => ({ error }))
      return (db) => {
        if ('error' in tools) throw tools.error
        return createMcpServer(db, cipher, projectId, input, { tools, actor, byInstanceAdmin })
      }
    },

    async approve(projectId, name, approval, actor) {
      const server = await findMcpServer(pool, projectId, name)
      if (server === null) throw notFound('MCP server')
      return onceAtATime(pool, server, async (approvalId) => {
        const live = await places.readTools(await places.of(server))
        const seen = approval?.hashes
        if (seen && (seen.length !== live.length || !live.every(({ hash }) => seen.includes(hash)))) {
          await notePendingTools(pool, server.id, pendingTools(server.tools, live))
          throw conflict('The server offers other tools by now. Look at pending_tools and approve those.')
        }
        return approveMcpTools(pool, server, { tools: live, approvalId, actor })
      })
    },

    async remove(projectId, name, actor) {
      await connections.close(await deleteMcpServer(pool, projectId, name, actor))
      await programs.forget({ projectId, name })
    },

    async leave(projectIds) {
      departures += 1
      await connections.closeThose((server) => projectIds.has(server.project_id))
      await programs.forgetProjects(projectIds)
    },

    approvedNames: approvedMcpToolNames,
    approvedTools: (projectId, after) => approvedMcpTools(pool, projectId, after),
    async toolsOf(projectId, name) {
      const server = await findMcpServer(pool, projectId, name)
      return server?.tools.map((entry) => toTool(projectId, name, entry)) ?? null
    },

    async stop() {
      await Promise.all([connections.stop(), places.stop()])
      await programs.stop()
    },
  }
}

function noteLive({ pool, log }: McpOptions, server: StoredMcpServer, live: readonly McpToolEntry[]): void {
  const { id, project_id, name } = server
  const work = async (): Promise<void> => {
    // The approval may be newer than the row with which this connection was opened.
    const stored = await findMcpServer(pool, project_id, name)
    if (stored?.id === id) await notePendingTools(pool, id, pendingTools(stored.tools, live))
  }
  work().catch((error: Error) => log.warn({ server: name, error: error.message }, 'a changed tool list was not noted'))
}

async function requireApproved(server: StoredMcpServer, tool: string, connection: McpConnection): Promise<void> {
  const approved = server.tools.find(({ name }) => name === tool)
  const live = (await connection.tools()).find(({ name }) => name === tool)
  const whose = `The tool "${tool}" of the MCP server "${server.name}"`
  if (live === undefined) throw new Error(`${whose} is not offered by the server any more.`)
  if (approved === undefined) throw new Error(`${whose} has not been approved.`)
  if (approved.hash !== live.hash) {
    throw new Error(
      `${whose} was changed by the server after it was approved. It is disabled until a person approves it again.`,
    )
  }
}

/** The live list if it is not the approved one, else null. */
function pendingTools(approved: readonly McpToolEntry[], live: readonly McpToolEntry[]): McpToolEntry[] | null {
  const known = new Set(approved.map(({ hash }) => hash))
  return live.length === approved.length && live.every(({ hash }) => known.has(hash)) ? null : [...live]
}
