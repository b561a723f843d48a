// The hooks of an agent are addresses with which other systems start it. Secrets are shown once and stored sealed,
// bound to project and hook, so that a secret copied into another row cannot be opened.

import { randomBytes } from 'node:crypto'
import { getAgent } from '../agents/agents.ts'
import { changeAudited } from '../audit/record.ts'
import { type RowOf, tellInstants } from '../db/instants.ts'
import { listPage, type PageQuery } from '../db/list-page.ts'
import type { Db } from '../db/pool.ts'
import { conflict, notFound } from '../kernel/errors.ts'
import type { Page } from '../kernel/fields.ts'
import type { Hook, HookInput, NewHook } from '../kernel/hook.ts'
import { newId } from '../kernel/id.ts'
import type { Actor } from '../kernel/principal.ts'
import type { Cipher, SecretContext } from '../secrets/cipher.ts'

export interface HookParts {
  cipher: Cipher
  publicUrl: URL
}

export interface HookOwner {
  projectId: string
  agentId: string
}

type HookRow = RowOf<Omit<Hook, 'url'>>

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

/** Adds a new secret. The old secret holds for another day; earlier secrets hold until their own day has passed. */
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
  const values = [owner.projectId, owner.agentId, hookId]
  // A hook never changes its name, so that it may be read before the deletion.
  const named = await db.query<{ name: string }>(`select name from hooks where ${OF_OWNER}`, values)
  const rows = await changeAudited<{ id: string }>(db, {
    sql: `delete from hooks where ${OF_OWNER} returning id`,
    values,
    note: note('hook.delete', actor, owner, hookId, { name: named.rows[0]?.name }),
  })
  if (rows.length === 0) throw notFound('hook')
}

/** Removes the hooks of a deleted agent, whose own row may be kept for its runs. */
const OF_OWNER = `project_id = $1 and agent_id = $2 and hooks.id = $3
  and exists (select from agents where id = $2 and deleted_at is null)`

/** The context that binds a secret to its hook: a secret of another hook or project cannot be opened with it. */
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
  return { action, actor, projectId: owner.projectId, targetType: 'hook', targetId: hookId, details: about }
}

const toHook = (row: HookRow, publicUrl: URL): Hook => ({
  ...tellInstants(row),
  url: new URL(`/hooks/${row.id}`, publicUrl).href,
})
