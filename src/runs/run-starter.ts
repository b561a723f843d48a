import { createBatches } from '../db/batches.ts'
import type { Db } from '../db/pool.ts'
import { newId } from '../kernel/id.ts'
import type { Run } from '../kernel/run.ts'
import { explain, insertStarts, type Start, type StartOptions } from './start.ts'

const MOST_AT_ONCE = 200

export interface RunStarter {
  /** Resolves when the run is accepted: committed, and never lost from then on. */
  start(projectId: string, agentId: string, options: StartOptions): Promise<Run>
}

/** Starts that come together are one statement. `isAnnounced` is set in a process that works on no runs itself. */
export function createRunStarter(db: Db, { isAnnounced = false }: { isAnnounced?: boolean } = {}): RunStarter {
  const insert = createBatches<Start, Run | null>(
    async (starts) => {
      const made = await insertStarts(db, starts, isAnnounced)
      return starts.map(({ id }) => made.get(id) ?? null)
    },
    { atOnce: MOST_AT_ONCE },
  )
  return {
    start: async (projectId, agentId, options) => {
      const start = { ...options, id: newId(), projectId, agentId }
      return (await insert(start)) ?? explain(db, start)
    },
  }
}
