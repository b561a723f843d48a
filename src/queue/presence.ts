// This process among the others over its database: it renews its lease on the listening connection, so that requests do
// not compete with the renewal; it judges which others are dead; and it notices when others have declared it dead.
import { randomInt } from 'node:crypto'
import { type Listener, startListener } from '../db/listener.ts'
import type { Db, Pool } from '../db/pool.ts'
import { newId } from '../kernel/id.ts'
import type { Log } from '../kernel/log.ts'
import { createHealth } from './health.ts'
import {
  forgetDead,
  forgetWorker,
  insertWorker,
  renewLease,
  renewWithLock,
  type Sighting,
  sightOthers,
  takeLock,
  type Worker,
} from './workers.ts'

export interface PresenceOptions {
  url: string
  pool: Pool
  slots: number
  leaseMs: number
  /** True if no other process can be alive over this database: it is embedded, and the data folder was claimed. */
  isAlone: boolean
  /** Looking for dead processes is unwell after this time without success, but never before a lease has passed. */
  unwellAfterMs: number
  channels: readonly string[]
  log: Log
  onNotification: (channel: string, payload: string) => void
  /** Called on a new connection: notifications were lost while it was gone, so the listener must look by itself. */
  onListening: () => void
  /** Called when another worker is dead. `forget` removes it within a transaction and returns whether it was there. */
  onDeath: (workerId: string, forget: (tx: Db) => Promise<boolean>) => Promise<void>
  /**
   * Called when this process could not renew in time: its runs may be another's, so it must stop acting. Called again
   * if it then learns that it was declared dead.
   */
  onLapse: () => void
  /** Called when the lease holds again. `ownerId` is new if others had declared this process dead. */
  onReturn: (ownerId: string) => Promise<void>
}

export interface Presence {
  ownerId(): string
  /** True if other processes over the same database were seen at the last look. */
  hasOthers(): boolean
  /** False when looking at the other processes has failed for long. */
  isWatching(): boolean
  stop(): Promise<void>
}

const LOOK_EVERY_MS = 1_000
const LONGEST_BEAT_MS = 1_000
const SHORTEST_BEAT_MS = 50
/** A worker without a lock is dead after this many missed renewals; fewer may be a hiccup of its network. */
const MISSED_BEATS = 2.5
/** The others are looked at this often while one of them holds no lock. */
const LOOK_CLOSELY_EVERY_MS = 250
/** A renewal that takes longer than this on the listening connection is made on another one, too. */
const HEDGE_AFTER_MS = 300

