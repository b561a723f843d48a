// The journal of flow runs: the same group commit as for runs, over tables of its own.
import type { Db, PreparedSql } from '../db/pool.ts'
import type { Journal, JournalOptions } from '../journal/append.ts'
import { type Entry, plainArray, type Written } from '../journal/append-batch.ts'
import { cleanJson } from '../journal/clean-json.ts'
import { createGroupCommit } from '../journal/group-commit.ts'
import type { Topology } from '../kernel/flow.ts'
import type { FlowRunStatus, Progress } from '../kernel/flow-run.ts'

/** The change that an append makes to the flow run's row. */
export interface FlowChange {
  status?: FlowRunStatus
  output?: unknown
  error?: string | null
  progress?: Progress
  /** The owner gives the flow run up. It is ready again after `ready_in_ms`, or at once where it has unseen news. */
  release?: true
  seen_leaves?: number
  ready_in_ms?: number
  /** A leaf has ended, so the crashes before this append are forgotten. */
  has_progressed?: true
  ended?: true
  /** Nothing is written where somebody has asked for the end before. */
  unless_cancelled?: true
  /** The wanted topology, which the events of this append put in force wherever it is possible. */
  topology_in_force?: Topology
}

export type FlowJournal = Journal<FlowChange>

export function createFlowJournal(options: JournalOptions): FlowJournal {
  return createGroupCommit<FlowChange>(options, {
    worthAnother: 24,
    entriesOf: (batch) =>
      batch.map(({ runId, fence, events, change }) => ({ runId, fence, events, change, isForwarded: false })),
    append: appendBatch,
    find: findWritten,
  })
}

const APPEND: PreparedSql = {
  name: 'flow_append',
  text: `
    with entries as (
      select run_id, fence, events, change, entry
      from rows from (unnest($1::uuid[]), unnest($2::bigint[]), unnest($3::int[]), jsonb_array_elements($4::jsonb))
        with ordinality as e (run_id, fence, events, change, entry)
    ), changed as (
      update flow_runs r set
        last_seq = r.last_seq + e.events,
        status = coalesce(e.change->>'status', r.status),
        output = case when e.change ? 'output' then e.change->'output' else r.output end,
        error = case when e.change ? 'error' then e.change->>'error' else r.error end,
        progress = coalesce(e.change->'progress', r.progress),
        owner = case when e.change ?| '{release,ended}' then null else r.owner end,
        ready_at = case
          when e.change ? 'ended' then null
          when e.change ? 'seen_leaves' and (r.ended_leaves > (e.change->>'seen_leaves')::int
            or r.cancel_requested_at is not null or r.topology_wanted_at is not null) then muster.now()
          when (e.change->>'ready_in_ms')::float8 <= 0 then muster.now()
          else r.ready_at end,
        wake_at = case
          when e.change ? 'ended' then null
          when (e.change->>'ready_in_ms')::float8 > 0
            then muster.now() + (e.change->>'ready_in_ms')::float8 * interval '1 ms'
          else r.wake_at end,
        check_at = case when e.change ? 'ended' then null else r.check_at end,
        crashes = case when e.change ? 'has_progressed' then 0 else r.crashes end,
        topology_wanted_at = case when e.change->>'topology_in_force' = r.wanted_topology then null
          else r.topology_wanted_at end,
        completed_at = case when e.change ? 'ended' then muster.now() else r.completed_at end,
        duration = case when e.change ? 'ended'
          then least(extract(epoch from muster.now() - coalesce(r.started_at, r.created_at)) * 1000, 2147483647)::int
          else r.duration end
      from entries e
      where r.id = e.run_id and r.id = any($1::uuid[]) and (e.fence is null or e.fence = r.fence)
        and (r.cancel_requested_at is null or not e.change ? 'unless_cancelled')
      returning r.id, r.last_seq - e.events as before_first, e.entry, r.cancel_requested_at is not null as is_cancelled
    ), written as (
      insert into flow_events (run_id, seq, id, kind, data)
      select c.id, c.before_first + v.place, v.id, v.kind, v.data
      from rows from (unnest($5::bigint[]), unnest($6::int[]), unnest($7::uuid[]), unnest($8::text[]),
        jsonb_array_elements($9::jsonb)) as v (entry, place, id, kind, data)
      join changed c on c.entry = v.entry
    )
    select muster.now() as at,
      string_agg(entry || ' ' || before_first + 1 || case when is_cancelled then ' x' else '' end, ',') as written
    from changed`,
}

/** One row answers for the whole batch: reading one for each entry took longer than all else on our side. */
async function appendBatch(db: Db, entries: readonly Entry<FlowChange>[]): Promise<Map<string, Written>> {
  const events = entries.flatMap((entry) => entry.events)
  const { rows } = await db.query<{ at: Date; written: string | null }>(APPEND, [
    plainArray(entries, (entry) => entry.runId),
    plainArray(entries, (entry) => entry.fence),
    plainArray(entries, (entry) => entry.events.length),
    `[${entries.map((entry) => cleanJson(entry.change ?? {})).join(',')}]`,
    `{${entries.flatMap((entry, index) => entry.events.map(() => index + 1)).join(',')}}`,
    `{${entries.flatMap((entry) => entry.events.map((_, place) => place + 1)).join(',')}}`,
    plainArray(events, (event) => event.id),
    plainArray(events, (event) => event.kind),
    `[${events.map((event) => event.data).join(',')}]`,
  ])
  return rows[0]?.written ? writtenIn(entries, rows[0].written, rows[0].at) : new Map()
}

/** `answer`: of each entry that was written its place, the first seq, and an x where the end was asked for. */
function writtenIn(entries: readonly Entry<FlowChange>[], answer: string, at: Date): Map<string, Written> {
  const written = new Map<string, Written>()
  for (const part of answer.split(',')) {
    const [place, firstSeq, mark] = part.split(' ')
    const entry = entries[Number(place) - 1]
    if (entry) written.set(entry.runId, { firstSeq: Number(firstSeq), at, isCancelled: mark !== undefined })
  }
  return written
}

async function findWritten(db: Db, entries: readonly Entry<FlowChange>[]): Promise<Map<string, Written>> {
  const runIds = entries.map((entry) => entry.runId)
  // The attempt may still be under way: once its locks are released, its outcome is known.
  await db.query('select from flow_runs where id = any($1::uuid[]) order by id for update', [runIds])
  const { rows } = await db.query<{ run_id: string; seq: number; at: Date }>(
    'select run_id, seq, at from flow_events where run_id = any($1::uuid[]) and id = any($2::uuid[])',
    [runIds, entries.map((entry) => entry.events[0]?.id ?? null)],
  )
  return new Map(rows.map((row) => [row.run_id, { firstSeq: row.seq, at: row.at }]))
}
