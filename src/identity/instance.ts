import type { Db } from '../db/pool.ts'
import { newId } from '../kernel/id.ts'

export interface Instance {
  /** The id never changes: the instance admin acts under it. */
  id: string
  isFirstStart: boolean
}

/**
 * Binds the database to the key that seals its secrets: a start with another key is refused instead of failing later,
 * one secret at a time.
 */
export async function bindInstance(db: Db, keyFingerprint: string): Promise<Instance> {
  const inserted = await db.query<{ id: string }>(
    'insert into instance (id, secret_key_fingerprint) values ($1, $2) on conflict (only_row) do nothing returning id',
    [newId(), keyFingerprint],
  )
  if (inserted.rows[0]) return { id: inserted.rows[0].id, isFirstStart: true }
  if (!(await isBoundTo(db, keyFingerprint))) {
    throw new Error(
      'This database was made with another secret key. Set MUSTER_SECRET_KEY to that key, or put its secret.key into the data folder.',
    )
  }
  const { rows } = await db.query<{ id: string }>('select id from instance')
  if (!rows[0]) throw new Error('the instance has no row')
  return { id: rows[0].id, isFirstStart: false }
}

export async function isBoundTo(db: Db, keyFingerprint: string): Promise<boolean> {
  const { rows } = await db.query<{ secret_key_fingerprint: string }>('select secret_key_fingerprint from instance')
  return rows[0]?.secret_key_fingerprint === keyFingerprint
}
