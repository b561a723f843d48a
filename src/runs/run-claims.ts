import type { Pool } from '../db/pool.ts'
import { type ClaimedRun, releaseSuspectRun } from '../journal/claim.ts'
import type { Journal } from '../journal/journal.ts'
import { releaseOwn } from '../journal/take-over.ts'
import { fault } from '../kernel/fault.ts'
import type { Log } from '../kernel/log.ts'
import type { ClaimLoopOptions } from '../queue/claim-loop.ts'
import type { Dealt, FairAsk } from '../queue/queue-table.ts'
import type { Slots } from '../queue/slots.ts'
import { closeCalls } from '../tasks/close-questions.ts'
import { createCappedClaims } from './capped-claims.ts'
import { createDefinitions } from './definitions.ts'
import type { Definition } from './owned-run.ts'
import type { ProjectSwitches } from './project-switches.ts'
import { createRoutedClaims } from './routed-claims.ts'

export interface DefinedRun extends ClaimedRun {
  definition: Definition | null
}

export interface RunClaims
  extends Pick<ClaimLoopOptions<DefinedRun>, 'claim' | 'claimSuspect' | 'releaseSuspect' | 'freeStrays'> {
  onEnd(projectId: string): void
}

export function createRunClaims({
  pool,
  journal,
  slots,
  switches,
  tools,
  log,
}: {
  pool: Pool
  journal: Journal
  slots: Slots
  switches: () => ProjectSwitches
  /** The tools that this process has, by name; null if it may take any run. */
  tools: readonly string[] | null
  log: Log
}): RunClaims {
  const define = createDefinitions(pool)
  const routed = createRoutedClaims({ pool, tools })
  const capped = createCappedClaims({ pool, slots, routed })
  return {
    onEnd: capped.onEnd,
    claim: async (ask: Omit<FairAsk, 'leftOut'>): Promise<Dealt<DefinedRun>> => {
      await fault('claim.before')
      const dealt = await capped.claim(ask, switches())
      return { ...dealt, claimed: await withDefinitions(dealt.claimed) }
    },
    claimSuspect: async (owner, lastProjectId) => {
      const run = await routed.claimSuspect(owner, lastProjectId)
      return run && ((await withDefinitions([run]))[0] ?? null)
    },
    releaseSuspect: (owner) => releaseSuspectRun(pool, owner),
    freeStrays: async (owner, inHand) => {
      const ids = inHand.map((run) => run.id)
      const count = await releaseOwn({ pool, journal, onEnded: closeCalls }, owner, ids)
      if (count > 0) log.info({ runs: count }, 'runs without an owner are ready again')
    },
  }

  async function withDefinitions(runs: readonly ClaimedRun[]): Promise<DefinedRun[]> {
    if (runs.length === 0) return []
    const definitionOf = await define(runs)
    return runs.map((run) => ({ ...run, definition: definitionOf(run) }))
  }
}
