import type { Db } from '../../db/pool.ts'
import { idsOf, rankOf, type Search, searchRows } from '../../db/search-rows.ts'
import type { RankedHit } from '../../kernel/search.ts'

/** The names alone are read, from their index. */
const MOST_NAMES = 20_000

/** Finds stored flows by their name or the beginning of their id. */
export const searchFlows = (db: Db, search: Search): Promise<RankedHit[]> => searchRows(db, 'flow', SEARCH, search)

const COLUMNS = `f.id, f.name as title, f.root->>'type' as detail,
  case when f.enabled then 'enabled' else 'disabled' end as status, f.created_at as at`

const SEARCH = `
  with named as (
    select name, ${rankOf('lower(name)', '$2')} as rank from (
      select name from flows where project_id = $1 order by name limit ${MOST_NAMES}
    ) names where lower(name) like all($3::text[]) order by rank, name limit $4
  )
  select ${COLUMNS}, n.rank from named n join flows f on f.project_id = $1 and f.name = n.name
  union all
  select ${COLUMNS}, b.rank from ${idsOf('flows', { from: '$5', to: '$6', limit: '$4' })} b join flows f on f.id = b.id`
