import type { Db } from '../db/pool.ts'

const AT_ONCE = 5_000

/** A webhook-id is remembered for 30 days; senders give up long before. Answers how many went. */
export async function pruneDeliveries(db: Db): Promise<number> {
  let total = 0
  for (;;) {
    const { rowCount } = await db.query(
      `delete from hook_deliveries where (hook_id, webhook_id) in (
         select hook_id, webhook_id from hook_deliveries
         where received_at < muster.now() - interval '30 days' limit ${AT_ONCE})`,
    )
    total += rowCount ?? 0
    if ((rowCount ?? 0) < AT_ONCE) return total
  }
}
