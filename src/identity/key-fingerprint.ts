import type { Db } from '../db/pool.ts'

/** The fingerprint of the key that seals this database's secrets; null if no server ever ran on the database. */
export async function readKeyFingerprint(db: Db): Promise<string | null> {
  const there = await db.query<{ found: boolean }>(`select to_regclass('public.instance') is not null as found`)
  if (!there.rows[0]?.found) return null
  const { rows } = await db.query<{ secret_key_fingerprint: string }>('select secret_key_fingerprint from instance')
  return rows[0]?.secret_key_fingerprint ?? null
}
