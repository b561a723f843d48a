import { recordAudit } from '../audit/record.ts'
import type { Db } from '../db/pool.ts'
import { newId } from '../kernel/id.ts'
import { type Actor, systemActor } from '../kernel/principal.ts'
import type { Role } from '../kernel/role.ts'
import { hashPassword, spendPasswordTime, verifyPassword } from '../secrets/hash.ts'

export interface User {
  id: string
  email: string
  name: string
  instanceAdmin: boolean
  hasPassword: boolean
}

interface UserRow {
  id: string
  email: string
  name: string
  instance_admin: boolean
  password_hash: string | null
}

/** The person behind the sign-in link that every start prints. Muster sends no mail, so the address is only a name. */
const INSTANCE_ADMIN_EMAIL = 'admin@muster.local'

const COLUMNS = 'id, email, name, instance_admin, password_hash'

export async function findUserByEmail(db: Db, email: string): Promise<User | null> {
  return toUser(await rowByEmail(db, email))
}

export async function getUser(db: Db, userId: string): Promise<User | null> {
  const { rows } = await db.query<UserRow>(`select ${COLUMNS} from auth.users where id = $1`, [userId])
  return toUser(rows[0])
}

export async function createUser(db: Db, input: { email: string; name: string; passwordHash: string }): Promise<User> {
  const user = { id: newId(), email: input.email, name: input.name, instanceAdmin: false, hasPassword: true }
  await db.query('insert into auth.users (id, email, name, password_hash) values ($1, $2, $3, $4)', [
    user.id,
    user.email,
    user.name,
    input.passwordHash,
  ])
  return user
}

/** The instance admin is made at the first start and kept; two servers may call this at once. */
export async function ensureInstanceAdmin(db: Db): Promise<User> {
  const { rows } = await db.query<UserRow>(
    `insert into auth.users (id, email, name, instance_admin) values ($1, $2, 'Instance admin', true)
     on conflict (lower(email)) do update set instance_admin = true returning ${COLUMNS}`,
    [newId(), INSTANCE_ADMIN_EMAIL],
  )
  const user = toUser(rows[0])
  if (!user) throw new Error('the instance admin could not be stored')
  return user
}

/** The user if the password is right, else null. An unknown address costs the same work as a wrong password. */
export async function checkPassword(db: Db, email: string, password: string): Promise<User | null> {
  const row = await rowByEmail(db, email)
  if (!row?.password_hash) {
    await spendPasswordTime(password)
    return null
  }
  return (await verifyPassword(password, row.password_hash)) ? toUser(row) : null
}

/** True if the current password is right. A person who never chose a password has none to repeat. */
export async function mayChangePassword(db: Db, userId: string, current: string | undefined): Promise<boolean> {
  const { rows } = await db.query<UserRow>(`select ${COLUMNS} from auth.users where id = $1`, [userId])
  const stored = rows[0]?.password_hash
  if (!stored) return true
  return current !== undefined && (await verifyPassword(current, stored))
}

/** Sets a new password; the caller ends the other sign-in sessions in the same transaction. */
export async function setPassword(db: Db, userId: string, password: string, actor: Actor): Promise<void> {
  await db.query('update auth.users set password_hash = $2 where id = $1', [userId, await hashPassword(password)])
  await recordAudit(db, {
    action: 'user.password',
    actor,
    projectId: null,
    targetType: 'user',
    targetId: userId,
  })
}

/** The role of a person in a project; null for a person who is no member. Read afresh at every request. */
export async function roleIn(db: Db, userId: string, projectId: string): Promise<Role | null> {
  const { rows } = await db.query<{ role: Role }>(
    `select m.role from members m join projects p on p.id = m.project_id and p.deleted_at is null
     where m.user_id = $1 and m.project_id = $2`,
    [userId, projectId],
  )
  return rows[0]?.role ?? null
}

export async function projectsOf(db: Db, userId: string): Promise<{ id: string; name: string; role: Role }[]> {
  const { rows } = await db.query<{ id: string; name: string; role: Role }>(
    `select projects.id, projects.name, members.role from members join projects on projects.id = members.project_id
     where members.user_id = $1 and projects.deleted_at is null order by projects.name, projects.id limit 1000`,
    [userId],
  )
  return rows
}

export const actorOfUser = (userId: string, from: Pick<Actor, 'requestId' | 'address'> = systemActor): Actor => ({
  type: 'user',
  id: userId,
  requestId: from.requestId,
  address: from.address,
})

async function rowByEmail(db: Db, email: string): Promise<UserRow | undefined> {
  const { rows } = await db.query<UserRow>(`select ${COLUMNS} from auth.users where lower(email) = lower($1)`, [email])
  return rows[0]
}

function toUser(row: UserRow | undefined): User | null {
  return row
    ? {
        id: row.id,
        email: row.email,
        name: row.name,
        instanceAdmin: row.instance_admin,
        hasPassword: row.password_hash !== null,
      }
    : null
}
