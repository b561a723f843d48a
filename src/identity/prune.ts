import { deleteInBatches } from '../db/in-batches.ts'
import type { Pool } from '../db/pool.ts'
import { KNOWN_DAYS } from './known-addresses.ts'

const AT_ONCE = 5_000

/** Removes sign-in sessions and links that cannot be used any more. Invitations stay, for an admin to see. */
export async function pruneIdentity(pool: Pool, signal?: AbortSignal): Promise<void> {
  const sessions = `delete from auth.sessions where id in (
    select id from auth.sessions where expires_at <= muster.now() order by expires_at limit ${AT_ONCE})`
  const links = `delete from auth.sign_in_links where token_hash in (
    select token_hash from auth.sign_in_links where expires_at <= muster.now() limit ${AT_ONCE})`
  const resets = `delete from auth.reset_links where user_id in (
    select user_id from auth.reset_links where expires_at <= muster.now() order by expires_at limit ${AT_ONCE})`
  const addresses = `delete from auth.known_addresses where (user_id, client) in (
    select user_id, client from auth.known_addresses
    where last_used_at < muster.now() - interval '${KNOWN_DAYS} days' order by last_used_at limit ${AT_ONCE})`
  for (const sql of [sessions, links, resets, addresses]) {
    await deleteInBatches(pool, { lock: 'retention', signal }, { sql, atOnce: AT_ONCE })
  }
}
