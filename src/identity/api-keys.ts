import { changeAudited } from '../audit/record.ts'
import { type RowOf, tellInstants } from '../db/instants.ts'
import { listPage, type PageQuery } from '../db/list-page.ts'
import type { Db } from '../db/pool.ts'
import type { Key, KeyInput } from '../kernel/access.ts'
import { invalidRequest, notFound } from '../kernel/errors.ts'
import type { Page } from '../kernel/fields.ts'
import { newId } from '../kernel/id.ts'
import type { Actor } from '../kernel/principal.ts'
import type { Role } from '../kernel/role.ts'
import { sha256 } from '../secrets/hash.ts'
import { makeKey } from './key-format.ts'

type KeyRow = RowOf<Key>

const COLUMNS = 'id, project_id, name, role, prefix, expires_at, last_used_at, created_at'

/** Returns the key in clear, once; only its hash is stored. */
export async function createKey(
  db: Db,
  projectId: string,
  input: KeyInput,
  actor: Actor,
): Promise<Key & { key: string }> {
  const id = newId()
  const { key, prefix } = makeKey()
  // The where clause refuses an expiry in the past by the database's clock and, by the join, an unknown project.
  const [row] = await changeAudited<KeyRow>(db, {
    sql: `insert into api_keys (id, project_id, name, role, prefix, key_hash, expires_at)
          select $1, id, $3, $4, $5, $6, $7::timestamptz from projects
          where id = $2 and deleted_at is null and ($7::timestamptz is null or $7::timestamptz > muster.now()) returning ${COLUMNS}`,
    values: [id, projectId, input.name, input.role, prefix, sha256(key), input.expires_at ?? null],
    note: {
      action: 'key.create',
      actor,
      projectId,
      targetType: 'key',
      targetId: id,
      details: { name: input.name, role: input.role, prefix },
    },
  })
  if (!row) throw input.expires_at ? invalidRequest('expires_at must be in the future.') : notFound('project')
  return { ...toKey(row), key }
}

export async function listKeys(db: Db, projectId: string, query: PageQuery): Promise<Page<Key>> {
  return listPage<KeyRow, Key>(db, {
    sql: `select ${COLUMNS} from api_keys where project_id = $1 and revoked_at is null`,
    values: [projectId],
    query,
    toItem: toKey,
  })
}

export async function revokeKey(db: Db, projectId: string, keyId: string, actor: Actor): Promise<void> {
  const rows = await changeAudited<KeyRow>(db, {
    sql: `update api_keys set revoked_at = muster.now()
          where id = $1 and project_id = $2 and revoked_at is null returning ${COLUMNS}`,
    values: [keyId, projectId],
    note: { action: 'key.revoke', actor, projectId, targetType: 'key', targetId: keyId },
  })
  if (rows.length === 0) throw notFound('key')
}

export interface LiveKey {
  id: string
  projectId: string
  role: Role
}

/** Finds a key that is neither revoked nor expired, in a live project. Notes its use, at most once a minute. */
export async function findLiveKey(db: Db, key: string): Promise<LiveKey | null> {
  const { rows } = await db.query<{ id: string; project_id: string; role: Role }>(
    `with found as (
       select id, project_id, role, last_used_at from api_keys
       where key_hash = $1 and revoked_at is null and (expires_at is null or expires_at > muster.now())
         and exists (select from projects p where p.id = project_id and p.deleted_at is null)
     ), used as (
       update api_keys set last_used_at = muster.now() from found
       where api_keys.id = found.id
         and (found.last_used_at is null or found.last_used_at < muster.now() - interval '1 minute')
     )
     select id, project_id, role from found`,
    [sha256(key)],
  )
  const row = rows[0]
  return row ? { id: row.id, projectId: row.project_id, role: row.role } : null
}

const toKey = (row: KeyRow): Key => tellInstants(row)
