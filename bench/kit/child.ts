// One side of a bench as a separate process, so that neither side pays for the other or for the load.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'

export interface Child extends AsyncDisposable {
  address: string
  pid: number
}

const READY_WITHIN_MS = 120_000
/** The most lines of a side's errors that are shown; under load a side may write thousands a second. */
const MOST_LINES = 10

/** Starts a Node program that listens on the port named in PORT, and returns once its /readyz answers. */
export async function startChild(args: readonly string[], environment: Record<string, string>): Promise<Child> {
  const port = await freePort()
  // Other variables of our environment are left out, because a provider's key or a log level would change the
  // measurement.
  const env = { PATH: process.env.PATH ?? '', ...environment, PORT: String(port) }
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'ignore', 'pipe'] })
  let shown = 0
  createInterface(child.stderr).on('line', (line) => {
    if (!line.includes('"level":"info"') && ++shown <= MOST_LINES) console.error(line)
  })
  // Otherwise the process would outlive a bench that fails or is stopped half-way.
  process.once('exit', () => child.kill('SIGKILL'))
  const address = `http://127.0.0.1:${port}`
  const stop = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGTERM')
    await once(child, 'exit')
  }
  const deadline = performance.now() + READY_WITHIN_MS
  while (!(await isReady(address))) {
    if (child.exitCode !== null || performance.now() > deadline) {
      await stop()
      throw new Error(`This program did not get ready: node ${args.join(' ')}`)
    }
    await sleep(50)
  }
  if (child.pid === undefined) throw new Error('a program that is ready has a pid')
  return { address, pid: child.pid, [Symbol.asyncDispose]: stop }
}

async function isReady(address: string): Promise<boolean> {
  const answer = await fetch(`${address}/readyz`).catch(() => null)
  await answer?.body?.cancel()
  return answer?.ok === true
}

async function freePort(): Promise<number> {
  const probe = createServer()
  probe.listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const address = probe.address()
  probe.close()
  await once(probe, 'close')
  if (address === null || typeof address === 'string') throw new Error('the probe has no port')
  return address.port
}
