import type { Log } from '../kernel/log.ts'

export interface Shutdown {
  /** Adds a part; the part added last is stopped first. */
  last(name: string, stop: () => Promise<unknown>): void
  /** Stops everything that was added, once; later calls wait for the first. */
  now(): Promise<void>
  isUnderWay(): boolean
}

const LEFT_AT_A_BUG: ReadonlySet<string> = new Set(['new work', 'runs', 'flows'])

/** How long one part may take before the next is stopped all the same. */
const PATIENCE_MS = 12_000
/** Whoever started us (npx, a launcher, a shell) may pass on the Ctrl-C that we were sent as well. */
const SAME_SIGNAL_MS = 500
/** Leaving before these are done would leave a process or muster.pid behind. */
const NEVER_HURRIED: ReadonlySet<string> = new Set(['database', 'data folder'])

/** These signals stop all parts and exit 0; a second one waits no longer for parts that hang. */
export function createShutdown(log: Log): Shutdown {
  const parts: { name: string; stop: () => Promise<unknown> }[] = []
  const hurry = Promise.withResolvers<void>()
  let underWay: Promise<void> | null = null
  let askedAt = 0

  const stopAll = async (): Promise<void> => {
    for (const { name, stop } of parts.reverse()) {
      try {
        await (NEVER_HURRIED.has(name) ? stop() : withPatience(name, Promise.race([stop(), hurry.promise]), log))
      } catch (error) {
        log.warn({ part: name, err: error }, 'a part did not stop cleanly')
      }
    }
  }
  const now = (): Promise<void> => {
    underWay ??= stopAll()
    return underWay
  }
  const onSignal = (signal: NodeJS.Signals): void => {
    if (underWay) {
      if (performance.now() - askedAt > SAME_SIGNAL_MS) hurry.resolve()
      return
    }
    askedAt = performance.now()
    log.info({ signal }, 'stopping')
    void now().then(() => process.exit(0))
  }
  const onBug = (error: unknown): void => {
    log.error({ err: error }, 'an error nobody caught; stopping')
    // Runs under way are not handed back: one of them may be the cause, and whoever takes them over counts the crash.
    for (const part of parts) if (LEFT_AT_A_BUG.has(part.name)) part.stop = async () => {}
    void now().then(() => process.exit(1))
  }
  const onRejection = (error: unknown): void => {
    log.error({ err: error }, 'a promise was rejected and nobody waited for it; going on')
  }
  // SIGHUP: the terminal was closed. Unheard it would end us and leave the database running.
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.removeAllListeners(signal).on(signal, onSignal)
  process.on('uncaughtException', onBug)
  process.on('unhandledRejection', onRejection)
  return { last: (name, stop) => void parts.push({ name, stop }), now, isUnderWay: () => underWay !== null }
}

async function withPatience(name: string, stopped: Promise<unknown>, log: Log): Promise<void> {
  const { promise: tooLong, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(() => {
    log.warn({ part: name }, 'a part took too long to stop')
    resolve()
  }, PATIENCE_MS)
  await Promise.race([stopped, tooLong]).finally(() => clearTimeout(timer))
}
