// Finds the place of an MCP server, and reads the tools that it offers.
import type { Egress } from '../egress/egress.ts'
import { EgressRefused } from '../egress/refused.ts'
import { invalidRequest } from '../kernel/errors.ts'
import type { McpServerInput, McpToolEntry } from '../kernel/mcp-server.ts'
import type { Cipher } from '../secrets/cipher.ts'
import type { ConfinedPrograms } from './confine-programs.ts'
import { McpBroken } from './mcp-broken.ts'
import type { connectMcp, McpClientOptions, McpPlace } from './mcp-client.ts'
import { openEnvironment, openHeaders, type StoredMcpServer } from './mcp-servers.ts'

/** The client is loaded with the first connection, because a start needs no client. */
export const connect: typeof connectMcp = async (place, options) => {
  const client = await import('./mcp-client.ts')
  return client.connectMcp(place, options)
}

interface McpPlaceOptions {
  cipher: Cipher
  egress: Pick<Egress, 'fetch' | 'checkUrl'>
  programs: ConfinedPrograms
  settings: Omit<McpClientOptions, 'signal' | 'onTools'>
}

interface Place {
  name: string
  url?: string | null | undefined
  command?: string | null | undefined
  args?: readonly string[] | undefined
  headers?: Record<string, string> | undefined
  env?: Record<string, string> | undefined
}

export function createMcpPlaces({ cipher, egress, programs, settings }: McpPlaceOptions) {
  const stopping = new AbortController()
  const closing = new Set<Promise<void>>()
  return {
    of: placeOf,
    readTools,
    readNew,
    stop: async (): Promise<void> => {
      stopping.abort(new Error('Muster is stopping'))
      await Promise.all(closing)
    },
  }

  function placeOf(server: StoredMcpServer): Promise<McpPlace> {
    const given = { headers: openHeaders(cipher, server), env: openEnvironment(cipher, server) }
    return toPlace(server.project_id, { ...server, ...given }, server.set_by_instance_admin)
  }

  async function toPlace(projectId: string, server: Place, byInstanceAdmin: boolean): Promise<McpPlace> {
    if (server.url == null) {
      const { name, command, args, env } = server
      const program = { projectId, name, command: command ?? '', args: args ?? [], env: env ?? {} }
      return { kind: 'stdio', program: await programs.start(program) }
    }
    const fetch = egress.fetch(byInstanceAdmin ? 'trusted' : 'public')
    return { kind: 'http', url: new URL(server.url), headers: server.headers ?? {}, fetch }
  }

  /** A connection is made for the list alone. */
  async function readTools(place: McpPlace): Promise<readonly McpToolEntry[]> {
    const signal = stopping.signal
    const connection = await connect(place, { ...settings, signal, onTools: () => {} }).catch((error: unknown) => {
      throw error instanceof McpBroken
        ? invalidRequest(
            `The MCP server cannot be reached: ${error.reason}.`,
            error.output ? { output: error.output } : {},
          )
        : error
    })
    const tools = await connection.tools()
    // A child process takes its time to end; the caller need not wait for it.
    const closed = connection.close().catch(() => {})
    closing.add(closed)
    void closed.then(() => closing.delete(closed))
    return tools
  }

  async function readNew(projectId: string, input: McpServerInput, isInstanceAdmin: boolean) {
    if (input.url !== undefined && !isInstanceAdmin) await requirePublic(egress, input.url)
    return readTools(await toPlace(projectId, input, isInstanceAdmin))
  }
}

async function requirePublic(egress: Pick<Egress, 'checkUrl'>, url: string): Promise<void> {
  await egress.checkUrl(url, 'public').catch((error: unknown) => {
    throw error instanceof EgressRefused ? invalidRequest(error.message) : error
  })
}
