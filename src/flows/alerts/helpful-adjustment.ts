import { MOST_LEAVES } from '../../kernel/flow.ts'
import { etaOf } from '../history/eta.ts'
import type { ExpectedDuration } from '../history/expectation.ts'
import type { FlowRunRow } from '../history/flow-runs.ts'

export interface HelpfulAdjustment {
  timeout?: number
  workers?: number
}

/** Time to spare, so that a run that goes on as so far is not late again at once. */
const SPARE = 1.5
const LONGEST_MS = 2_147_483_647

/** Null if neither more time nor more workers would help. `usualWorkers`: of a run without a number of its own. */
export function helpfulAdjustment(
  run: FlowRunRow,
  usualWorkers: number | null,
  expectation: ExpectedDuration | null = null,
): HelpfulAdjustment | null {
  const timeout = neededTimeout(run, expectation)
  const workers = neededWorkers(run, usualWorkers)
  if (timeout === null && workers === null) return null
  return { ...(timeout === null ? {} : { timeout }), ...(workers === null ? {} : { workers }) }
}

/** Null unless the run will be late: by its ETA, or because half of its time is over and nothing is done. */
function neededTimeout(run: FlowRunRow, expectation: ExpectedDuration | null): number | null {
  if (run.started_at === null) return null
  const startedAtMs = run.started_at.getTime()
  const eta = etaOf(run, expectation)
  const neededMs = eta === null ? 2 * (run.read_at.getTime() - startedAtMs) : eta.getTime() - startedAtMs
  if (neededMs <= run.timeout) return null
  return Math.min(LONGEST_MS, Math.ceil((neededMs * SPARE) / 1_000) * 1_000)
}

/** Null unless as many leaves are under way as may be, and others wait. */
function neededWorkers({ workers, progress }: FlowRunRow, usualWorkers: number | null): number | null {
  const most = workers ?? usualWorkers
  if (most === null || most >= MOST_LEAVES || progress.running < most || progress.pending === 0) return null
  return Math.min(MOST_LEAVES, most + Math.min(most, progress.pending))
}
