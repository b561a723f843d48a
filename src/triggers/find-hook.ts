import type { Db, PreparedSql } from '../db/pool.ts'
import type { Cipher } from '../secrets/cipher.ts'
import { secretContext } from './hooks.ts'

/** A hook as a delivery finds it. None of these fields may be told to a sender that is not verified yet. */
export interface FoundHook {
  id: string
  projectId: string
  agentId: string
  isEnabled: boolean
  takesWebhooks: boolean
  /** The run that was started under the same webhook-id. */
  earlierRunId: string | null
  /** True if the last use of the hook was noted more than a minute ago. */
  isUseDue: boolean
  /** The database's clock. */
  now: Date
  /** The valid secrets: the current one, and each earlier one for a day after its rotation. */
  openSecrets(): string[]
}

const FIND: PreparedSql = {
  name: 'hook_find',
  text: `
    select h.id, h.project_id, h.agent_id, a.enabled, a.trigger_type, h.sealed_secret,
      array(select sealed from unnest(h.sealed_old_secrets, h.old_secrets_until) as old (sealed, until)
        where old.until > muster.now()) as sealed_old_secrets,
      h.last_used_at is null or h.last_used_at < muster.now() - interval '1 minute' as is_use_due,
      d.run_id as earlier_run_id, muster.now() as now
    from hooks h join agents a on a.id = h.agent_id and a.deleted_at is null
    join projects p on p.id = h.project_id and p.deleted_at is null
    left join hook_deliveries d on d.hook_id = h.id and d.webhook_id = $2
    where h.id = $1`,
}

interface FoundRow {
  id: string
  project_id: string
  agent_id: string
  enabled: boolean
  trigger_type: string
  sealed_secret: Buffer
  sealed_old_secrets: Buffer[]
  is_use_due: boolean
  earlier_run_id: string | null
  now: Date
}

/** Reads by primary keys only: every delivery calls this. Null also for a hook of a deleted agent or project. */
export async function findHook(
  db: Db,
  cipher: Cipher,
  hookId: string,
  webhookId: string | null,
): Promise<FoundHook | null> {
  const { rows } = await db.query<FoundRow>(FIND, [hookId, webhookId])
  const row = rows[0]
  if (!row) return null
  const sealed = [row.sealed_secret, ...row.sealed_old_secrets]
  return {
    id: row.id,
    projectId: row.project_id,
    agentId: row.agent_id,
    isEnabled: row.enabled,
    takesWebhooks: row.trigger_type === 'webhook',
    earlierRunId: row.earlier_run_id,
    isUseDue: row.is_use_due,
    now: row.now,
    openSecrets: () => sealed.map((each) => cipher.open(each, secretContext(row.project_id, row.id)).toString('utf8')),
  }
}
