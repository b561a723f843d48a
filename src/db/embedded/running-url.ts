import { join } from 'node:path'
import { readIfPresent } from './private-file.ts'
import { askServer, databaseUrl } from './probe.ts'

/** The database of a data folder whose server is up, whoever started it; null where none answers. */
export async function runningUrl(dataDir: string): Promise<string | null> {
  const port = Number((await readIfPresent(join(dataDir, 'postgres.port')))?.trim())
  const password = (await readIfPresent(join(dataDir, 'postgres.password')))?.trim()
  if (!Number.isInteger(port) || !password) return null
  return (await askServer(port, password)) === 'ready' ? databaseUrl(port, password) : null
}
