// The instance admin can give an account back to the owner of its address: another person may have held the invitation
// link and chosen the password. The admin passes the reset link on by hand.
import { changeAudited, recordAudit } from '../audit/record.ts'
import type { Db, Pool } from '../db/pool.ts'
import { inTransaction } from '../db/transaction.ts'
import { notFound } from '../kernel/errors.ts'
import type { Actor } from '../kernel/principal.ts'
import { hashPassword, sha256 } from '../secrets/hash.ts'
import { randomToken } from '../secrets/key-file.ts'
import { actorOfUser } from './users.ts'

export interface Reset {
  userId: string
  email: string
  expiresAt: Date
}

/** Returns the token once. An earlier link stops working; the account changes only when the link is used. */
export async function createReset(db: Db, userId: string, actor: Actor): Promise<Reset & { token: string }> {
  const token = randomToken()
  const [row] = await changeAudited<Reset>(db, {
    sql: `insert into auth.reset_links (user_id, token_hash, expires_at)
          select id, $2, muster.now() + interval '24 hours' from auth.users where id = $1
          on conflict (user_id) do update set token_hash = excluded.token_hash, created_at = muster.now(),
            expires_at = excluded.expires_at
          returning user_id as "userId", (select email from auth.users where id = $1) as email,
            expires_at as "expiresAt"`,
    values: [userId, sha256(token)],
    note: { action: 'user.reset', actor, projectId: null, targetType: 'user', targetId: userId },
  })
  if (!row) throw notFound('user')
  return { ...row, token }
}

/** The reset behind the link. A link that was used, has lapsed or was replaced counts as unknown. */
export async function getReset(db: Db, token: string): Promise<Reset> {
  const { rows } = await db.query<Reset>(
    `select u.id as "userId", u.email, r.expires_at as "expiresAt"
     from auth.reset_links r join auth.users u on u.id = r.user_id
     where r.token_hash = $1 and r.expires_at > muster.now()`,
    [sha256(token)],
  )
  const row = rows[0]
  if (!row) throw notFound('reset link')
  return row
}

/** Spends the link: the password is replaced, and sign-in sessions, links and trusted addresses end. */
export async function useReset(
  pool: Pool,
  token: string,
  password: string,
  from: Pick<Actor, 'requestId' | 'address'>,
): Promise<string> {
  await getReset(pool, token)
  const passwordHash = await hashPassword(password)
  return inTransaction(pool, async (tx) => {
    // Of two simultaneous requests one finds no row.
    const { rows } = await tx.query<{ user_id: string }>(
      'delete from auth.reset_links where token_hash = $1 and expires_at > muster.now() returning user_id',
      [sha256(token)],
    )
    const userId = rows[0]?.user_id
    if (userId === undefined) throw notFound('reset link')
    await tx.query('update auth.users set password_hash = $2 where id = $1', [userId, passwordHash])
    for (const table of ['sessions', 'sign_in_links', 'known_addresses']) {
      await tx.query(`delete from auth.${table} where user_id = $1`, [userId])
    }
    const actor = actorOfUser(userId, from)
    await recordAudit(tx, { action: 'user.reset_used', actor, projectId: null, targetType: 'user', targetId: userId })
    return userId
  })
}
