import type { Db } from '../db/pool.ts'
import { wakeHalted } from '../journal/wake.ts'
import type { Log } from '../kernel/log.ts'

/** Wakes the runs of projects whose off switch was released, batch after batch, behind the request that released it. */
export interface HaltedWaker {
  /** Never throws. A failure is logged, and the sweeps wake the runs that are left. */
  wake(projectId: string): void
  /** Resolves when the batch under way has ended; no other batch follows. The sweeps wake the runs that are left. */
  stop(): Promise<void>
}

interface Options {
  db: Db
  log: Log
  /** Called after each batch, so that workers take its runs while the next ones are woken. */
  onReady: () => void
  atOnce?: number
}

export function createHaltedWaker({ db, log, onReady, atOnce }: Options): HaltedWaker {
  const underWay = new Set<Promise<void>>()
  let isStopped = false
  return {
    wake: (projectId) => {
      const waking = wakeAll(projectId)
        .catch((error: unknown) =>
          log.warn({ err: error, project_id: projectId }, 'halted runs will be woken by a sweep'),
        )
        .finally(() => underWay.delete(waking))
      underWay.add(waking)
    },
    stop: async () => {
      isStopped = true
      await Promise.all(underWay)
    },
  }

  async function wakeAll(projectId: string): Promise<void> {
    let after: string | null | undefined
    while (after !== null && !isStopped) {
      const { count, last } = await wakeHalted(db, projectId, { after, ...(atOnce ? { atOnce } : {}) })
      if (count > 0) onReady()
      after = last
    }
  }
}
