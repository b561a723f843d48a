import type { Db } from '../db/pool.ts'
import { createClaims, promoteDueRows } from '../db/queue-claims.ts'
import { type Charge, charged, chargeValues, type QueueTable } from '../db/queue-table.ts'
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
  /** The number of agent leaves that had ended when the flow run was claimed. */
  ended_leaves: number
  cancel_requested_at: Date | null
  wanted_topology: Topology | null
  /** The wanted topology may not be in force yet in the parts under way. */
  is_topology_new: boolean
  /** Milliseconds since it was started, by the database's clock. */
  age: number
  /** By the database's clock too. */
  claimed_at: Date
}

/**
 * SQL: when a flow run that starts now is looked at first (check-alerts.ts). A flow of milliseconds that takes a few times
 * as many is no news.
 */
export const FIRST_CHECK = `muster.now() + interval '1 s'`

export const CLAIMED_COLUMNS = `
  r.id, r.project_id, r.root, r.input, r.fence, r.workers, r.timeout, r.crashes, r.last_seq, r.ended_leaves,
  r.cancel_requested_at, r.wanted_topology, r.topology_wanted_at is not null as is_topology_new,
  (extract(epoch from muster.now() - r.started_at) * 1000)::float8 as age, muster.now() as claimed_at`

export const FLOW_QUEUE: QueueTable = {
  table: 'flow_runs',
  kind: 'flow_run',
  ready: 'ready_at is not null',
  owned: 'owner is not null',
  order: 'ready_at',
}

/** Flow runs whose functions the owner knows, and any flow run that is only to be ended. */
const mayTake = (functions: string): string =>
  `needs <@ ${functions} or cancel_requested_at is not null or created_at + timeout * interval '1 ms' < muster.now()`

const claimed = (pick: string, columns: string, from: string): string => `
    ${pick}, claimed as (
      update flow_runs r set owner = $1, fence = r.fence + 1, ready_at = null, wake_at = null, status = 'running',
        started_at = coalesce(r.started_at, muster.now()),
        check_at = case when r.started_at is null then ${FIRST_CHECK} else r.check_at end
      from picked p where r.id = p.id and r.id = any(array(select id from picked))
      returning ${CLAIMED_COLUMNS}
    )
    select c.* ${columns} from ${from}`

export const {
  claim: claimFlows,
  claimSuspect: claimSuspectFlow,
  releaseSuspect: releaseSuspectFlow,
} = createClaims<ClaimedFlow>(FLOW_QUEUE, { name: 'flow', around: claimed, mayTake })

/** Flow runs whose time has come want an owner. */
export const promoteDueFlows = (db: Db): Promise<number> => promoteDueRows(db, FLOW_QUEUE)

/** Takes the flow runs of a dead process from it, within the transaction that forgets it. */
export async function takeOverFlows(tx: Db, owner: string, charge: Charge): Promise<void> {
  await tx.query(
    `update flow_runs r set owner = null, fence = r.fence + 1, ready_at = muster.now(), crashes = ${charged('r')}
     where r.owner = $1`,
    [owner, ...chargeValues(charge, 'flow_run')],
  )
}

/** Flow runs whose owner is registered nowhere: it was forgotten before it had given them back. */
export async function freeOrphanedFlows(db: Db): Promise<number> {
  const { rowCount } = await db.query(
    `update flow_runs r set owner = null, fence = r.fence + 1, ready_at = muster.now()
     where r.owner is not null and not exists (select from workers w where w.id = r.owner)`,
  )
  return rowCount ?? 0
}

/** Frees the owner's flow runs that nobody in this process works on: their claim or their end was cut off. */
export async function freeStrayFlows(db: Db, owner: string, except: readonly string[]): Promise<number> {
  const { rowCount } = await db.query(
    `update flow_runs set owner = null, fence = fence + 1, ready_at = muster.now()
     where owner = $1 and not (id = any($2::uuid[]))`,
    [owner, except],
  )
  return rowCount ?? 0
}

/**
 * Gives a flow run back that failed in our own code. Taken again it may fail again: that counts as a crash, so that it
 * is tried alone and then given up.
 */
export async function giveUpFlow(db: Db, { id, fence }: Pick<ClaimedFlow, 'id' | 'fence'>): Promise<void> {
  await db.query(
    `update flow_runs set owner = null, fence = fence + 1, crashes = crashes + 1, ready_at = muster.now()
     where id = $1 and fence = $2 and completed_at is null`,
    [id, fence],
  )
}
