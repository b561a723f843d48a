import { recordAudit } from '../audit/record.ts'
import { isUniqueViolation } from '../db/failures.ts'
import type { Client, Db, Pool } from '../db/pool.ts'
import { inTransaction } from '../db/transaction.ts'
import { conflict, forbidden, invalidRequest, notFound } from '../kernel/errors.ts'
import type { Actor } from '../kernel/principal.ts'
import type { Role } from '../kernel/role.ts'
import { hashPassword, sha256 } from '../secrets/hash.ts'
import { actorOfUser, checkPassword, createUser, findUserByEmail, type User } from './users.ts'

export interface Invitation {
  memberId: string
  projectId: string
  projectName: string
  email: string
  role: Role
  expiresAt: Date
}

/** The invitation behind the link. A link that was used, has lapsed or was withdrawn counts as unknown. */
export async function getInvitation(db: Db, token: string): Promise<Invitation> {
  const { rows } = await db.query<Invitation>(
    `select m.id as "memberId", m.project_id as "projectId", p.name as "projectName", m.email, m.role,
       m.invitation_expires_at as "expiresAt"
     from members m join projects p on p.id = m.project_id and p.deleted_at is null
     where m.invitation_hash = $1 and m.user_id is null and m.invitation_expires_at > muster.now()`,
    [sha256(token)],
  )
  const row = rows[0]
  if (!row) throw notFound('invitation')
  return row
}

/**
 * Makes the invited address a member. A new person gives a name and chooses a password. A person who has an account
 * proves it with its password or by being signed in, so that an invitation never takes over an account. The link's
 * holder learns whether there is an account only by using up the link: an address without an account is answered like a
 * wrong password, after the same work.
 */
export async function acceptInvitation(
  pool: Pool,
  invitation: Invitation,
  person: { token: string; name?: string | undefined; password?: string | undefined; signedInAs: User | null },
  caller: Actor,
): Promise<User> {
  const identify = await identifyPerson(pool, invitation, person)
  if (identify === null) {
    await recordAudit(pool, note('member.join_refused', invitation, caller))
    throw forbidden(
      'That is not the password of an account with this address. To make a new account, give a name, too, and choose a password. If the password of this account is lost, the instance admin can reset it.',
    )
  }
  try {
    return await inTransaction(pool, async (tx) => {
      const user = await identify(tx)
      await join(tx, person.token, user)
      await recordAudit(tx, note('member.join', invitation, actorOfUser(user.id, caller)))
      return user
    })
  } catch (error) {
    if (isUniqueViolation(error)) throw conflict('That account was made or joined a moment ago. Sign in instead.')
    throw error
  }
}

type Identify = (tx: Client) => Promise<User>

/** Null if the person proved nothing. */
async function identifyPerson(
  db: Db,
  { email }: Invitation,
  { name, password, signedInAs }: { name?: string | undefined; password?: string | undefined; signedInAs: User | null },
): Promise<Identify | null> {
  if (signedInAs?.email.toLowerCase() === email.toLowerCase()) return async () => signedInAs
  if (password === undefined) throw invalidRequest('password is needed.')
  if (name === undefined || (await findUserByEmail(db, email))) {
    const known = await checkPassword(db, email, password)
    return known && (async () => known)
  }
  const passwordHash = await hashPassword(password)
  return (tx) => createUser(tx, { email, name, passwordHash })
}

const note = (action: string, { projectId, memberId, email, role }: Invitation, actor: Actor) => ({
  action,
  actor,
  projectId,
  targetType: 'member',
  targetId: memberId,
  details: { email, role },
})

/** The where clause spends the link: of two simultaneous requests one finds no row. */
async function join(tx: Client, token: string, user: User): Promise<void> {
  const { rowCount } = await tx.query(
    `update members set user_id = $2, invitation_hash = null, invitation_expires_at = null, accepted_at = muster.now()
     where invitation_hash = $1 and user_id is null and invitation_expires_at > muster.now()`,
    [sha256(token), user.id],
  )
  if (rowCount !== 1) throw notFound('invitation')
}
