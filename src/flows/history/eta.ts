import type { FlowProgress, FlowRunStatus } from '../../kernel/flow-run.ts'
import type { ExpectedDuration } from './expectation.ts'

interface Foretold {
  status: FlowRunStatus
  progress: FlowProgress
  started_at: Date | null
  cancel_requested_at: Date | null
  /** The number of runs that wait for a person. */
  people_waits: number
  /** Milliseconds in which the flow run did nothing but wait for people. */
  waited: number
  read_at: Date
}

/**
 * The instant at which a flow run will have ended. Null if nobody can know: the run does not run, is being cancelled,
 * waits for a person, or has nothing left to do. Measured runs of the same flow decide; a run that takes longer needs
 * as much more time as its share of work that is left. Without measured runs the progress decides, and before the first
 * leaf has ended the estimate.
 */
export function etaOf(run: Foretold, expectation: ExpectedDuration | null = null): Date | null {
  const { status, progress, started_at, cancel_requested_at, people_waits, waited, read_at } = run
  if (status !== 'running' || started_at === null || cancel_requested_at !== null || people_waits > 0) return null
  const elapsedMs = Math.max(0, read_at.getTime() - started_at.getTime() - waited)
  const leftMs = timeLeft(progress, elapsedMs, expectation)
  return leftMs === null ? null : new Date(read_at.getTime() + leftMs)
}

/** If the run has items in pipelines, the items are counted: they say more than the few stages. */
function timeLeft(progress: FlowProgress, elapsedMs: number, expectation: ExpectedDuration | null): number | null {
  const { total, completed, failed, skipped } = progress.items ?? progress
  const done = completed + failed + skipped
  if (done >= total) return null
  const expectedLeftMs = expectation === null ? 0 : Math.max(0, expectation.ms - elapsedMs)
  if (expectation?.isMeasured) return expectedLeftMs > 0 ? expectedLeftMs : (expectation.ms * (total - done)) / total
  if (done > 0) return (elapsedMs * (total - done)) / done
  return expectedLeftMs > 0 ? expectedLeftMs : null
}
