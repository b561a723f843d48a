import { explainFailure } from '../db/failures.ts'
import type { Pool } from '../db/pool.ts'
import { newId } from '../kernel/id.ts'
import type { Actor } from '../kernel/principal.ts'
import type { ClaimedFlow } from './claim-flows.ts'
import { type FlowStart, insertFlowRuns, type NewFlowRun, prepareFlow } from './start-flow.ts'

const MOST_AT_ONCE = 200

export interface FlowStarter {
  /** Resolves when the flow run is accepted: committed, and never lost from then on. Answers its id. */
  start(run: NewFlowRun, actor: Actor): Promise<string>
  /** Some starts are being committed. */
  isInserting(): boolean
}

export interface FlowStarterOptions {
  pool: Pool
  /** The owner that works on the run at once, without a claim; null where this process has no room. */
  ownerFor: (run: NewFlowRun) => string | null
  /** The flow run is this process's from the start. */
  onOwned: (flow: ClaimedFlow) => void
  /** The flow run for which `ownerFor` named an owner was not stored, or is nobody's. */
  onNotOwned: (run: NewFlowRun) => void
  /** Any process may claim these flow runs. */
  onReady: (flowRunIds: readonly string[]) => void
}

interface Waiting extends FlowStart {
  accept: (id: string) => void
  refuse: (error: unknown) => void
}

/** Starts that come while others are being committed go out together, as one statement and one commit. */
export function createFlowStarter({ pool, ownerFor, onOwned, onNotOwned, onReady }: FlowStarterOptions): FlowStarter {
  const waiting: Waiting[] = []
  let isInserting = false
  return {
    isInserting: () => isInserting,
    start: async (given, actor) => {
      const run = await prepareFlow(pool, given)
      return new Promise((accept, refuse) => {
        waiting.push({ id: newId(), run, actor, accept, refuse })
        if (!isInserting) void insertAll()
      })
    },
  }

  async function insertAll(): Promise<void> {
    isInserting = true
    while (waiting.length > 0) {
      await new Promise(setImmediate)
      const batch = waiting.splice(0, MOST_AT_ONCE)
      for (const [owner, starts] of Map.groupBy(batch, ({ run }) => ownerFor(run))) await insert(starts, owner)
    }
    isInserting = false
  }

  async function insert(batch: readonly Waiting[], owner: string | null): Promise<void> {
    try {
      const owned = await insertFlowRuns(pool, batch, owner)
      for (const { id, accept } of batch) accept(id)
      for (const flow of owned) onOwned(flow)
      if (owned.length > 0) return
      onReady(batch.map(({ id }) => id))
      if (owner !== null) for (const { run } of batch) onNotOwned(run)
    } catch (error) {
      const isAlone = batch.length === 1
      if (isAlone || explainFailure(error)?.code === 'UNAVAILABLE') {
        for (const { refuse } of batch) refuse(error)
        if (owner !== null) for (const { run } of batch) onNotOwned(run)
      }
      // A start that cannot be stored must not take its neighbours with it.
      else for (const one of batch) await insert([one], owner)
    }
  }
}
