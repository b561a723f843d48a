import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

/** The pid that muster.pid names, while that process lives. */
export async function readRunningPid(dataDir: string): Promise<number | null> {
  const pid = Number((await readFile(join(dataDir, 'muster.pid'), 'utf8').catch(() => '')).split('\n')[0])
  if (!Number.isInteger(pid) || pid <= 0) return null
  try {
    process.kill(pid, 0)
    return pid
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM' ? pid : null
  }
}
