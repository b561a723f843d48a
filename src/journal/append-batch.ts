import type { Db, PreparedSql } from '../db/pool.ts'
import { cleanJson } from './clean-json.ts'
import { THIS_MONTH } from './month.ts'
import type { RunChange } from './run-change.ts'

/** One run's part of a batch. */
export interface Entry<Change = RunChange> {
  runId: string
  /** The owner's fence; null for facts from outside, which never change ownership. */
  fence: number | null
  events: readonly EntryEvent[]
  change: Change | undefined
  /** True for events of sub-runs: an ancestor that has ended takes no more of them. */
  isForwarded: boolean
}

export interface EntryEvent {
  id: string
  kind: string
  /** JSON text, as streams show it. */
  data: string
  /** Set on a sub-run's event in the journal of an ancestor: the place of the event in the sub-run's own journal. */
  origin?: Origin
}

export interface Origin {
  runId: string
  /** The place of the event among those that the sub-run appends in this batch, from 1 on. */
  place: number
  /** True if the event ends the sub-run and the ancestor is the sub-run's parent. */
  endsChild: boolean
}

export interface Written {
  firstSeq: number
  at: Date
  /** True if the run's row says that its end was asked for; not every journal fills this. */
  isCancelled?: boolean
  /** True if not all events were written, because another process owns some of the sub-runs by now. */
  isPartial?: boolean
}

/**
 * One statement for many runs. Agents are charged here too, and projects for runs without an agent, in the order of their ids, so that every paid call is
 * counted. Tried and rejected: one insert per run (50 in flight: a fifth of the throughput); `insert … on conflict
 * (id)`
 * for retries (a second unique index on the hottest table; retries look their ids up); the events' data as an array of
 * its own (10 % slower than one JSON list).
 *
 * Rows that others may be writing too (ancestors, facts from outside) are locked in the order of their ids first, so
 * that two processes do not wait for each other; that costs 15 %, and an owner's own runs do not need it.
 *
 * An event of a sub-run is stored once, in the sub-run's own journal. In the journal of an ancestor a row with its own
 * seq names the sub-run and the event's seq there; read.ts puts both together. Against copies, three levels deep:
 * events of 20 KB take a quarter of the space and a third of the time, those of 1 KB a third of the space and the same
 * time. Tried and rejected: finding the events that still hold after an owner has lost its run in this statement (half
 * as slow again for everybody); a lost run is rare, and costs a second statement then.
 */
const appendSql = (isShared: boolean): PreparedSql => ({
  name: isShared ? 'journal_append_shared' : 'journal_append',
  text: `
    with ${isShared ? `given as (${GIVEN}), ${LOCKED}` : `entries as (${GIVEN})`}, changed as (
      update agent_runs r set
        last_seq = r.last_seq + e.events,
        step_count = r.step_count + e.steps,
        crashes = case when e.steps > 0 then 0 else r.crashes end,
        input_tokens = r.input_tokens + e.input_tokens,
        output_tokens = r.output_tokens + e.output_tokens,
        cost_usd = case when e.cost is null then r.cost_usd else coalesce(r.cost_usd, 0) + e.cost end,
        reserved = r.reserved - e.settled,
        open_children = case when e.change ? 'ended' then 0 else r.open_children - e.children_ended end,
        status = coalesce(e.change->>'status', r.status),
        pause_reason = case when e.change ? 'pause_reason' then e.change->>'pause_reason' else r.pause_reason end,
        summary = case when e.change ? 'summary' then e.change->>'summary' else r.summary end,
        error_code = case when e.change ? 'error_code' then e.change->>'error_code' else r.error_code end,
        error_message = case when e.change ? 'error_message' then e.change->>'error_message' else r.error_message end,
        usage_estimated = r.usage_estimated or coalesce(e.change ? 'usage_estimated', false),
        waits_for = case when e.change ? 'ended' then null when e.change ? 'waits_for' then e.change->>'waits_for' else r.waits_for end,
        owner = case when e.change ?| '{release,ended}' then null else r.owner end,
        ready_at = case
          when e.change ? 'ended' then null
          when e.change ? 'release' and (r.cancel_requested_at is not null
            or r.signals > (e.change->>'seen_signals')::int
            or (e.change->>'waits_for' = 'children' and r.open_children <= 0)
            or (e.change->>'ready_in_ms')::float8 <= 0) then muster.now()
          when e.children_ended > 0 and r.owner is null and r.waits_for = 'children'
            and r.open_children <= e.children_ended then muster.now()
          else r.ready_at end,
        wake_at = case
          when e.change ? 'ended' then null
          when (e.change->>'ready_in_ms')::float8 > 0
            then muster.now() + (e.change->>'ready_in_ms')::float8 * interval '1 ms'
          else r.wake_at end,
        completed_at = case when e.change ? 'ended' then muster.now() else r.completed_at end,
        duration = case when e.change ? 'ended'
          then least(extract(epoch from muster.now() - coalesce(r.started_at, r.created_at)) * 1000, 2147483647)::int
          else r.duration end
      from entries e
      where r.id = e.run_id and r.id = any($1::uuid[]) and (e.fence is null or e.fence = r.fence)
        and not (e.is_forwarded and r.completed_at is not null)
      returning r.id, r.agent_id, r.project_id, r.last_seq - e.events as before_first, e.entry,
        e.input_tokens + e.output_tokens as tokens, e.settled
    ), charged as (
      insert into agent_tokens as t (agent_id, used, reserved, last_active_at, last_worked_at, month, month_used)
      select agent_id, sum(tokens), -sum(settled), muster.now(), muster.now(), ${THIS_MONTH}, sum(tokens) from changed
      where agent_id is not null and (tokens <> 0 or settled <> 0) group by agent_id order by agent_id
      on conflict (agent_id) do update set used = t.used + excluded.used, reserved = t.reserved + excluded.reserved,
        last_active_at = excluded.last_active_at, last_worked_at = excluded.last_worked_at,
        month = excluded.month,
        month_used = excluded.month_used + case when t.month = excluded.month then t.month_used else 0 end
    ), charged_project as (
      insert into project_tokens as t (project_id, month, used)
      select project_id, ${THIS_MONTH}, sum(tokens) from changed where agent_id is null and tokens <> 0
      group by project_id order by project_id
      on conflict (project_id, month) do update set used = t.used + excluded.used
    ), written as (${isShared ? INSERT_SHARED : INSERT_OWN})
    select id as run_id, before_first + 1 as first_seq, muster.now() as at from changed
    ${isShared ? 'union all select run_id, null, null from lost' : ''}`,
})

