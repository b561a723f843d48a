// The database session of each connection. Settings are made by SQL after the connect, because poolers such as
// PgBouncer refuse options of the start packet. Locks, LISTEN, settings and prepared statements need a session of their
// own.
import { randomUUID } from 'node:crypto'
import pg from 'pg'

/**
 * Settings that Muster's code relies on. Without this search path a role called muster would look for the tables in the
 * schema muster, because the default path begins with the schema named like the user. Compiling a plan takes longer
 * than any query: with jit the query for leaves elsewhere took 36 ms instead of 5.
 */
const SETTINGS = { search_path: 'public', datestyle: 'ISO', bytea_output: 'hex', jit: 'off' }

/** Must be awaited before any other query on a new connection. */
export async function setSession(client: pg.ClientBase, more: Readonly<Record<string, string>> = {}): Promise<void> {
  const sets = Object.entries({ ...SETTINGS, ...more }).map(
    ([name, value]) => `set ${name} = ${pg.escapeLiteral(value)}`,
  )
  await client.query(sets.join('; '))
}

/** The server behind DATABASE_URL is a pooler that Muster cannot use; the message says what to do. */
export class NoSessions extends Error {}

const ROUNDS = 5
const ANSWERS_WITHIN_MS = 10_000

/**
 * Throws one sentence if the server does not keep a database session for each connection, like a pooler in transaction
 * mode. One connection marks its session and asks repeatedly for its backend, while another has a transaction open. A
 * pooler then lends the first one's session to the second, or makes the first one wait.
 */
export async function requireSessions(url: string): Promise<void> {
  const [first, second] = [newClient(url), newClient(url)]
  try {
    await Promise.all([first.connect(), second.connect()])
    const mark = randomUUID()
    await first.query(`set muster.session_mark = '${mark}'`)
    const server = await serverOf(first)
    for (let round = 1; round <= ROUNDS; round++) {
      await begin(second)
      const found = await serverOf(first).catch((error: unknown) => explainWait(error, TRANSACTION_MODE))
      if (found.pid !== server.pid || found.mark !== mark) throw new NoSessions(TRANSACTION_MODE)
      await second.query('rollback')
    }
  } finally {
    for (const client of [first, second]) await client.end().catch(() => {})
  }
}

const TRANSACTION_MODE =
  'DATABASE_URL leads to a pooler in transaction mode, and Muster needs sessions of its own: use session mode, or connect directly.'
const TOO_FEW =
  'DATABASE_URL leads to a pooler that lends a single connection: let it lend MUSTER_POOL + 3 connections.'
const STATEMENT_MODE =
  'DATABASE_URL leads to a pooler that refuses transactions, and Muster needs sessions of its own: use session mode, or connect directly.'

function newClient(url: string): pg.Client {
  const client = new pg.Client({
    connectionString: url,
    application_name: 'muster-start',
    connectionTimeoutMillis: ANSWERS_WITHIN_MS,
    query_timeout: ANSWERS_WITHIN_MS,
  })
  client.on('error', () => {})
  return client
}

async function serverOf(client: pg.Client): Promise<{ pid: number; mark: string | null }> {
  const { rows } = await client.query<{ pid: number; mark: string | null }>(
    `select pg_backend_pid() as pid, current_setting('muster.session_mark', true) as mark`,
  )
  if (!rows[0]) throw new Error('The database does not name the backend of a connection.')
  return rows[0]
}

async function begin(client: pg.Client): Promise<void> {
  try {
    await client.query('begin')
  } catch (error) {
    if (/transaction block/i.test(error instanceof Error ? error.message : '')) throw new NoSessions(STATEMENT_MODE)
    explainWait(error, TOO_FEW)
  }
}

function explainWait(error: unknown, sentence: string): never {
  const isWait = error instanceof Error && /timeout/i.test(error.message)
  throw isWait ? new NoSessions(sentence, { cause: error }) : error
}
