import type { Db } from '../db/pool.ts'

/**
 * Binds the database to the key that seals its secrets. Answers whether this was the first start ever. With another key
 * everything sealed would be unreadable, so that start is refused instead of failing later, one secret at a time.
 */
export async function bindInstance(db: Db, keyFingerprint: string): Promise<{ isFirstStart: boolean }> {
  const inserted = await db.query(
    'insert into instance (secret_key_fingerprint) values ($1) on conflict (only_row) do nothing',
    [keyFingerprint],
  )
  if (inserted.rowCount === 1) return { isFirstStart: true }
  if (!(await isBoundTo(db, keyFingerprint))) {
    throw new Error(
      'This database was made with another secret key. Set MUSTER_SECRET_KEY to that key, or put its secret.key into the data folder.',
    )
  }
  return { isFirstStart: false }
}

export async function isBoundTo(db: Db, keyFingerprint: string): Promise<boolean> {
  const { rows } = await db.query<{ secret_key_fingerprint: string }>('select secret_key_fingerprint from instance')
  return rows[0]?.secret_key_fingerprint === keyFingerprint
}
