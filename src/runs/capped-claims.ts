// Claims of runs if some projects cap the number under way. A cap holds over all processes, so runs of such a project
// are claimed behind a lock of its row, one project at a time. The deal over the other projects says which capped
// projects it passed over; these come first at the next claim. Capped projects without ready runs cost nothing.
import type { Pool } from '../db/pool.ts'
import { type ClaimedRun, claimCappedRuns } from '../journal/claim.ts'
import type { Dealt, FairAsk } from '../queue/queue-table.ts'
import type { Slots } from '../queue/slots.ts'
import type { ProjectSwitches } from './project-switches.ts'
import type { RoutedClaims } from './routed-claims.ts'

export interface CappedClaims {
  claim(ask: Omit<FairAsk, 'leftOut'>, switches: ProjectSwitches): Promise<Dealt<ClaimedRun>>
  /** A run of this project has left its slot: a project that was at its cap may have room. */
  onEnd(projectId: string): void
}

/** At most this many capped projects have their turn in one claim before the others. */
const MOST_TURNS = 2
/** A project that was found at its cap is asked again after this time, or when one of its runs here has ended. */
const AT_CAP_MS = 1_000

export function createCappedClaims({
  pool,
  slots,
  routed,
}: {
  pool: Pool
  slots: Slots
  routed: RoutedClaims
}): CappedClaims {
  /** Projects that were passed over, in the order of their turns. */
  const owed = new Set<string>()
  const fullSince = new Map<string, number>()

  return {
    onEnd: (projectId) => void fullSince.delete(projectId),
    claim: async (ask, { caps, deleted }) => {
      const first = await takeTurns(ask, caps, { turns: MOST_TURNS, isAll: false })
      const left = { ...ask, ...underWayWith(first), free: ask.free - first.length }
      if (left.free <= 0) return { claimed: first, cursor: ask.cursor, mayHaveMore: true, passedOver: [] }
      const dealt = await routed.claim({ ...left, leftOut: [...caps.keys(), ...deleted] })
      for (const projectId of dealt.passedOver) if (caps.has(projectId) && !isFull(projectId)) owed.add(projectId)
      const taken = [...first, ...dealt.claimed]
      // Slots that no other project wants go to capped projects.
      const last = await takeTurns({ ...left, free: ask.free - taken.length }, caps, { turns: owed.size, isAll: true })
      return { ...dealt, claimed: [...taken, ...last], mayHaveMore: dealt.mayHaveMore || owed.size > 0 }
    },
  }

  async function takeTurns(
    ask: Pick<FairAsk, 'owner' | 'free'>,
    caps: ReadonlyMap<string, number>,
    { turns, isAll }: { turns: number; isAll: boolean },
  ): Promise<ClaimedRun[]> {
    const claimed: ClaimedRun[] = []
    for (const projectId of [...owed].slice(0, turns)) {
      if (claimed.length >= ask.free) break
      owed.delete(projectId)
      const cap = caps.get(projectId)
      if (cap === undefined || isFull(projectId)) continue
      const room = Math.min(ask.free - claimed.length, slots.roomFor(projectId))
      const limit = isAll ? room : Math.min(1, room)
      if (limit <= 0) continue
      const runs = await claimCappedRuns(pool, { owner: ask.owner, projectId, limit, cap, tools: routed.tools })
      if (runs.length === 0) await routed.onNothingTaken({ projectId })
      if (runs.length < limit) fullSince.set(projectId, performance.now())
      claimed.push(...runs)
    }
    return claimed
  }

  function isFull(projectId: string): boolean {
    const since = fullSince.get(projectId)
    if (since === undefined) return false
    if (performance.now() - since < AT_CAP_MS) return true
    fullSince.delete(projectId)
    return false
  }

  /** Rows that were claimed a moment ago are not in a slot yet, but count for their projects. */
  function underWayWith(claimed: readonly ClaimedRun[]): Pick<FairAsk, 'projectIds' | 'counts'> {
    const counts = new Map<string, number>()
    const { projectIds, counts: known } = slots.underWay()
    projectIds.forEach((id, place) => void counts.set(id, known[place] ?? 0))
    for (const { project_id: id } of claimed) counts.set(id, (counts.get(id) ?? 0) + 1)
    return { projectIds: [...counts.keys()], counts: [...counts.values()] }
  }
}
