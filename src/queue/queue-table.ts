// The contract of every table that is a queue: runs, flow runs, and leaves that were handed out.
//
//            due                 claimed: fence + 1
//  waiting ───────► ready ────────────────────────────► owned ──────► ended
//     ▲               ▲ ▲                               │ │ │
//     │               │ └─── handed back ───────────────┘ │ │      the owner gives it up; nothing is counted
//     └─────────────────────  parked  ────────────────────┘ │      decided in the statement that parks: if the
//                     │                                     │      awaited thing has happened it is ready at once
//                     └──── orphaned: fence + 1 ────────────┘      the owner is gone; if it died, crashes + 1
//
// A row is owned if `owner` is set, ready if `ready_at` is, waiting if neither is (`wake_at` may say until when). A leaf
// that was handed out never waits: it is ready until it has an owner or an outcome.
// The owner writes with its fence; nobody writes with an old one. Progress sets `crashes` back to 0. A row with
// SUSPECT_AFTER crashes is a suspect: one suspect at a time has its turn in the whole instance, and if its process dies
// meanwhile, the crash is charged to it alone. A turn ends with the row's progress, its end or its parking, and after
// SUSPECT_TURN in any case: a suspect that hangs must not keep those of other projects waiting. A row with MOST_CRASHES
// fails.
//
// Claims are fair (`fairPick`): a free slot goes to the project with the fewest rows under way in this process, among
// equals in turn, and within a project in the table's own order. The cost of a claim depends on the rows it takes, not on the backlog: projects are found by
// skipping through the index, one probe for each, from the place at which the last claim ended.

import type { Db } from '../db/pool.ts'
import { LOWEST_ID } from '../kernel/id.ts'

export const SUSPECT_AFTER = 2
export const MOST_CRASHES = 5
const SUSPECT_TURN = `interval '30 seconds'`

export interface QueueTable {
  table: 'agent_runs' | 'flow_runs' | 'flow_handouts'
  kind: 'run' | 'flow_run' | 'leaf'
  /** The condition for rows that want an owner now, as their index has it. */
  ready: string
  /** The condition for rows that have an owner, as their index has it. */
  owned: string
  /** The order in which rows are taken within a project, as their index has it. */
  order: string
  /** The condition for owned rows that the owner still works on. Without a condition, all owned rows count. */
  underWay?: string
  /** Columns that the claim needs as they were before its update; `picked` carries them. */
  carried?: readonly string[]
  /** The condition for rows that this process may take, with its parameter: $8 in a fair claim, $3 for a suspect. */
  mayTake?: string
}

export interface FairAsk {
  owner: string
  /** The free slots, and the number of slots that are kept for projects with less than their share under way. */
  free: number
  kept: number
  /** The project at which the last claim ended. */
  cursor: string
  /** The projects with rows under way in this process, and the number of those rows. */
  projectIds: readonly string[]
  counts: readonly number[]
  /** Projects whose rows are claimed in another way, or not at all. */
  leftOut: readonly string[]
}

export interface Dealt<Claimed> {
  claimed: Claimed[]
  cursor: string
  /** True if another claim may find rows: some projects were not asked, or a project gave its whole share. */
  mayHaveMore: boolean
  /** The projects of `leftOut` that have ready rows and were passed over, in the order of their turns. */
  passedOver: string[]
  /** The rows that this process may not take, and that it therefore left to others. */
  refused?: string[]
}

export const NO_PROJECT = LOWEST_ID
/** A claim asks at most this many projects, or one for each free slot if there are more. */
const MOST_PROJECTS = 20
/** A claim stops asking after this many projects that may take a slot. One is not enough: its rows may be locked. */
const ENOUGH_PROJECTS = 4

/** The parameters $1 to $7 of `fairPick`. */
export const fairValues = (ask: FairAsk): unknown[] => [
  ask.owner,
  ask.free,
  ask.kept,
  ask.cursor,
  ask.projectIds,
  ask.counts,
  ask.leftOut,
]

const MOST = `greatest($2::int, ${MOST_PROJECTS})`
const ENOUGH = `greatest($2::int, ${ENOUGH_PROJECTS})`
/** The most rows that a claim takes of each eligible project. */
const SHARE = 'ceil($2::float8 / e.many)'

