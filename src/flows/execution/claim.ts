import { MARK_CHANGED, markChangedIf } from '../../db/changed-in.ts'
import type { Db } from '../../db/pool.ts'
import type { FlowNode, Topology } from '../../kernel/flow.ts'
import { createClaims, promoteDueRows } from '../../queue/queue-claims.ts'
import { type Charge, charged, chargeValues, type QueueTable } from '../../queue/queue-table.ts'
import type { LeafBounds } from './leaf-bounds.ts'

export interface ClaimedFlow {
  id: string
  project_id: string
  /** The stored flow; null if the tree was given, or is that of a template. */
  flow_id: string | null
  root: FlowNode
  input: unknown
  fence: number
  workers: number | null
  timeout: number
  crashes: number
  last_seq: number
  /** The number of agent leaves that had ended when the flow run was claimed. */
  ended_leaves: number
  /** The flow run that this one resumes. */
  resumed_from: string | null
  /** The scope of the keys of its leaves; null means the flow run itself. */
  key_scope: string | null
  /** The run that waits for this one, and the bounds that it sets to the runs of the leaves. */
  parent_run_id: string | null
  within: LeafBounds | null
  /** The number of times that somebody had changed its timeout or its workers by then. */
  adjustments: number
  cancel_requested_at: Date | null
  wanted_topology: Topology | null
  /** True: the wanted topology may not be in force yet in the parts under way. */
  is_topology_new: boolean
  /** Milliseconds since the flow run was started, by the database's clock. */
  age: number
  /** The part of them in which the flow run stood still: all leaves waited for people, or the project was halted. */
  still: number
  /** True: all leaves wait for people now. */
  is_still: boolean
  /** The time of the claim, by the database's clock too. */
  claimed_at: Date
}

/** SQL for the first check (alerts/check-alerts.ts). A flow of milliseconds is worth no alert. */
export const FIRST_CHECK = `muster.now() + interval '1 s'`

/** SQL for the milliseconds since the start of the flow run `r`. Those in which it stood still count for no timeout. */
export const TIME_SO_FAR = `(extract(epoch from muster.now() - r.started_at) * 1000)::float8 as age,
  (r.waited + coalesce(extract(epoch from muster.now() - r.all_wait_since) * 1000, 0))::float8 as still,
  r.all_wait_since is not null as is_still`

export const CLAIMED_COLUMNS = `
  r.id, r.project_id, r.flow_id, r.root, r.input, r.fence, r.workers, r.timeout, r.crashes, r.last_seq, r.ended_leaves, r.adjustments,
  r.resumed_from, r.key_scope, r.parent_run_id, r.within, r.cancel_requested_at, r.wanted_topology, r.topology_wanted_at is not null as is_topology_new,
  ${TIME_SO_FAR}, muster.now() as claimed_at`

export const FLOW_QUEUE: QueueTable = {
  table: 'flow_runs',
  kind: 'flow_run',
  ready: 'ready_at is not null',
  owned: 'owner is not null',
  order: 'ready_at',
}

/** SQL for the flow runs whose functions the owner knows, and for any flow run that is only to be ended. */
const mayTake = (functions: string): string =>
  `needs <@ ${functions} or cancel_requested_at is not null or started_at + (timeout + waited) * interval '1 ms' < coalesce(all_wait_since, muster.now())`

const claimed = (pick: string, columns: string, from: string): string => `
    ${pick}, claimed as (
      update flow_runs r set owner = $1, fence = r.fence + 1, ready_at = null, wake_at = null, status = 'running',
        started_at = coalesce(r.started_at, muster.now()), halted_since = null,
        waited = r.waited + case when r.halted_since is null or r.all_wait_since is not null then 0
          else extract(epoch from muster.now() - r.halted_since) * 1000 end,
        check_at = case when r.started_at is null then ${FIRST_CHECK} else r.check_at end,
        ${markChangedIf(`r.status <> 'running'`, 'r')}
      from picked p where r.id = p.id and r.id = any(array(select id from picked))
      returning ${CLAIMED_COLUMNS}
    )
    select c.* ${columns} from ${from}`

export const {
  claim: claimFlows,
  claimSuspect: claimSuspectFlow,
  releaseSuspect: releaseSuspectFlow,
} = createClaims<ClaimedFlow>(FLOW_QUEUE, { name: 'flow', around: claimed, mayTake })

export const promoteDueFlows = (db: Db): Promise<number> => promoteDueRows(db, FLOW_QUEUE)

/** Takes its flow runs from a dead process, within the transaction that forgets that process. */
export async function takeOverFlows(tx: Db, owner: string, charge: Charge): Promise<void> {
  await tx.query(
    `update flow_runs r set owner = null, fence = r.fence + 1, ready_at = muster.now(), crashes = ${charged('r')},
       ${MARK_CHANGED}
     where r.owner = $1`,
    [owner, ...chargeValues(charge, 'flow_run')],
  )
}

/** Frees flow runs whose owner is registered nowhere: that process was forgotten before it had given them back. */
export async function freeOrphanedFlows(db: Db): Promise<number> {
  const { rowCount } = await db.query(
    `update flow_runs r set owner = null, fence = r.fence + 1, ready_at = muster.now(), ${MARK_CHANGED}
     where r.owner is not null and not exists (select from workers w where w.id = r.owner)`,
  )
  return rowCount ?? 0
}

/** Frees the owner's flow runs that this process does not work on: their claim or their end was cut off. */
export async function freeStrayFlows(
  db: Db,
  owner: string,
  inHand: readonly Pick<ClaimedFlow, 'id'>[],
): Promise<number> {
  const { rowCount } = await db.query(
    `update flow_runs set owner = null, fence = fence + 1, ready_at = muster.now(), ${MARK_CHANGED}
     where owner = $1 and not (id = any($2::uuid[]))`,
    [owner, inHand.map((flow) => flow.id)],
  )
  return rowCount ?? 0
}

/** Gives back a flow run that failed in our own code. This counts as a crash: it is tried alone, then given up. */
export async function giveUpFlow(db: Db, { id, fence }: Pick<ClaimedFlow, 'id' | 'fence'>): Promise<void> {
  await db.query(
    `update flow_runs set owner = null, fence = fence + 1, crashes = crashes + 1, ready_at = muster.now(),
       ${MARK_CHANGED}
     where id = $1 and fence = $2 and completed_at is null`,
    [id, fence],
  )
}
