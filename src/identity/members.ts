import { changeAudited, recordAudit } from '../audit/record.ts'
import { isForeignKeyViolation, isUniqueViolation } from '../db/failures.ts'
import { type RowOf, tellInstants } from '../db/instants.ts'
import { listPage, type PageQuery } from '../db/list-page.ts'
import type { Client, Db, Pool } from '../db/pool.ts'
import { inTransaction } from '../db/transaction.ts'
import type { Member } from '../kernel/access.ts'
import { conflict, notFound } from '../kernel/errors.ts'
import type { Page } from '../kernel/fields.ts'
import { newId } from '../kernel/id.ts'
import type { Actor } from '../kernel/principal.ts'
import type { Role } from '../kernel/role.ts'
import { sha256 } from '../secrets/hash.ts'
import { randomToken } from '../secrets/key-file.ts'

type MemberRow = RowOf<Omit<Member, 'status'>>

const COLUMNS = 'id, project_id, user_id, email, null::text as name, role, invitation_expires_at, created_at'
const SELECT = `select m.id, m.project_id, m.user_id, m.email, u.name, m.role, m.invitation_expires_at, m.created_at
  from members m left join auth.users u on u.id = m.user_id`

/** Returns the invitation's token once; Muster sends no mail, so the person who invites passes the link on. */
export async function inviteMember(
  db: Db,
  projectId: string,
  input: { email: string; role: Role },
  actor: Actor,
): Promise<{ member: Member; token: string }> {
  const id = newId()
  const token = randomToken()
  try {
    const [row] = await changeAudited<MemberRow>(db, {
      sql: `insert into members (id, project_id, email, role, invitation_hash, invitation_expires_at)
            values ($1, $2, $3, $4, $5, muster.now() + interval '7 days') returning ${COLUMNS}`,
      values: [id, projectId, input.email, input.role, sha256(token)],
      note: note('member.invite', actor, projectId, id, input),
    })
    if (!row) throw notFound('project')
    return { member: toMember(row), token }
  } catch (error) {
    if (isUniqueViolation(error, 'members_email')) {
      throw conflict(
        'That address is a member or has an invitation already. Remove that member to invite the address anew.',
      )
    }
    if (isForeignKeyViolation(error)) throw notFound('project')
    throw error
  }
}

export async function listMembers(db: Db, projectId: string, query: PageQuery): Promise<Page<Member>> {
  return listPage<MemberRow, Member>(db, {
    sql: `${SELECT} where m.project_id = $1`,
    values: [projectId],
    query,
    toItem: toMember,
  })
}

export async function changeMemberRole(
  pool: Pool,
  projectId: string,
  memberId: string,
  change: { role: Role; actor: Actor; mayLeaveNoAdmin: boolean },
): Promise<Member> {
  return inTransaction(pool, async (tx) => {
    const member = await lockMember(tx, projectId, memberId)
    if (member.role === change.role) return toMember(member)
    if (member.role === 'admin' && !change.mayLeaveNoAdmin) await requireAnotherAdmin(tx, projectId, member)
    await tx.query('update members set role = $2 where id = $1', [memberId, change.role])
    await recordAudit(tx, note('member.update', change.actor, projectId, memberId, { role: change.role }))
    return toMember({ ...member, role: change.role })
  })
}

export async function removeMember(
  pool: Pool,
  projectId: string,
  memberId: string,
  change: { actor: Actor; mayLeaveNoAdmin: boolean },
): Promise<void> {
  await inTransaction(pool, async (tx) => {
    const member = await lockMember(tx, projectId, memberId)
    if (member.role === 'admin' && !change.mayLeaveNoAdmin) await requireAnotherAdmin(tx, projectId, member)
    await tx.query('delete from members where id = $1', [memberId])
    await recordAudit(tx, note('member.remove', change.actor, projectId, memberId, { email: member.email }))
  })
}

/** Locks the project first: two admins who remove each other at once must not both succeed. */
async function lockMember(tx: Client, projectId: string, memberId: string): Promise<MemberRow> {
  await tx.query('select from projects where id = $1 for update', [projectId])
  const { rows } = await tx.query<MemberRow>(`${SELECT} where m.project_id = $1 and m.id = $2`, [projectId, memberId])
  const row = rows[0]
  if (!row) throw notFound('member')
  return row
}

async function requireAnotherAdmin(tx: Client, projectId: string, member: MemberRow): Promise<void> {
  if (member.user_id === null) return
  const { rowCount } = await tx.query(
    `select from members where project_id = $1 and id <> $2 and role = 'admin' and user_id is not null limit 1`,
    [projectId, member.id],
  )
  if (!rowCount) throw conflict('A project keeps at least one admin. Make another member admin first.')
}

function note(action: string, actor: Actor, projectId: string, memberId: string, details: Record<string, unknown>) {
  return { action, actor, projectId, targetType: 'member', targetId: memberId, details }
}

const toMember = (row: MemberRow): Member => ({
  ...tellInstants(row),
  status: row.user_id === null ? 'invited' : 'active',
})
