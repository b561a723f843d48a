import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

const SERVER = 'test/kit/server.ts'

/** True if a test file uses the shared PostgreSQL, judged by its imports, direct or through the kit. */
export async function usesTestServer(file: string, seen = new Set<string>()): Promise<boolean> {
  if (file === SERVER) return true
  if (seen.has(file)) return false
  seen.add(file)
  const text = await readFile(file, 'utf8')
  for (const [, path = ''] of text.matchAll(/^(?:import .*|export .*|\}) from '(\.[^']+\.ts)'/gm)) {
    if (await usesTestServer(join(dirname(file), path), seen)) return true
  }
  return false
}
