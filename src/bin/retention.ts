// Removes lapsed rows: old runs of projects that limit how long they keep them, and rows that are useless after a time.
// One process at a time removes them in small batches.
import { pruneIdempotencyKeys } from '../api/http/idempotency.ts'
import type { Pool } from '../db/pool.ts'
import { pruneEvals } from '../evals/prune-evals.ts'
import { pruneFlowRuns } from '../flows/history/prune-flow-runs.ts'
import { pruneIdentity } from '../identity/prune.ts'
import { pruneMessages } from '../org/prune-messages.ts'
import { pruneRuns, readRetentions } from '../runs/prune-runs.ts'
import { pruneCheckpoints } from '../supervisor/checkpoints/remove-checkpoints.ts'
import { pruneTasks } from '../tasks/prune-tasks.ts'
import { pruneDeliveries } from '../triggers/prune-deliveries.ts'
import { pruneEntries } from '../triggers/prune-entries.ts'

/** `signal` ends the work after the current batch. */
export async function removeLapsed(pool: Pool, signal?: AbortSignal): Promise<void> {
  await pruneIdentity(pool, signal)
  await pruneIdempotencyKeys(pool, signal)
  await pruneDeliveries(pool, signal)
  const retentions = await readRetentions(pool)
  for (const retention of retentions) await pruneFlowRuns(pool, retention, signal)
  await pruneRuns(pool, signal)
  // Checkpoints, tasks and entries stay as long as their runs, so they are removed after the runs.
  for (const retention of retentions) {
    await pruneCheckpoints(pool, retention, signal)
    await pruneTasks(pool, retention, signal)
    await pruneEntries(pool, retention, signal)
    await pruneMessages(pool, retention, signal)
    await pruneEvals(pool, retention, signal)
  }
}
