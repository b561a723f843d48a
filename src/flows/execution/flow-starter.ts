import { createBatches } from '../../db/batches.ts'
import type { Pool } from '../../db/pool.ts'
import { newId } from '../../kernel/id.ts'
import type { Actor } from '../../kernel/principal.ts'
import type { Patterns } from '../machine/pattern.ts'
import type { ClaimedFlow } from './claim.ts'
import { type FlowStart, insertFlowRuns, type NewFlowRun } from './start.ts'

const MOST_AT_ONCE = 200

export interface FlowStarter {
  /**
   * Starts a flow run that `prepareFlow` has prepared. Resolves when the flow run is accepted: it is committed, and is
   * never lost from then on. Answers its id.
   */
  start(run: NewFlowRun, actor: Actor): Promise<string>
  isInserting(): boolean
}

export interface FlowStarterOptions {
  pool: Pool
  patterns: Patterns
  /** Present if this process works on flow runs. Without it, other processes claim them. */
  own?: OwnFlows
  /** Called with flow runs that any process may claim. */
  onReady: (flowRunIds: readonly string[]) => void
}

interface OwnFlows {
  ownerId: () => string
  /** Keeps room for the flow run, so that this process works on it at once, without a claim. False if it has none. */
  reserve: (run: NewFlowRun) => boolean
  /** Called with a flow run that this process owns from the start. */
  adopt: (flow: ClaimedFlow) => void
  /** Called if the flow run for which room was kept was not stored, or was stored without an owner. */
  unreserve: (run: NewFlowRun) => void
}

/** Starts that come together are one statement for those that this process works on, and one for the others. */
export function createFlowStarter({ pool, patterns, own, onReady }: FlowStarterOptions): FlowStarter {
  const options = { atOnce: MOST_AT_ONCE }
  const insertOwn = createBatches((starts: readonly FlowStart[]) => insert(starts, own), options)
  const insertOthers = createBatches((starts: readonly FlowStart[]) => insert(starts), options)
  let underWay = 0
  return {
    isInserting: () => underWay > 0,
    start: async (run, actor) => {
      const isOwn = own?.reserve(run) ?? false
      underWay++
      try {
        return await (isOwn ? insertOwn : insertOthers)({ id: newId(), run, actor })
      } catch (error) {
        if (isOwn) own?.unreserve(run)
        throw error
      } finally {
        underWay--
      }
    },
  }

  async function insert(starts: readonly FlowStart[], owner?: OwnFlows): Promise<string[]> {
    const owned = await insertFlowRuns(pool, starts, owner?.ownerId() ?? null, patterns)
    const ids = starts.map(({ id }) => id)
    for (const flow of owned) owner?.adopt(flow)
    if (owned.length > 0) return ids
    onReady(ids)
    for (const { run } of starts) owner?.unreserve(run)
    return ids
  }
}
