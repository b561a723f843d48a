// Sign-in sessions of the console. The token is 256 random bits in an HttpOnly cookie; the database holds its SHA-256,
// so a leaked dump opens nothing. better-auth is not used: it stores the token in clear, and costs 0.45 s and 55 MB at
// each start (measured) in place of one table.
import { type RowOf, tellInstants } from '../db/instants.ts'
import type { Db } from '../db/pool.ts'
import type { ListedSession } from '../kernel/access.ts'
import { newId } from '../kernel/id.ts'
import { sha256 } from '../secrets/hash.ts'
import { randomToken } from '../secrets/key-file.ts'

/** A session ends this long after its last use, and this long after its sign-in in any case. */
const SESSION_DAYS = 30
export const MOST_SESSION_DAYS = 90

export interface SignedIn {
  sessionId: string
  userId: string
  instanceAdmin: boolean
}

/** Returns the token for the cookie; it is stored nowhere else. */
export async function createSession(
  db: Db,
  userId: string,
  from: { address: string | null; userAgent: string | null },
): Promise<{ sessionId: string; token: string }> {
  const sessionId = newId()
  const token = randomToken()
  await db.query(
    `insert into auth.sessions (id, user_id, token_hash, address, user_agent, expires_at)
     values ($1, $2, $3, $4, $5, muster.now() + make_interval(days => $6))`,
    [sessionId, userId, sha256(token), from.address, from.userAgent?.slice(0, 300) ?? null, SESSION_DAYS],
  )
  return { sessionId, token }
}

/** The live session behind a cookie. Its use is noted, and its life extended, at most once a minute. */
export async function findSession(db: Db, token: string): Promise<SignedIn | null> {
  const { rows } = await db.query<{ id: string; user_id: string; instance_admin: boolean }>(
    `with found as (
       select s.id, s.user_id, s.last_seen_at, u.instance_admin from auth.sessions s join auth.users u on u.id = s.user_id
       where s.token_hash = $1 and s.expires_at > muster.now() and s.created_at > muster.now() - make_interval(days => $3)
     ), seen as (
       update auth.sessions set last_seen_at = muster.now(), expires_at =
         least(muster.now() + make_interval(days => $2), sessions.created_at + make_interval(days => $3))
       from found where sessions.id = found.id and found.last_seen_at < muster.now() - interval '1 minute'
     )
     select id, user_id, instance_admin from found`,
    [sha256(token), SESSION_DAYS, MOST_SESSION_DAYS],
  )
  const row = rows[0]
  return row ? { sessionId: row.id, userId: row.user_id, instanceAdmin: row.instance_admin } : null
}

export async function listSessions(db: Db, userId: string): Promise<Omit<ListedSession, 'current'>[]> {
  const { rows } = await db.query<RowOf<Omit<ListedSession, 'current'>>>(
    `select id, address, user_agent, created_at, last_seen_at, expires_at from auth.sessions
     where user_id = $1 and expires_at > muster.now() order by created_at desc limit 200`,
    [userId],
  )
  return rows.map(tellInstants)
}

export async function endSession(db: Db, userId: string, sessionId: string): Promise<boolean> {
  const { rowCount } = await db.query('delete from auth.sessions where id = $1 and user_id = $2', [sessionId, userId])
  return rowCount === 1
}

export async function endSessionOfToken(db: Db, token: string): Promise<void> {
  await db.query('delete from auth.sessions where token_hash = $1', [sha256(token)])
}

export async function endOtherSessions(db: Db, userId: string, keptSessionId: string): Promise<void> {
  await db.query('delete from auth.sessions where user_id = $1 and id <> $2', [userId, keptSessionId])
}
