import { type FollowOptions, followRun } from '../journal/follow.ts'
import { hasEnded, type Run } from '../kernel/run.ts'
import { finalKinds } from '../kernel/run-event.ts'
import { getRun } from '../runs/read-runs.ts'

/** A settled run has ended, or goes on only when somebody acts. */
export const isSettled = (run: Run): boolean => hasEnded(run) || run.status === 'paused'

/** The settled run, whichever process works on it, or the run as it stands when the signal fires first. */
export async function waitForRun(source: FollowOptions, run: Run, signal: AbortSignal): Promise<Run> {
  const read = (): Promise<Run> => getRun(source.db, run.project_id, run.id)
  if (isSettled(run)) return run
  for await (const followed of followRun(source, run.id, { after: 0, signal })) {
    if (followed.type !== 'event' || !maySettle(followed.event.kind)) continue
    // An event may be of an older pause or of a sub-run, so only the row tells whether the run is settled.
    const now = await read()
    if (isSettled(now)) return now
  }
  return read()
}

const maySettle = (kind: string): boolean => finalKinds.has(kind) || kind === 'run.paused'
