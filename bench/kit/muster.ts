// The product itself, as `npm start` runs it, over a database of the bench.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Child, startChild } from './child.ts'

export interface Started extends Child {
  databaseUrl: string
}

const ADMIN_TOKEN = 'the-admin-token-of-this-bench'
/** The key that the database was made with; a second start needs the same. */
const SECRET_KEY = 'the-secret-key-of-this-bench'

/**
 * Starts the server with defaults, except that the limit of requests per second is off. `settings` are more variables.
 */
export async function startMuster(databaseUrl: string, settings: Record<string, string> = {}): Promise<Started> {
  const dataDir = await mkdtemp(join(tmpdir(), 'muster-bench-'))
  const child = await startChild([...profilingFlags(), 'src/bin/muster.ts', 'start'], {
    DATABASE_URL: databaseUrl,
    MUSTER_DATA_DIR: dataDir,
    MUSTER_ADMIN_TOKEN: ADMIN_TOKEN,
    MUSTER_SECRET_KEY: SECRET_KEY,
    MUSTER_RATE_LIMIT: '0',
    MUSTER_DEMO: 'off',
    MUSTER_FIND_OLLAMA: 'off',
    ...settings,
  })
  const stop = async (): Promise<void> => {
    await child[Symbol.asyncDispose]()
    await rm(dataDir, { recursive: true, force: true })
  }
  return { ...child, databaseUrl, [Symbol.asyncDispose]: stop }
}

/** `BENCH_PROFILE=<folder> npm run bench -- <name>` writes a CPU profile of our side into the folder. */
function profilingFlags(): string[] {
  const folder = process.env.BENCH_PROFILE
  return folder ? ['--cpu-prof', `--cpu-prof-dir=${folder}`] : []
}

/** Sends a request as the instance admin. Any other status than the expected one ends the bench. */
export async function post(url: string, body: unknown, expected = 201): Promise<Record<string, unknown>> {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${ADMIN_TOKEN}` }
  const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })
  if (answer.status !== expected) throw new Error(`${url} answered ${answer.status}: ${await answer.text()}`)
  return (await answer.json()) as Record<string, unknown> // our own API; its contract is tested elsewhere
}
