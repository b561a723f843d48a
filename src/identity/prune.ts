import { deleteInBatches } from '../db/in-batches.ts'
import type { Pool } from '../db/pool.ts'

const AT_ONCE = 5_000

/** Removes sessions and links that can no longer be used. Invitations stay: an admin wants to see that one lapsed. */
export async function pruneIdentity(pool: Pool, signal?: AbortSignal): Promise<void> {
  const sessions = `delete from auth.sessions where id in (
    select id from auth.sessions where expires_at <= muster.now() order by expires_at limit ${AT_ONCE})`
  const links = `delete from auth.sign_in_links where token_hash in (
    select token_hash from auth.sign_in_links where expires_at <= muster.now() limit ${AT_ONCE})`
  for (const sql of [sessions, links]) {
    await deleteInBatches(pool, { lock: 'retention', signal }, { sql, atOnce: AT_ONCE })
  }
}
