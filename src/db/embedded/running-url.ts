import { join } from 'node:path'
import { appLogin } from './app-role.ts'
import { readIfPresent } from './private-file.ts'
import { askServer, databaseUrl, superuserLogin } from './probe.ts'

/** The database of a data folder whose server is up, whoever started it; null where none answers. */
export async function runningUrl(dataDir: string): Promise<string | null> {
  const port = Number((await readIfPresent(join(dataDir, 'postgres.port')))?.trim())
  const password = (await readIfPresent(join(dataDir, 'postgres.password')))?.trim()
  if (!Number.isInteger(port) || !password) return null
  // A server that an earlier release runs has the superuser alone.
  for (const login of [appLogin(password), superuserLogin(password)]) {
    if ((await askServer(port, login)) === 'ready') return databaseUrl(port, login)
  }
  return null
}
