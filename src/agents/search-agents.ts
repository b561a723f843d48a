import type { Db } from '../db/pool.ts'
import { idsOf, rankOf, type Search, searchRows } from '../db/search-rows.ts'
import type { RankedHit } from '../kernel/search.ts'

/** The names alone are read, from their index: a project of ten thousand agents costs some milliseconds. */
const MOST_NAMES = 20_000

/** Finds agents by their name or the beginning of their id. */
export const searchAgents = (db: Db, search: Search): Promise<RankedHit[]> => searchRows(db, 'agent', SEARCH, search)

const COLUMNS = `a.id, a.name as title, nullif(a.role, '') as detail,
  case when a.enabled then a.status else 'disabled' end as status, a.created_at as at`

const SEARCH = `
  with named as (
    select name, ${rankOf('lower(name)', '$2')} as rank from (
      select name from agents where project_id = $1 and deleted_at is null order by name limit ${MOST_NAMES}
    ) names where lower(name) like all($3::text[]) order by rank, name limit $4
  )
  select ${COLUMNS}, n.rank from named n join agents a on a.project_id = $1 and a.name = n.name and a.deleted_at is null
  union all
  select ${COLUMNS}, b.rank from ${idsOf('agents', { from: '$5', to: '$6', limit: '$4', isLive: true })} b
  join agents a on a.id = b.id`
