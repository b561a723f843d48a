import { isUnavailable } from '../db/failures.ts'
import type { Pool } from '../db/pool.ts'
import type { Log } from '../kernel/log.ts'
import { findDue, takeUpTasks } from './take-up.ts'

export const RETRY_MS = 1_000
export const LONGEST_WAIT_MS = 30_000

export type DueProjects = ReturnType<typeof createDueProjects>

export function createDueProjects({
  pool,
  log,
  onReady,
  isStopped,
}: {
  pool: Pool
  log: Log
  onReady: () => void
  isStopped: () => boolean
}) {
  /** Projects whose due agents are checked next. */
  const asked = new Set<string>()
  /** Projects whose agents will be due, with the times. A check before that time does not see these agents. */
  const later = new Map<string, number>()
  /** The number of checks of each project that failed in a row. */
  const failures = new Map<string, number>()
  return {
    lookIn,
    /** The time of the next look, as `performance.now()` counts; 0 is at once. */
    nextAt: (): number => (asked.size > 0 ? 0 : Math.min(...later.values())),
    takeUp: async (): Promise<void> => {
      for (const [projectId, time] of later) {
        if (time > performance.now()) continue
        later.delete(projectId)
        asked.add(projectId)
      }
      const projectIds = [...asked]
      asked.clear()
      for (const projectId of projectIds) if (!isStopped()) await takeUp(projectId)
    },
    /** Finds projects with due agents that no notice told this process of. */
    search: async (): Promise<void> => {
      // A project whose check failed has its next time already.
      for (const { id, inMs } of await findDue(pool)) if (!failures.has(id)) lookIn(id, inMs)
    },
  }

  function lookIn(projectId: string, inMs: number): void {
    if (inMs <= 0) asked.add(projectId)
    else later.set(projectId, Math.min(later.get(projectId) ?? Number.POSITIVE_INFINITY, performance.now() + inMs))
  }

  /** A project whose check fails stops no other project, and is tried again after longer and longer waits. */
  async function takeUp(projectId: string): Promise<void> {
    try {
      const { started, againInMs } = await takeUpTasks(pool, log, projectId)
      failures.delete(projectId)
      if (started > 0) onReady()
      if (againInMs !== null) lookIn(projectId, againInMs)
    } catch (error) {
      if (isUnavailable(error)) {
        lookIn(projectId, RETRY_MS)
        throw error
      }
      const count = (failures.get(projectId) ?? 0) + 1
      failures.set(projectId, count)
      lookIn(projectId, Math.min(LONGEST_WAIT_MS, RETRY_MS * 2 ** (count - 1)))
      log.error({ err: error, project_id: projectId, failures: count }, 'tasks of a project cannot be started yet')
    }
  }
}
