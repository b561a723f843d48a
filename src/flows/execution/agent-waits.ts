import type { Db } from '../../db/pool.ts'
import { newestOfChain } from '../../runs/continue-run.ts'
import { type ChildOutcome, readEnded } from '../../runs/run-outcomes.ts'

/** The runs that pipelines of this process wait for. */
export interface AgentWaits {
  /** Queues a run. */
  queue<Result>(insert: () => Promise<Result>): Promise<Result>
  /** Resolves when each run is stored that is being queued now. Never rejects. */
  allQueued(): Promise<void>
  wait(runId: string): Promise<ChildOutcome>
  check(): Promise<void>
}

export function createAgentWaits(db: Db): AgentWaits {
  const waits = new Map<string, PromiseWithResolvers<ChildOutcome>>()
  const queueing = new Set<Promise<unknown>>()
  const settle = (id: string, outcome: ChildOutcome): void => {
    waits.get(id)?.resolve(outcome)
    waits.delete(id)
  }
  // Another stage may wait for the later run already.
  const move = (id: string, laterId: string): void => {
    const wait = waits.get(id)
    if (!wait) return
    waits.delete(id)
    const later = waits.get(laterId)
    if (later) wait.resolve(later.promise)
    else waits.set(laterId, wait)
  }
  const check = async (): Promise<void> => {
    if (waits.size === 0) return
    let hasMoved = false
    for (const [id, outcome] of await readEnded(db, [...waits.keys()])) {
      if (outcome.pauseReason !== 'outcome_unknown') {
        settle(id, outcome)
        continue
      }
      // A person decides about a call; another run continues with the decision. The wait stays until that run is known,
      // because this query may fail.
      const newest = await newestOfChain(db, id)
      if (newest !== id) {
        move(id, newest)
        hasMoved = true
      } else if (outcome.isCancelled) settle(id, outcome)
    }
    // The later run may have ended, too.
    if (hasMoved) await check()
  }
  return {
    check,
    queue: async (insert) => {
      const stored = insert()
      queueing.add(stored)
      try {
        return await stored
      } finally {
        queueing.delete(stored)
      }
    },
    allQueued: async () => {
      if (queueing.size > 0) await Promise.allSettled(queueing)
    },
    wait: async (runId) => {
      const known = waits.get(runId) ?? Promise.withResolvers<ChildOutcome>()
      waits.set(runId, known)
      // The run may have ended before this call.
      await check()
      return known.promise
    },
  }
}
