import { type FollowOptions, followRun } from '../journal/follow.ts'
import { hasEnded, type Run } from '../kernel/run.ts'
import { finalKinds } from '../kernel/run-event.ts'
import { getRun } from '../runs/read-runs.ts'

/** It has ended, or goes on only when somebody acts. */
export const isSettled = (run: Run): boolean => hasEnded(run) || run.status === 'paused'

/** The run when it is settled, whichever process works on it; as it stands when the signal fires before. */
export async function waitForRun(source: FollowOptions, run: Run, signal: AbortSignal): Promise<Run> {
  const read = (): Promise<Run> => getRun(source.db, run.project_id, run.id)
  if (isSettled(run)) return run
  for await (const followed of followRun(source, run.id, { after: 0, signal })) {
    if (followed.type !== 'event' || !maySettle(followed.event.kind)) continue
    // An older pause, or that of a sub-run, says nothing: the row does.
    const now = await read()
    if (isSettled(now)) return now
  }
  return read()
}

const maySettle = (kind: string): boolean => finalKinds.has(kind) || kind === 'run.paused'
