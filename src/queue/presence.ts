// This process among the others: it renews its lease on the listening connection, for which requests do not compete; it
// judges which others are dead; and it notices when others have declared it dead.
import { randomInt } from 'node:crypto'
import { type Listener, startListener } from '../db/listener.ts'
import type { Db, Pool } from '../db/pool.ts'
import { newId } from '../kernel/id.ts'
import type { Log } from '../kernel/log.ts'
import { repeat } from '../kernel/repeat.ts'
import { createHealth } from './health.ts'
import { publishNames } from './process-names.ts'
import { MISSED_BEATS, type WatchOptions, watchWorkers } from './watch-workers.ts'
import { forgetWorker, insertWorker, renewLease, renewWithLock, takeLock, type Worker } from './workers.ts'

export interface PresenceOptions extends Pick<WatchOptions, 'onDeath'> {
  url: string
  pool: Pool
  slots: number
  /** The tools that this process has for runs, by name. Without a list it may be given any run. */
  tools?: readonly string[]
  leaseMs: number
  /** True if no other process can be alive over this database: it is embedded, and the data folder was claimed. */
  isAlone: boolean
  /** Looking for dead processes is unwell after this time without success, but never before a lease has passed. */
  unwellAfterMs: number
  channels: readonly string[]
  log: Log
  onNotification: (channel: string, payload: string) => void
  /** Called on a new connection: notifications were lost while there was none, so the listener must look by itself. */
  onListening: () => void
  /**
   * Called when this process could not renew in time: others may own its runs, so it must stop acting. Called again if
   * it learns that it was declared dead.
   */
  onLapse: () => void
}

export interface Presence {
  ownerId(): string
  /** True if other processes over the same database were seen at the last look. */
  hasOthers(): boolean
  /** False when looking at the other processes has failed for long. */
  isWatching(): boolean
  stop(): Promise<void>
}

const LONGEST_BEAT_MS = 1_000
const SHORTEST_BEAT_MS = 50
/** A renewal that takes longer than this on the listening connection is made on another one, too. */
const HEDGE_AFTER_MS = 300

export async function startPresence(options: PresenceOptions): Promise<Presence> {
  const { pool, log, leaseMs } = options
  const beatMs = Math.max(SHORTEST_BEAT_MS, Math.min(LONGEST_BEAT_MS, Math.floor(leaseMs / 3)))
  let worker: Worker = { id: newId(), slots: options.slots, lockKey: 0, leaseMs, beatMs }
  let isRegistered = false
  const lease = createLease(leaseMs, beatMs)
  const unwellAfterMs = Math.max(leaseMs, options.unwellAfterMs)
  const looks = createHealth({ log, ifItFails: 'dead processes cannot be found', unwellAfterMs })
  let hasLapsed = false
  let isStopped = false
  const others = watchWorkers({ ...options, ownerId: () => worker.id, steadyForMs: lease.steadyForMs })

  const listener: Listener = await startListener({
    ...options,
    answersWithinMs: Math.max(LONGEST_BEAT_MS, beatMs),
    onConnect: async (db) => {
      await register(db)
      options.onListening()
    },
  })
  try {
    await others.look(options.isAlone)
  } catch (error) {
    await leave()
    throw error
  }
  const later = { isFirstLater: true, ifItFails: 'a round of the worker will be tried again', log } as const
  const rounds = [
    repeat({ ...later, work: renew, everyMs: beatMs, level: 'debug' }),
    repeat({ ...later, work: () => others.look(false), everyMs: others.lookEveryMs, health: looks }),
    repeat({ ...later, work: async () => checkLapse(), everyMs: Math.max(20, leaseMs / 10) }),
  ]

  return {
    ownerId: () => worker.id,
    hasOthers: others.hasAny,
    isWatching: looks.isWell,
    stop: async () => {
      isStopped = true
      await Promise.all(rounds.map((stop) => stop()))
      await leave()
    },
  }

  async function leave(): Promise<void> {
    isStopped = true
    await forgetWorker(pool, worker.id).catch(() => {})
    await listener.stop()
  }

  async function register(db: Db): Promise<void> {
    if (isStopped) return
    const askedAt = performance.now()
    worker = { ...worker, lockKey: randomInt(2 ** 47) }
    await takeLock(db, worker.lockKey)
    if (isRegistered) {
      const { id } = worker
      if (!(await renewWithLock(db, worker))) await comeBackAsAnother(db, id)
    } else {
      await enter(db)
      isRegistered = true
    }
    lease.renewed(askedAt)
  }

  async function renew(): Promise<void> {
    const askedAt = performance.now()
    const { id } = worker
    const [db, isKnown] = await renewSoon(listener, pool, (on) => renewLease(on, worker))
    if (!isKnown) await comeBackAsAnother(db, id)
    lease.renewed(askedAt)
    hasLapsed = false
  }

  /** Two connections may learn at once that the worker of this id was declared dead: one new name is enough. */
  async function comeBackAsAnother(db: Db, deadId: string): Promise<void> {
    if (worker.id !== deadId) return
    log.warn({ worker: worker.id }, 'this process was declared dead; it goes on under a new name')
    hasLapsed = true
    options.onLapse()
    worker = { ...worker, id: newId() }
    await enter(db)
  }

  async function enter(db: Db): Promise<void> {
    await insertWorker(db, worker)
    if (options.tools && worker.slots > 0) await publishNames(db, worker.id, 'tools', options.tools)
  }

  function checkLapse(): void {
    if (hasLapsed || lease.holds(performance.now())) return
    hasLapsed = true
    log.warn({ worker: worker.id }, 'the lease could not be renewed in time; runs are given up')
    options.onLapse()
  }
}

/** Renews on the listening connection; if that does not answer soon, on one of the pool. */
async function renewSoon(
  listener: Db,
  pool: Db,
  renewOn: (db: Db) => Promise<boolean>,
): Promise<[on: Db, isKnown: boolean]> {
  const late = Promise.withResolvers<void>()
  const timer = setTimeout(late.resolve, HEDGE_AFTER_MS)
  const onOwn = renewOn(listener)
  const ownSettled = onOwn.then(
    () => {},
    () => late.resolve(),
  )
  await Promise.race([ownSettled, late.promise])
  clearTimeout(timer)
  const onPool = late.promise.then(() => renewOn(pool))
  return Promise.any([
    onOwn.then((isKnown): [Db, boolean] => [listener, isKnown]),
    onPool.then((isKnown): [Db, boolean] => [pool, isKnown]),
  ])
}

/** The renewals of this process's own lease, as it sees them itself. */
function createLease(leaseMs: number, beatMs: number) {
  let renewedAt = performance.now()
  /** The start of the renewals without a gap. A process that was cut off gives the others time to return. */
  let steadySince = renewedAt
  const holds = (at: number): boolean => at - renewedAt <= leaseMs
  return {
    holds,
    steadyForMs: (at: number): number => (holds(at) ? at - steadySince : 0),
    renewed: (askedAt: number): void => {
      const gapMs = askedAt - renewedAt
      if (gapMs > Math.min(leaseMs, MISSED_BEATS * beatMs)) steadySince = performance.now()
      renewedAt = Math.max(renewedAt, askedAt)
    },
  }
}
