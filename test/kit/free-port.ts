// Ports for servers. Test files run beside one another, and a server listens seconds after its port was drawn, or is
// killed and started again on it. So a port that was drawn belongs to the process that drew it, until that process ends.
import { randomInt } from 'node:crypto'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { refusedPorts } from '../../src/bin/config-values.ts'

/** Below the ports that systems give to outgoing connections, and apart from those of embedded databases. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(10_000, 15_400)
    if (!refusedPorts.has(port) && take(port) && (await canListen(port))) return port
  }
}

const canListen = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })

const taken = new Set<string>()
process.once('exit', () => {
  for (const mark of taken) rmSync(mark, { force: true })
})

/** Marks the port with the pid of this process. False if a process that lives has marked it before. */
function take(port: number): boolean {
  const mark = join(tmpdir(), `muster-test-port-${port}`)
  if (taken.has(mark)) return false
  if (!write(mark)) {
    if (isOfLivingProcess(mark)) return false
    try {
      rmSync(mark, { force: true })
    } catch {
      return false // the mark of another user
    }
    if (!write(mark)) return false
  }
  taken.add(mark)
  return true
}

function write(mark: string): boolean {
  try {
    writeFileSync(mark, String(process.pid), { flag: 'wx' })
    return true
  } catch {
    return false
  }
}

/** A process of another user lives as well, though no signal may be sent to it. */
function isOfLivingProcess(mark: string): boolean {
  try {
    return process.kill(Number(readFileSync(mark, 'utf8')), 0)
  } catch (error) {
    return !(error instanceof Error) || !('code' in error) || error.code === 'EPERM' || error.code === 'EACCES'
  }
}
