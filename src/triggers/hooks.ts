// The hooks of an agent: addresses at which other systems start it. Secrets are shown once and sealed, with project and
// hook bound to them: a row copied elsewhere opens nothing.
import { randomBytes } from 'node:crypto'
import { getAgent } from '../agents/agents.ts'
import { changeAudited } from '../audit/record.ts'
import { listPage, type PageQuery } from '../db/list-page.ts'
import type { Db } from '../db/pool.ts'
import { conflict, notFound } from '../kernel/errors.ts'
import type { Page } from '../kernel/fields.ts'
import type { Hook, HookInput, NewHook } from '../kernel/hook.ts'
import { newId } from '../kernel/id.ts'
import type { Actor } from '../kernel/principal.ts'
import type { Cipher, SecretContext } from '../secrets/cipher.ts'

/** The parts from which the answers of this store are made. */
export interface HookParts {
  cipher: Cipher
  publicUrl: URL
}

/** The owner of hooks; both ids were checked to be ids. */
export interface HookOwner {
  projectId: string
  agentId: string
}

interface HookRow {
  id: string
  name: string
  created_at: Date
  last_used_at: Date | null
  old_secret_until: Date | null
}

const COLUMNS = `id, name, created_at, last_used_at,
  case when old_secrets_until[1] > muster.now() then old_secrets_until[1] end as old_secret_until`

/** More rotations than this within a day end the oldest secret early. */
const MOST_OLD_SECRETS = 20

export async function createHook(
  db: Db,
  parts: HookParts,
  owner: HookOwner,
  input: HookInput,
  actor: Actor,
): Promise<NewHook> {
  const id = newId()
  const secret = makeSecret()
  const [row] = await changeAudited<HookRow>(db, {
    sql: `insert into hooks (id, project_id, agent_id, name, sealed_secret)
          select $1, project_id, id, $4, $5 from agents
          where id = $3 and project_id = $2 and deleted_at is null and trigger_type = 'webhook' returning ${COLUMNS}`,
    values: [id, owner.projectId, owner.agentId, input.name, seal(parts.cipher, owner, id, secret)],
    note: note('hook.create', actor, owner, id, { name: input.name }),
  })
  if (row) return { ...toHook(row, parts.publicUrl), secret }
  await getAgent(db, owner.projectId, owner.agentId)
  throw notForHooks()
}

export async function listHooks(db: Db, publicUrl: URL, owner: HookOwner, query: PageQuery): Promise<Page<Hook>> {
  const agent = await getAgent(db, owner.projectId, owner.agentId)
  return listPage<HookRow, Hook>(db, {
    sql: `select ${COLUMNS} from hooks where agent_id = $1`,
    values: [agent.id],
    query,
    toItem: (row) => toHook(row, publicUrl),
  })
}

/** From then on both secrets hold, the old one for a day, and earlier ones as long as they were promised. */
export async function rotateHook(
  db: Db,
  parts: HookParts,
  owner: HookOwner,
  hookId: string,
  actor: Actor,
): Promise<NewHook> {
  const secret = makeSecret()
  const [row] = await changeAudited<HookRow>(db, {
    sql: `update hooks set sealed_secret = $4,
            sealed_old_secrets = (sealed_secret || sealed_old_secrets)[1:${MOST_OLD_SECRETS}],
            old_secrets_until = ((muster.now() + interval '24 hours') || old_secrets_until)[1:${MOST_OLD_SECRETS}]
          where ${OF_OWNER} and exists (select from agents where id = $2 and trigger_type = 'webhook')
          returning ${COLUMNS}`,
    values: [owner.projectId, owner.agentId, hookId, seal(parts.cipher, owner, hookId, secret)],
    note: note('hook.rotate', actor, owner, hookId),
  })
  if (row) return { ...toHook(row, parts.publicUrl), secret }
  const { rowCount } = await db.query(`select from hooks where ${OF_OWNER}`, [owner.projectId, owner.agentId, hookId])
  throw rowCount === 0 ? notFound('hook') : notForHooks()
}

export async function deleteHook(db: Db, owner: HookOwner, hookId: string, actor: Actor): Promise<void> {
  const rows = await changeAudited<{ id: string }>(db, {
    sql: `delete from hooks where ${OF_OWNER} returning id`,
    values: [owner.projectId, owner.agentId, hookId],
    note: note('hook.delete', actor, owner, hookId),
  })
  if (rows.length === 0) throw notFound('hook')
}

/** A hook goes with its agent, also where the agent's row is kept for the sake of its runs. */
const OF_OWNER = `project_id = $1 and agent_id = $2 and hooks.id = $3
  and exists (select from agents where id = $2 and deleted_at is null)`

/** The context that binds secrets to their hook: those of another hook or project do not open in its place. */
export const secretContext = (projectId: string, hookId: string): SecretContext => ({
  owner: projectId,
  name: `hook:${hookId}`,
})

const makeSecret = (): string => `whsec_${randomBytes(32).toString('base64')}`

const seal = (cipher: Cipher, { projectId }: HookOwner, hookId: string, secret: string): Buffer =>
  cipher.seal(secret, secretContext(projectId, hookId))

const notForHooks = () => conflict('Only an agent with trigger_type webhook has hooks. Change its trigger_type first.')

function note(action: string, actor: Actor, owner: HookOwner, hookId: string, details: Record<string, unknown> = {}) {
  const about = { agent_id: owner.agentId, ...details }
  return {
    action,
    actor,
    projectId: owner.projectId,
    targetType: 'hook',
    targetId: hookId,
    details: about,
  }
}

function toHook({ id, name, ...row }: HookRow, publicUrl: URL): Hook {
  return {
    id,
    name,
    url: new URL(`/hooks/${id}`, publicUrl).href,
    created_at: row.created_at.toISOString(),
    last_used_at: row.last_used_at?.toISOString() ?? null,
    old_secret_until: row.old_secret_until?.toISOString() ?? null,
  }
}
