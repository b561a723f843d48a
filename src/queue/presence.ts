import { randomInt } from 'node:crypto'
import { type Listener, startListener } from '../db/listener.ts'
import type { Db, Pool } from '../db/pool.ts'
import { newId } from '../kernel/id.ts'
import type { Log } from '../kernel/log.ts'
import { forgetWorker, registerWorker, renewLease, sightOthers, type Worker, writeWorker } from './workers.ts'

export interface PresenceOptions {
  url: string
  pool: Pool
  slots: number
  leaseMs: number
  /** No other process can be alive over this database (it is embedded and the data folder is ours). */
  isAlone: boolean
  channels: readonly string[]
  log: Log
  onNotification: (channel: string, payload: string) => void
  /** What was said while the connection was gone is lost: look for yourself. */
  onListening: () => void
  /** Another worker is dead. `forget` removes it within a transaction and answers whether it was still there. */
  onDeath: (workerId: string, forget: (tx: Db) => Promise<boolean>) => Promise<void>
  /** This process could not renew in time: what it owns may be another's, so it must stop acting. */
  onLapse: () => void
  /** The lease holds again. `ownerId` is new where others had declared this process dead. */
  onReturn: (ownerId: string) => Promise<void>
}

export interface Presence {
  ownerId(): string
  /** Other processes over the same database were seen at the last look. */
  hasOthers(): boolean
  stop(): Promise<void>
}

const LOOK_EVERY_MS = 1_000
/** A lock may be gone for a moment while its holder reconnects; this long it is not. */
const UNLOCKED_FOR_MS = 900

export async function startPresence(options: PresenceOptions): Promise<Presence> {
  const { pool, log, leaseMs } = options
  let worker: Worker = { id: newId(), slots: options.slots, lockKey: randomInt(2 ** 47), leaseMs }
  let renewedAt = performance.now()
  /** Since when renewals have succeeded without a gap. Who was cut off itself gives the others time to return. */
  let steadySince = performance.now()
  let hasLapsed = false
  let others = 0
  let isStopped = false
  const unlockedSince = new Map<string, number>()

  const listener: Listener = await startListener({
    url: options.url,
    channels: options.channels,
    log,
    onNotification: options.onNotification,
    onConnect: async (client) => {
      await registerWorker(client, worker)
      options.onListening()
    },
  })
  await lookAround(options.isAlone)
  const renewing = every(Math.max(50, leaseMs / 3), renew)
  const looking = every(Math.min(LOOK_EVERY_MS, leaseMs), () => lookAround(false))
  const watching = every(Math.max(20, leaseMs / 10), async () => checkLapse())

  return {
    ownerId: () => worker.id,
    hasOthers: () => others > 0,
    stop: async () => {
      isStopped = true
      await Promise.all([renewing(), looking(), watching()])
      await forgetWorker(pool, worker.id).catch(() => {})
      await listener.stop()
    },
  }

  async function renew(): Promise<void> {
    const askedAt = performance.now()
    if (!(await renewLease(pool, worker))) {
      log.warn({ worker: worker.id }, 'this process was declared dead; it goes on under a new name')
      options.onLapse()
      hasLapsed = true
      worker = { ...worker, id: newId() }
      await writeWorker(pool, worker)
    }
    if (askedAt - renewedAt > leaseMs) steadySince = performance.now()
    renewedAt = askedAt
    if (!hasLapsed) return
    hasLapsed = false
    await options.onReturn(worker.id)
  }

  function checkLapse(): void {
    if (hasLapsed || performance.now() - renewedAt <= leaseMs) return
    hasLapsed = true
    log.warn({ worker: worker.id }, 'the lease could not be renewed in time; runs are given up')
    options.onLapse()
  }

  async function lookAround(isAlone: boolean): Promise<void> {
    const sightings = await sightOthers(pool, worker.id)
    others = sightings.length
    const at = performance.now()
    const isSteady = at - steadySince > leaseMs && at - renewedAt <= leaseMs
    for (const { id, hasLapsed: lapsed, isUnlocked } of sightings) {
      if (isUnlocked) unlockedSince.set(id, unlockedSince.get(id) ?? at)
      else unlockedSince.delete(id)
      const goneFor = at - (unlockedSince.get(id) ?? at)
      if (!isAlone && !(lapsed && isSteady) && goneFor < UNLOCKED_FOR_MS) continue
      unlockedSince.delete(id)
      log.warn({ worker: id }, 'a worker is dead; its runs are taken over')
      await options.onDeath(id, (tx) => forgetWorker(tx, id))
    }
  }

  /** Rounds never overlap; a failing one is tried again at the next. */
  function every(ms: number, work: () => Promise<void>): () => Promise<void> {
    let timer: NodeJS.Timeout
    let running = Promise.resolve()
    const round = (): void => {
      running = work()
        .catch((error: unknown) => log.debug({ err: error }, 'a round of the worker will be tried again'))
        .then(() => {
          if (!isStopped) timer = setTimeout(round, ms)
        })
    }
    timer = setTimeout(round, ms)
    return async () => {
      clearTimeout(timer)
      await running
    }
  }
}
