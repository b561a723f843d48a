// The people, keys and agents behind the ids of the audit log.
import type { Db } from '../db/pool.ts'
import { isId } from '../kernel/id.ts'
import type { Actor } from '../kernel/principal.ts'

export interface FoundActors {
  /** Those who act in several projects: people, and the instance itself. */
  people: string[]
  /** Those who act in one project only: keys, agents and hooks. */
  others: string[]
}

const INSTANCE_ADMIN = 'Instance admin'

/** At most this many keys of one name are searched for. */
const MOST_KEYS = 100

/**
 * The actors that a text names: by id, by the e-mail address of a person, as the instance admin, by the name of a key,
 * also of a revoked one, or by that of an agent of the project. `projectId` null looks for keys in the whole instance,
 * newest first, and for no agents.
 */
export async function findActors(db: Db, projectId: string | null, text: string): Promise<FoundActors> {
  if (isId(text)) {
    const id = text.toLowerCase()
    const { rowCount } = await db.query(
      'select from auth.users where id = $1::uuid union all select from instance where id = $1::uuid',
      [id],
    )
    return rowCount ? { people: [id], others: [] } : { people: [], others: [id] }
  }
  const agent = 'select id, false from agents where project_id = $2 and name = $1 and deleted_at is null'
  const { rows } = await db.query<{ id: string; is_person: boolean }>(
    `select id, true as is_person from auth.users where lower(email) = lower($1)
     union all select id, true from instance where lower($1) = lower('${INSTANCE_ADMIN}')
     union all
     (select id, false from api_keys where lower(name) = lower($1) ${projectId === null ? '' : 'and project_id = $2'}
      order by created_at desc limit ${MOST_KEYS})
     ${projectId === null ? '' : `union all ${agent}`}`,
    [text, ...(projectId === null ? [] : [projectId])],
  )
  const idsOf = (arePeople: boolean): string[] => rows.filter((row) => row.is_person === arePeople).map(({ id }) => id)
  return { people: idsOf(true), others: idsOf(false) }
}

type Known = Pick<Actor, 'id'> & { type: string }

/** Adds the name by which people know an actor: an e-mail address, or the name of a key or an agent; null without one. */
export async function nameActors<Thing extends { actor: Known }>(
  db: Db,
  things: readonly Thing[],
): Promise<(Thing & { actor_name: string | null })[]> {
  const idsOf = (type: Actor['type']): string[] => {
    const ids = things.flatMap(({ actor }) => (actor.type === type && actor.id !== null ? [actor.id] : []))
    return [...new Set(ids.filter(isId))]
  }
  const { rows } = await db.query<{ id: string; name: string }>(
    `select id, email as name from auth.users where id = any($1::uuid[])
     union all select id, name from api_keys where id = any($2::uuid[])
     union all select id, name from agents where id = any($3::uuid[])`,
    [idsOf('user'), idsOf('key'), idsOf('agent')],
  )
  const names = new Map(rows.map(({ id, name }) => [id, name]))
  const nameOf = ({ type, id }: Known): string | null =>
    type === 'instance_admin' ? INSTANCE_ADMIN : (names.get(id ?? '') ?? null)
  return things.map((thing) => ({ ...thing, actor_name: nameOf(thing.actor) }))
}
