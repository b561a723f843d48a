import { recordAudit } from '../audit/record.ts'
import type { Db, Pool } from '../db/pool.ts'
import { inTransaction } from '../db/transaction.ts'
import { invalidRequest, notFound } from '../kernel/errors.ts'
import type { Actor } from '../kernel/principal.ts'
import { type Settings, type SettingsPatch, settingsFrom, settingsProblem } from '../kernel/project.ts'

export async function getSettings(db: Db, projectId: string): Promise<Settings> {
  return readSettings(db, projectId, '')
}

/** Loads the settings of many projects at once; deleted projects are absent. */
export async function loadSettings(db: Db, projectIds: readonly string[]): Promise<Map<string, Settings>> {
  const { rows } = await db.query<{ id: string; settings: Record<string, unknown> }>(
    'select id, settings from projects where id = any($1)',
    [projectIds],
  )
  return new Map(rows.map((row) => [row.id, settingsFrom(row.settings)]))
}

/** The settings after every change that is about to be committed. Null if there is no such project (any more). */
export async function getCommittedSettings(db: Db, projectId: string): Promise<Settings | null> {
  const { rows } = await db.query<{ settings: Record<string, unknown> }>(
    'select settings from projects where id = $1 and deleted_at is null for share',
    [projectId],
  )
  return rows[0] ? settingsFrom(rows[0].settings) : null
}

/**
 * Merges the patch over the stored settings. The row is locked, so two patches of different fields both hold. `onChange`
 * is called in the same transaction, after the change.
 */
export async function updateSettings(
  pool: Pool,
  projectId: string,
  patch: SettingsPatch,
  actor: Actor,
  onChange: (tx: Db) => Promise<void> = async () => {},
): Promise<Settings> {
  return inTransaction(pool, async (tx) => {
    const settings = settingsFrom({ ...(await readSettings(tx, projectId, 'for update')), ...patch })
    const problem = settingsProblem(settings)
    if (problem) throw invalidRequest(problem)
    if (Object.keys(patch).length === 0) return settings
    await tx.query('update projects set settings = settings || $2, updated_at = muster.now() where id = $1', [
      projectId,
      JSON.stringify(patch),
    ])
    await recordAudit(tx, {
      action: 'settings.update',
      actor,
      projectId,
      targetType: 'project',
      targetId: projectId,
      details: { changed: patch },
    })
    await onChange(tx)
    return settings
  })
}

async function readSettings(db: Db, projectId: string, lock: '' | 'for update'): Promise<Settings> {
  const { rows } = await db.query<{ settings: Record<string, unknown> }>(
    `select settings from projects where id = $1 and deleted_at is null ${lock}`,
    [projectId],
  )
  const row = rows[0]
  if (!row) throw notFound('project')
  return settingsFrom(row.settings)
}
