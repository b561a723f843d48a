import type { Db } from '../db/pool.ts'
import { callsOfRun, type MadeCall } from '../journal/finished-calls.ts'
import type { RunEffect } from '../kernel/run.ts'
import { callsAfterStep } from './fork.ts'

/** The calls with an effect of the run, of the runs it continues and of their sub-runs; oldest first. */
export async function listEffects(db: Db, runId: string): Promise<RunEffect[]> {
  return (await callsOfRun(db, runId)).map(toEffect)
}

/** Those of them, and of the run's originals, that a fork after this step may make once more. */
export async function listEffectsAfter(db: Db, after: Parameters<typeof callsAfterStep>[1]): Promise<RunEffect[]> {
  return (await callsAfterStep(db, after)).map(toEffect)
}

const toEffect = ({ is_finished: isFinished, at, ...call }: MadeCall): RunEffect => ({
  ...call,
  result: call.result ?? null,
  outcome: isFinished ? 'finished' : 'unknown',
  at: at.toISOString(),
})
