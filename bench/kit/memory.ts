// The private memory of processes, as Linux counts it, without shared memory.
import { readFile } from 'node:fs/promises'
import { familyOf, postmasterOf } from './cpu.ts'

/** The bytes of a server and of its whole PostgreSQL. */
export async function measureMemory(server: { pid: number; databaseUrl: string }): Promise<number> {
  const pids = [server.pid, ...(await familyOf(await postmasterOf(server.databaseUrl)))]
  const sizes = await Promise.all(pids.map(privateBytes))
  return sizes.reduce((sum, bytes) => sum + bytes, 0)
}

async function privateBytes(pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
  return Number(/^RssAnon:\s+(\d+) kB/m.exec(text)?.[1] ?? 0) * 1024
}