export async function startPresence(options: PresenceOptions): Promise<Presence> {
  const { pool, log, leaseMs } = options
  const beatMs = Math.max(SHORTEST_BEAT_MS, Math.min(LONGEST_BEAT_MS, Math.floor(leaseMs / 3)))
  let worker: Worker = { id: newId(), slots: options.slots, lockKey: 0, leaseMs, beatMs }
  let isRegistered = false
  let renewedAt = performance.now()
  const looks = createHealth({
    log,
    ifItFails: 'dead processes cannot be found',
    unwellAfterMs: Math.max(leaseMs, options.unwellAfterMs),
  })
  /** The start of the renewals without a gap. A process that was cut off gives the others time to return. */
  let steadySince = performance.now()
  let hasLapsed = false
  let others = 0
  let isStopped = false
  /** True if some other worker holds no lock. */
  let someHoldNoLock = false

  const listener: Listener = await startListener({
    url: options.url,
    channels: options.channels,
    answersWithinMs: Math.max(LONGEST_BEAT_MS, beatMs),
    log,
    onNotification: options.onNotification,
    onConnect: async (db) => {
      await register(db)
      options.onListening()
    },
  })
  try {
    await lookAround(options.isAlone)
  } catch (error) {
    await leave()
    throw error
  }
  const renewing = every(() => beatMs, renew)
  const lookEveryMs = (): number => Math.min(someHoldNoLock ? LOOK_CLOSELY_EVERY_MS : LOOK_EVERY_MS, leaseMs)
  const looking = every(lookEveryMs, lookForDead)
  const watching = every(
    () => Math.max(20, leaseMs / 10),
    async () => checkLapse(),
  )

  return {
    ownerId: () => worker.id,
    hasOthers: () => others > 0,
    isWatching: looks.isWell,
    stop: async () => {
      isStopped = true
      await Promise.all([renewing(), looking(), watching()])
      await leave()
    },
  }

  async function leave(): Promise<void> {
    isStopped = true
    await forgetWorker(pool, worker.id).catch(() => {})
    await listener.stop()
  }

  /** Called with every new connection. */
  async function register(db: Db): Promise<void> {
    if (isStopped) return
    const askedAt = performance.now()
    worker = { ...worker, lockKey: randomInt(2 ** 47) }
    await takeLock(db, worker.lockKey)
    if (isRegistered) {
      const { id } = worker
      if (!(await renewWithLock(db, worker))) await comeBackAsAnother(db, id)
    } else {
      await insertWorker(db, worker)
      isRegistered = true
    }
    noteRenewal(askedAt)
  }

  async function renew(): Promise<void> {
    const askedAt = performance.now()
    const { id } = worker
    const [db, isKnown] = await renewSoon()
    if (!isKnown) await comeBackAsAnother(db, id)
    noteRenewal(askedAt)
    if (!hasLapsed) return
    await options.onReturn(worker.id)
    hasLapsed = false
  }

  /** Renews on the listening connection; if that does not answer soon, on one of the pool. */
  async function renewSoon(): Promise<[Db, boolean]> {
    const onOwn = renewOn(listener)
    const late = Promise.withResolvers<void>()
    const timer = setTimeout(late.resolve, HEDGE_AFTER_MS)
    const ownSettled = onOwn.then(
      () => {},
      () => late.resolve(),
    )
    await Promise.race([ownSettled, late.promise])
    clearTimeout(timer)
    return Promise.any([onOwn, late.promise.then(() => renewOn(pool))])
  }

  async function renewOn(db: Db): Promise<[Db, boolean]> {
    return [db, await renewLease(db, worker)]
  }

  /** Two connections may learn at once that the worker of this id was declared dead: one new name is enough. */
  async function comeBackAsAnother(db: Db, deadId: string): Promise<void> {
    if (worker.id !== deadId) return
    log.warn({ worker: worker.id }, 'this process was declared dead; it goes on under a new name')
    hasLapsed = true
    options.onLapse()
    worker = { ...worker, id: newId() }
    await insertWorker(db, worker)
  }

  function noteRenewal(askedAt: number): void {
    const gapMs = askedAt - renewedAt
    if (gapMs > Math.min(leaseMs, MISSED_BEATS * beatMs)) steadySince = performance.now()
    renewedAt = Math.max(renewedAt, askedAt)
  }

  function checkLapse(): void {
    if (hasLapsed || performance.now() - renewedAt <= leaseMs) return
    hasLapsed = true
    log.warn({ worker: worker.id }, 'the lease could not be renewed in time; runs are given up')
    options.onLapse()
  }

  async function lookForDead(): Promise<void> {
    try {
      await lookAround(false)
      looks.succeeded()
    } catch (error) {
      looks.failed(error)
    }
  }

  async function lookAround(isAlone: boolean): Promise<void> {
    const sightings = await sightOthers(pool, worker.id)
    others = sightings.length
    someHoldNoLock = sightings.some((sighting) => sighting.isUnlocked)
    const at = performance.now()
    const failures: unknown[] = []
    for (const sighting of sightings) {
      if (!isAlone && !isDead(sighting, at)) continue
      log.warn({ worker: sighting.id }, 'a worker is dead; its runs are taken over')
      // A takeover that fails does not keep the runs of the next dead worker waiting.
      await options.onDeath(sighting.id, (tx) => forgetDead(tx, sighting)).catch((error) => failures.push(error))
    }
    if (failures.length > 0) throw failures[0]
  }

  /** A process judges another only after it has itself been steady for as long: a lease, or the missed renewals. */
  function isDead({ hasLapsed: lapsed, isUnlocked, silentForMs, beatMs: otherBeatMs }: Sighting, at: number): boolean {
    const steadyForMs = at - renewedAt <= leaseMs ? at - steadySince : 0
    if (lapsed && steadyForMs > leaseMs) return true
    const graceMs = MISSED_BEATS * otherBeatMs
    return isUnlocked && silentForMs >= graceMs && steadyForMs >= graceMs
  }

  /** Rounds never overlap; a failing one is tried again at the next. */
  function every(ms: () => number, work: () => Promise<void>): () => Promise<void> {
    let timer: NodeJS.Timeout
    let running = Promise.resolve()
    const round = (): void => {
      running = work()
        .catch((error: unknown) => log.debug({ err: error }, 'a round of the worker will be tried again'))
        .then(() => {
          if (!isStopped) timer = setTimeout(round, ms())
        })
    }
    timer = setTimeout(round, ms())
    return async () => {
      clearTimeout(timer)
      await running
    }
  }
}
