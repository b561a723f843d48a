import type { Log } from '../kernel/log.ts'

export interface Shutdown {
  /** Adds a part; the part added last is stopped first. */
  last(name: string, stop: () => Promise<unknown>): void
  /** Stops everything that was added, once; later calls wait for the first. */
  now(): Promise<void>
  isUnderWay(): boolean
}

/** How long one part may take before the next is stopped all the same. */
const PATIENCE_MS = 12_000

/** SIGTERM and SIGINT stop all parts and exit 0; a second signal waits no longer for parts that hang. */
export function createShutdown(log: Log): Shutdown {
  const parts: { name: string; stop: () => Promise<unknown> }[] = []
  const hurry = Promise.withResolvers<void>()
  let underWay: Promise<void> | null = null

  const stopAll = async (): Promise<void> => {
    for (const { name, stop } of parts.reverse()) {
      try {
        // The database is never hurried: leaving before it has stopped would leave a process behind.
        await (name === 'database' ? stop() : Promise.race([stop(), hurry.promise, patience(name, log)]))
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
      hurry.resolve()
      return
    }
    log.info({ signal }, 'stopping')
    void now().then(() => process.exit(0))
  }
  const onBug = (error: unknown): void => {
    log.error({ err: error }, 'an error nobody caught; stopping')
    void now().then(() => process.exit(1))
  }
  process.on('SIGTERM', onSignal)
  process.on('SIGINT', onSignal)
  process.on('uncaughtException', onBug)
  process.on('unhandledRejection', onBug)
  return { last: (name, stop) => void parts.push({ name, stop }), now, isUnderWay: () => underWay !== null }
}

async function patience(name: string, log: Log): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, PATIENCE_MS).unref())
  log.warn({ part: name }, 'a part took too long to stop')
}
