import { explainFailure } from '../db/failures.ts'
import type { Db } from '../db/pool.ts'
import { newId } from '../kernel/id.ts'
import type { Run } from '../kernel/run.ts'
import { explain, insertStarts, type Start, type StartOptions } from './start.ts'

const MOST_AT_ONCE = 200

export interface RunStarter {
  /** Resolves when the run is accepted: committed, and never lost from then on. */
  start(projectId: string, agentId: string, options: StartOptions): Promise<Run>
}

interface Waiting {
  start: Start
  accept: (run: Run) => void
  refuse: (error: unknown) => void
}

/**
 * Starts that come while others are being committed go out together, as one statement and one commit. `isAnnounced`: in a
 * process that works on no runs itself.
 */
export function createRunStarter(db: Db, { isAnnounced = false }: { isAnnounced?: boolean } = {}): RunStarter {
  const waiting: Waiting[] = []
  let isInserting = false
  return {
    start: (projectId, agentId, options) =>
      new Promise((accept, refuse) => {
        waiting.push({ start: { ...options, id: newId(), projectId, agentId }, accept, refuse })
        if (!isInserting) void insertAll()
      }),
  }

  async function insertAll(): Promise<void> {
    isInserting = true
    while (waiting.length > 0) {
      await new Promise(setImmediate)
      await insert(waiting.splice(0, MOST_AT_ONCE))
    }
    isInserting = false
  }

  async function insert(batch: readonly Waiting[]): Promise<void> {
    try {
      const made = await insertStarts(
        db,
        batch.map(({ start }) => start),
        isAnnounced,
      )
      for (const { start, accept, refuse } of batch) {
        const run = made.get(start.id)
        if (run) accept(run)
        else explain(db, start).catch(refuse)
      }
    } catch (error) {
      const isAlone = batch.length === 1
      if (isAlone || explainFailure(error)?.code === 'UNAVAILABLE') for (const { refuse } of batch) refuse(error)
      // One that cannot be stored must not take its neighbours with it.
      else for (const one of batch) await insert([one])
    }
  }
}
