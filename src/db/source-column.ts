// Columns of agents and flows, which may follow the code of an app module. `app_file` names the module, and is null if
// requests made the row. `app_definition` is the entry as the code last described it, and null if the code no longer
// has the entry.
import type { Db } from './pool.ts'

export type CodeTable = 'agents' | 'flows'

/** `source` of a row. */
export const SOURCE_COLUMN = `case when app_file is null then 'api' else 'app' end as source`

/** True for a row that an app module made, and whose code no longer has it. */
export const LEFT_CODE = '(app_file is not null and app_definition is null)'

export async function isInCode(db: Db, table: CodeTable, id: string): Promise<boolean> {
  const { rowCount } = await db.query(`select from ${table} where id = $1 and app_definition is not null`, [id])
  return rowCount === 1
}
