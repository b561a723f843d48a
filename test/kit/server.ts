// The PostgreSQL that tests run on. `npm test` starts one for all files and names it in MUSTER_TEST_SERVER_URL (as may
// whoever wants the tests on an external server); a file run alone starts its own and stops it at the end.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { createEmbeddedServer } from '../../src/db/embedded/embedded-server.ts'
import { silentLog } from '../../src/kernel/log.ts'
import { atEnd } from './at-end.ts'

let url: Promise<string> | null = null

export function testServerUrl(): Promise<string> {
  url ??= process.env.MUSTER_TEST_SERVER_URL ? Promise.resolve(process.env.MUSTER_TEST_SERVER_URL) : startOwn()
  return url
}

export async function startTestServer(): Promise<{ url: string; stop(): Promise<void> }> {
  const dataDir = await mkdtemp(join(tmpdir(), 'muster-test-'))
  const server = createEmbeddedServer({ dataDir, log: silentLog })
  await server.start()
  // Clones are made by the dozen and thrown away. What fsync is for is tested on servers of their own.
  await withClient(server.url(), async (client) => {
    await client.query('alter system set fsync = off')
    await client.query('select pg_reload_conf()')
  })
  return {
    url: server.url(),
    stop: async () => {
      await server.stop()
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}

export async function withClient<Result>(url: string, use: (client: pg.Client) => Promise<Result>): Promise<Result> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  await client.connect()
  try {
    return await use(client)
  } finally {
    await client.end().catch(() => {})
  }
}

async function startOwn(): Promise<string> {
  const server = await startTestServer()
  atEnd(() => server.stop())
  return server.url
}
