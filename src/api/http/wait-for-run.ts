import { isUnavailable } from '../../db/failures.ts'
import { flowHasEnded, lastFlowKinds } from '../../flows/history/flow-runs.ts'
import { readFlowKinds } from '../../flows/history/record.ts'
import { getProject } from '../../identity/projects.ts'
import { type FollowOptions, followRun } from '../../journal/follow.ts'
import { MusterError } from '../../kernel/errors.ts'
import type { FlowRun } from '../../kernel/flow-run.ts'
import type { Project } from '../../kernel/project.ts'
import { hasEnded, type Run } from '../../kernel/run.ts'
import { finalKinds } from '../../kernel/run-event.ts'
import { getRun } from '../../runs/read-runs.ts'

/** A settled run has ended, or goes on only when somebody acts. */
export const isSettled = (run: Run): boolean => hasEnded(run) || run.status === 'paused'

/**
 * The settled run; or the run as it stands when it is halted or the signal fires first. Rejects as a read does if the
 * run or its project was deleted meanwhile.
 */
export async function waitForRun(
  source: FollowOptions,
  run: Run,
  signal: AbortSignal,
  /** The event after which the run was continued: a pause before it does not count. */
  continuedAfter: number | null = null,
): Promise<Run> {
  const read = (): Promise<Run> => getRun(source.db, run.project_id, run.id)
  if (isSettled(run) && continuedAfter === null) return run
  // A run of a halted project ends its wait by its own event.
  const living = whileProject(source.db, run.project_id, signal, () => true)
  try {
    for await (const followed of followRun(source, run.id, { after: continuedAfter ?? 0, signal: living.signal })) {
      if (followed.type !== 'event' || !maySettle(followed.event.kind)) continue
      // An event may be of an older pause or of a sub-run, so only the row tells whether the run is settled.
      const now = await read()
      // A run whose sub-run was halted stands still like the whole project.
      if (isSettled(now) || isHalted(followed.event.data)) return now
    }
    return await living.read(read)
  } finally {
    living.stop()
  }
}

const isHalted = (data: string): boolean => (JSON.parse(data) as { pause_reason?: string }).pause_reason === 'halted' // an event that we wrote

const maySettle = (kind: string): boolean => finalKinds.has(kind) || kind === 'run.paused'

/**
 * The flow run once it has ended; or the run as it stands when its project is halted, when the signal fires first, or
 * when the database cannot be asked: the run is accepted all the same. Rejects as a read does if the run or its project
 * was deleted meanwhile.
 */
export async function waitForFlowRun(
  { db, hub }: Pick<FollowOptions, 'db' | 'hub'>,
  { projectId, run, signal }: { projectId: string; run: FlowRun; signal: AbortSignal },
  read: () => Promise<FlowRun>,
): Promise<FlowRun> {
  if (flowHasEnded(run)) return run
  // A flow run that stands still because its project is halted writes nothing.
  const living = whileProject(db, projectId, signal, (project) => project.halted_at === null)
  const source = { db, hub, soFar: () => null, read: readFlowKinds }
  try {
    for await (const followed of followRun(source, run.id, { after: 0, signal: living.signal })) {
      if (followed.type === 'event' && lastFlowKinds.has(followed.event.kind)) break
    }
    return await living.read(read)
  } catch (error) {
    if (isUnavailable(error)) return run
    throw error
  } finally {
    living.stop()
  }
}

const LOOK_AT_PROJECT_MS = 1_000

interface Living {
  /** Fires with the given signal, and when the project does not go on. */
  signal: AbortSignal
  /** The read, which rejects if the project was deleted. */
  read<T>(read: () => Promise<T>): Promise<T>
  stop(): void
}

/**
 * Looks at the project now and then: a run that was started just before its project was deleted may never be taken up,
 * and so writes no event.
 */
function whileProject(
  db: FollowOptions['db'],
  projectId: string,
  signal: AbortSignal,
  goesOn: (project: Project) => boolean,
): Living {
  const still = new AbortController()
  const look = async (): Promise<void> => {
    const mayGoOn = await getProject(db, projectId).then(goesOn, (error: unknown) => !isNotFound(error))
    if (!mayGoOn) still.abort()
  }
  const looking = setInterval(() => void look(), LOOK_AT_PROJECT_MS)
  return {
    signal: AbortSignal.any([signal, still.signal]),
    read: async (read) => {
      await getProject(db, projectId)
      return read()
    },
    stop: () => clearInterval(looking),
  }
}

const isNotFound = (error: unknown): boolean => error instanceof MusterError && error.code === 'NOT_FOUND'
