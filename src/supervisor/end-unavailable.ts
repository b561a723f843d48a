// Runs that stopped because a model or the prompt library was unavailable wait for somebody to continue them. Those
// that waited as long as their project keeps runs fail here, so that retention removes them.
import { BEGINNING, type Position } from '../db/in-batches.ts'
import type { Db, Pool } from '../db/pool.ts'
import { inTransaction } from '../db/transaction.ts'
import type { Journal } from '../journal/journal.ts'
import { endUnowned, runFailed } from '../runs/end.ts'
import { type Retention, readRetentions } from '../runs/prune-runs.ts'

const RUNS_AT_ONCE = 200

/** SQL that is true if the run `r` waits to be continued by somebody; a run that waits for its provider does not. The index agent_runs_unavailable holds all such runs. */
const WAITS = `r.status = 'paused' and r.pause_reason = 'unavailable' and r.completed_at is null and r.waits_for = 'human'`

/** SQL that is true if the run `r` has waited for this many days. Its last event is its pause. */
const isLeft = (days: string): string => `r.owner is null and r.ready_at is null and r.open_children <= 0
  and exists (select from run_events e where e.run_id = r.id and e.seq = r.last_seq
    and e.at < muster.now() - ${days} * interval '1 day')`

const FIND = `
  select r.id, r.created_at::text as at, ${isLeft('$2')} as is_left from agent_runs r
  where r.project_id = $1 and ${WAITS} and r.created_at < muster.now() - $2 * interval '1 day'
    and (r.created_at, r.id) > ($3::timestamptz, $4::uuid)
  order by r.created_at, r.id limit ${RUNS_AT_ONCE}`

/** `signal` ends the work after the current run. Returns the number of runs that failed. */
export async function endUnavailable(
  { pool, journal }: { pool: Pool; journal: Journal },
  signal?: AbortSignal,
): Promise<number> {
  let total = 0
  for (const retention of await readRetentions(pool)) {
    for (let after: Position | undefined = BEGINNING; after && !signal?.aborted; ) {
      const found: (Position & { is_left: boolean })[] = await findWaiting(pool, retention, after)
      for (const { id } of found.filter((run) => run.is_left)) {
        if (signal?.aborted) return total
        if (await endOne({ pool, journal }, id, retention)) total++
      }
      after = found.length === RUNS_AT_ONCE ? found.at(-1) : undefined
    }
  }
  return total
}

async function findWaiting(
  db: Db,
  { projectId, days }: Retention,
  after: Position,
): Promise<(Position & { is_left: boolean })[]> {
  const { rows } = await db.query<Position & { is_left: boolean }>(FIND, [projectId, days, after.at, after.id])
  return rows
}

/** False if the run was continued or ended by another process since it was found. */
async function endOne(
  { pool, journal }: { pool: Pool; journal: Journal },
  runId: string,
  { days }: Retention,
): Promise<boolean> {
  return inTransaction(pool, async (tx) => {
    await tx.query('select from agent_runs where id = $1 for update', [runId])
    const { rows } = await tx.query<{ ancestors: string[]; summary: string | null; error_message: string | null }>(
      `select r.ancestors, r.summary, r.error_message from agent_runs r where r.id = $1 and ${WAITS} and ${isLeft('$2')}`,
      [runId, days],
    )
    const [run] = rows
    if (!run) return false
    const { event, set } = runFailed('UNAVAILABLE', run.error_message ?? 'Nobody continued the run.', run.summary)
    const end = { event, set: { ...set, pause_reason: null } }
    await endUnowned(tx, journal, { id: runId, ancestors: run.ancestors }, end)
    return true
  })
}
