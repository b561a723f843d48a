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
  accountExists: boolean
}

/** What the link stands for, while it is neither used nor lapsed nor withdrawn; otherwise it is unknown. */
export async function getInvitation(db: Db, token: string): Promise<Invitation> {
  const { rows } = await db.query<Invitation>(
    `select m.id as "memberId", m.project_id as "projectId", p.name as "projectName", m.email, m.role,
       m.invitation_expires_at as "expiresAt",
       exists (select from auth.users u where lower(u.email) = lower(m.email)) as "accountExists"
     from members m join projects p on p.id = m.project_id
     where m.invitation_hash = $1 and m.user_id is null and m.invitation_expires_at > muster.now()`,
    [sha256(token)],
  )
  const row = rows[0]
  if (!row) throw notFound('invitation')
  return row
}

/**
 * Makes the invited address a member. A new person gives a name and chooses a password; someone who has an account
 * proves it with its password or by being signed in, so that an invitation never takes an account over.
 */
export async function acceptInvitation(
  pool: Pool,
  token: string,
  person: { name?: string | undefined; password?: string | undefined; signedInAs: User | null },
  from: Pick<Actor, 'requestId' | 'address'>,
): Promise<User> {
  const invitation = await getInvitation(pool, token)
  const known = await findUserByEmail(pool, invitation.email)
  const identify = known ? await proveAccount(pool, known, person) : await prepareAccount(invitation.email, person)
  try {
    return await inTransaction(pool, async (tx) => {
      const user = await identify(tx)
      await join(tx, token, user)
      await recordAudit(tx, {
        action: 'member.join',
        actor: actorOfUser(user.id, from),
        projectId: invitation.projectId,
        targetType: 'member',
        targetId: invitation.memberId,
        details: { email: invitation.email, role: invitation.role },
      })
      return user
    })
  } catch (error) {
    if (isUniqueViolation(error)) throw conflict('That account was made or joined a moment ago. Sign in instead.')
    throw error
  }
}

type Identify = (tx: Client) => Promise<User>

async function proveAccount(
  db: Db,
  known: User,
  person: { password?: string | undefined; signedInAs: User | null },
): Promise<Identify> {
  if (person.signedInAs?.id === known.id) return async () => known
  if (person.password === undefined) throw invalidRequest('password is needed: this address has an account.')
  if (!(await checkPassword(db, known.email, person.password))) {
    throw forbidden('That is not the password of the account with this address.')
  }
  return async () => known
}

async function prepareAccount(
  email: string,
  person: { name?: string | undefined; password?: string | undefined },
): Promise<Identify> {
  const { name, password } = person
  if (name === undefined || password === undefined) throw invalidRequest('name and password are needed.')
  const passwordHash = await hashPassword(password)
  return (tx) => createUser(tx, { email, name, passwordHash })
}

/** The where clause spends the link: of two that come at once one finds no row. */
async function join(tx: Client, token: string, user: User): Promise<void> {
  const { rowCount } = await tx.query(
    `update members set user_id = $2, invitation_hash = null, invitation_expires_at = null, accepted_at = muster.now()
     where invitation_hash = $1 and user_id is null and invitation_expires_at > muster.now()`,
    [sha256(token), user.id],
  )
  if (rowCount !== 1) throw notFound('invitation')
}
