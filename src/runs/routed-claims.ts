// Claims of runs by a process that may lack the tools of some agents. Usually all processes have the same tools: then a
// claim costs one lookup of the agent for each run that it takes. A claim that meets a run whose tools are not here leaves
// the run to others; if no live process has them, the run waits for its tool (journal/tool-waits.ts). For a while
// afterwards the claims pass over such runs, which costs more: they ask more projects and look at more rows.
import type { Pool } from '../db/pool.ts'
import { type ClaimedRun, claimRuns, claimRunsWithTools, claimSuspectRun } from '../journal/claim.ts'
import { type Candidates, waitForTools } from '../journal/tool-waits.ts'
import type { Dealt, FairAsk } from '../queue/queue-table.ts'

export interface RoutedClaims {
  tools: readonly string[] | null
  claim(ask: FairAsk): Promise<Dealt<ClaimedRun>>
  claimSuspect(owner: string, lastProjectId: string): Promise<ClaimedRun | null>
  /** Called when runs are ready and none could be taken: no process may have their tools. */
  onNothingTaken(candidates: Candidates): Promise<void>
}

const PICKY_FOR_MS = 5_000

export function createRoutedClaims({ pool, tools }: { pool: Pool; tools: readonly string[] | null }): RoutedClaims {
  let pickyUntil = Number.NEGATIVE_INFINITY
  const onNothingTaken = async (candidates: Candidates): Promise<void> => {
    if (tools) await waitForTools(pool, candidates)
  }
  return {
    tools,
    onNothingTaken,
    claim: async (ask) => {
      if (performance.now() < pickyUntil) return claimRunsWithTools(pool, ask, tools)
      const { refused = [], ...dealt } = await claimRuns(pool, ask, tools)
      if (refused.length === 0) return dealt
      const count = await waitForTools(pool, { ids: refused })
      // Runs that wait are out of the way of the next claim; runs of other processes are not.
      if (count < refused.length) pickyUntil = performance.now() + PICKY_FOR_MS
      return { ...dealt, mayHaveMore: true }
    },
    claimSuspect: async (owner, lastProjectId) => {
      const run = await claimSuspectRun(pool, owner, lastProjectId, tools)
      if (!run) await onNothingTaken('suspects')
      return run
    },
  }
}
