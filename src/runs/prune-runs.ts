// Retention of runs: whole trees are removed once every run in them is over, decided, and older than the project keeps
// runs.
//
// A tree is a run with its sub-runs, their sub-runs, and all runs that continue any of them (resumed, forked). A parent
// that still waits would start a removed sub-run again, and a continuation needs the journal it began with. The runs of
// a flow's leaves belong to their flow run (flows/history/prune-flow-runs.ts), and so to the run that started it, if
// there is one. Trees are removed from the top down. If a tree is too large for one batch, the rows below the removed
// ones are queued in `run_removals`, so that the rest is removed after a crash too.
import { inBatches, type Position, removeOldest } from '../db/in-batches.ts'
import type { Db, Pool } from '../db/pool.ts'
import { asManyAsFit } from '../kernel/as-many-as-fit.ts'
import { keepsTasks } from '../tasks/prune-tasks.ts'

/** The time that a project keeps runs after their end. Projects that keep everything are absent. */
export interface Retention {
  projectId: string
  days: number
}

export async function readRetentions(db: Db): Promise<Retention[]> {
  const { rows } = await db.query<Retention>(
    `select id as "projectId", (settings->>'run_retention_days')::float8 as days from projects
     where settings->>'run_retention_days' is not null order by id`,
  )
  return rows
}

const ROOTS_AT_ONCE = 200
const RUNS_AT_ONCE = 500
const EVENTS_AT_ONCE = 20_000

/** SQL: the runs of the trees of `seed` (root, id), by the indexes on parent and base whatever the statistics say. */
export const treesOf = (seed: string): string => `
  tree (root, id) as (
    ${seed}
    union
    select t.root, n.id from tree t cross join lateral (
      select id from agent_runs where parent_run_id = t.id
      union all select id from agent_runs where base_run_id = t.id
      union all select l.id from agent_runs p cross join lateral (
        select id from agent_runs where flow_run_id = p.started_flow_run_id) l
      where p.id = t.id and p.started_flow_run_id is not null) n
  )`

/**
 * SQL: the roots of trees that stay, because a run in them is under way, too young (`$2` days), or undecided: it paused
 * because the outcome of a call is unknown and nobody resumed it, or people are asked about something it did. A
 * specialist's run is never resumed: it is decided when its question is answered.
 */
export const KEPT = `
  kept as (
    select distinct t.root from tree t cross join lateral (
      select r.id, r.completed_at, r.status = 'paused' and r.pause_reason = 'outcome_unknown' and r.part is null as is_unknown
      from agent_runs r where r.id = t.id limit 1) r
    where r.completed_at is null or r.completed_at >= muster.now() - $2 * interval '1 day'
      or (r.is_unknown and not exists (select from agent_runs n where n.base_run_id = r.id and n.resumed_from = r.id))
      or ${keepsTasks('r.id')}
  )`

/** The oldest ended roots that may be removed, with the runs of their trees, the upper ones first. */
const FIND = `
  with recursive candidates as (
    select id, completed_at from agent_runs
    where project_id = $1 and completed_at < muster.now() - $2 * interval '1 day' and (completed_at, id) > ($3::timestamptz, $4::uuid)
      and parent_run_id is null and base_run_id is null and flow_run_id is null
    order by completed_at, id limit ${ROOTS_AT_ONCE}
  ), ${treesOf('select id, id from candidates')}, ${KEPT}
  select c.id, c.completed_at::text as at, case when c.id in (select root from kept) then '{}'
    else array(select t.id from tree t where t.root = c.id limit ${RUNS_AT_ONCE}) end as ids
  from candidates c order by c.completed_at, c.id`

const FIND_AGAIN = `
  with recursive ${treesOf('select r.id, r.id from unnest($1::uuid[]) r (id)')}, ${KEPT}
  select unnest($1::uuid[]) as root except select root from kept`

interface Found extends Position {
  ids: string[]
}

