// Function leaves in the database: the owner of the flow run leaves them there for any process that knows the function.
import { columnsOf } from '../../db/lists.ts'
import type { Db, PreparedSql } from '../../db/pool.ts'
import { FLOW_CHANNEL } from '../../journal/wake.ts'
import type { FunctionLeaf } from '../../kernel/flow.ts'
import { LOWEST_ID } from '../../kernel/id.ts'
import { createClaims } from '../../queue/queue-claims.ts'
import { type Charge, charged, chargeValues, MOST_CRASHES, type QueueTable } from '../../queue/queue-table.ts'
import type { FlowLeaf } from '../machine/flow-leaf.ts'
import type { LeafOutcome } from '../machine/machine.ts'
import { attemptKey } from './state.ts'

export interface Handout {
  id: string
  run_id: string
  task_id: string
  attempt: number
  project_id: string
  function: string
  /** Handouts of earlier releases have a key of their own instead of the scope, or neither. */
  call: { leaf: FunctionLeaf; argument: unknown; isEach: boolean; scope?: string; key?: string }
  fence: number
}

/** The notices about handouts, on the channel of flows. Other notices of that channel name a flow run. */
export const HANDOUT_NOTICE = 'handout'
export const WITHDRAWN_NOTICE = 'withdrawn'

export const LEAF_QUEUE: QueueTable = {
  table: 'flow_handouts',
  kind: 'leaf',
  ready: 'owner is null and outcome is null',
  underWay: 'outcome is null',
  owned: 'owner is not null and outcome is null',
  order: 'created_at',
}

/** A leaf with its argument: one value, or the list of arguments if it is called several times. */
export type NewHandout = Pick<FlowLeaf, 'id' | 'attempt' | 'node' | 'isEach'> & { argument: unknown; scope: string }

/** Hands out leaves. Leaves that are handed out already stay as they are. */
export async function handOut(
  db: Db,
  of: { flowRunId: string; projectId: string },
  leaves: readonly NewHandout[],
): Promise<void> {
  if (leaves.length === 0) return
  await db.query(
    `with added as (
       insert into flow_handouts (run_id, project_id, task_id, attempt, function, call)
       select $1, $2, t.task_id, t.attempt, t.call->'leaf'->>'function', t.call
       from rows from (unnest($3::text[]), unnest($4::int[]), jsonb_array_elements($5::jsonb)) as t (task_id, attempt, call)
       on conflict do nothing returning 1
     ) select pg_notify($6, $7) from added limit 1`,
    [
      of.flowRunId,
      of.projectId,
      leaves.map((leaf) => leaf.id),
      leaves.map((leaf) => leaf.attempt),
      JSON.stringify(
        leaves.map(({ node, argument, isEach, scope }) => ({ leaf: node, argument: argument ?? null, isEach, scope })),
      ),
      FLOW_CHANNEL,
      HANDOUT_NOTICE,
    ],
  )
}

/** The handed-out leaves of a flow run, by attempt and id, with the outcomes of those that have ended. */
export async function readHandouts(
  db: Db,
  flowRunId: string,
  leafIds: readonly string[],
): Promise<Map<string, LeafOutcome | null>> {
  if (leafIds.length === 0) return new Map()
  const { rows } = await db.query<{ id: string; attempt: number; outcome: LeafOutcome | null }>(
    'select task_id as id, attempt, outcome from flow_handouts where run_id = $1 and task_id = any($2)',
    [flowRunId, leafIds],
  )
  return new Map(rows.map((row) => [attemptKey(row), row.outcome]))
}

/** Withdraws leaves whose results nobody waits for any more, and tells the processes that work on them. */
export async function withdrawLeaves(db: Db, flowRunId: string, leafIds?: readonly string[]): Promise<void> {
  await db.query(
    `with gone as (
       delete from flow_handouts where run_id = $1 and ($2::text[] is null or task_id = any($2)) returning outcome
     ) select pg_notify($3, $4) from gone where outcome is null limit 1`,
    [flowRunId, leafIds ?? null, FLOW_CHANNEL, WITHDRAWN_NOTICE],
  )
}

/** Withdraws the leaves that no process has begun, and returns their ids. */
export async function withdrawUntaken(db: Db, flowRunId: string, leafIds: readonly string[]): Promise<string[]> {
  if (leafIds.length === 0) return []
  const { rows } = await db.query<{ task_id: string }>(
    `delete from flow_handouts where run_id = $1 and task_id = any($2) and owner is null and outcome is null
     returning task_id`,
    [flowRunId, leafIds],
  )
  return rows.map((row) => row.task_id)
}

const claimed = (pick: string, columns: string, from: string): string => `
    ${pick}, claimed as (
      update flow_handouts h set owner = $1, fence = h.fence + 1
      from picked p where h.id = p.id and h.id = any(array(select id from picked))
      returning h.id, h.run_id, h.task_id, h.attempt, h.project_id, h.function, h.call, h.fence
    )
    select c.* ${columns} from ${from}`

