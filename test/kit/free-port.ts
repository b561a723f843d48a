// Ports for servers. Test files run beside one another, and a server listens seconds after its port was drawn, or is
// killed and started again on it. So a port that was drawn belongs to the process that drew it, until that process ends.
import { randomInt } from 'node:crypto'
import { rmSync, writeFileSync } from 'node:fs'
import { readdir, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { refusedPorts } from '../../src/bin/config-values.ts'

/** A range with this many draws in vain is full. */
const MOST_DRAWS = 50_000

/** Below the ports that systems give to outgoing connections, and apart from those of embedded databases. */
export async function freePort(): Promise<number> {
  for (let draw = 0; draw < MOST_DRAWS; draw++) {
    const port = randomInt(10_000, 15_400)
    if (!refusedPorts.has(port) && mark(port) && (await canListen(port))) return port
  }
  throw new Error('No port is free. Processes that were killed leave marks; a run of test/run.ts removes them.')
}

const canListen = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })

const PREFIX = 'muster-test-port-'
const marks = new Set<string>()

/** Marks the port with the pid of this process. False if it is marked already. */
function mark(port: number): boolean {
  if (marks.size === 0) process.once('exit', removeMarks)
  const file = join(tmpdir(), `${PREFIX}${port}`)
  try {
    writeFileSync(file, String(process.pid), { flag: 'wx' })
  } catch {
    return false
  }
  marks.add(file)
  return true
}

function removeMarks(): void {
  for (const file of marks) rmSync(file, { force: true })
}

/** Removes the marks of processes that were killed. */
export async function removeOldMarks(): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    if (!name.startsWith(PREFIX)) continue
    const file = join(tmpdir(), name)
    const pid = Number(await readFile(file, 'utf8').catch(() => '0'))
    // A mark of another user stays.
    if (!isAlive(pid)) await rm(file, { force: true }).catch(() => undefined)
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}
