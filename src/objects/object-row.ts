import type { RowOf } from '../db/instants.ts'
import type { GraphObject } from '../kernel/object.ts'

export const OBJECT_COLUMNS =
  'id, type, key, properties, version, actor_type, actor_id, created_at, updated_at, deleted_at'

export type ObjectRow = RowOf<GraphObject>

export function toObject(row: ObjectRow): GraphObject {
  return {
    id: row.id,
    type: row.type,
    key: row.key,
    properties: row.properties,
    version: row.version,
    actor_type: row.actor_type,
    actor_id: row.actor_id,
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
    deleted_at: row.deleted_at?.toISOString() ?? null,
  }
}
