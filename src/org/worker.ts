// The organisation's worker in this process: it starts the tasks of due agents, and carries the outcomes of attempts
// over to their tasks. Tasks and ends of attempts wake it; a round at the shortest poll_interval catches missed
// notices.
import type { Pool } from '../db/pool.ts'
import type { Log } from '../kernel/log.ts'
import { createHealth, UNWELL_AFTER_MS } from '../queue/health.ts'
import { createWokenLoop } from '../queue/woken-loop.ts'
import { noteFreed } from '../tasks/task-queue.ts'
import { createDueProjects, type DueProjects, LONGEST_WAIT_MS, RETRY_MS } from './due-projects.ts'
import { createSettling } from './settle.ts'
import { sweepProjects } from './sweep.ts'

export interface OrgWorkerOptions {
  pool: Pool
  log: Log
  /** Called after runs were started, so that a run worker claims them. */
  onReady: () => void
}

export interface OrgWorker {
  /** Says that agents of the project may have tasks to start. */
  arrived(projectId: string): void
  /** Says that agents or tasks of the project were changed. */
  changed(projectId: string): void
  /** Says that an attempt of the agent has ended or waits. */
  freed(agentId: string, projectId: string): void
  /** Says that attempts may have ended, and agents may be due, in any project. */
  search(): void
  /** Says that the settings of rounds were changed; a round follows at once. */
  sweep(): void
  isWorking(): boolean
  stop(): Promise<void>
}

const BUSY_WAIT_MS = 30
const NEVER = Number.POSITIVE_INFINITY

export function startOrgWorker({ pool, log, onReady }: OrgWorkerOptions): OrgWorker {
  const health = createHealth({
    log,
    ifItFails: 'tasks cannot be started',
    unwellAfterMs: UNWELL_AFTER_MS + LONGEST_WAIT_MS,
  })
  const settle = createSettling(pool, log)
  const { at, soon, timed } = createTimes()
  const due = createDueProjects({ pool, log, onReady, isStopped: () => loop.isStopped() })
  const freed = createFreedAgents(pool, due, () => soon('settle', RETRY_MS))
  const parts = [
    due.takeUp,
    timed('settle', settleEnded),
    freed.note,
    timed('search', due.search),
    timed('sweep', sweepIdle),
  ]
  const loop = createWokenLoop({ pass, waitMs, health })
  const { wake } = loop
  wake()

  return {
    arrived: (projectId) => {
      due.lookIn(projectId, 0)
      wake()
    },
    changed: (projectId) => {
      due.lookIn(projectId, 0)
      at.settle = 0
      wake()
    },
    freed: (agentId, projectId) => {
      freed.add(agentId, projectId)
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
    stop: loop.stop,
  }

  function waitMs(): number {
    const next = Math.min(due.nextAt(), at.settle, at.search, at.sweep)
    return Math.min(LONGEST_WAIT_MS, Math.max(0, next - performance.now()))
  }

  /** Every part of the work has its turn in each pass, however much work another part has. */
  async function pass(): Promise<void> {
    const failed: unknown[] = []
    for (const part of parts) {
      await part().catch((error: unknown) => failed.push(error))
    }
    if (failed.length > 0) throw failed[0]
  }

  async function settleEnded(): Promise<void> {
    const { settled, isBusy } = await settle()
    if (settled.length > 0) at.settle = 0
    else if (isBusy) soon('settle', BUSY_WAIT_MS)
    for (const { agent_id: agentId, project_id: projectId } of settled) {
      freed.forget(agentId)
      due.lookIn(projectId, 0)
    }
  }

  async function sweepIdle(): Promise<void> {
    at.settle = 0
    at.search = 0
    soon('sweep', await sweepProjects(pool, log))
  }
}

/** The time at which each part of the work is done next; 0 means at once. */
function createTimes() {
  const at = { settle: 0, search: 0, sweep: 0 }
  return { at, soon, timed }

  /** A part of the work with a time of its own; after a failure it is tried again soon. */
  function timed(part: keyof typeof at, work: () => Promise<void>): () => Promise<void> {
    return async () => {
      if (performance.now() < at[part]) return
      at[part] = NEVER
      try {
        await work()
      } catch (error) {
        soon(part, RETRY_MS)
        throw error
      }
    }
  }

  function soon(part: keyof typeof at, inMs: number): void {
    at[part] = Math.min(at[part], performance.now() + inMs)
  }
}

/** Agents whose attempts have ended, or wait: a waiting attempt is not settled, but leaves its agent free. */
function createFreedAgents(pool: Pool, due: DueProjects, onFailure: () => void) {
  const freed = new Map<string, string>()
  return {
    add: (agentId: string, projectId: string): void => void freed.set(agentId, projectId),
    forget: (agentId: string): void => void freed.delete(agentId),
    note: async (): Promise<void> => {
      const waiting = [...freed]
      if (waiting.length === 0) return
      freed.clear()
      try {
        const agentIds = waiting.map(([agentId]) => agentId)
        await noteFreed(pool, agentIds)
        for (const [, projectId] of waiting) due.lookIn(projectId, 0)
      } catch (error) {
        for (const [agentId, projectId] of waiting) freed.set(agentId, projectId)
        onFailure()
        throw error
      }
    },
  }
}
