import type { Db } from '../db/pool.ts'
import { begunWith, idsOf, NEWEST, oneLine, rankOfTexts, type Search, searchRows } from '../db/search-rows.ts'
import type { RankedHit } from '../kernel/search.ts'
import { isResolved, taskKinds, taskStatuses } from '../kernel/task.ts'

/** Of each kind and each open status this many tasks are searched, however old they are. */
const MOST_OPEN = 200

/**
 * Finds work, suggestions and questions by the beginning of their id or title, and by their title and description: among
 * the newest ones, and among those that wait for somebody.
 */
export const searchTasks = (db: Db, search: Search): Promise<RankedHit[]> => searchRows(db, 'task', SEARCH, search)

const TEXTS = 'select id, created_at, title, description from tasks where project_id = $1'
const open = taskKinds.flatMap((kind) =>
  taskStatuses
    .filter((status) => !isResolved(status))
    .map(
      (status) =>
        `(${TEXTS} and kind = '${kind}' and status = '${status}' order by created_at desc, id desc limit ${MOST_OPEN})`,
    ),
)

const TITLE = oneLine('title')
const BOTH = `concat_ws(' ', lower(title), lower(left(description, 4000)))`

const SEARCH = `
  with found as (
    ${idsOf('tasks', { from: '$5', to: '$6', limit: '$4' })}
    union all
    ${begunWith({ table: 'tasks', column: 'title', line: TITLE, text: '$2', limit: '$4' })}
    union all
    (select id, rank from (
      select id, created_at, ${rankOfTexts(`lower(${TITLE})`, BOTH, '$2')} as rank from (
        (${TEXTS} order by created_at desc, id desc limit ${NEWEST}) union all ${open.join(' union all ')}
      ) texts where ${BOTH} like all($3::text[])
     ) matching order by rank, created_at desc limit 2 * $4)
  )
  select t.id, f.rank, t.title, concat_ws(' · ', t.kind, ${oneLine('t.description')}) as detail, t.status,
    t.created_at as at
  from found f join tasks t on t.id = f.id`
