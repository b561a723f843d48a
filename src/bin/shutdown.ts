import { setTimeout as delay } from 'node:timers/promises'
import type { Log } from '../kernel/log.ts'

export interface Shutdown {
  /** Adds a part; the part added last is stopped first. `hurry` tells a part that waits for its work to end at once. */
  last(name: string, stop: () => Promise<unknown>, hurry?: () => void): void
  /** Stops everything that was added, once; later calls wait for the first. */
  now(): Promise<void>
  isUnderWay(): boolean
}

const LEFT_AT_A_BUG: ReadonlySet<string> = new Set(['new work', 'runs', 'flows'])

/** After this time the next part is stopped, even if the part before has not stopped. Parts that drain have longer. */
const PATIENCE_MS = 12_000
/** After `drainMs`, all other parts together have this time; the database has all the time it needs. */
const MARGIN_MS = 3_500
/** Every part has at least this time, however late it is. */
const LEAST_MS = 250
/** A part that was told to hurry has this time to save the state of its work. */
const HURRIED_MS = 1_000
/** The parent (npx, a launcher, a shell) may pass on a Ctrl-C that this process was sent as well. */
const SAME_SIGNAL_MS = 500
/** An exit before these parts have stopped would leave a process or muster.pid behind. */
const NEVER_HURRIED: ReadonlySet<string> = new Set(['database', 'data folder'])

/**
 * SIGTERM, SIGINT and SIGHUP stop all parts and exit 0 within `drainMs` and 5 s more. After a second signal the process
 * does not wait for parts that hang, and cuts off running calls.
 */
export function createShutdown(log: Log, drainMs: number): Shutdown {
  const parts: Part[] = []
  const hurry = Promise.withResolvers<void>()
  let underWay: Promise<void> | null = null
  let askedAt = 0

  const stopAll = async (): Promise<void> => {
    const endsAt = performance.now() + drainMs + MARGIN_MS
    for (const part of parts.reverse()) {
      try {
        if (NEVER_HURRIED.has(part.name)) {
          await part.stop()
          continue
        }
        const isHurried = part.hurry ? hurry.promise.then(() => delay(HURRIED_MS)) : hurry.promise
        const leftMs = Math.max(LEAST_MS, endsAt - performance.now())
        const patienceMs = part.hurry ? leftMs : Math.min(PATIENCE_MS, leftMs)
        await withPatience(part.name, Promise.race([part.stop(), isHurried]), patienceMs, log)
      } catch (error) {
        log.warn({ part: part.name, err: error }, 'a part did not stop cleanly')
      }
    }
  }
  const now = (): Promise<void> => {
    underWay ??= stopAll()
    return underWay
  }
  const onSignal = (signal: NodeJS.Signals): void => {
    if (underWay) {
      if (performance.now() - askedAt <= SAME_SIGNAL_MS) return
      for (const part of parts) part.hurry?.()
      hurry.resolve()
      return
    }
    askedAt = performance.now()
    log.info({ signal }, 'stopping')
    void now().then(() => process.exit(0))
  }
  const onBug = (error: unknown): void => {
    log.error({ err: error }, 'an error was not caught; stopping')
    // Runs in progress are not handed back: one of them may be the cause, and the next owner counts the crash.
    for (const part of parts) if (LEFT_AT_A_BUG.has(part.name)) part.stop = async () => {}
    void now().then(() => process.exit(1))
  }
  const onRejection = (error: unknown): void => {
    log.error({ err: error }, 'the rejection of a promise was not handled; going on')
  }
  // SIGHUP means that the terminal was closed. Without a handler the database would be left running.
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.removeAllListeners(signal).on(signal, onSignal)
  process.on('uncaughtException', onBug)
  process.on('unhandledRejection', onRejection)
  return {
    last: (name, stop, ifHurried) => void parts.push({ name, stop, ...(ifHurried ? { hurry: ifHurried } : {}) }),
    now,
    isUnderWay: () => underWay !== null,
  }
}

interface Part {
  name: string
  stop: () => Promise<unknown>
  hurry?: () => void
}

async function withPatience(name: string, stopped: Promise<unknown>, patienceMs: number, log: Log): Promise<void> {
  const { promise: tooLong, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(() => {
    log.warn({ part: name }, 'a part took too long to stop')
    resolve()
  }, patienceMs)
  await Promise.race([stopped, tooLong]).finally(() => clearTimeout(timer))
}
