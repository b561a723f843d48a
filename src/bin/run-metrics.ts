import type { Pool } from '../db/pool.ts'
import { countReady, MOST_COUNTED } from '../journal/claim.ts'
import type { StoredEvent } from '../journal/entries.ts'
import type { Metrics } from '../observe/metrics.ts'

const ENDS: ReadonlyMap<string, string> = new Map([
  ['run.completed', 'completed'],
  ['run.failed', 'failed'],
  ['run.cancelled', 'cancelled'],
  ['run.paused', 'paused'],
])

/** Counts the events of runs that this process writes. Returns the counter, which is called with every commit. */
export function measureRuns(
  metrics: Metrics,
  pool: Pool,
  active: () => number,
): (events: readonly StoredEvent[]) => void {
  const ends = metrics.counter({
    name: 'muster_run_ends_total',
    help: 'Runs that ended or paused, by outcome.',
    labels: ['status'],
  })
  const steps = metrics.counter({ name: 'muster_steps_total', help: 'Model calls that were completed.' })
  metrics.watch({ name: 'muster_runs_active', help: 'Runs that this process is executing.' }, () => [
    { labels: {}, value: active() },
  ])
  const readyHelp = `Runs that wait for a slot, over all processes, counted up to ${MOST_COUNTED}.`
  metrics.watch({ name: 'muster_runs_ready', help: readyHelp }, async () => [
    { labels: {}, value: await countReady(pool) },
  ])
  return (events) => {
    for (const { kind, data } of events) {
      // Events of sub-runs are in the sub-runs' own journals too.
      if (data.startsWith('{"run_id"')) continue
      if (kind === 'step.completed') steps.inc()
      const status = ENDS.get(kind)
      if (status) ends.inc({ status })
    }
  }
}
