import type { Db, PreparedSql } from '../db/pool.ts'

export interface JournalEvent {
  seq: number
  kind: string
  data: Record<string, unknown>
  at: Date
}

const PAGE = 2_000

/**
 * SQL: the data of row `e`. An event of a sub-run stands in the sub-run's own journal; older rows are copies. Looked up
 * row by row, because a join might read the whole table.
 */
const EVENT_DATA = `case when e.origin_seq is null then e.data else coalesce(
  (select e.data || o.data from run_events o where o.run_id = (e.data->>'run_id')::uuid and o.seq = e.origin_seq),
  e.data) end as data`

const READ: PreparedSql = {
  name: 'journal_read',
  text: `select seq, kind, ${EVENT_DATA}, at from run_events e where run_id = $1 and seq > $2 and seq <= $3 order by seq limit $4`,
}

/** A page of a journal, oldest first. */
export async function readEvents(
  db: Db,
  runId: string,
  { after = 0, upTo = Number.MAX_SAFE_INTEGER, limit = PAGE }: { after?: number; upTo?: number; limit?: number } = {},
): Promise<JournalEvent[]> {
  const { rows } = await db.query<JournalEvent>(READ, [runId, after, upTo, limit])
  return rows
}

/** The whole journal up to a seq, page by page, so that a long one is never held at once. */
export async function* replayEvents(db: Db, runId: string, upTo?: number): AsyncGenerator<JournalEvent> {
  for (let after = 0; ; ) {
    const page = await readEvents(db, runId, upTo === undefined ? { after } : { after, upTo })
    yield* page
    const last = page.at(-1)
    if (!last || page.length < PAGE) return
    after = last.seq
  }
}
