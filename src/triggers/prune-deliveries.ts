import { deleteInBatches } from '../db/in-batches.ts'
import type { Pool } from '../db/pool.ts'

const AT_ONCE = 5_000

/** A webhook-id is remembered for 30 days; senders give up long before. Returns the number of removed ids. */
export async function pruneDeliveries(pool: Pool, signal?: AbortSignal): Promise<number> {
  const sql = `delete from hook_deliveries where (hook_id, webhook_id) in (
    select hook_id, webhook_id from hook_deliveries
    where received_at < muster.now() - interval '30 days' order by received_at limit ${AT_ONCE})`
  return deleteInBatches(pool, { lock: 'retention', signal }, { sql, atOnce: AT_ONCE })
}
