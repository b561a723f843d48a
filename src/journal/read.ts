import type { Db, PreparedSql } from '../db/pool.ts'

export interface JournalEvent {
  seq: number
  kind: string
  data: Record<string, unknown>
  at: Date
}

const PAGE = 2_000

/**
 * A page ends after this many bytes, but holds its first event in any case. The stored size is known without reading
 * the data, but tells little about data that compresses well, so both sizes are bounded.
 */
const STORED_BYTES = 1_048_576
const TEXT_BYTES = 8 * 1_048_576

/** SQL: the rows of `listed` (seq, data) in order, cut off when they hold too much. `found` is their number before. */
export const cutByBytes = (listed: string): string => `
  select * from (
    select *, coalesce(sum(octet_length(data::text)) over earlier, 0) as text_before from (
      select *, coalesce(sum(pg_column_size(data)) over earlier, 0) as stored_before, count(*) over () as found
      from (${listed}) listed window earlier as (order by seq rows between unbounded preceding and 1 preceding)
    ) stored where stored_before < ${STORED_BYTES}
    window earlier as (order by seq rows between unbounded preceding and 1 preceding)
  ) page where text_before < ${TEXT_BYTES} order by seq`

/** SQL: a page of a journal. `$1` is the run, `$2` the seq before the page, `$3` the last seq, `$4` the most rows. */
export const pageSql = (events: 'run_events' | 'flow_events', where = ''): string =>
  cutByBytes(`
    select e.seq, e.kind, e.data, e.at from ${events} e
    where e.run_id = $1 and e.seq > $2 and e.seq <= $3 ${where} order by e.seq limit $4`)

/**
 * A sub-run's event is in the sub-run's journal; rows of earlier releases are copies. A join might read the whole
 * table, so the data is looked up row by row.
 */
const WITH_SUB_RUNS = cutByBytes(`
  select e.seq, e.kind, e.at, case when e.origin_seq is not null then e.data end as whose,
    case when e.origin_seq is null then e.data else coalesce((
      select o.data from run_events o where o.run_id = (e.data->>'run_id')::uuid and o.seq = e.origin_seq), '{}') end as data
  from run_events e where e.run_id = $1 and e.seq > $2 and e.seq <= $3 order by e.seq limit $4`)

const READ: PreparedSql = {
  name: 'journal_read',
  text: `select seq, kind, coalesce(whose || data, data) as data, at, found from (${WITH_SUB_RUNS}) page order by seq`,
}

/** Events of sub-runs are not looked up; copies that earlier releases made are returned without their data. */
const READ_OWN: PreparedSql = {
  name: 'journal_read_own',
  text: `select seq, kind, case when not data ? 'run_id' then data end as data, at, found
    from (${pageSql('run_events', 'and e.origin_seq is null')}) page order by seq`,
}

export interface PageOf {
  after?: number
  upTo?: number
  /** A page may be shorter though more events follow: it is bounded by bytes, too. Only an empty page is the last. */
  limit?: number
}

type FoundEvent = JournalEvent & { found: number }

export async function readEvents(db: Db, runId: string, page: PageOf = {}): Promise<JournalEvent[]> {
  const { events } = await readPage(db, READ, runId, page)
  return events
}

export async function readPage(
  db: Db,
  sql: PreparedSql,
  runId: string,
  { after = 0, upTo = Number.MAX_SAFE_INTEGER, limit = PAGE }: PageOf,
): Promise<{ events: JournalEvent[]; isLast: boolean }> {
  const { rows } = await db.query<FoundEvent>(sql, [runId, after, upTo, limit])
  const found = rows[0]?.found ?? 0
  const events = rows.map(({ seq, kind, data, at }) => ({ seq, kind, data, at }))
  return { events, isLast: found < limit && rows.length === found }
}

/** The run's own events up to a seq, page by page, so that a long journal is never held at once. */
export async function* replayEvents(db: Db, runId: string, upTo?: number): AsyncGenerator<JournalEvent> {
  for (let after = 0; ; ) {
    const { events, isLast } = await readPage(db, READ_OWN, runId, upTo === undefined ? { after } : { after, upTo })
    // Null marks a copy of a sub-run's event.
    for (const event of events) if (event.data !== null) yield event
    after = events.at(-1)?.seq ?? after
    if (isLast) return
  }
}
