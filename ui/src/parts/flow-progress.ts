// Words for how far a flow run is.
import type { FlowProgress } from '../../../src/kernel/flow-run.ts'
import { duration } from './figures.ts'

/** `status` is the status as people are told it. Only a flow run that goes on has an ETA. */
export const etaOf = (status: string, eta: string | null, now: number): string | null =>
  status === 'queued' || status === 'running' ? etaText(eta, now) : null

/** A guess is not told to the second. */
function etaText(eta: string | null, now: number): string {
  if (eta === null) return 'not known yet'
  const left = Date.parse(eta) - now
  if (left < 2_000) return 'any moment'
  if (left < 10_000) return `${Math.round(left / 1_000)}s`
  return duration(left < 60_000 ? 5_000 * Math.round(left / 5_000) : left)
}

/** Tasks that were left out count as done only where nothing went wrong. A flow run under way has 99 at most. */
export function percentDone(run: { status: string; progress: FlowProgress }): number {
  const { total, completed, failed, skipped } = run.progress
  const isWell = ['queued', 'running', 'completed'].includes(run.status)
  const done = isWell ? completed + failed + skipped : completed
  if (run.status === 'completed') return 100
  const percent = total === 0 ? 0 : Math.floor((100 * done) / total)
  return isWell ? Math.min(99, percent) : percent
}
