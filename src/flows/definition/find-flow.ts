import type { Db } from '../../db/pool.ts'
import { LEFT_CODE } from '../../db/source-column.ts'
import { isId } from '../../kernel/id.ts'
import { findFlowTemplate, flowTemplates } from '../templates/templates.ts'

const MOST_NAMES = 1_000

interface NamedFlow {
  /** Null for a template. */
  id: string | null
  root: unknown
  enabled: boolean
  /** True if an app module made the flow, and its code no longer has it. */
  has_left_code: boolean
}

/** A stored flow by its id or name, else a template. With `isHeld` it cannot be deleted or renamed until the commit. */
export async function findFlow(
  db: Db,
  projectId: string,
  nameOrId: string,
  { isHeld = false } = {},
): Promise<NamedFlow | null> {
  const { rows } = await db.query<NamedFlow>(
    `select id, root, enabled, ${LEFT_CODE} as has_left_code from flows where project_id = $1 and (name = $2 or id = $3)
     order by (id = $3) desc nulls last limit 1 ${isHeld ? 'for share' : ''}`,
    [projectId, nameOrId, isId(nameOrId) ? nameOrId : null],
  )
  if (rows[0]) return rows[0]
  const template = findFlowTemplate(nameOrId)
  return template ? { id: null, root: template.root, enabled: true, has_left_code: false } : null
}

export async function flowNames(db: Db, projectId: string): Promise<string[]> {
  const { rows } = await db.query<{ name: string }>('select name from flows where project_id = $1 limit $2', [
    projectId,
    MOST_NAMES,
  ])
  return [...flowTemplates.map(({ name }) => name), ...rows.map(({ name }) => name)]
}
