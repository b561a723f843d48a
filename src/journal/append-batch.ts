import type { Db, PreparedSql } from '../db/pool.ts'
import { cleanJson } from './clean-json.ts'
import type { RunChange } from './run-change.ts'

/** One run's part of a batch. */
export interface Entry<Change = RunChange> {
  runId: string
  /** The owner's; null for facts from outside, which never change ownership. */
  fence: number | null
  events: readonly { id: string; kind: string; data: string }[]
  change: Change | undefined
  /** Events of sub-runs: an ancestor that has ended takes no more. */
  isForwarded: boolean
  /** How many of its sub-runs end with this batch. */
  childrenEnded: number
}

export interface Written {
  firstSeq: number
  at: Date
  /** Where the journal's rows say so: somebody has asked for the end. */
  isCancelled?: boolean
}

/**
 * One statement for many runs. Agents are charged here too, in the order of their ids, so that no call is paid and not
 * counted. Tried and rejected: one insert per run (50 in flight: a fifth of the throughput); `insert … on conflict (id)`
 * for retries (a second unique index on the hottest table; retries look their ids up); the events' data as an array of
 * its own (10 % slower than one JSON list).
 *
 * Rows that others may be writing too (ancestors, facts from outside) are locked in the order of their ids first, so
 * that two processes do not wait for each other; that costs 15 %, and an owner's own runs do not need it.
 */
const appendSql = (locks: boolean): PreparedSql => ({
  name: locks ? 'journal_append_shared' : 'journal_append',
  text: `
    with entries as (
      select run_id, fence, events, steps, input_tokens, output_tokens, cost, nullif(change, 'null') as change,
        is_forwarded, children_ended, settled, entry
      from rows from (unnest($1::uuid[]), unnest($2::bigint[]), unnest($3::int[]), unnest($4::int[]),
        unnest($5::bigint[]), unnest($6::bigint[]), unnest($7::float8[]), jsonb_array_elements($8::jsonb),
        unnest($9::boolean[]), unnest($10::int[]), unnest($11::bigint[])) with ordinality
        as e (run_id, fence, events, steps, input_tokens, output_tokens, cost, change, is_forwarded, children_ended,
          settled, entry)
    ), ${locks ? 'locked as (select id from agent_runs where id = any($1::uuid[]) order by id for update), ' : ''}changed as (
      update agent_runs r set
        last_seq = r.last_seq + e.events,
        step_count = r.step_count + e.steps,
        input_tokens = r.input_tokens + e.input_tokens,
        output_tokens = r.output_tokens + e.output_tokens,
        cost_usd = case when e.cost is null then r.cost_usd else coalesce(r.cost_usd, 0) + e.cost end,
        reserved = r.reserved - e.settled,
        open_children = r.open_children - e.children_ended,
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
          when e.change->>'waits_for' = 'children' and r.open_children <= 0 then muster.now()
          when e.change ? 'ready_in_ms' then muster.now() + (e.change->>'ready_in_ms')::float8 * interval '1 ms'
          when e.children_ended > 0 and r.owner is null and r.waits_for = 'children'
            and r.open_children <= e.children_ended then muster.now()
          else r.ready_at end,
        completed_at = case when e.change ? 'ended' then muster.now() else r.completed_at end,
        duration = case when e.change ? 'ended'
          then (extract(epoch from muster.now() - coalesce(r.started_at, r.created_at)) * 1000)::int else r.duration end
      from entries e ${locks ? 'join locked l on l.id = e.run_id' : ''}
      where r.id = e.run_id and r.id = any($1::uuid[]) and (e.fence is null or e.fence = r.fence)
        and not (e.is_forwarded and r.completed_at is not null)
      returning r.id, r.agent_id, r.last_seq - e.events as before_first, e.entry,
        e.input_tokens + e.output_tokens as tokens, e.settled
    ), charged as (
      insert into agent_tokens as t (agent_id, used, reserved, last_active_at)
      select agent_id, sum(tokens), -sum(settled), muster.now() from changed where tokens <> 0 or settled <> 0
      group by agent_id order by agent_id
      on conflict (agent_id) do update set used = t.used + excluded.used, reserved = t.reserved + excluded.reserved,
        last_active_at = excluded.last_active_at
    ), written as (
      insert into run_events (run_id, seq, id, kind, data)
      select c.id, c.before_first + v.place, v.id, v.kind, v.data
      from rows from (unnest($12::bigint[]), unnest($13::int[]), unnest($14::uuid[]), unnest($15::text[]),
        jsonb_array_elements($16::jsonb)) as v (entry, place, id, kind, data)
      join changed c on c.entry = v.entry
    )
    select id as run_id, before_first + 1 as first_seq, muster.now() as at from changed`,
})