export async function pruneRuns(pool: Pool, signal?: AbortSignal): Promise<number> {
  let total = await removeQueued(pool, signal)
  for (const { projectId, days } of await readRetentions(pool)) {
    total += await removeOldest(pool, signal, async (tx, after) => {
      const { rows: found } = await tx.query<Found>(FIND, [projectId, days, after.at, after.id])
      const batch = await fitting(tx, found)
      const trees = batch.filter((tree) => tree.ids.length > 0)
      const isMore = batch.length < found.length || found.length === ROOTS_AT_ONCE
      return { last: batch.at(-1), removed: await removeTrees(tx, trees, days), isMore }
    })
  }
  return total + (await removeQueued(pool, signal))
}

/** The first trees that have few enough runs and events for one batch; at least one tree. */
async function fitting(tx: Db, found: readonly Found[]): Promise<Found[]> {
  const { rows } = await tx.query<{ id: string; last_seq: number }>(
    'select id, last_seq from agent_runs where id = any($1::uuid[])',
    [found.flatMap((tree) => tree.ids)],
  )
  const events = new Map(rows.map((row) => [row.id, row.last_seq]))
  const eventsOf = ({ ids }: Found): number => ids.reduce((sum, id) => sum + (events.get(id) ?? 0), 0)
  const few = asManyAsFit(found, ({ ids }) => ids.length, RUNS_AT_ONCE)
  return asManyAsFit(few, eventsOf, EVENTS_AT_ONCE)
}

/**
 * A resume or fork locks its run first. So the rows are locked and checked once more: a tree that changed, or that
 * another transaction has locked, stays for this time.
 */
async function removeTrees(tx: Db, trees: readonly Found[], days: number): Promise<number> {
  const { rows: locked } = await tx.query<{ id: string }>(
    'select id from agent_runs where id = any($1::uuid[]) order by id for update skip locked',
    [trees.flatMap((tree) => tree.ids)],
  )
  const ours = new Set(locked.map((row) => row.id))
  const whole = trees.filter((tree) => tree.ids.every((id) => ours.has(id)))
  const { rows: free } = await tx.query<{ root: string }>(FIND_AGAIN, [whole.map((tree) => tree.id), days])
  const roots = new Set(free.map((row) => row.root))
  const ids = whole.filter((tree) => roots.has(tree.id)).flatMap((tree) => tree.ids)
  return removeRuns(tx, ids)
}

/** Removes these runs with their journals, and queues the runs below them. */
async function removeRuns(tx: Db, ids: readonly string[]): Promise<number> {
  const { rows } = await tx.query<{ count: number }>(
    `with gone as (delete from agent_runs where id = any($1::uuid[]) returning id, started_flow_run_id), below as (
       insert into run_removals (run_id)
       select n.id from gone cross join lateral (
         select id from agent_runs where parent_run_id = gone.id
         union select id from agent_runs where base_run_id = gone.id
         union select id from agent_runs where flow_run_id = gone.started_flow_run_id) n
       where n.id <> all($1::uuid[])
       on conflict do nothing
     )
     select count(*)::int as count from gone`,
    [ids],
  )
  return rows[0]?.count ?? 0
}

/** Removes the rest of trees whose upper part was removed. Returns the number of removed runs. */
export async function removeQueued(pool: Pool, signal?: AbortSignal): Promise<number> {
  let total = 0
  await inBatches(pool, { lock: 'retention', signal }, async (tx) => {
    const { rows } = await tx.query<{ run_id: string; last_seq: number }>(
      `select q.run_id, coalesce((select last_seq from agent_runs where id = q.run_id), 0) as last_seq
       from run_removals q order by q.run_id limit ${RUNS_AT_ONCE}`,
    )
    const ids = asManyAsFit(rows, (row) => row.last_seq, EVENTS_AT_ONCE).map((row) => row.run_id)
    if (ids.length === 0) return false
    total += await removeRuns(tx, ids)
    await tx.query('delete from run_removals where run_id = any($1::uuid[])', [ids])
    return true
  })
  return total
}
