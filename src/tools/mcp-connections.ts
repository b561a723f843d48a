// Connections to MCP servers, one per server, kept while they are used. A server that fails is tried again, later each
// time; the others do not notice.
import { McpBroken } from './mcp-broken.ts'
import type { McpConnection } from './mcp-client.ts'
import { untilAborted } from './until-aborted.ts'

export interface McpConnections<Server extends { id: string; name: string }> {
  /** Runs `work` on the server's connection, which is opened where there is none. Rejects with a sentence. */
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

export interface ConnectionsOptions<Server> {
  open(server: Server, signal: AbortSignal): Promise<McpConnection>
  onLost(server: Server, reason: string): void
  idleMs: number
  now(): number
}

interface Held {
  connection: McpConnection
  calls: number
  idle: NodeJS.Timeout | undefined
  /** No new calls; closed when the last one is over. */
  isRetired: boolean
}

interface Slot<Server> {
  server: Server
  opening: Promise<Held> | null
  held: Held | null
  /** Since the last call that went well. */
  failures: number
  retryAt: number
  reason: string
}

const FIRST_RETRY_MS = 1_000
const LAST_RETRY_MS = 60_000

export function createMcpConnections<Server extends { id: string; name: string }>(
  options: ConnectionsOptions<Server>,
): McpConnections<Server> {
  const slots = new Map<string, Slot<Server>>()
  const closing = new Set<Promise<void>>()
  const stopping = new AbortController()

  function slotOf(server: Server): Slot<Server> {
    const known = slots.get(server.id)
    if (known) return known
    const slot: Slot<Server> = { server, opening: null, held: null, failures: 0, retryAt: 0, reason: '' }
    slots.set(server.id, slot)
    return slot
  }

  /** The first failure is forgiven: a server that worked until now is started again at once. */
  function noteFailure(server: Server, slot: Slot<Server>, reason: string): void {
    slot.failures += 1
    slot.reason = reason
    const waitMs = slot.failures === 1 ? 0 : Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** (slot.failures - 2))
    slot.retryAt = options.now() + waitMs
    options.onLost(server, reason)
  }

  function retire(slot: Slot<Server>, held: Held, isUrgent = false): Promise<void> | undefined {
    if (slot.held === held) slot.held = null
    held.isRetired = true
    clearTimeout(held.idle)
    if (held.calls > 0 && !isUrgent) return undefined
    const closed = held.connection.close().catch(() => {})
    closing.add(closed)
    void closed.then(() => closing.delete(closed))
    return closed
  }

  async function open(server: Server, slot: Slot<Server>): Promise<Held> {
    const connection = await options.open(server, stopping.signal)
    const held: Held = { connection, calls: 0, idle: undefined, isRetired: false }
    void connection.closed.then((reason) => {
      if (held.isRetired) return
      retire(slot, held)
      noteFailure(server, slot, reason)
    })
    slot.held = held
    // The connection may have been opened for a call that is gone by now.
    if (stopping.signal.aborted || slots.get(server.id) !== slot) retire(slot, held)
    else rest(slot, held)
    return held
  }

  function rest(slot: Slot<Server>, held: Held): void {
    held.idle = setTimeout(() => retire(slot, held), options.idleMs)
    held.idle.unref()
  }

  async function acquire(server: Server, signal: AbortSignal): Promise<Held> {
    if (stopping.signal.aborted) throw new Error('Muster is stopping.')
    const slot = slotOf(server)
    if (slot.held) return slot.held
    if (slot.opening === null) {
      const waitMs = slot.retryAt - options.now()
      if (waitMs > 0) throw unreachable(server, `${slot.reason}; it is tried again in ${Math.ceil(waitMs / 1_000)} s`)
      slot.opening = open(server, slot)
        .catch((error: unknown) => {
          const reason =
            error instanceof McpBroken ? error.reason : error instanceof Error ? error.message : String(error)
          noteFailure(server, slot, reason)
          throw unreachable(server, reason)
        })
        .finally(() => {
          slot.opening = null
        })
    }
    return untilAborted(slot.opening, signal)
  }

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
        // A server that forgot the session did not carry the call out.
        if (error.isSessionLost) return await once(server, signal, work)
        throw new Error(`The call failed because the MCP server "${server.name}" did: ${error.reason}.`, {
          cause: error,
        })
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

    async stop() {
      stopping.abort(new Error('Muster is stopping'))
      for (const slot of slots.values()) {
        await slot.opening?.catch(() => {})
        if (slot.held) retire(slot, slot.held, true)
      }
      await Promise.all(closing)
    },
  }
}

const unreachable = (server: { name: string }, reason: string): Error =>
  new Error(`The MCP server "${server.name}" cannot be used: ${reason.replace(/\.$/, '')}.`)