/**
 * `with recursive …, picked (id)`: rows that are locked and may be taken; `asking` are the projects. The kept slots go
 * only to a project that has fewer rows under way than there are slots free, so that a newcomer finds a free slot.
 *
 * A claim asks no more projects than it needs, and each once. With 100,000 rows in 20 projects and one free slot, a
 * claim that asked all projects and locked a row of each read 1,700 buffers; this one reads 65.
 *
 * The update that follows names the ids as an array, too: otherwise PostgreSQL 15 reads the whole table.
 */
export function fairPick({ table, ready, order, carried = [], mayTake }: QueueTable): string {
  const more = carried.map((column) => `, ${column}`).join('')
  const plain = `${ready} and crashes < ${SUSPECT_AFTER}`
  // A process that may not take every row may find none in many projects.
  const isOpen = `before.place < ${MOST}${mayTake ? '' : ` and before.enough < ${ENOUGH}`}`
  // The first row of a walk is no project; its `under_way` is null.
  const walk = (name: string, start: string, bound: string): string => `
    ${name} (project_id, place, under_way, is_eligible, enough) as (
      ${start} union all
      select next.project_id, before.place + 1, next.under_way, next.is_eligible,
        before.enough + next.is_eligible::int
      from ${name} before cross join lateral (
        select project_id, under_way, project_id <> all($7::uuid[]) and ($2::int > $3::int or under_way < $2::int) as is_eligible
        from (
          select project_id, coalesce(($6::int[])[array_position($5::uuid[], project_id)], 0) as under_way
          from (
            select t.project_id from ${table} t where ${plain} and t.project_id > before.project_id${bound}
            order by t.project_id limit 1
          ) one
        ) counted
      ) next where ${isOpen}
    )`
  return `
    with recursive ${walk('later', 'select $4::uuid, 0, null::int, false, 0', '')},
    ${walk('earlier', `select '${NO_PROJECT}'::uuid, max(place), null::int, false, max(enough) from later`, ' and t.project_id <= $4')},
    asking as (select * from later where under_way is not null union all select * from earlier where under_way is not null),
    eligible as materialized (
      select project_id, place, under_way, count(*) over () as many
      from asking where is_eligible and exists (select from workers where id = $1)
    ), candidates as (
      select c.id${more}, e.place, e.under_way + c.nth as load, c.nth = ${SHARE} as fills_share,
        row_number() over (order by e.under_way + c.nth, e.place) as rank
      from eligible e cross join lateral (
        select id${more}, row_number() over () as nth from (
          select id${more} from ${table}
          where project_id = e.project_id and ${plain} and (${mayTake ?? 'true'}) order by ${order}
          limit ${SHARE} for update skip locked
        ) r
      ) c
    ), picked as (
      -- The load counts the project's rows under way, this row included; $2 - rank + 1 slots are free before it.
      select id${more}, place from candidates where rank <= $2 and (rank <= $2 - $3 or load <= $2 - rank + 1)
    )`
}

/** Columns beside the rows: the project dealt to or asked last, whether there may be others, and those passed over. */
export const dealtColumns = ({ mayTake }: QueueTable): string => `
  (select project_id from asking where place <= coalesce((select max(picked.place) from picked), place)
   order by place desc limit 1) as cursor,
  (select count(*) >= ${MOST} ${mayTake ? '' : `or count(*) filter (where is_eligible) >= ${ENOUGH}`} from asking)
    or coalesce((select count(*) < $2 and bool_or(fills_share) from candidates), false) as may_have_more,
  array(select project_id from asking where project_id = any($7::uuid[]) order by place)::text[] as passed_over`

export interface DealtColumns {
  cursor: string | null
  may_have_more: boolean
  passed_over: string[]
  refused?: string[]
}

const NOTHING_DEALT: DealtColumns = { cursor: null, may_have_more: false, passed_over: [] }

/** A claim that takes nothing still returns one row: its `id` is null, and the other columns are the next position. */
export function dealt<Claimed extends { id: string }>(rows: readonly (Claimed & DealtColumns)[]): Dealt<Claimed> {
  const claimed = rows.filter((row) => row.id !== null)
  const [{ cursor, may_have_more: mayHaveMore, passed_over: passedOver, refused = [] } = NOTHING_DEALT] = rows
  return { claimed, cursor: cursor ?? NO_PROJECT, mayHaveMore, passedOver, refused }
}

