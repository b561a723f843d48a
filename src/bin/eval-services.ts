// The evals in this process. The commit that makes or cancels an eval notifies all processes.
import type { Pool } from '../db/pool.ts'
import { startEvalWorker } from '../evals/worker.ts'
import type { Journal } from '../journal/journal.ts'
import { EVAL_CHANNEL, HALT_CHANNEL } from '../journal/wake.ts'
import type { Log } from '../kernel/log.ts'
import { cancelRuns } from '../runs/cancel.ts'
import type { RunWorker } from '../runs/worker.ts'

export interface StartedEvals {
  isWorking(): boolean
  stop(): Promise<void>
}

export function startEvals(parts: {
  role: 'all' | 'api' | 'worker'
  pool: Pool
  journal: Journal
  worker: Pick<RunWorker, 'join' | 'onReady'>
  log: Log
  searchEveryMs?: number
}): StartedEvals {
  const { pool, journal, worker, log } = parts
  if (parts.role === 'api') return { isWorking: () => true, stop: async () => {} }
  const evals = startEvalWorker({
    pool,
    log,
    onReady: () => worker.onReady(),
    cancelRuns: (projectId, runIds) => cancelRuns({ pool, journal }, projectId, runIds),
    ...(parts.searchEveryMs === undefined ? {} : { searchEveryMs: parts.searchEveryMs }),
  })
  worker.join({
    onNotification: (channel, payload) => {
      if (channel === EVAL_CHANNEL) evals.poke(payload)
      if (channel === HALT_CHANNEL) evals.search()
    },
    onListening: evals.search,
    onEvalRun: evals.poke,
  })
  return { isWorking: evals.isWorking, stop: evals.stop }
}