const APPEND_OWN = appendSql(false)
const APPEND_SHARED = appendSql(true)

/** Each run at most once. Absent from the answer: runs that do not exist, and those whose fence was old or that had ended. */
export async function appendBatch(db: Db, entries: readonly Entry[]): Promise<Map<string, Written>> {
  const sql = entries.every((entry) => entry.fence !== null) ? APPEND_OWN : APPEND_SHARED
  const events = entries.flatMap((entry, index) =>
    entry.events.map((event, place) => ({ ...event, entry: index + 1, place: place + 1 })),
  )
  const { rows } = await db.query<{ run_id: string; first_seq: number; at: Date }>(sql, [
    plainArray(entries, (entry) => entry.runId),
    plainArray(entries, (entry) => entry.fence),
    plainArray(entries, (entry) => entry.events.length),
    plainArray(entries, (entry) => entry.change?.steps ?? 0),
    plainArray(entries, (entry) => entry.change?.inputTokens ?? 0),
    plainArray(entries, (entry) => entry.change?.outputTokens ?? 0),
    plainArray(entries, (entry) => entry.change?.costUsd ?? null),
    `[${entries.map((entry) => (entry.change?.set ? cleanJson(entry.change.set) : 'null')).join(',')}]`,
    plainArray(entries, (entry) => entry.isForwarded),
    plainArray(entries, (entry) => entry.childrenEnded),
    plainArray(entries, (entry) => entry.change?.settled ?? 0),
    plainArray(events, (event) => event.entry),
    plainArray(events, (event) => event.place),
    plainArray(events, (event) => event.id),
    plainArray(events, (event) => event.kind),
    `[${events.map((event) => event.data).join(',')}]`,
  ])
  return new Map(rows.map((row) => [row.run_id, { firstSeq: row.first_seq, at: row.at }]))
}

/**
 * PostgreSQL's text of an array of ids, numbers, truths and names of ours, none of which needs quotes. The driver would
 * look through every element for characters to escape, which took a tenth of an append.
 */
export function plainArray<Item>(
  items: readonly Item[],
  field: (item: Item) => string | number | boolean | null,
): string {
  return `{${items.map((item) => field(item) ?? 'null').join(',')}}`
}

/** Which of these entries an earlier attempt committed before the connection was cut. */
export async function findWritten(db: Db, entries: readonly Entry[]): Promise<Map<string, Written>> {
  const firstIds = entries.map((entry) => entry.events[0]?.id ?? null)
  const runIds = entries.map((entry) => entry.runId)
  // That attempt may be under way still, waiting for these rows or writing them: behind its locks its outcome is known.
  await db.query('select from agent_runs where id = any($1::uuid[]) order by id for update', [runIds])
  const { rows } = await db.query<{ run_id: string; seq: number; at: Date }>(
    'select run_id, seq, at from run_events where run_id = any($1::uuid[]) and id = any($2::uuid[])',
    [runIds, firstIds],
  )
  return new Map(rows.map((row) => [row.run_id, { firstSeq: row.seq, at: row.at }]))
}