/** The entries as they were handed in. */
const GIVEN = `
  select run_id, fence, events, steps, input_tokens, output_tokens, cost, nullif(change, 'null') as change,
    is_forwarded, children_ended, settled, entry
  from rows from (unnest($1::uuid[]), unnest($2::bigint[]), unnest($3::int[]), unnest($4::int[]),
    unnest($5::bigint[]), unnest($6::bigint[]), unnest($7::float8[]), jsonb_array_elements($8::jsonb),
    unnest($9::boolean[]), unnest($10::int[]), unnest($11::bigint[])) with ordinality
    as e (run_id, fence, events, steps, input_tokens, output_tokens, cost, change, is_forwarded, children_ended,
      settled, entry)`

/**
 * If an owner has lost a run, nothing is written: the run's ancestors must not hear of it. The lost runs are returned.
 */
const LOCKED = `
  locked as (
    select id, fence from agent_runs where id = any($1::uuid[]) order by id for update
  ), lost as (
    select g.run_id from given g left join locked l on l.id = g.run_id
    where g.fence is not null and g.fence is distinct from l.fence
  ), entries as (
    select g.* from given g join locked l on l.id = g.run_id where not exists (select from lost)
  )`

const INSERT_OWN = `
  insert into run_events (run_id, seq, id, kind, data)
  select c.id, c.before_first + v.place, v.id, v.kind, v.data
  from rows from (unnest($12::bigint[]), unnest($13::int[]), unnest($14::uuid[]), unnest($15::text[]),
    jsonb_array_elements($16::jsonb)) as v (entry, place, id, kind, data)
  join changed c on c.entry = v.entry`

const INSERT_SHARED = `
  insert into run_events (run_id, seq, id, kind, data, origin_seq)
  select c.id, c.before_first + v.place, v.id, v.kind, v.data, o.before_first + v.origin_place
  from rows from (unnest($12::bigint[]), unnest($13::int[]), unnest($14::uuid[]), unnest($15::text[]),
    jsonb_array_elements($16::jsonb), unnest($17::bigint[]), unnest($18::int[]))
    as v (entry, place, id, kind, data, origin, origin_place)
  join changed c on c.entry = v.entry left join changed o on o.entry = v.origin`

const APPEND_OWN = appendSql(false)
const APPEND_SHARED = appendSql(true)

/**
 * Takes each run at most once. The result lacks runs that do not exist, have ended, or were given with an old fence.
 */