export const {
  claim: claimHandouts,
  claimSuspect: claimSuspectHandout,
  releaseSuspect: releaseSuspectHandout,
} = createClaims<Handout>(LEAF_QUEUE, {
  name: 'leaf',
  around: claimed,
  mayTake: (functions) => `function = any(${functions})`,
})

/** False: the handout belongs to another process by now, or nobody waits for it. */
export async function settleHandout(db: Db, handout: Handout, outcome: LeafOutcome, worker: string): Promise<boolean> {
  const { rowCount } = await db.query(
    `update flow_handouts set outcome = $5
     where run_id = $1 and task_id = $2 and attempt = $3 and fence = $4 and outcome is null`,
    [handout.run_id, handout.task_id, handout.attempt, handout.fence, JSON.stringify({ ...outcome, worker })],
  )
  return rowCount === 1
}

/** Returns the handouts that this owner still holds and whose results are still wanted. */
export async function stillWanted(db: Db, handouts: readonly Handout[]): Promise<Set<Handout>> {
  const { rows } = await db.query<{ place: number }>(
    `select t.place::int from unnest($1::uuid[], $2::text[], $3::int[], $4::bigint[]) with ordinality
       as t (run_id, task_id, attempt, fence, place)
     join flow_handouts h using (run_id, task_id, attempt, fence)`,
    columnsOf(handouts, (each) => [each.run_id, each.task_id, each.attempt, each.fence]),
  )
  return new Set(rows.flatMap(({ place }) => handouts[place - 1] ?? []))
}

/** Frees the handouts of a dead process. A handout that brought down five processes fails, with its leaf. */
export const takeOverHandouts = (tx: Db, owner: string, charge: Charge): Promise<void> =>
  freeHandouts(tx, owner, charge)

/** Frees handouts whose owner is registered nowhere: that process was forgotten before it had given them back. */
export const freeOrphanedHandouts = (db: Db): Promise<void> => freeHandouts(db, null, { to: 'none' })

/** Without an owner: all handouts whose owner is registered nowhere. */
async function freeHandouts(db: Db, owner: string | null, charge: Charge): Promise<void> {
  const isGone =
    owner === null ? '$1::uuid is null and not exists (select from workers w where w.id = h.owner)' : 'h.owner = $1'
  await db.query(
    `with orphans as (
       update flow_handouts h set owner = null, fence = h.fence + 1, crashes = ${charged('h')},
         outcome = case when ${charged('h')} >= ${MOST_CRASHES} then jsonb_build_object('status', 'failed', 'worker', h.owner,
           'error', format('CRASH_LOOP: the process that worked on this leaf died %s times; it is not tried again.', ${charged('h')}))
         end
       where h.owner is not null and h.outcome is null and ${isGone}
       returning 1
     ) select pg_notify($4, $5) from (select count(*) as freed from orphans) as counted where freed > 0`,
    [owner, ...chargeValues(charge, 'leaf'), FLOW_CHANNEL, HANDOUT_NOTICE],
  )
}

const FORGET: PreparedSql = {
  name: 'leaf_forget',
  text: `
    with recursive handed_out (run_id, place) as (
      select (select run_id from flow_handouts where run_id > $1 order by run_id limit 1), 1
      union all
      select (select h.run_id from flow_handouts h where h.run_id > before.run_id order by h.run_id limit 1), place + 1
      from handed_out before where before.run_id is not null and before.place < $2
    ), gone as (
      delete from flow_handouts where run_id = any(array(
        select h.run_id from handed_out h join flow_runs r on r.id = h.run_id where r.completed_at is not null))
    )
    select run_id from handed_out where place = $2 and run_id is not null`,
}

/** One round asks about this many flow runs, so that its cost does not grow with the number of handouts. */
const FORGOTTEN_AT_ONCE = 20

/**
 * Removes handouts of flow runs that are over, which a dead owner may have left. One call looks at some flow runs, in
 * the order of their ids, and returns the id to go on after.
 */
export async function forgetHandouts(db: Db, after: string): Promise<string> {
  const { rows } = await db.query<{ run_id: string }>(FORGET, [after, FORGOTTEN_AT_ONCE])
  return rows[0]?.run_id ?? NO_FLOW_RUN
}

export const NO_FLOW_RUN = LOWEST_ID

/** Frees the owner's handouts that no call of this process works on: their claim or their end was cut off. */
export async function freeStrayHandouts(db: Db, owner: string, inHand: readonly Handout[]): Promise<void> {
  await db.query(
    `update flow_handouts h set owner = null, fence = h.fence + 1
     where owner = $1 and outcome is null and id <> all($2::uuid[])`,
    [owner, inHand.map((each) => each.id)],
  )
}
