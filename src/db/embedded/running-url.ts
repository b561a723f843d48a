import { join } from 'node:path'
import { appLogin } from './app-role.ts'
import { readIfPresent } from './private-file.ts'
import { askServer, databaseUrl, superuserLogin } from './probe.ts'

/** The URL of a data folder's running database, whichever process started it; null if none answers. */
export async function runningUrl(dataDir: string): Promise<string | null> {
  const port = Number((await readIfPresent(join(dataDir, 'postgres.port')))?.trim())
  const password = (await readIfPresent(join(dataDir, 'postgres.password')))?.trim()
  if (!Number.isInteger(port) || !password) return null
  // A server of an earlier release has only the superuser.
  for (const login of [appLogin(password), superuserLogin(password)]) {
    if ((await askServer(port, login)) === 'ready') return databaseUrl(port, login)
  }
  return null
}
