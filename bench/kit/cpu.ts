// The processor time that processes take, as Linux counts it.
import { readdir, readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { withClient } from './database.ts'

/** USER_HZ, which Linux fixes for /proc on every machine. */
const TICKS_PER_SECOND = 100

interface ProcessTimes {
  parent: number
  /** The ticks of the process, and of its children that have ended. */
  own: number
  ended: number
}

/** The share of one core that a server and its whole PostgreSQL took together for this many seconds. */
export async function measureCpu(
  server: { pid: number; databaseUrl: string },
  seconds: number,
): Promise<{ server: number; database: number }> {
  const postmaster = await postmasterOf(server.databaseUrl)
  const before = { server: await ticksOf(server.pid), database: await ticksOfFamily(postmaster) }
  const began = performance.now()
  await sleep(seconds * 1_000)
  const tookSeconds = (performance.now() - began) / 1_000
  const share = (ticks: number): number => ticks / TICKS_PER_SECOND / tookSeconds
  return {
    server: share((await ticksOf(server.pid)) - before.server),
    database: share((await ticksOfFamily(postmaster)) - before.database),
  }
}

/** The parent of the process that serves a connection. */
export async function postmasterOf(url: string): Promise<number> {
  return withClient(url, async (client) => {
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
    const times = await readTimes(rows[0]?.pid ?? 0)
    if (!times) throw new Error('The processes of the database are not on this machine.')
    return times.parent
  })
}

async function ticksOf(pid: number): Promise<number> {
  const times = await readTimes(pid)
  if (!times) throw new Error(`process ${pid} is gone`)
  return times.own + times.ended
}

/** The ticks of a process and its children; children that have ended are counted in the process. */
async function ticksOfFamily(pid: number): Promise<number> {
  let ticks = await ticksOf(pid)
  for (const child of await childrenOf(pid)) ticks += (await readTimes(child))?.own ?? 0
  return ticks
}

/** A process and its children. */
export const familyOf = async (pid: number): Promise<number[]> => [pid, ...(await childrenOf(pid))]

async function childrenOf(pid: number): Promise<number[]> {
  const children: number[] = []
  for (const name of await readdir('/proc')) {
    const times = /^\d+$/.test(name) ? await readTimes(Number(name)) : null
    if (times?.parent === pid) children.push(Number(name))
  }
  return children
}

async function readTimes(pid: number): Promise<ProcessTimes | null> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => null)
  if (text === null) return null
  // The name, in parentheses, may hold spaces; the fields after it are numbered from 3 in proc(5).
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  const field = (number: number): number => Number(fields[number - 3])
  return { parent: field(4), own: field(14) + field(15), ended: field(16) + field(17) }
}
