// The memory that processes have for themselves, as Linux counts it: what they share is not counted.
import { readFile } from 'node:fs/promises'
import { familyOf, postmasterOf } from './cpu.ts'

/** The bytes of a server and of everything of its PostgreSQL. */
export async function measureMemory(server: { pid: number; databaseUrl: string }): Promise<number> {
  const pids = [server.pid, ...(await familyOf(await postmasterOf(server.databaseUrl)))]
  const sizes = await Promise.all(pids.map(privateBytes))
  return sizes.reduce((sum, bytes) => sum + bytes, 0)
}

async function privateBytes(pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
  return Number(/^RssAnon:\s+(\d+) kB/m.exec(text)?.[1] ?? 0) * 1024
}
