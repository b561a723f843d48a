// This process's part in the evals of all projects. It is woken when an eval is made or cancelled, when a run of an eval
// has ended here, and when the off switch of a project is released; a search makes up for what was missed.
import { explainFailure } from '../db/failures.ts'
import type { Pool } from '../db/pool.ts'
import type { Log } from '../kernel/log.ts'
import { createHealth, UNWELL_AFTER_MS } from '../queue/health.ts'
import { advanceEvals, findProjects } from './advance.ts'
import { createProjectSchedule } from './project-schedule.ts'

export interface EvalWorkerOptions {
  pool: Pool
  log: Log
  /** Runs were started: somebody may take them. */
  onReady: () => void
  cancelRuns: (projectId: string, runIds: readonly string[]) => Promise<void>
  /** The time between two searches while evals are under way. */
  searchEveryMs?: number
}

export interface EvalWorker {
  /** Says that the evals of a project may go on. */
  poke(projectId: string): void
  /** Says that the evals of any project may go on. */
  search(): void
  isWorking(): boolean
  stop(): Promise<void>
}

/** Another process looks at the project; its transaction is short. */
const BUSY_WAIT_MS = 30
const RETRY_MS = 1_000
/** Runs that end without their owner (cancelled while they wait, or dead too often) are seen by the next search. */
const SEARCH_EVERY_MS = 2_000
/** While no project has an eval under way a search is only for a notice that was lost. */
const IDLE_SEARCH_EVERY_MS = 30_000

export function startEvalWorker(options: EvalWorkerOptions): EvalWorker {
  const { pool, log, onReady, cancelRuns, searchEveryMs = SEARCH_EVERY_MS } = options
  const health = createHealth({
    log,
    ifItFails: 'evals do not go on',
    unwellAfterMs: UNWELL_AFTER_MS + IDLE_SEARCH_EVERY_MS,
  })
  let isStopped = false
  let running: Promise<void> | null = null
  let timer: NodeJS.Timeout | undefined
  const schedule = createProjectSchedule()
  wake()

  return {
    poke: (projectId) => {
      schedule.lookIn(projectId, 0)
      wake()
    },
    search: () => {
      schedule.searchIn(0)
      wake()
    },
    isWorking: health.isWell,
    stop: async () => {
      isStopped = true
      clearTimeout(timer)
      await running
    },
  }

  function wake(): void {
    if (running || isStopped) return
    clearTimeout(timer)
    running = work().finally(() => {
      running = null
      if (!isStopped) timer = setTimeout(wake, Math.max(1, schedule.waitMs())).unref()
    })
  }

  async function work(): Promise<void> {
    while (!isStopped && schedule.waitMs() === 0) {
      try {
        if (schedule.isSearchDue()) await searchProjects()
        for (const projectId of schedule.due()) {
          if (isStopped) break
          await advance(projectId)
        }
        health.succeeded()
      } catch (error) {
        health.failed(error)
      }
    }
  }

  async function searchProjects(): Promise<void> {
    schedule.searchIn(RETRY_MS)
    const projects = await findProjects(pool)
    for (const { id, hasWork } of projects) if (hasWork) schedule.lookIn(id, 0)
    schedule.searchIn(projects.length > 0 ? searchEveryMs : IDLE_SEARCH_EVERY_MS)
  }

  /** A project that cannot be looked at is tried again later, and stops no other. */
  async function advance(projectId: string): Promise<void> {
    try {
      const { started, toCancel, isBusy } = await advanceEvals(pool, log, projectId)
      if (started > 0) {
        onReady()
        // From now on there is something to search for.
        schedule.searchWithin(searchEveryMs)
      }
      if (isBusy) schedule.lookIn(projectId, BUSY_WAIT_MS)
      if (toCancel.length === 0) return
      await cancelRuns(projectId, toCancel)
      // Runs without an owner have ended with this; the others are told by their owners, or asked once more.
      schedule.lookIn(projectId, RETRY_MS)
    } catch (error) {
      schedule.lookIn(projectId, RETRY_MS)
      if (explainFailure(error)?.code === 'UNAVAILABLE') throw error
      log.error({ err: error, project_id: projectId }, 'the evals of a project cannot go on yet')
    }
  }
}
