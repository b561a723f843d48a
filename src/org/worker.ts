// This process's part in the organisation: it takes up the tasks of agents that are due, and carries the outcomes of
// attempts over to their tasks. It is woken by the arrival of a task and by the end of an attempt; a round at the
// shortest poll_interval makes up for what was missed. Idle agents cost nothing.
import { explainFailure } from '../db/failures.ts'
import type { Pool } from '../db/pool.ts'
import type { Log } from '../kernel/log.ts'
import { createHealth, UNWELL_AFTER_MS } from '../queue/health.ts'
import { noteFreed } from '../tasks/task-queue.ts'
import { createSettling } from './settle.ts'
import { sweepProjects } from './sweep.ts'
import { findDue, takeUpTasks } from './take-up.ts'

export interface OrgWorkerOptions {
  pool: Pool
  log: Log
  /** Runs were started: somebody may take them. */
  onReady: () => void
}

export interface OrgWorker {
  /** Says that agents of the project may have something to take up. */
  arrived(projectId: string): void
  /** Says that agents or tasks of the project were changed. */
  changed(projectId: string): void
  /** Says that an attempt of the agent has ended, or waits. */
  freed(agentId: string, projectId: string): void
  /** Says that attempts may have ended, and agents may be due, in any project. */
  search(): void
  /** Says that the settings by which rounds are made were changed: there is a round at once. */
  sweep(): void
  isWorking(): boolean
  stop(): Promise<void>
}

const BUSY_WAIT_MS = 30
const RETRY_MS = 1_000
const LONGEST_WAIT_MS = 30_000
const NEVER = Number.POSITIVE_INFINITY

export function startOrgWorker({ pool, log, onReady }: OrgWorkerOptions): OrgWorker {
  const health = createHealth({
    log,
    ifItFails: 'tasks are not taken up',
    unwellAfterMs: UNWELL_AFTER_MS + LONGEST_WAIT_MS,
  })
  const settle = createSettling(pool, log)
  let isStopped = false
  let running: Promise<void> | null = null
  let timer: NodeJS.Timeout | undefined
  /** The times at which each part of the work is done next: 0 is at once. */
  const at = { settle: 0, search: 0, sweep: 0 }
  /** Projects whose due agents are looked at next. */
  const asked = new Set<string>()
  /** Projects whose agents will be due, and when. A look in between does not see them. */
  const later = new Map<string, number>()
  /** Agents whose attempts have ended, or wait, with their projects. */
  const freed = new Map<string, string>()
  /** The number of times in a row that the agents of a project could not be looked at. */
  const failures = new Map<string, number>()
  wake()

  return {
    arrived: (projectId) => {
      asked.add(projectId)
      wake()
    },
    changed: (projectId) => {
      asked.add(projectId)
      at.settle = 0
      wake()
    },
    freed: (agentId, projectId) => {
      freed.set(agentId, projectId)
      at.settle = 0
      wake()
    },
    search: () => {
      at.settle = 0
      at.search = 0
      wake()
    },
    sweep: () => {
      at.sweep = 0
      wake()
    },
    isWorking: health.isWell,
    stop: async () => {
      isStopped = true
      clearTimeout(timer)
      await running
    },
  }

  function lookIn(projectId: string, inMs: number): void {
    if (inMs <= 0) asked.add(projectId)
    else later.set(projectId, Math.min(later.get(projectId) ?? NEVER, performance.now() + inMs))
  }

  function wake(): void {
    if (running || isStopped) return
    clearTimeout(timer)
    running = work().finally(() => {
      running = null
      if (!isStopped)
        timer = setTimeout(wake, Math.min(LONGEST_WAIT_MS, Math.max(1, nextAt() - performance.now()))).unref()
    })
  }

  function nextAt(): number {
    let next = asked.size > 0 ? 0 : Math.min(at.settle, at.search, at.sweep)
    for (const time of later.values()) next = Math.min(next, time)
    return next
  }

  /** Every part has its turn in each pass, however much there is of another. */
  async function work(): Promise<void> {
    while (!isStopped && nextAt() <= performance.now()) {
      const failed: unknown[] = []
      for (const part of [takeUpDue, settleEnded, noteFreedAgents, searchDue, sweepIdle]) {
        await part().catch((error: unknown) => failed.push(error))
      }
      if (failed.length === 0) health.succeeded()
      else health.failed(failed[0])
    }
  }

  async function takeUpDue(): Promise<void> {
    for (const [projectId, time] of later) {
      if (time > performance.now()) continue
      later.delete(projectId)
      asked.add(projectId)
    }
    const projectIds = [...asked]
    asked.clear()
    for (const projectId of projectIds) if (!isStopped) await takeUp(projectId)
  }

  /** A project that cannot be looked at stops no other, and is tried again after longer and longer waits. */
  async function takeUp(projectId: string): Promise<void> {
    try {
      const { started, againInMs } = await takeUpTasks(pool, log, projectId)
      failures.delete(projectId)
      if (started > 0) onReady()
      if (againInMs !== null) lookIn(projectId, againInMs)
    } catch (error) {
      if (explainFailure(error)?.code === 'UNAVAILABLE') {
        lookIn(projectId, RETRY_MS)
        throw error
      }
      const count = (failures.get(projectId) ?? 0) + 1
      failures.set(projectId, count)
      lookIn(projectId, Math.min(LONGEST_WAIT_MS, RETRY_MS * 2 ** (count - 1)))
      log.error({ err: error, project_id: projectId, failures: count }, 'tasks of a project cannot be taken up yet')
    }
  }

  /** Carries the outcomes of attempts over to their tasks. */
  async function settleEnded(): Promise<void> {
    if (performance.now() < at.settle) return
    at.settle = NEVER
    try {
      const { settled, isBusy } = await settle()
      if (settled.length > 0) at.settle = 0
      else if (isBusy) soon('settle', BUSY_WAIT_MS)
      for (const { agent_id: agentId, project_id: projectId } of settled) {
        freed.delete(agentId)
        asked.add(projectId)
      }
    } catch (error) {
      soon('settle', RETRY_MS)
      throw error
    }
  }

  /** An attempt that waits is not settled, and leaves its agent free all the same. */
  async function noteFreedAgents(): Promise<void> {
    const waiting = [...freed]
    if (waiting.length === 0) return
    freed.clear()
    try {
      await noteFreed(
        pool,
        waiting.map(([agentId]) => agentId),
      )
      for (const [, projectId] of waiting) asked.add(projectId)
    } catch (error) {
      for (const [agentId, projectId] of waiting) freed.set(agentId, projectId)
      soon('settle', RETRY_MS)
      throw error
    }
  }

  /** Finds the projects in which agents are due, of whose tasks this process was not told. */
  async function searchDue(): Promise<void> {
    if (performance.now() < at.search) return
    at.search = NEVER
    try {
      // A project that cannot be looked at has its next time already.
      for (const { id, inMs } of await findDue(pool)) if (!failures.has(id)) lookIn(id, inMs)
    } catch (error) {
      soon('search', RETRY_MS)
      throw error
    }
  }

  /** A round looks everywhere. */
  async function sweepIdle(): Promise<void> {
    if (performance.now() < at.sweep) return
    at.sweep = NEVER
    at.settle = 0
    at.search = 0
    try {
      soon('sweep', await sweepProjects(pool, log))
    } catch (error) {
      soon('sweep', RETRY_MS)
      throw error
    }
  }

  function soon(part: keyof typeof at, inMs: number): void {
    at[part] = Math.min(at[part], performance.now() + inMs)
  }
}
