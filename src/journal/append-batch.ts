import type { Db, PreparedSql } from '../db/pool.ts'
import type { Prepared } from './append.ts'

/** `firstSeq` null: the fence was old and nothing of the entry was written. */
export interface Written {
  firstSeq: number | null
}

/**
 * One statement for many runs. Tried and rejected: one insert per run (50 in flight: a fifth of the throughput), and
 * `insert … on conflict (id)` for retries (a second unique index on the hottest table; retries look their ids up).
 */
const APPEND: PreparedSql = {
  name: 'journal_append',
  text: `
    with entries as (
      select * from unnest($1::uuid[], $2::bigint[], $3::int[], $4::int[], $5::bigint[], $6::bigint[], $7::float8[], $8::jsonb[])
        with ordinality as e (run_id, fence, events, steps, input_tokens, output_tokens, cost, change, entry)
    ), locked as (
      select id, fence from agent_runs where id = any($1::uuid[]) order by id for update
    ), changed as (
      update agent_runs r set
        last_seq = r.last_seq + e.events,
        step_count = r.step_count + e.steps,
        input_tokens = r.input_tokens + e.input_tokens,
        output_tokens = r.output_tokens + e.output_tokens,
        cost_usd = case when e.cost is null then r.cost_usd else coalesce(r.cost_usd, 0) + e.cost end,
        status = coalesce(e.change->>'status', r.status),
        pause_reason = case when e.change ? 'pause_reason' then e.change->>'pause_reason' else r.pause_reason end,
        summary = case when e.change ? 'summary' then e.change->>'summary' else r.summary end,
        error_code = case when e.change ? 'error_code' then e.change->>'error_code' else r.error_code end,
        error_message = case when e.change ? 'error_message' then e.change->>'error_message' else r.error_message end,
        usage_estimated = r.usage_estimated or coalesce(e.change ? 'usage_estimated', false),
        waits_for = case when e.change ? 'waits_for' then nullif(e.change->'waits_for', 'null') else r.waits_for end,
        owner = case when e.change ?| '{release,ended}' then null else r.owner end,
        ready_at = case when e.change ? 'ready' then muster.now() when e.change ? 'ended' then null else r.ready_at end,
        completed_at = case when e.change ? 'ended' then muster.now() else r.completed_at end,
        duration = case when e.change ? 'ended'
          then (extract(epoch from muster.now() - coalesce(r.started_at, r.created_at)) * 1000)::int else r.duration end,
        cancel_requested_at = case when e.change ? 'cancel_requested'
          then coalesce(r.cancel_requested_at, muster.now()) else r.cancel_requested_at end
      from entries e join locked l on l.id = e.run_id
      where r.id = e.run_id and (e.fence is null or e.fence = l.fence)
      returning r.id, r.last_seq - e.events as before_first, e.entry
    ), written as (
      insert into run_events (run_id, seq, id, kind, data)
      select c.id, c.before_first + v.place, v.id, v.kind, v.data
      from unnest($9::bigint[], $10::int[], $11::uuid[], $12::text[], $13::jsonb[]) as v (entry, place, id, kind, data)
      join changed c on c.entry = v.entry
    )
    select l.id as run_id, c.before_first + 1 as first_seq from locked l left join changed c on c.id = l.id`,
}

/** Each run at most once. Runs that do not exist are absent from the answer. */
export async function appendBatch(db: Db, entries: readonly Prepared[]): Promise<Map<string, Written>> {
  const events = entries.flatMap((entry, index) =>
    entry.events.map((event, place) => ({ ...event, entry: index + 1, place: place + 1 })),
  )
  const { rows } = await db.query<{ run_id: string; first_seq: number | null }>(APPEND, [
    entries.map((entry) => entry.runId),
    entries.map((entry) => entry.fence),
    entries.map((entry) => entry.events.length),
    entries.map((entry) => entry.change?.steps ?? 0),
    entries.map((entry) => entry.change?.inputTokens ?? 0),
    entries.map((entry) => entry.change?.outputTokens ?? 0),
    entries.map((entry) => entry.change?.costUsd ?? null),
    entries.map((entry) => (entry.change?.set ? JSON.stringify(entry.change.set) : null)),
    events.map((event) => event.entry),
    events.map((event) => event.place),
    events.map((event) => event.id),
    events.map((event) => event.kind),
    events.map((event) => event.data),
  ])
  return new Map(rows.map((row) => [row.run_id, { firstSeq: row.first_seq }]))
}

/** Which of these entries an earlier attempt committed before the connection was cut. */
export async function findWritten(db: Db, entries: readonly Prepared[]): Promise<Map<string, Written>> {
  const firstIds = entries.map((entry) => entry.events[0]?.id ?? null)
  const { rows } = await db.query<{ run_id: string; seq: number }>(
    'select run_id, seq from run_events where run_id = any($1::uuid[]) and id = any($2::uuid[])',
    [entries.map((entry) => entry.runId), firstIds],
  )
  return new Map(rows.map((row) => [row.run_id, { firstSeq: row.seq }]))
}
