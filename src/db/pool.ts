// The access to PostgreSQL: one pool per process, every wait bounded. A full pool or a lost server fails within a
// second, and an idle client that is cut (57P01 at a restart) never ends the process.
import pg from 'pg'
import type { Log } from '../kernel/log.ts'
import { retryCollisions } from './collisions.ts'
import { setSession } from './session.ts'

/** A statement that each connection parses and plans once, for hot SQL. A name always stands for the same text. */
export interface PreparedSql {
  name: string
  text: string
}

/** The database as a store needs it: the pool itself or one client inside a transaction. */
export interface Db {
  query<Row extends pg.QueryResultRow>(
    sql: string | PreparedSql,
    values?: readonly unknown[],
  ): Promise<pg.QueryResult<Row>>
}

export type Pool = pg.Pool
export type Client = pg.PoolClient

export interface PoolOptions {
  url: string
  max: number
  log: Log
  connectTimeoutMs?: number
  idleTimeoutMs?: number
  statementTimeoutMs?: number
  /** The name that pg_stat_activity shows. */
  applicationName?: string
}

// int8 (audit seq, counts) fits a double for the next 285,000 years at a thousand rows a second.
pg.types.setTypeParser(pg.types.builtins.INT8, Number)

// The rows of one answer mostly carry the same instants; parsing an instant is the dearest part of reading a row.
const parseInstant = pg.types.getTypeParser(pg.types.builtins.TIMESTAMPTZ)
let lastInstant = { text: '', ms: 0 }
pg.types.setTypeParser(pg.types.builtins.TIMESTAMPTZ, (text) => {
  if (text !== lastInstant.text) {
    const parsed: Date | number = parseInstant(text)
    // Infinity is no date.
    if (!(parsed instanceof Date)) return parsed
    lastInstant = { text, ms: parsed.getTime() }
  }
  return new Date(lastInstant.ms)
})

/** After half a minute of silence the operating system asks whether the other side is still there. */
export const KEEP_ALIVE = { keepAlive: true, keepAliveInitialDelayMillis: 30_000 } as const

/** The server ends a statement in time. Without an answer this long after that time, the connection is dead. */
const UNANSWERED_AFTER_MS = 5_000

export function createPool({
  url,
  max,
  log,
  connectTimeoutMs = 1_000,
  idleTimeoutMs = 30_000,
  statementTimeoutMs = 15_000,
  applicationName = 'muster',
}: PoolOptions): Pool {
  const bounds = {
    statement_timeout: String(statementTimeoutMs),
    lock_timeout: '10s',
    idle_in_transaction_session_timeout: '15s',
  }
  const pool = new pg.Pool({
    connectionString: url,
    max,
    application_name: applicationName,
    connectionTimeoutMillis: connectTimeoutMs,
    idleTimeoutMillis: idleTimeoutMs,
    query_timeout: statementTimeoutMs + UNANSWERED_AFTER_MS,
    ...KEEP_ALIVE,
    // The pool waits for the promise before it lends the connection.
    onConnect: (client) => setSession(client, bounds),
  })
  // A connection may be cut between the moment at which it is lent and the first statement of its borrower, who has no
  // listener yet. The statement then fails, and the connection is given up.
  pool.on('connect', (client) => client.on('error', () => {}))
  pool.on('error', (error) => {
    // A database that stops may cut a connection that is being closed.
    if (!pool.ending) log.warn({ error: error.message }, 'an idle database connection was lost')
  })
  // A statement outside `inTransaction` is a transaction of its own, so it can be tried again like any other.
  const queryOnce = pool.query.bind(pool) as (...args: readonly unknown[]) => Promise<pg.QueryResult>
  pool.query = ((...args: readonly unknown[]) => retryCollisions(() => queryOnce(...args))) as typeof pool.query
  return pool
}
