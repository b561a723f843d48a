import type { Db } from '../db/pool.ts'

/** Removes sessions and links that can no longer be used. Invitations stay: an admin wants to see that one lapsed. */
export async function pruneIdentity(db: Db): Promise<void> {
  await db.query('delete from auth.sessions where expires_at <= muster.now()')
  await db.query('delete from auth.sign_in_links where expires_at <= muster.now()')
}
