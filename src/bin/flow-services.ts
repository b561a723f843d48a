// Everything that works on flows, put together: their journal, and this process's worker of them.
import type { FlowServices, RunServices } from '../api/run-services.ts'
import type { Pool } from '../db/pool.ts'
import { checkAlerts } from '../flows/check-alerts.ts'
import { createFlowJournal } from '../flows/flow-journal.ts'
import type { Decide } from '../flows/recommend-with-model.ts'
import { createFlowStarter } from '../flows/start-together.ts'
import { startFlowWorker } from '../flows/worker.ts'
import { getSettings } from '../identity/settings.ts'
import type { StoredEvent } from '../journal/entries.ts'
import { FLOW_CHANNEL, tellProcesses } from '../journal/wake.ts'
import type { AppFunction } from '../kernel/app.ts'
import type { Log } from '../kernel/log.ts'
import { repeat } from '../queue/repeat.ts'
import { cancelRuns } from '../runs/cancel.ts'
import type { RunWorker } from '../runs/worker.ts'
import { logEvents } from './log-events.ts'

export interface StartedFlows {
  services: FlowServices
  /** True while the rounds work that take over flow runs of dead processes and wake due ones. */
  isRecovering(): boolean
  /** Takes no new work; functions under way drain from now on. */
  yield(): void
  /** Cuts off functions under way. */
  hurry(): void
  stop(): Promise<void>
}

export interface FlowParts {
  role: 'all' | 'api' | 'worker'
  /** The most leaves under way in this process at once. */
  concurrency: number
  /** The time functions under way have to end by themselves when this process stops. */
  drainMs: number
  pool: Pool
  worker: Pick<RunWorker, 'ownerId' | 'hasOthers' | 'join' | 'hearDeleted' | 'onReady' | 'isHalted'>
  runs: Pick<RunServices, 'journal' | 'hub'>
  functions: ReadonlyMap<string, AppFunction>
  /** Asks the project's default model; without it no model is asked. */
  decide?: Decide
  log: Log
  /** The interval at which slow flow runs are looked for; null where another process looks. */
  checkAlertsEveryMs?: number | null
}

const CHECK_ALERTS_EVERY_MS = 1_000

/** A process that only serves works on no flow: other processes are told of the runs it starts. */
export function startFlows(parts: FlowParts): StartedFlows {
  const { role, concurrency, pool, worker, runs, functions, log, checkAlertsEveryMs = CHECK_ALERTS_EVERY_MS } = parts
  const shared = { functions, leafLimit: concurrency, decide: parts.decide ?? (async () => null) }
  if (role === 'api') {
    const onReady = ([first = '']: readonly string[]): void => {
      tellProcesses(pool, FLOW_CHANNEL, first).catch((error: unknown) =>
        log.debug({ err: error }, 'the next sweep finds it'),
      )
    }
    const starter = createFlowStarter({ pool, ownerFor: () => null, onOwned: () => {}, onNotOwned: () => {}, onReady })
    const services = { ...shared, isAnnounced: true, onReady: () => {}, start: starter.start }
    return { services, isRecovering: () => true, yield: () => {}, hurry: () => {}, stop: async () => {} }
  }
  const tell = logEvents(log)
  const onWritten = (events: readonly StoredEvent[]): void => {
    runs.hub.publish(events)
    tell(events)
  }
  const journal = createFlowJournal({ db: pool, log, onWritten })
  const flowWorker = startFlowWorker({
    pool,
    runs: worker,
    log,
    patienceMs: parts.drainMs,
    deps: {
      ...shared,
      pool,
      journal,
      log,
      drainMs: async (projectId) => (await getSettings(pool, projectId)).cancel_drain,
      cancelRuns: (projectId, runIds) => cancelRuns({ pool, journal: runs.journal }, projectId, runIds),
      onReady: () => worker.onReady(),
      bufferOf: async (projectId) => (await getSettings(pool, projectId)).pipeline_buffer,
      isHalted: (projectId) => worker.isHalted(projectId),
    },
  })
  const stopChecking =
    checkAlertsEveryMs === null
      ? async () => {}
      : repeat({
          work: () => checkAlerts({ pool, journal }),
          everyMs: checkAlertsEveryMs,
          ifItFails: 'flow runs that take too long will be told about later',
          log,
        })
  return {
    services: { ...shared, isAnnounced: false, onReady: () => flowWorker.poke(), start: flowWorker.start },
    isRecovering: () => flowWorker.isRecovering(),
    yield: () => flowWorker.yield(),
    hurry: () => flowWorker.hurry(),
    stop: async () => {
      await stopChecking()
      await flowWorker.stop()
      await journal.drain()
    },
  }
}
