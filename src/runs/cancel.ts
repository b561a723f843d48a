import { MARK_CHANGED } from '../db/changed-in.ts'
import type { Db, Pool } from '../db/pool.ts'
import { inTransaction } from '../db/transaction.ts'
import type { Journal } from '../journal/journal.ts'
import { lockTree, type OpenRun } from '../journal/lock-tree.ts'
import { CANCEL_CHANNEL, tellAbout } from '../journal/wake.ts'
import { fault } from '../kernel/fault.ts'
import { closeQuestions } from '../tasks/close-questions.ts'
import { cancelled } from './end.ts'

/** A transaction cancels this many runs, each with the runs below it, so that no other statement waits long for a row. */
const AT_ONCE = 100

interface CancelDeps {
  pool: Pool
  journal: Journal
}

/** Cancels one run with the runs below it. `first` is called when they are locked and before any of them ends. */
export async function cancelRun(
  deps: CancelDeps,
  projectId: string,
  runId: string,
  first: (tx: Db) => Promise<void>,
): Promise<void> {
  await cancelSome(deps, projectId, [runId], { first })
}

/**
 * A cancel is a fact in the database. Runs without an owner end here; the owners of the others are notified, stop at
 * once and write the end with the text so far. Sub-runs are cancelled with their parents, the deepest first. Many runs
 * are cancelled in several transactions, in the order of their ids. A caller that dies in between asks again for all of
 * them, and those that were cancelled before stay as they are.
 */
export async function cancelRuns(
  deps: CancelDeps,
  projectId: string,
  runIds: readonly string[],
  { isLate = false } = {},
): Promise<void> {
  const ordered = runIds.toSorted()
  for (let from = 0; from < ordered.length; from += AT_ONCE) {
    await cancelSome(deps, projectId, ordered.slice(from, from + AT_ONCE), { isLate })
  }
}

async function cancelSome(
  { pool, journal }: CancelDeps,
  projectId: string,
  runIds: readonly string[],
  { first, isLate = false }: { first?: (tx: Db) => Promise<void>; isLate?: boolean },
): Promise<void> {
  const owned = await inTransaction(pool, async (tx) => {
    const open = await lockTree(tx, projectId, runIds)
    await first?.(tx)
    await cancelOpen(tx, journal, open, isLate)
    return open.filter((run) => run.owner !== null).map((run) => run.id)
  })
  await fault('cancel.mid')
  await tellAbout(pool, CANCEL_CHANNEL, owned)
}

/** The runs are locked, the deepest first. */
async function cancelOpen(tx: Db, journal: Journal, open: readonly OpenRun[], isLate = false): Promise<void> {
  const fresh = open.filter((run) => run.cancel_requested_at === null)
  await tx.query('update agent_runs set cancel_requested_at = muster.now() where id = any($1)', [idsOf(fresh)])
  // A parent ends after its sub-runs, in its stream too.
  for (const level of Map.groupBy(fresh, (run) => run.depth).values()) await cancelLevel(tx, journal, level, isLate)
  await wakeSleepers(tx, open)
  await closeQuestions(tx, idsOf(open))
}

async function cancelLevel(tx: Db, journal: Journal, level: readonly OpenRun[], isLate: boolean): Promise<void> {
  const unowned = idsOf(level.filter((run) => run.owner === null))
  // The last sub-run to end wakes its parent.
  const waiting = await waitForChildren(tx, unowned)
  const texts = await lastTexts(tx, unowned)
  const appends = level.flatMap(({ id, ancestors, owner, last_seq: lastSeq }) => {
    const shared = { runId: id, fence: null, ancestors }
    // A journal begins with the start of its run. An owner that has not written the start yet is notified alone.
    if (owner !== null && lastSeq === 0) return []
    const data = isLate ? ({ is_late: true } as const) : {}
    if (owner !== null) return { ...shared, events: [{ kind: 'run.cancel_requested', data }] }
    if (waiting.has(id)) return []
    const end = cancelled(texts.get(id) ?? null)
    return { ...shared, events: [end.event], change: { set: end.set } }
  })
  if (appends.length > 0) await journal.appendAllIn(tx, appends)
}

const idsOf = (runs: readonly OpenRun[]): string[] => runs.map((run) => run.id)

/** Wakes runs that were cancelled before and have not ended since: their next owner ends them. */
async function wakeSleepers(tx: Db, open: readonly OpenRun[]): Promise<void> {
  const ids = open.filter((run) => run.cancel_requested_at !== null && run.owner === null).map((run) => run.id)
  if (ids.length === 0) return
  await tx.query(
    `update agent_runs set ready_at = muster.now()
     where id = any($1) and owner is null and ready_at is null and completed_at is null and open_children <= 0`,
    [ids],
  )
}

/**
 * Lets runs wait whose sub-runs still have an owner, and returns their ids. A run that waits for its flow run ends at
 * once, and takes it down.
 */
async function waitForChildren(tx: Db, runIds: readonly string[]): Promise<Set<string>> {
  const { rows } = await tx.query<{ id: string }>(
    `update agent_runs set status = 'running', pause_reason = null, waits_for = 'children', waiting_for = null, ready_at = null, wake_at = null,
       ${MARK_CHANGED}
     where id = any($1) and open_children > 0 and started_flow_run_id is null returning id`,
    [runIds],
  )
  return new Set(rows.map((row) => row.id))
}

/** The last text of each run that has one. */
async function lastTexts(tx: Db, runIds: readonly string[]): Promise<Map<string, string | null>> {
  const { rows } = await tx.query<{ id: string; text: string | null }>(
    `select given.id, last.text from unnest($1::uuid[]) as given (id) cross join lateral (
       select data->>'text' as text from run_events
       where run_id = given.id and kind = 'step.completed' and data->>'run_id' is null order by seq desc limit 1) as last`,
    [runIds],
  )
  return new Map(rows.map(({ id, text }) => [id, text]))
}
