// Retention of flow runs: a flow run goes together with all flow runs that resume it, at once. A later one takes over the
// finished leaves of the earlier ones, so none of a chain goes while another one stays.
import { type Position, removeOldest } from '../../db/in-batches.ts'
import type { Db, Pool } from '../../db/pool.ts'
import { asManyAsFit } from '../../kernel/as-many-as-fit.ts'
import { KEPT, removeQueued, treesOf } from '../../runs/prune-runs.ts'

const CHAINS_AT_ONCE = 50
const EVENTS_AT_ONCE = 20_000

/** A chain of flow runs, with the id and the end of its first one. */
interface Found extends Position {
  /** The flow runs of the chain. */
  ids: string[]
  /** The most events and answers that are removed with the chain. */
  below: number
  stays: boolean
}

const LEAVES =
  'select c.root, r.id from chain c cross join lateral (select id from agent_runs where flow_run_id = c.id) r'

const FIND = `
  with recursive ended as materialized (
    select id, completed_at from flow_runs f
    where project_id = $1 and completed_at < muster.now() - $2 * interval '1 day'
      and not exists (select from agent_runs p where p.id = f.parent_run_id)
      and not exists (select from flow_runs e where e.id = f.resumed_from)
      and (completed_at, id) > ($3::timestamptz, $4::uuid)
    order by completed_at, id limit ${CHAINS_AT_ONCE}
  ), chain (root, id) as (
    select id, id from ended
    union all
    select c.root, n.id from chain c cross join lateral (select id from flow_runs where resumed_from = c.id) n
  ), chains as materialized (
    select c.root, array_agg(c.id) as ids, sum(f.last_seq + f.asked_calls)::float8 as below,
      bool_or(f.completed_at is null or f.completed_at >= muster.now() - $2 * interval '1 day'
        or exists (select from agent_runs p where p.id = f.parent_run_id)) as stays
    from chain c cross join lateral (
      select last_seq, asked_calls, completed_at, parent_run_id from flow_runs where id = c.id limit 1) f
    group by c.root
  ), ${treesOf(LEAVES)}, ${KEPT}
  select e.id, e.completed_at::text as at, s.ids, s.below, s.stays or e.id in (select root from kept) as stays
  from ended e join chains s on s.root = e.id order by e.completed_at, e.id`

/**
 * Removes flow runs that ended longer ago than their project keeps runs, with their events, alerts, handouts, answers
 * to items, and the runs of their leaves. A flow run stays while one of those stays, by the rules for trees of runs,
 * while the run that started it stays, and while a flow run of its chain stays. Returns the number of removed flow runs.
 */
export async function pruneFlowRuns(
  pool: Pool,
  { projectId, days }: { projectId: string; days: number },
  signal?: AbortSignal,
): Promise<number> {
  const total = await removeOldest(pool, signal, async (tx, after) => {
    const { rows: found } = await tx.query<Found>(FIND, [projectId, days, after.at, after.id])
    const batch = asManyAsFit(found, (chain) => chain.below, EVENTS_AT_ONCE)
    const ids = await lockWhole(
      tx,
      batch.filter((chain) => !chain.stays),
    )
    const isMore = batch.length < found.length || found.length === CHAINS_AT_ONCE
    return { last: batch.at(-1), removed: ids.length === 0 ? 0 : await removeFlowRuns(tx, ids), isMore }
  })
  await removeQueued(pool, signal)
  return total
}

/** A resume locks its flow run first. A chain that was resumed, or that another transaction has locked, stays this time. */
async function lockWhole(tx: Db, chains: readonly Found[]): Promise<string[]> {
  if (chains.length === 0) return []
  const { rows: locked } = await tx.query<{ id: string }>(
    'select id from flow_runs where id = any($1::uuid[]) order by id for update skip locked',
    [chains.flatMap(({ ids }) => ids)],
  )
  const ours = new Set(locked.map(({ id }) => id))
  const whole = chains.filter(({ ids }) => ids.every((id) => ours.has(id)))
  const { rows } = await tx.query<{ id: string }>(
    'select resumed_from as id from flow_runs where resumed_from = any($1::uuid[]) and id <> all($1::uuid[])',
    [whole.flatMap(({ ids }) => ids)],
  )
  const resumed = new Set(rows.map(({ id }) => id))
  return whole.filter(({ ids }) => !ids.some((id) => resumed.has(id))).flatMap(({ ids }) => ids)
}

/** Removes these flow runs with all that belongs to them, and queues the runs of their leaves. */
async function removeFlowRuns(tx: Db, ids: readonly string[]): Promise<number> {
  const { rows } = await tx.query<{ count: number }>(
    `with gone as (delete from flow_runs where id = any($1::uuid[]) returning id), leaves as (
       insert into run_removals (run_id)
       select r.id from gone cross join lateral (select id from agent_runs where flow_run_id = gone.id) r
       on conflict do nothing
     )
     select count(*)::int as count from gone`,
    [ids],
  )
  return rows[0]?.count ?? 0
}
