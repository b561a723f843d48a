import type { Db } from '../db/pool.ts'
import { type ChildOutcome, readOutcomes } from '../runs/run-outcomes.ts'

/** Runs that somebody in this process waits for; they are looked at when there is news. */
export interface AgentWaits {
  /** Resolves when the run has ended. */
  wait(runId: string): Promise<ChildOutcome>
  check(): Promise<void>
}

export function createAgentWaits(db: Db): AgentWaits {
  const waits = new Map<string, PromiseWithResolvers<ChildOutcome>>()
  const check = async (): Promise<void> => {
    if (waits.size === 0) return
    for (const [id, outcome] of await readOutcomes(db, [...waits.keys()])) {
      if (!outcome.hasEnded) continue
      waits.get(id)?.resolve(outcome)
      waits.delete(id)
    }
  }
  return {
    check,
    wait: async (runId) => {
      const known = waits.get(runId) ?? Promise.withResolvers<ChildOutcome>()
      waits.set(runId, known)
      // It may have ended before anybody waited.
      await check()
      return known.promise
    },
  }
}
