// The number of tasks by status, as the bar and the counters of a flow run show it.
import type { FlowRun } from '../../../../src/kernel/flow-run.ts'
import { isUnderWay } from '../../api/flows.ts'
import type { ShownStatus, Totals } from './flow-store.ts'

export interface ShownCounts {
  counts: Readonly<Record<ShownStatus, number>>
  /** The pending tasks that no view lists, because they become known when they begin. */
  unlisted: number
}

/** The listed tasks, and as pending also the tasks that the flow run expects and that are not listed yet. */
export function shownCounts(
  { status, progress }: Pick<FlowRun, 'status' | 'progress'>,
  { counts, all }: Pick<Totals, 'counts' | 'all'>,
): ShownCounts {
  // Until the tasks are read, only the row of the flow run tells of them.
  if (all === 0) return { counts: countsOf(progress), unlisted: 0 }
  if (!isUnderWay({ status })) return { counts, unlisted: 0 }
  // The total alone would be too much: it counts each stage of a pipeline, which is one task here. The pending tasks
  // alone would be too many where the list is newer than the row.
  const unlisted = Math.max(0, Math.min(progress.total - all, progress.pending - counts.pending))
  return { counts: { ...counts, pending: counts.pending + unlisted }, unlisted }
}

const countsOf = ({ completed, running, failed, skipped, pending }: FlowRun['progress']): ShownCounts['counts'] => ({
  completed,
  running,
  blocked: 0,
  failed,
  skipped,
  pending,
})