/** `with …, picked (id)`: one suspect, if none has its turn. Project $2, which had the last turn, comes last. */
export function suspectPick(queue: QueueTable): string {
  const { table, kind, ready, carried = [], mayTake = 'true' } = queue
  const more = carried.map((column) => `, ${column}`).join('')
  return `
    with suspect as (
      select id${more} from ${table} where ${ready} and crashes >= ${SUSPECT_AFTER} and (${mayTake})
        and exists (select from workers where id = $1) and not exists (select from suspect_under_way)
      order by (project_id = $2::uuid), ${ageOf(queue)} limit 1 for update skip locked
    ), held as (
      insert into suspect_under_way (worker_id, kind, item_id) select $1, '${kind}', id from suspect
      on conflict do nothing returning item_id as id
    ), picked as (select id${more} from suspect join held using (id))`
}

/** Frees the turn if the suspect of worker $1 has ended, parked, progressed or overstayed. True if it has none. */
export const releaseSuspect = ({ table, kind, underWay = 'true' }: QueueTable): string => `
  with held as (
    select exists (select from ${table} where id = s.item_id and owner = $1 and crashes >= ${SUSPECT_AFTER} and ${underWay})
      and s.taken_at > muster.now() - ${SUSPECT_TURN} as is_under_way
    from suspect_under_way s where worker_id = $1 and kind = '${kind}'
  ), released as (
    delete from suspect_under_way where worker_id = $1 and exists (select from held where not is_under_way)
  )
  select not exists (select from held where is_under_way) as has_none`

export const promoteDue = ({ table }: QueueTable): string => `
  update ${table} set ready_at = coalesce(ready_at, muster.now()), wake_at = null
  where id in (select id from ${table} where wake_at <= muster.now() order by wake_at limit 500 for update skip locked)`

/**
 * Columns that tell whether there is anything to do in a table: an idle process sends only this statement. Each column
 * probes an index that holds only the work at hand. The probes are ordered: a planner that expects a row soon would
 * otherwise look for it from the table's start.
 */
export const atHand = (queue: QueueTable): string => `
  (select true from ${queue.table} where ${queue.ready} and crashes < ${SUSPECT_AFTER} order by project_id limit 1) is true
    as has_ready,
  (select true from ${queue.table} where ${queue.ready} and crashes >= ${SUSPECT_AFTER} order by ${ageOf(queue)} limit 1) is true
    as has_suspects,
  exists (
    with recursive owners (one) as (
      select (select owner from ${queue.table} where ${queue.owned} order by owner limit 1)
      union all
      select (select owner from ${queue.table} where ${queue.owned} and owner > one order by owner limit 1)
      from owners where one is not null
    )
    select from owners where one is not null and not exists (select from workers w where w.id = one)
  ) as has_orphans`

/** A further column beside `atHand`, for tables whose rows may wait for an instant. */
export const dueAtHand = ({ table }: QueueTable): string => `
  coalesce((select wake_at from ${table} where wake_at is not null order by wake_at limit 1) <= muster.now(), false) as has_due`

const ageOf = ({ order }: QueueTable): string => order.replace(/^priority desc, /, '')

export interface AtHand {
  has_ready: boolean
  has_suspects: boolean
  /** True if some rows have an owner that is registered nowhere. */
  has_orphans: boolean
}

/** A worker's death is charged to all its rows or, if it had a suspect, to that row alone. */
export type Charge = { to: 'all' } | { to: 'one'; kind: QueueTable['kind']; itemId: string } | { to: 'none' }

/** The number of a row's crashes after its owner is gone; $2 and $3 are `chargeValues`. */
export const charged = (row: string): string =>
  `${row}.crashes + case when $2::boolean or ${row}.id = $3::uuid then 1 else 0 end`

export function chargeValues(charge: Charge, kind: QueueTable['kind']): [boolean, string | null] {
  return [charge.to === 'all', charge.to === 'one' && charge.kind === kind ? charge.itemId : null]
}

/** Must be called before the dead worker's row is deleted, because the record of its suspect is deleted with it. */
export async function chargeFor(tx: Db, workerId: string): Promise<Charge> {
  const { rows } = await tx.query<{ kind: QueueTable['kind']; item_id: string }>(
    'select kind, item_id from suspect_under_way where worker_id = $1',
    [workerId],
  )
  const suspect = rows[0]
  return suspect ? { to: 'one', kind: suspect.kind, itemId: suspect.item_id } : { to: 'all' }
}
