// The organisation in this process. If it executes no runs, other processes are notified of tasks.
import type { OrgServices } from '../api/http/run-services.ts'
import type { Pool } from '../db/pool.ts'
import { tellProcesses } from '../journal/wake.ts'
import type { Log } from '../kernel/log.ts'
import { startOrgWorker } from '../org/worker.ts'
import type { RunWorker } from '../runs/worker.ts'
import { TASK_CHANNEL } from '../tasks/task-queue.ts'

export interface StartedOrg {
  services: OrgServices
  isWorking(): boolean
  stop(): Promise<void>
}

/** A dead process is reported in the transaction that takes over its runs; their end is visible after it. */
const AFTER_A_DEATH_MS = 100

export function startOrg(parts: {
  role: 'all' | 'api' | 'worker'
  pool: Pool
  worker: Pick<RunWorker, 'join' | 'onReady'>
  log: Log
}): StartedOrg {
  const { pool, worker, log } = parts
  if (parts.role === 'api') {
    const tell = (payload: string): void => {
      tellProcesses(pool, TASK_CHANNEL, payload).catch((err: unknown) => log.debug({ err }, 'the next round finds it'))
    }
    return {
      services: { isAnnounced: true, arrived: () => {}, poke: tell, sweep: () => tell('') },
      isWorking: () => true,
      stop: async () => {},
    }
  }
  const org = startOrgWorker({ pool, log, onReady: () => worker.onReady() })
  worker.join({
    onNotification: (channel, payload) => {
      if (channel !== TASK_CHANNEL) return
      if (payload === '') org.sweep()
      else org.changed(payload)
    },
    onDeath: async () => void setTimeout(org.search, AFTER_A_DEATH_MS).unref(),
    onTasks: org.arrived,
    onAttempt: org.freed,
  })
  const { arrived, changed, sweep, isWorking, stop } = org
  return { services: { isAnnounced: false, arrived, poke: changed, sweep }, isWorking, stop }
}
