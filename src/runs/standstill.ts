// The time in which a run waits for runs below it, and all of these wait for people, providers or tools. Such a time counts
// for no timeout, so the run that waits above counts it, too. A run below that continues wakes the runs above it, because
// their time runs again from then on (`wakeAbove`). `muster.work_of_runs` (migration 0081) says what work is.
import { append, databaseNow, type OwnedRun } from './owned-run.ts'

const WORK_BELOW = 'select ms, goes_on from muster.work_of_runs($1, $2, false)'

/** A shorter standstill is not worth an event. */
const MIN_COUNTED_MS = 50

/**
 * Counts the standstill since the run began to wait for the runs below it. Returns whether all of them wait now. A run
 * without a timeout need not know it.
 */
export async function countStandstill(owned: OwnedRun): Promise<boolean> {
  const { run, state, deps } = owned
  if (run.timeout === null || state.parkedAt === null) return false
  const sinceMs = state.parkedAt
  const { rows } = await deps.pool.query<{ ms: number; goes_on: boolean }>(WORK_BELOW, [run.id, new Date(sinceMs)])
  const { ms: workMs = 0, goes_on: goesOn = false } = rows[0] ?? {}
  const ms = Math.round(databaseNow(owned) - sinceMs - workMs)
  if (ms >= MIN_COUNTED_MS) await append(owned, [{ kind: 'run.stood_still', data: { ms } }])
  return !goesOn
}
