import type { GraphObject } from '../kernel/object.ts'

export const OBJECT_COLUMNS =
  'id, type, key, properties, version, actor_type, actor_id, created_at, updated_at, deleted_at'

type Instants = 'created_at' | 'updated_at'
export type ObjectRow = Omit<GraphObject, Instants | 'deleted_at'> &
  Record<Instants, Date> & { deleted_at: Date | null }

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
