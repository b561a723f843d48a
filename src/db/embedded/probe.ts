import pg from 'pg'
import { superuser } from './cluster.ts'
import { isCode } from './private-file.ts'

// Readiness is judged by a real connection: log texts change, and an open port may belong to another program.

const databaseName = 'muster'
const patienceMs = 2_000

export type Answer =
  | 'ready'
  /** The server is ready, but the database `muster` is not made yet. */
  | 'no database'
  /** The server is starting, recovering or stopping: alive, but it takes no connections. */
  | 'not now'
  | 'wrong password'
  | 'silence'

export interface Login {
  readonly user: string
  readonly password: string
}

export const superuserLogin = (password: string): Login => ({ user: superuser, password })

export const databaseUrl = (port: number, { user, password }: Login, database = databaseName): string =>
  // sslmode is named so that a PGSSLMODE in the environment does not decide it.
  `postgres://${user}:${encodeURIComponent(password)}@127.0.0.1:${port}/${database}?sslmode=disable`

export async function askServer(port: number, login: Login): Promise<Answer> {
  try {
    await withClient(databaseUrl(port, login), (client) => client.query('select 1'))
    return 'ready'
  } catch (error) {
    if (isCode(error, '3D000')) return 'no database'
    if (isCode(error, '57P03', '53300')) return 'not now'
    if (isCode(error, '28P01', '28000')) return 'wrong password'
    return 'silence'
  }
}

export async function createDatabase(port: number, login: Login): Promise<void> {
  await withClient(databaseUrl(port, login, 'postgres'), async (client) => {
    try {
      await client.query(`create database ${databaseName}`)
    } catch (error) {
      if (!isCode(error, '42P04')) throw error
    }
  })
}

export async function withClient<Result>(url: string, use: (client: pg.Client) => Promise<Result>): Promise<Result> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: patienceMs, query_timeout: 30_000 })
  // A connection cut between two calls is reported here; without a listener it would end the process.
  client.on('error', () => undefined)
  try {
    await client.connect()
    return await use(client)
  } finally {
    await client.end().catch(() => undefined)
  }
}
