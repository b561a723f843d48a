import type { Db } from '../db/pool.ts'
import type { AuditEntry } from '../kernel/access.ts'
import { invalidRequest } from '../kernel/errors.ts'
import type { Page } from '../kernel/fields.ts'

interface AuditRow {
  seq: number
  id: string
  project_id: string | null
  action: string
  actor_type: AuditEntry['actor']['type']
  actor_id: string | null
  target_type: string | null
  target_id: string | null
  details: Record<string, unknown>
  request_id: string | null
  address: string | null
  at: Date
}

/** Newest first. `projectId` null lists the whole instance. The cursor is the seq of the last entry seen. */
export async function listAudit(
  db: Db,
  query: { projectId: string | null; limit: number; cursor?: string | undefined },
): Promise<Page<AuditEntry>> {
  const before = query.cursor === undefined ? Number.MAX_SAFE_INTEGER : Number(query.cursor)
  if (query.cursor !== undefined && !/^[1-9]\d{0,14}$/.test(query.cursor))
    throw invalidRequest('cursor is not one that this list gave.')
  const { rows } = await db.query<AuditRow>(
    `select seq, id, project_id, action, actor_type, actor_id, target_type, target_id, details, request_id, address, at
     from audit_log where seq < $1 ${query.projectId === null ? '' : 'and project_id = $3'}
     order by seq desc limit $2`,
    [before, query.limit + 1, ...(query.projectId === null ? [] : [query.projectId])],
  )
  const items = rows.slice(0, query.limit).map(toEntry)
  const last = items.at(-1)
  return { items, next_cursor: rows.length > query.limit && last ? String(last.seq) : null }
}

function toEntry(row: AuditRow): AuditEntry {
  const { actor_type, actor_id, target_type, target_id, at, ...rest } = row
  return {
    ...rest,
    actor: { type: actor_type, id: actor_id },
    target: { type: target_type, id: target_id },
    at: at.toISOString(),
  }
}
