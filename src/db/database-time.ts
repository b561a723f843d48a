import type { Db } from './pool.ts'

/** The time of the database, the only clock that all processes share. */
export async function databaseTime(db: Db): Promise<Date> {
  const { rows } = await db.query<{ now: Date }>('select muster.now() as now')
  const now = rows[0]?.now
  if (!now) throw new Error('the database told no time')
  return now
}
