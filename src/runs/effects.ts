import type { Db } from '../db/pool.ts'
import { callsOfRun, type FoundCall, MAX_CALLS } from '../journal/finished-calls.ts'
import type { RunEffects } from '../kernel/run.ts'
import { callsAfterStep } from './fork.ts'

/** The calls with an effect of the run, of the runs it continues and of their sub-runs; oldest first. */
export const listEffects = async (db: Db, runId: string): Promise<RunEffects> => toEffects(await callsOfRun(db, runId))

/** Those of them, and of the run's originals, that a fork after this step may make once more. */
export const listEffectsAfter = async (db: Db, after: Parameters<typeof callsAfterStep>[1]): Promise<RunEffects> =>
  toEffects(await callsAfterStep(db, after))

/** `fits` picks some of them. */
export const toEffects = (calls: readonly FoundCall[], fits = (_: FoundCall): boolean => true): RunEffects => ({
  items: calls.filter(fits).map(({ is_finished: isFinished, at, found: _, ...call }) => ({
    ...call,
    result: call.result ?? null,
    outcome: isFinished ? 'finished' : 'unknown',
    at: at.toISOString(),
  })),
  next_cursor: null,
  truncated: (calls[0]?.found ?? 0) > MAX_CALLS,
})
