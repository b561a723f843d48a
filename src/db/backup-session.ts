import pg from 'pg'
import { pgFailure } from './failures.ts'
import { setSession } from './session.ts'

const CONNECT_WITHIN_MS = 10_000
const TRANSACTION_TIMEOUT_SINCE = 170_000

// A copy may take hours, so no time-out may end it; only waiting for a lock is bounded. Values have one form whatever
// the server's settings are. Row security must fail a copy, not leave out rows.
const SETTINGS = {
  statement_timeout: '0',
  idle_in_transaction_session_timeout: '0',
  lock_timeout: '60s',
  row_security: 'off',
  datestyle: 'ISO, YMD',
  intervalstyle: 'postgres',
  bytea_output: 'hex',
  extra_float_digits: '3',
  timezone: 'UTC',
}

/** Lends a separate connection for one long transaction. The signal ends both. */
export async function withSession<Result>(
  url: string,
  signal: AbortSignal,
  use: (client: pg.Client) => Promise<Result>,
): Promise<Result> {
  signal.throwIfAborted()
  const client = new pg.Client({
    connectionString: url,
    application_name: 'muster-backup',
    connectionTimeoutMillis: CONNECT_WITHIN_MS,
    keepAlive: true,
  })
  let lost: Error | undefined
  client.on('error', (error) => {
    lost ??= error
  })
  const end = (): void => void client.end().catch(() => {})
  signal.addEventListener('abort', end)
  try {
    await connect(client)
    return await use(client)
  } catch (error) {
    signal.throwIfAborted()
    // A query under way fails first (57P01 and the like); between two queries only the client hears of the end.
    const cut = lost ?? (pgFailure(error)?.code.startsWith('57P') && error instanceof Error ? error : undefined)
    if (cut) throw new Error(`The connection to the database was lost: ${cut.message}.`, { cause: error })
    throw error
  } finally {
    signal.removeEventListener('abort', end)
    await client.end().catch(() => {})
  }
}

async function connect(client: pg.Client): Promise<void> {
  try {
    await client.connect()
  } catch (error) {
    // A name with several addresses fails once for each, under an error without a message of its own.
    const reasons: unknown[] = error instanceof AggregateError ? error.errors : [error]
    const text = reasons.map((reason) => (reason instanceof Error ? reason.message : String(reason))).join(', ')
    throw new Error(`The database cannot be reached: ${text}.`, { cause: error })
  }
  await setSession(client, SETTINGS)
  const { rows } = await client.query<{ number: number }>(`select current_setting('server_version_num')::int as number`)
  if ((rows[0]?.number ?? 0) >= TRANSACTION_TIMEOUT_SINCE) await client.query('set transaction_timeout = 0')
}
