import type { FlowRunStatus, Progress } from '../kernel/flow-run.ts'

/**
 * The instant at which a flow run will have ended if it goes on as fast as so far. Null where nothing is done yet,
 * nothing is left to do, or the run is being cancelled. If the run has items in pipelines, the items are counted:
 * they say more than the few stages.
 */
export function etaOf(run: {
  status: FlowRunStatus
  progress: Progress
  started_at: Date | null
  cancel_requested_at: Date | null
  read_at: Date
}): Date | null {
  const { status, progress, started_at, cancel_requested_at, read_at } = run
  if (status !== 'running' || started_at === null || cancel_requested_at !== null) return null
  const { total, completed, failed, skipped } = progress.items ?? progress
  const done = completed + failed + skipped
  if (done === 0 || done >= total) return null
  const elapsedMs = Math.max(0, read_at.getTime() - started_at.getTime())
  return new Date(started_at.getTime() + (elapsedMs * total) / done)
}
