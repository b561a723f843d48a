// The connections to MCP servers that are open or being opened: one slot a server.
import { McpBroken } from './mcp-broken.ts'
import type { McpConnection } from './mcp-client.ts'
import { untilAborted } from './until-aborted.ts'

export interface McpSlotOptions<Server> {
  open(server: Server, signal: AbortSignal): Promise<McpConnection>
  onLost(server: Server, reason: string): void
  idleMs: number
  now(): number
}

export interface Held {
  connection: McpConnection
  calls: number
  idle: NodeJS.Timeout | undefined
  /** True if the connection takes no new calls and is closed when the last call is over. */
  isRetired: boolean
}

export interface Slot<Server> {
  server: Server
  opening: Promise<Held> | null
  held: Held | null
  /** The number of failures since the last successful call. */
  failures: number
  retryAt: number
  reason: string
}

const FIRST_RETRY_MS = 1_000
const LAST_RETRY_MS = 60_000

export function createMcpSlots<Server extends { id: string; name: string }>(options: McpSlotOptions<Server>) {
  const slots = new Map<string, Slot<Server>>()
  const closing = new Set<Promise<void>>()
  const stopping = new AbortController()

  return {
    slots,
    slotOf,
    noteFailure,
    retire,
    rest,
    acquire,
    stop: async (): Promise<void> => {
      stopping.abort(new Error('Muster is stopping'))
      for (const slot of slots.values()) {
        await slot.opening?.catch(() => {})
        if (slot.held) retire(slot, slot.held, true)
      }
      await Promise.all(closing)
    },
  }

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
}

const unreachable = (server: { name: string }, reason: string): Error =>
  new Error(`The MCP server "${server.name}" cannot be used: ${reason.replace(/\.$/, '')}.`)
