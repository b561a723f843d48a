// A PostgreSQL for tests, started and stopped by its caller. This file does not import node:test, so that the test
// runner can use it.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { createEmbeddedServer } from '../../src/db/embedded/embedded-server.ts'
import { silentLog } from '../../src/kernel/log.ts'
import { superuserUrl } from './superuser.ts'

export async function startTestServer(): Promise<{ url: string; stop(): Promise<void> }> {
  const dataDir = await mkdtemp(join(tmpdir(), 'muster-test-'))
  const server = createEmbeddedServer({ dataDir, log: silentLog })
  await server.start()
  const url = await superuserUrl(dataDir, server.url())
  // Test databases are made by the dozen and thrown away. The use of fsync is tested on separate servers.
  await withClient(url, async (client) => {
    await client.query('alter system set fsync = off')
    await client.query('select pg_reload_conf()')
  })
  return {
    url,
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