export async function appendBatch(db: Db, entries: readonly Entry[]): Promise<Map<string, Written>> {
  const isShared = entries.some((entry) => entry.fence === null)
  const { rows } = await db.query<WrittenRow>(isShared ? APPEND_SHARED : APPEND_OWN, valuesOf(entries, isShared))
  const lost = new Set(rows.filter((row) => row.first_seq === null).map((row) => row.run_id))
  if (lost.size > 0) return appendWithout(db, entries, lost)
  return new Map(rows.map((row) => [row.run_id, { firstSeq: row.first_seq ?? 0, at: row.at }]))
}

interface WrittenRow {
  run_id: string
  /** Null if nothing was written, because this run has another owner. */
  first_seq: number | null
  at: Date
}

function valuesOf(entries: readonly Entry[], isShared: boolean): string[] {
  const events = entries.flatMap((entry, index) =>
    entry.events.map((event, place) => ({ ...event, entry: index + 1, place: place + 1 })),
  )
  const values = [
    plainArray(entries, (entry) => entry.runId),
    plainArray(entries, (entry) => entry.fence),
    plainArray(entries, (entry) => entry.events.length),
    plainArray(entries, (entry) => entry.change?.steps ?? 0),
    plainArray(entries, (entry) => entry.change?.inputTokens ?? 0),
    plainArray(entries, (entry) => entry.change?.outputTokens ?? 0),
    plainArray(entries, (entry) => entry.change?.costUsd ?? null),
    `[${entries.map((entry) => (entry.change?.set ? cleanJson(entry.change.set) : 'null')).join(',')}]`,
    plainArray(entries, (entry) => entry.isForwarded),
    plainArray(entries, (entry) => entry.events.filter((event) => event.origin?.endsChild).length),
    plainArray(entries, (entry) => entry.change?.settled ?? 0),
    plainArray(events, (event) => event.entry),
    plainArray(events, (event) => event.place),
    plainArray(events, (event) => event.id),
    plainArray(events, (event) => event.kind),
    `[${events.map((event) => (event.origin ? `{"run_id":"${event.origin.runId}"}` : event.data)).join(',')}]`,
  ]
  if (!isShared) return values
  const places = new Map(entries.flatMap((entry, index) => (entry.isForwarded ? [] : [[entry.runId, index + 1]])))
  return [
    ...values,
    plainArray(events, ({ origin }) => (origin ? (places.get(origin.runId) ?? null) : null)),
    plainArray(events, ({ origin }) => origin?.place ?? null),
  ]
}

/** Appends everything but the events of the lost runs, in their own journals and in those of their ancestors. */
async function appendWithout(
  db: Db,
  entries: readonly Entry[],
  lost: ReadonlySet<string>,
): Promise<Map<string, Written>> {
  const rest = entries
    .filter((entry) => entry.isForwarded || !lost.has(entry.runId))
    .map((entry) => ({ ...entry, events: entry.events.filter(({ origin }) => !origin || !lost.has(origin.runId)) }))
    .filter((entry) => !entry.isForwarded || entry.events.length > 0)
  if (rest.length === 0) return new Map()
  const written = await appendBatch(db, rest)
  const lengths = new Map(rest.map((entry) => [entry.runId, entry.events.length]))
  for (const { runId, events } of entries) {
    const own = written.get(runId)
    if (own && events.length !== lengths.get(runId)) written.set(runId, { ...own, isPartial: true })
  }
  return written
}

/**
 * PostgreSQL's text of an array of ids, numbers, booleans and Muster's own names, none of which needs quotes. The
 * driver would search every element for characters to escape, which took a tenth of an append.
 */
export function plainArray<Item>(
  items: readonly Item[],
  field: (item: Item) => string | number | boolean | null,
): string {
  return `{${items.map((item) => field(item) ?? 'null').join(',')}}`
}

/** Finds the entries that an earlier attempt committed before the connection was cut. */
export async function findWritten(db: Db, entries: readonly Entry[]): Promise<Map<string, Written>> {
  const runIds = entries.map((entry) => entry.runId)
  // That attempt may still be under way, waiting for these rows or writing them. Its outcome is known once these locks
  // are granted.
  await db.query('select from agent_runs where id = any($1::uuid[]) order by id for update', [runIds])
  const { rows } = await db.query<{ run_id: string; first_seq: number; events: number; at: Date }>(
    `select run_id, min(seq) as first_seq, count(*)::int as events, min(at) as at from run_events
     where run_id = any($1::uuid[]) and id = any($2::uuid[]) group by run_id`,
    [runIds, entries.flatMap((entry) => entry.events.map((event) => event.id))],
  )
  const lengths = new Map(entries.map((entry) => [entry.runId, entry.events.length]))
  return new Map(
    rows.map(({ run_id, first_seq: firstSeq, events, at }) => [
      run_id,
      { firstSeq, at, ...(events === lengths.get(run_id) ? {} : { isPartial: true }) },
    ]),
  )
}
