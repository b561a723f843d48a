import type { Db } from '../db/pool.ts'
import { sha256 } from '../secrets/hash.ts'
import { randomToken } from '../secrets/key-file.ts'

/** A link that signs one person in, once, within the hour. Only the hash of its token is stored. */
export async function createSignInLink(db: Db, userId: string): Promise<string> {
  const token = randomToken()
  await db.query(
    `insert into auth.sign_in_links (token_hash, user_id, expires_at) values ($1, $2, muster.now() + interval '1 hour')`,
    [sha256(token), userId],
  )
  return token
}

/** Spends the token: of two simultaneous requests exactly one gets the user. */
export async function spendSignInLink(db: Db, token: string): Promise<string | null> {
  const { rows } = await db.query<{ user_id: string; live: boolean }>(
    'delete from auth.sign_in_links where token_hash = $1 returning user_id, expires_at > muster.now() as live',
    [sha256(token)],
  )
  const row = rows[0]
  return row?.live ? row.user_id : null
}
