import type { Db } from '../db/pool.ts'
import { invalidRequest } from '../kernel/errors.ts'
import type { Page } from '../kernel/fields.ts'
import { hasEnded, type PauseReason, type Run, type RunWait } from '../kernel/run.ts'

interface FoundWait {
  seq: number
  reason: PauseReason
  at: Date
  until: Date | null
}

/**
 * The times in which a run waited (for people, tokens, a model, or the end of a halt or a stop), oldest first. The
 * cursor is the last seq seen. Like the steps, they are read from the run's own journal by its primary key.
 */
export async function listWaits(
  db: Db,
  run: Run,
  { limit, cursor }: { limit: number; cursor?: string | undefined },
): Promise<Page<RunWait>> {
  if (cursor !== undefined && !/^\d{1,15}$/.test(cursor)) throw invalidRequest('cursor is not one that this list gave.')
  const { rows } = await db.query<FoundWait>(READ, [run.id, Number(cursor ?? 0), limit + 1])
  const found = rows.slice(0, limit)
  return {
    // A pause that nothing follows is a wait under way, or the end of the run.
    items: found.filter(({ until }) => until !== null || !hasEnded(run)).map(toWait),
    next_cursor: rows.length > found.length ? String(found.at(-1)?.seq) : null,
  }
}

/** Rows of sub-runs, and the copies of them that earlier releases made, are left out. */
const IS_OWN = (row: string): string =>
  `${row}.run_id = $1 and ${row}.origin_seq is null and not ${row}.data ? 'run_id'`

/** The next event of the run ends its wait: it goes on, or is cancelled. */
const READ = `
  select p.seq, p.at, p.data->>'pause_reason' as reason, (
    select n.at from run_events n where ${IS_OWN('n')} and n.seq > p.seq order by n.seq limit 1) as until
  from (
    select e.seq, e.at, e.data from run_events e where ${IS_OWN('e')} and e.seq > $2 and e.kind = 'run.paused'
    order by e.seq limit $3
  ) p order by p.seq`

const toWait = ({ seq, reason, at, until }: FoundWait): RunWait => ({
  seq,
  reason,
  started_at: at.toISOString(),
  duration: until && Math.max(0, until.getTime() - at.getTime()),
})
