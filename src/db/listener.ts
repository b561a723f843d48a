// A separate connection that listens, and holds locks for as long as the process lives. A lost connection is replaced;
// the listener's user is told of every new one, because notifications were lost meanwhile.
//
// The server's side of a connection can end without the client's (a NAT table that forgets it, a failover): the client
// then sees nothing for hours. So each statement here must be answered in time, and the listener's user sends one every
// second or so; an unanswered statement drops the connection, and another is opened.
import { Socket } from 'node:net'
import pg from 'pg'
import type { Log } from '../kernel/log.ts'
import { type Db, KEEP_ALIVE, type PreparedSql } from './pool.ts'
import { setSession } from './session.ts'

export interface ListenerOptions {
  url: string
  channels: readonly string[]
  /** A statement that takes longer means that the connection is dead. */
  answersWithinMs: number
  onNotification: (channel: string, payload: string) => void
  /** Called with every new connection, before anything is heard on it. A failure drops the connection again. */
  onConnect: (db: Db) => Promise<void>
  log: Log
}

export interface Listener extends Db {
  stop(): Promise<void>
}

interface Connection extends Db {
  client: pg.Client
  socket: Socket
}

const FIRST_WAIT_MS = 50
const LONGEST_WAIT_MS = 1_000
const GOODBYE_MS = 500

/** Resolves when the first connection listens. */
export async function startListener(options: ListenerOptions): Promise<Listener> {
  let isStopped = false
  // The first connection may also end while it is being opened.
  let connection: Connection | null = null
  connection = await connect()
  return {
    query: async (sql, values) => {
      const asked = connection
      if (!asked) throw new Error('Connection terminated: the listening connection is being opened')
      try {
        return await asked.query(sql, values)
      } catch (error) {
        lose(asked)
        throw error
      }
    },
    stop: async () => {
      isStopped = true
      if (connection) await close(connection)
    },
  }

  async function connect(): Promise<Connection> {
    const socket = new Socket()
    const client = new pg.Client({
      connectionString: options.url,
      application_name: 'muster-listener',
      connectionTimeoutMillis: 2_000,
      query_timeout: options.answersWithinMs,
      stream: () => socket,
      ...KEEP_ALIVE,
    })
    const query: Db['query'] = (sql, values) =>
      typeof sql === 'string' ? client.query(sql, values as unknown[]) : client.query(prepared(sql, values))
    const next: Connection = { client, socket, query }
    client.on('error', () => lose(next))
    client.on('end', () => lose(next))
    client.on('notification', ({ channel, payload }) => options.onNotification(channel, payload ?? ''))
    try {
      await client.connect()
      await setSession(client)
      for (const channel of options.channels) await client.query(`listen ${pg.escapeIdentifier(channel)}`)
      await options.onConnect(next)
      return next
    } catch (error) {
      void close(next)
      throw error
    }
  }

  function lose(lost: Connection): void {
    if (connection !== lost) return
    connection = null
    void close(lost)
    if (!isStopped) void comeBack()
  }

  async function comeBack(): Promise<void> {
    options.log.warn({}, 'the listening connection to the database was lost; opening another')
    for (let waitMs = FIRST_WAIT_MS; !isStopped; waitMs = Math.min(waitMs * 2, LONGEST_WAIT_MS)) {
      try {
        connection = await connect()
        if (isStopped) await close(connection)
        return
      } catch {
        await new Promise((resolve) => setTimeout(resolve, waitMs).unref())
      }
    }
  }
}

const prepared = (sql: PreparedSql, values: readonly unknown[] | undefined): pg.QueryConfig =>
  values ? { ...sql, values: [...values] } : { ...sql }

/** The other side may be gone without a word, so the wait for its goodbye is short. */
async function close({ client, socket }: Connection): Promise<void> {
  const late = setTimeout(() => socket.destroy(), GOODBYE_MS)
  await Promise.race([client.end().catch(() => {}), new Promise((resolve) => socket.once('close', resolve))])
  clearTimeout(late)
  socket.destroy()
}
