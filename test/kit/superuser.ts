// Acts on a server that tests need and Muster itself never does: settings, further databases, triggers switched off.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

/** A connection to the same database as the superuser of the embedded server in this data folder. */
export async function superuserUrl(dataDir: string, url: string): Promise<string> {
  const password = (await readFile(join(dataDir, 'postgres.password'), 'utf8')).trim()
  return Object.assign(new URL(url), { username: 'muster', password }).href
}
