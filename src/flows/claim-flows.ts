import type { Db, PreparedSql } from '../db/pool.ts'
import type { FlowNode, Topology } from '../kernel/flow.ts'

/** A flow run that this process owns from now on. */
export interface ClaimedFlow {
  id: string
  project_id: string
  root: FlowNode
  input: unknown
  fence: number
  workers: number | null
  timeout: number
  crashes: number
  last_seq: number
  /** How many agents that are leaves of it had ended when it was claimed. */
  ended_leaves: number
  cancel_requested_at: Date | null
  wanted_topology: Topology | null
  /** The parts under way may not have it yet. */
  is_topology_new: boolean
  /** Milliseconds since it was started, by the database's clock. */
  age: number
  /** By the database's clock too. */
  claimed_at: Date
}

export const CLAIMED_COLUMNS = `
  r.id, r.project_id, r.root, r.input, r.fence, r.workers, r.timeout, r.crashes, r.last_seq, r.ended_leaves,
  r.cancel_requested_at, r.wanted_topology, r.topology_wanted_at is not null as is_topology_new,
  (extract(epoch from muster.now() - r.started_at) * 1000)::float8 as age, muster.now() as claimed_at`

const CLAIM: PreparedSql = {
  name: 'flow_claim',
  text: `
    with picked as (
      select id from flow_runs where ready_at <= muster.now() and exists (select from workers where id = $1)
        and (needs <@ $3 or cancel_requested_at is not null or created_at + timeout * interval '1 ms' < muster.now())
      order by ready_at limit $2 for update skip locked
    )
    update flow_runs r set owner = $1, fence = r.fence + 1, ready_at = null, status = 'running',
      started_at = coalesce(r.started_at, muster.now())
    from picked p where r.id = p.id
    returning ${CLAIMED_COLUMNS}`,
}

/** Those whose own functions the owner knows; and any that is only to be ended. */
export async function claimFlows(
  db: Db,
  { owner, limit, functions }: { owner: string; limit: number; functions: readonly string[] },
): Promise<ClaimedFlow[]> {
  const { rows } = await db.query<ClaimedFlow>(CLAIM, [owner, limit, functions])
  return rows
}

/** Flow runs whose owner is registered nowhere any more: it died, and they count it. */
export async function freeOrphanedFlows(db: Db): Promise<number> {
  const { rowCount } = await db.query(
    `update flow_runs r set owner = null, fence = r.fence + 1, ready_at = muster.now(), crashes = r.crashes + 1
     where r.status = 'running' and r.owner is not null and not exists (select from workers w where w.id = r.owner)`,
  )
  return rowCount ?? 0
}

/** Those of this owner that are in nobody's hands here: a claim or an end that was cut off. */
export async function freeStrayFlows(db: Db, owner: string, except: readonly string[]): Promise<number> {
  const { rowCount } = await db.query(
    `update flow_runs set owner = null, fence = fence + 1, ready_at = muster.now()
     where status = 'running' and owner = $1 and not (id = any($2::uuid[]))`,
    [owner, except],
  )
  return rowCount ?? 0
}
