import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '../../kernel/log.ts'
import type { UpServer } from './bring-up.ts'

export interface Supervision {
  readonly first: UpServer
  bringUpAgain(): Promise<UpServer>
  onDown(): void
  onUp(server: UpServer): void
  readonly log: Log
  readonly signal: AbortSignal
  /** Rejects when the signal fires. */
  wait?(ms: number, signal: AbortSignal): Promise<void>
}

export const shortestWaitMs = 100
const longestWaitMs = 5_000
/** A server that lived this long did not die of its start, so the next restart need not be held back. */
const steadyMs = 10_000

/** Starts the server again whenever it dies, for ever, until the signal. Never throws. */
export async function supervise(supervision: Supervision): Promise<void> {
  const { first, bringUpAgain, onDown, onUp, log, signal, wait = sleepFor } = supervision
  const ending = new Promise<null>((resolve) => {
    if (signal.aborted) resolve(null)
    signal.addEventListener('abort', () => resolve(null), { once: true })
  })
  let server = first
  let waitMs = shortestWaitMs
  for (;;) {
    const upAt = performance.now()
    const how = await Promise.race([ending, server.postmaster.gone])
    if (how === null || signal.aborted) return
    onDown()
    log.error({ pid: server.postmaster.pid, how }, 'the database server died')
    if (performance.now() - upAt > steadyMs) waitMs = shortestWaitMs
    for (let attempt = 1; ; attempt++) {
      try {
        await wait(waitMs, signal)
        waitMs = nextWaitMs(waitMs)
        server = await bringUpAgain()
        log.info({ pid: server.postmaster.pid, port: server.port, attempt }, 'the database is running again')
        onUp(server)
        break
      } catch (err) {
        if (signal.aborted) return
        log.error({ err, attempt, waitMs }, 'the database server could not be started again')
      }
    }
  }
}

const sleepFor = (ms: number, signal: AbortSignal): Promise<void> => sleep(ms, undefined, { signal })

export const nextWaitMs = (waitMs: number): number => Math.min(waitMs * 2, longestWaitMs)
