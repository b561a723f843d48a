import type { FlowServices, RunServices } from '../api/http/run-services.ts'
import type { Pool } from '../db/pool.ts'
import { checkAlerts } from '../flows/alerts/check-alerts.ts'
import { createFlowStarter } from '../flows/execution/flow-starter.ts'
import { createFlowJournal } from '../flows/execution/journal.ts'
import { createRunFlow } from '../flows/execution/run-flow.ts'
import { startFlowWorker } from '../flows/execution/worker.ts'
import type { Patterns } from '../flows/machine/pattern.ts'
import type { Decide } from '../flows/recommend/recommend-with-model.ts'
import { getSettings } from '../identity/settings.ts'
import type { StoredEvent } from '../journal/entries.ts'
import { FLOW_CHANNEL, tellProcesses } from '../journal/wake.ts'
import type { AppFunction } from '../kernel/app.ts'
import type { Log } from '../kernel/log.ts'
import { repeat } from '../kernel/repeat.ts'
import { cancelRuns } from '../runs/cancel.ts'
import type { RunWorker } from '../runs/worker.ts'
import { logEvents } from './log-events.ts'

export interface StartedFlows {
  services: FlowServices
  /** True while the rounds succeed that take over flow runs of dead processes and wake due flow runs. */
  isRecovering(): boolean
  /** Takes no new work; running functions may still end. */
  yield(): void
  /** Aborts running functions. */
  hurry(): void
  stop(): Promise<void>
}

export interface FlowParts {
  patterns: Patterns
  role: 'all' | 'api' | 'worker'
  /** The most leaves that this process executes at once. */
  concurrency: number
  /** The time that running functions have to end when this process stops. */
  drainMs: number
  pool: Pool
  worker: Pick<RunWorker, 'ownerId' | 'hasOthers' | 'join' | 'hearDeleted' | 'onReady' | 'isHalted' | 'serveFlows'>
  runs: Pick<RunServices, 'journal' | 'hub'>
  functions: ReadonlyMap<string, AppFunction>
  /** Asks the project's default model; without it no model is asked. */
  decide?: Decide
  log: Log
  /** The interval at which slow flow runs are looked for; null if another process does it. */
  checkAlertsEveryMs?: number | null
}

const CHECK_ALERTS_EVERY_MS = 1_000

/** A process that only serves requests executes no flow; other processes are notified of the flow runs it starts. */
export function startFlows(parts: FlowParts): StartedFlows {
  const { role, patterns, pool, worker, runs, functions, log } = parts
  const { checkAlertsEveryMs = CHECK_ALERTS_EVERY_MS } = parts
  const shared = { patterns, functions, leafLimit: parts.concurrency, decide: parts.decide ?? (async () => null) }
  if (role === 'api') {
    const onReady = ([first = '']: readonly string[]): void => {
      tellProcesses(pool, FLOW_CHANNEL, first).catch((error: unknown) =>
        log.debug({ err: error }, 'the next sweep finds it'),
      )
    }
    const starter = createFlowStarter({ pool, patterns, onReady })
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
  worker.serveFlows(createRunFlow({ pool, patterns, functions, onFlowReady: () => flowWorker.poke() }))
  const stopChecking =
    checkAlertsEveryMs === null
      ? async () => {}
      : repeat({
          work: () => checkAlerts({ pool, journal, patterns, usualWorkers: shared.leafLimit }),
          everyMs: checkAlertsEveryMs,
          ifItFails: 'slow flow runs could not be looked for; trying again later',
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
