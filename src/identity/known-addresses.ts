// The addresses from which a person has signed in. Guesses from other addresses use up the strangers' tries only.
import type { Db } from '../db/pool.ts'

const MOST_PER_USER = 50
export const KNOWN_DAYS = 180

/** `client` is an address, or a network that counts as one client. */
export async function isKnownAddress(db: Db, email: string, client: string): Promise<boolean> {
  const { rowCount } = await db.query(
    `select from auth.known_addresses k join auth.users u on u.id = k.user_id
     where lower(u.email) = lower($1) and k.client = $2`,
    [email, client],
  )
  return rowCount === 1
}

export async function noteAddress(db: Db, userId: string, client: string): Promise<void> {
  await db.query(
    `insert into auth.known_addresses (user_id, client) values ($1, $2)
     on conflict (user_id, client) do update set last_used_at = muster.now()`,
    [userId, client],
  )
  await db.query(
    `delete from auth.known_addresses where user_id = $1 and client in
       (select client from auth.known_addresses where user_id = $1 order by last_used_at desc, client offset $2)`,
    [userId, MOST_PER_USER],
  )
}
