// One process's part in the leaves that others have handed out: it claims those whose functions it knows while it has
// room, calls them, and writes what became of each.
import type { Pool } from '../db/pool.ts'
import type { AppFunction } from '../kernel/app.ts'
import type { Log } from '../kernel/log.ts'
import { callFunction } from './call-function.ts'
import { claimHandouts, freeStrayHandouts, type Handout, settleHandout, stillWanted } from './handouts.ts'
import type { LeafSlots } from './leaf-slots.ts'

export interface HandoutWorker {
  /** Leaves may wait for a worker, or there is room again. */
  poke(): void
  /** There is room: whoever left something behind for want of it comes back. */
  onRoom(): void
  /** Some are wanted no longer. */
  withdraw(): Promise<void>
  /** What this process works on may be another's. */
  lapse(): void
  sweep(): Promise<void>
  /** Functions under way may take so long to end. */
  stop(patienceMs: number): Promise<void>
}

export interface HandoutWorkerOptions {
  pool: Pool
  ownerId: () => string
  functions: ReadonlyMap<string, AppFunction>
  slots: LeafSlots
  log: Log
}

export function createHandoutWorker({ pool, ownerId, functions, slots, log }: HandoutWorkerOptions): HandoutWorker {
  const inHand = new Map<Handout, { stop: AbortController; done: Promise<void> }>()
  let isStopped = false
  let mayHaveMore = true
  let mayHaveStrays = true
  let claiming: Promise<void> | null = null
  /** What is claimed meanwhile would be taken for a stray. */
  let isFreeing = false

  const poke = (): void => {
    mayHaveMore = true
    if (isStopped || claiming || isFreeing || slots.free() === 0) return
    claiming = claimAll()
      .catch((error: unknown) => {
        mayHaveStrays = true
        log.debug({ err: error }, 'handed out leaves will be looked for later')
      })
      .finally(() => {
        claiming = null
      })
  }

  async function claimAll(): Promise<void> {
    while (mayHaveMore && !isStopped && slots.free() > 0) {
      mayHaveMore = false
      const limit = slots.free()
      const claimed = await claimHandouts(pool, { owner: ownerId(), functions: [...functions.keys()], limit })
      if (claimed.length === limit) mayHaveMore = true
      for (const handout of claimed) work(handout)
    }
  }

  function work(handout: Handout): void {
    const { run_id: flowRunId, project_id: projectId, task_id: id, attempt, call } = handout
    const run = functions.get(handout.function)
    if (!run) return
    slots.take()
    const stop = new AbortController()
    const worker = ownerId()
    const done = callFunction({
      task: { id, attempt, ...call },
      run,
      signal: stop.signal,
      flowRunId,
      projectId,
      log,
    })
      .then(async (outcome) => {
        if (!stop.signal.aborted) await settleHandout(pool, handout, outcome, worker)
      })
      .catch((error: unknown) => {
        mayHaveStrays = true
        log.warn(
          { flow_run_id: flowRunId, task_id: id, err: error },
          'what a leaf gave could not be written; it is done again',
        )
      })
      .finally(() => {
        inHand.delete(handout)
        slots.release()
      })
    inHand.set(handout, { stop, done })
  }

  return {
    poke,
    onRoom: () => {
      if (mayHaveMore) poke()
    },
    withdraw: async () => {
      if (inHand.size === 0) return
      const wanted = await stillWanted(pool, [...inHand.keys()])
      for (const [handout, { stop }] of inHand) if (!wanted.has(handout)) stop.abort()
    },
    lapse: () => {
      for (const { stop } of inHand.values()) stop.abort()
    },
    sweep: async () => {
      if (mayHaveStrays && !claiming) {
        mayHaveStrays = false
        isFreeing = true
        await freeStrayHandouts(pool, ownerId(), [...inHand.keys()]).finally(() => {
          isFreeing = false
        })
      }
      poke()
    },
    stop: async (patienceMs) => {
      isStopped = true
      await claiming
      const hurry = setTimeout(() => {
        for (const { stop } of inHand.values()) stop.abort()
      }, patienceMs)
      await Promise.all([...inHand.values()].map(({ done }) => done))
      clearTimeout(hurry)
      // Others need not wait for the lease.
      await freeStrayHandouts(pool, ownerId(), []).catch(() => undefined)
    },
  }
}
