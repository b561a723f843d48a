import type { Db } from '../db/pool.ts'
import { idsOf, NEWEST, oneLine, rankOf, type Search, searchRows } from '../db/search-rows.ts'
import type { RankedHit } from '../kernel/search.ts'
import { soughtWords } from './object-words.ts'

/** Of the objects that have the words, this many are ranked. */
const MOST_RANKED = 200

/**
 * Finds objects by the beginning of their id, by their key, by their words, and among the newest by type and parts of
 * the key.
 */
export const searchObjects = (db: Db, search: Search): Promise<RankedHit[]> =>
  searchRows(db, 'object', SEARCH, search, [search.sought.exact, soughtWords(search.sought.text)])

const TITLE = `coalesce(o.key, case when pg_column_size(o.properties) <= 20000 then
  coalesce(o.properties->>'title', o.properties->>'name') end, o.type)`

// The project is compared as a list, because a list can be a part of the index of the words (migration 0057).
const SEARCH = `
  with found as (
    ${idsOf('objects', { from: '$5', to: '$6', limit: '$4', isLive: true })}
    union all
    (select id, 0 from objects where project_id = $1 and key = $7 and deleted_at is null limit $4)
    union all
    (select id, 2 from objects
     where array[project_id] @> array[$1::uuid] and words @@ $8::tsquery and deleted_at is null limit ${MOST_RANKED})
    union all
    (select id, 2 from (
      select id, created_at, type, key, words from objects where project_id = $1 and deleted_at is null
      order by created_at desc, id desc limit ${NEWEST}
     ) newest
     where concat_ws(' ', lower(type), lower(key)) like all($3::text[])
       or case when pg_column_size(words) <= 8000 then words @@ $8::tsquery end
     order by created_at desc limit ${MOST_RANKED})
  )
  select o.id, case when f.rank < 2 then f.rank else ${rankOf(`lower(${TITLE})`, '$2')} end as rank, ${TITLE} as title,
    concat_ws(' · ', o.type, case when o.key is not null and pg_column_size(o.properties) <= 20000 then
      ${oneLine(`coalesce(o.properties->>'title', o.properties->>'name', o.properties::text)`)} end) as detail,
    null as status, o.updated_at as at
  from found f join objects o on o.id = f.id`
