// One connection of its own that listens, and holds session locks for as long as the process lives. It comes back by
// itself; whoever relies on it hears when it is there again, because what was said meanwhile is lost.
import pg from 'pg'
import type { Log } from '../kernel/log.ts'
import { SESSION_SETTINGS } from './pool.ts'

export interface ListenerOptions {
  url: string
  channels: readonly string[]
  onNotification: (channel: string, payload: string) => void
  /** Called with every new connection, before anything is heard on it. A failure drops the connection again. */
  onConnect: (client: pg.Client) => Promise<void>
  log: Log
}

export interface Listener {
  stop(): Promise<void>
}

const FIRST_WAIT_MS = 50
const LONGEST_WAIT_MS = 1_000

/** Resolves when it listens for the first time. */
export async function startListener(options: ListenerOptions): Promise<Listener> {
  let isStopped = false
  let client = await connect()
  return {
    stop: async () => {
      isStopped = true
      await client?.end().catch(() => {})
    },
  }

  async function connect(): Promise<pg.Client | null> {
    const next = new pg.Client({
      connectionString: options.url,
      application_name: 'muster-listener',
      options: SESSION_SETTINGS,
      connectionTimeoutMillis: 2_000,
      keepAlive: true,
    })
    let isLost = false
    const lost = (): void => {
      if (isLost) return
      isLost = true
      if (client === next && !isStopped) void reconnect()
    }
    next.on('error', lost)
    next.on('end', lost)
    next.on('notification', ({ channel, payload }) => options.onNotification(channel, payload ?? ''))
    try {
      await next.connect()
      for (const channel of options.channels) await next.query(`listen ${pg.escapeIdentifier(channel)}`)
      await options.onConnect(next)
      return next
    } catch (error) {
      isLost = true
      await next.end().catch(() => {})
      throw error
    }
  }

  async function reconnect(): Promise<void> {
    options.log.warn({}, 'the listening connection to the database was lost; opening another')
    client = null
    for (let waitMs = FIRST_WAIT_MS; !isStopped; waitMs = Math.min(waitMs * 2, LONGEST_WAIT_MS)) {
      try {
        client = await connect()
        if (isStopped) await client?.end().catch(() => {})
        return
      } catch {
        await new Promise((resolve) => setTimeout(resolve, waitMs).unref())
      }
    }
  }
}
