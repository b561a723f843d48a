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
  const check = async (): Promise<void> => {
    if (waits.size === 0) return
    for (const [id, outcome] of await readEnded(db, [...waits.keys()])) {
      const wait = waits.get(id)
      waits.delete(id)
      if (outcome.pauseReason !== 'outcome_unknown') wait?.resolve(outcome)
      // A person decides about a call; another run continues with the decision.
      else if (wait) waits.set(await newestOfChain(db, id), wait)
    }
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
