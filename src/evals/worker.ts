// Advances the evals of all projects in this process. The worker is woken when an eval is made or cancelled, a run of
// an eval has ended here, or an off switch is released; a search finds evals whose notice was missed.
import { isUnavailable } from '../db/failures.ts'
import type { Pool } from '../db/pool.ts'
import type { Log } from '../kernel/log.ts'
import { createHealth, UNWELL_AFTER_MS } from '../queue/health.ts'
import { createWokenLoop } from '../queue/woken-loop.ts'
import { advanceEvals, findProjects } from './advance.ts'
import { createProjectSchedule } from './project-schedule.ts'

export interface EvalWorkerOptions {
  pool: Pool
  log: Log
  /** Called after runs were started, so that a run worker claims them. */
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

/** The wait while another process advances the project; its transaction is short. */
const BUSY_WAIT_MS = 30
const RETRY_MS = 1_000
/** Runs that end without their owner (cancelled while they wait, or dead too often) are seen by the next search. */
const SEARCH_EVERY_MS = 2_000
/** While no project has an open eval, a search only serves to find evals whose notice was lost. */
const IDLE_SEARCH_EVERY_MS = 30_000

export function startEvalWorker(options: EvalWorkerOptions): EvalWorker {
  const { pool, log, onReady, cancelRuns, searchEveryMs = SEARCH_EVERY_MS } = options
  const health = createHealth({
    log,
    ifItFails: 'evals cannot be advanced',
    unwellAfterMs: UNWELL_AFTER_MS + IDLE_SEARCH_EVERY_MS,
  })
  const schedule = createProjectSchedule()
  const loop = createWokenLoop({ pass, waitMs: schedule.waitMs, health })
  loop.wake()

  return {
    poke: (projectId) => {
      schedule.lookIn(projectId, 0)
      loop.wake()
    },
    search: () => {
      schedule.searchIn(0)
      loop.wake()
    },
    isWorking: health.isWell,
    stop: loop.stop,
  }

  async function pass(): Promise<void> {
    if (schedule.isSearchDue()) await searchProjects()
    for (const projectId of schedule.due()) {
      if (loop.isStopped()) break
      await advance(projectId)
    }
  }

  async function searchProjects(): Promise<void> {
    schedule.searchIn(RETRY_MS)
    const projects = await findProjects(pool)
    for (const { id, hasWork } of projects) if (hasWork) schedule.lookIn(id, 0)
    schedule.searchIn(projects.length > 0 ? searchEveryMs : IDLE_SEARCH_EVERY_MS)
  }

  /** A project whose evals cannot be advanced is tried again later, and stops no other project. */
  async function advance(projectId: string): Promise<void> {
    try {
      const { started, toCancel, isBusy } = await advanceEvals(pool, log, projectId)
      if (started > 0) {
        onReady()
        // From now on searches are needed again.
        schedule.searchWithin(searchEveryMs)
      }
      if (isBusy) schedule.lookIn(projectId, BUSY_WAIT_MS)
      if (toCancel.length === 0) return
      await cancelRuns(projectId, toCancel)
      // Runs without an owner end with this. Owners stop the other runs and report; a later turn asks again.
      schedule.lookIn(projectId, RETRY_MS)
    } catch (error) {
      schedule.lookIn(projectId, RETRY_MS)
      if (isUnavailable(error)) throw error
      log.error({ err: error, project_id: projectId }, 'the evals of a project cannot be advanced yet')
    }
  }
}
