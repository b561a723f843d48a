import type { Db } from '../db/pool.ts'
import { statementFor } from './append-sql.ts'
import type { Entry, Written } from './entry.ts'

/** Takes each run at most once. The result lacks runs that do not exist, have ended, or have another fence. */
export async function appendBatch(db: Db, entries: readonly Entry[]): Promise<Map<string, Written>> {
  const { sql, values } = statementFor(entries)
  const { rows } = await db.query<Answer>(sql, values)
  const [answer] = rows
  if (answer?.lost) return appendWithout(db, entries, new Set(answer.lost))
  return answer?.written ? writtenIn(entries, answer.written, answer.at) : new Map()
}

/** One row answers for the whole batch, so that the driver reads one row and not one per entry. */
interface Answer {
  at: Date
  written: string | null
  /** The runs that have another owner. Nothing was written because of them. */
  lost?: string[] | null
}

/** Reads `answer`, which holds for each written entry its place and its first seq. */
function writtenIn(entries: readonly Entry[], answer: string, at: Date): Map<string, Written> {
  const written = new Map<string, Written>()
  for (const part of answer.split(',')) {
    const space = part.indexOf(' ')
    const entry = entries[Number(part.slice(0, space)) - 1]
    if (entry) written.set(entry.runId, { firstSeq: Number(part.slice(space + 1)), at })
  }
  return written
}

/** Appends everything but the events of the lost runs, in their own journals and in those of their ancestors. */
async function appendWithout(
  db: Db,
  entries: readonly Entry[],
  lost: ReadonlySet<string>,
): Promise<Map<string, Written>> {
  const rest = entries
    .filter((entry) => entry.isForwarded || !lost.has(entry.runId))
    .map((entry) => ({ ...entry, events: entry.events.filter(({ origin }) => !origin || !lost.has(origin.runId)) }))
    .filter((entry) => !entry.isForwarded || entry.events.length > 0)
  if (rest.length === 0) return new Map()
  const written = await appendBatch(db, rest)
  const lengths = new Map(rest.map((entry) => [entry.runId, entry.events.length]))
  for (const { runId, events } of entries) {
    const own = written.get(runId)
    if (own && events.length !== lengths.get(runId)) written.set(runId, { ...own, isPartial: true })
  }
  return written
}

/** Finds the entries that an earlier attempt committed before the connection was cut. */
export async function findWritten(db: Db, entries: readonly Entry[]): Promise<Map<string, Written>> {
  const runIds = entries.map((entry) => entry.runId)
  // The earlier attempt may still be under way. Its outcome is known once these locks are granted.
  await db.query('select from agent_runs where id = any($1::uuid[]) order by id for update', [runIds])
  const { rows } = await db.query<{ run_id: string; first_seq: number; events: number; at: Date }>(
    `select run_id, min(seq) as first_seq, count(*)::int as events, min(at) as at from run_events
     where run_id = any($1::uuid[]) and id = any($2::uuid[]) group by run_id`,
    [runIds, entries.flatMap((entry) => entry.events.map((event) => event.id))],
  )
  const lengths = new Map(entries.map((entry) => [entry.runId, entry.events.length]))
  return new Map(
    rows.map(({ run_id, first_seq: firstSeq, events, at }) => [
      run_id,
      { firstSeq, at, ...(events === lengths.get(run_id) ? {} : { isPartial: true }) },
    ]),
  )
}
