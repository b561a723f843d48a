import type { Db } from '../db/pool.ts'
import { callsOfRun } from '../journal/finished-calls.ts'
import type { RunEffect } from '../kernel/run.ts'

/** The calls with an effect of the run, of the runs it continues and of their sub-runs; oldest first. */
export async function listEffects(db: Db, runId: string): Promise<RunEffect[]> {
  const calls = await callsOfRun(db, runId)
  return calls.map(({ is_finished: isFinished, at, ...call }) => ({
    ...call,
    result: call.result ?? null,
    outcome: isFinished ? 'finished' : 'unknown',
    at: at.toISOString(),
  }))
}
