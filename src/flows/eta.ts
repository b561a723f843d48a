import type { FlowRunStatus, Progress } from '../kernel/flow-run.ts'

/**
 * When a flow run will have ended if it goes on as fast as it went so far. Null where nothing is done yet, or nothing is
 * left to do, or it is being cancelled. Things that go through a pipeline are looked at where there are some: they say
 * more than its few stages.
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
