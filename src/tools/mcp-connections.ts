// One connection per MCP server, kept while it is used. A server that fails is tried again, later each time.
import { OutcomeUnknown } from '../kernel/tool.ts'
import { McpBroken } from './mcp-broken.ts'
import type { McpConnection } from './mcp-client.ts'
import { createMcpSlots, type McpSlotOptions } from './mcp-slots.ts'

export interface McpConnections<Server extends { id: string; name: string }> {
  /** Runs `work` on the server's connection, which is opened if there is none. Rejects with a sentence. */
  use<Result>(
    server: Server,
    signal: AbortSignal,
    work: (connection: McpConnection) => Promise<Result>,
  ): Promise<Result>
  close(serverId: string): Promise<void>
  /** Closes the connections at once, with all calls under way. Resolves when they have ended. */
  closeThose(isMeant: (server: Server) => boolean): Promise<void>
  stop(): Promise<void>
}

export function createMcpConnections<Server extends { id: string; name: string }>(
  options: McpSlotOptions<Server>,
): McpConnections<Server> {
  const { slots, slotOf, noteFailure, retire, rest, acquire, stop } = createMcpSlots(options)

  async function once<Result>(
    server: Server,
    signal: AbortSignal,
    work: (connection: McpConnection) => Promise<Result>,
  ): Promise<Result> {
    const held = await acquire(server, signal)
    const slot = slotOf(server)
    held.calls += 1
    clearTimeout(held.idle)
    try {
      const result = await work(held.connection)
      slot.failures = 0
      return result
    } catch (error) {
      if (error instanceof McpBroken && !held.isRetired) {
        retire(slot, held)
        if (!error.isSessionLost) noteFailure(server, slot, error.reason)
      }
      throw error
    } finally {
      held.calls -= 1
      if (held.calls === 0 && held.isRetired) retire(slot, held)
      else if (held.calls === 0) rest(slot, held)
    }
  }

  return {
    async use(server, signal, work) {
      try {
        return await once(server, signal, work)
      } catch (error) {
        if (!(error instanceof McpBroken)) throw error
        // A server that forgot the MCP session did not carry the call out.
        if (error.isSessionLost) return await once(server, signal, work)
        const sentence = `The MCP server "${server.name}" failed during the call: ${error.reason}.`
        throw new (error.mayHaveActed ? OutcomeUnknown : Error)(sentence, { cause: error })
      }
    },

    async close(serverId) {
      const slot = slots.get(serverId)
      slots.delete(serverId)
      if (slot?.held) retire(slot, slot.held)
    },

    async closeThose(isMeant) {
      const meant = [...slots.values()].filter((slot) => isMeant(slot.server))
      for (const slot of meant) slots.delete(slot.server.id)
      await Promise.all(
        meant.map(async (slot) => {
          const held = slot.held ?? (await slot.opening?.catch(() => null))
          if (held) await retire(slot, held, true)
        }),
      )
    },

    stop,
  }
}
