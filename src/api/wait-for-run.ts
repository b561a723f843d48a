import { type FollowOptions, followRun } from '../journal/follow.ts'
import { hasEnded, type Run } from '../kernel/run.ts'
import { finalKinds } from '../kernel/run-event.ts'
import { getRun } from '../runs/read-runs.ts'

/** A settled run has ended, or goes on only when somebody acts. */
export const isSettled = (run: Run): boolean => hasEnded(run) || run.status === 'paused'

/** The settled run, whichever process works on it, or the run as it stands when it is halted or the signal fires first. */
export async function waitForRun(
  source: FollowOptions,
  run: Run,
  signal: AbortSignal,
  /** The event after which the run was continued: a pause before it does not count. */
  continuedAfter: number | null = null,
): Promise<Run> {
  const read = (): Promise<Run> => getRun(source.db, run.project_id, run.id)
  if (isSettled(run) && continuedAfter === null) return run
  for await (const followed of followRun(source, run.id, { after: continuedAfter ?? 0, signal })) {
    if (followed.type !== 'event' || !maySettle(followed.event.kind)) continue
    // An event may be of an older pause or of a sub-run, so only the row tells whether the run is settled.
    const now = await read()
    // A run whose sub-run was halted stands still, as the whole project does.
    if (isSettled(now) || isHalted(followed.event.data)) return now
  }
  return read()
}

const isHalted = (data: string): boolean => (JSON.parse(data) as { pause_reason?: string }).pause_reason === 'halted' // an event that we wrote

const maySettle = (kind: string): boolean => finalKinds.has(kind) || kind === 'run.paused'
