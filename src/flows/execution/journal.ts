// The journal of flow runs: the same group commit as for runs, over tables of its own.
import { markChangedIf } from '../../db/changed-in.ts'
import type { Db, PreparedSql } from '../../db/pool.ts'
import { cleanJson } from '../../journal/clean-json.ts'
import { type Entry, eventsInOrder, type Written } from '../../journal/entry.ts'
import { createGroupCommit } from '../../journal/group-commit.ts'
import type { Journal, JournalOptions } from '../../journal/journal.ts'
import { plainArray } from '../../journal/plain-array.ts'
import type { Topology } from '../../kernel/flow.ts'
import type { FlowProgress, FlowRunStatus } from '../../kernel/flow-run.ts'

export interface FlowChange {
  status?: FlowRunStatus
  output?: unknown
  error?: string | null
  progress?: FlowProgress
  /** The owner gives up the flow run. The run is ready again after `ready_in_ms`, or at once if it has unseen news. */
  release?: true
  seen_leaves?: number
  seen_adjustments?: number
  ready_in_ms?: number
  /** True: the project is halted. The time until the next claim does not count for the timeout. */
  is_halted?: true
  /** True: a leaf has ended, so the crashes before this append are forgotten. */
  has_progressed?: true
  ended?: true
  /** True: another flow run is above this one. */
  is_inner?: true
  /** True: nothing is written if the end was asked for before. */
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

/**
 * SQL: the order in which a statement locks several flow runs. Triggers lock a flow run and then the one above it, so the
 * inner one comes first.
 */
export const INNER_FIRST = `coalesce((within->>'depth')::int, 0) desc, id`

interface Kind {
  /** True if a flow run has others above it. Such rows are locked first; the others have no order that matters. */
  hasInner: boolean
  /** True if nothing but the progress changes. */
  isPlain: boolean
}

const appendSql = ({ hasInner, isPlain }: Kind): PreparedSql => ({
  name: `flow_append${hasInner ? '_inner' : ''}${isPlain ? '_plain' : ''}`,
  text: `
    with entries as (
      select run_id, fence, events, change, entry
      from rows from (unnest($1::uuid[]), unnest($2::bigint[]), unnest($3::int[]), jsonb_array_elements($4::jsonb))
        with ordinality as e (run_id, fence, events, change, entry)
    ), ${hasInner ? INNER_RUNS : ''} changed as (
      update flow_runs r set
        last_seq = r.last_seq + e.events,
        progress = coalesce(e.change->'progress', r.progress)${isPlain ? '' : `,${OTHER_COLUMNS}`}
      from entries e
      where r.id = e.run_id and r.id = any($1::uuid[]) and (e.fence is null or e.fence = r.fence)
        ${isPlain ? '' : `and (r.cancel_requested_at is null or not e.change ? 'unless_cancelled')`}
        ${hasInner ? 'and (select count(*) from inner_runs) >= 0' : ''}
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
})

const OTHER_COLUMNS = `
        status = coalesce(e.change->>'status', r.status),
        output = case when e.change ? 'output' then e.change->'output' else r.output end,
        error = case when e.change ? 'error' then e.change->>'error' else r.error end,
        owner = case when e.change ?| '{release,ended}' then null else r.owner end,
        ready_at = case
          when e.change ? 'ended' then null
          when e.change ? 'seen_leaves' and (r.ended_leaves > (e.change->>'seen_leaves')::int
            or r.adjustments > (e.change->>'seen_adjustments')::int
            or r.cancel_requested_at is not null or r.topology_wanted_at is not null) then muster.now()
          when (e.change->>'ready_in_ms')::float8 <= 0 then muster.now()
          else r.ready_at end,
        halted_since = case when e.change ? 'is_halted' then muster.now() else r.halted_since end,
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
          else r.duration end,
        ${markChangedIf(`e.change ?| '{status,release,ended}'`, 'r')}`

const INNER_RUNS = `inner_runs as (
  select id from flow_runs where id = any($10::uuid[]) order by ${INNER_FIRST} for no key update
),`

const APPEND = appendSql({ hasInner: false, isPlain: false })
const APPEND_PLAIN = appendSql({ hasInner: false, isPlain: true })
const APPEND_INNER = appendSql({ hasInner: true, isPlain: false })

function isPlain({ change }: Entry<FlowChange>): boolean {
  for (const name in change) if (name !== 'progress') return false
  return true
}

interface Answer {
  at: Date
  written: string | null
}

/** One row answers for the whole batch: one row per entry took longer to read than all other work of the process. */
async function appendBatch(db: Db, entries: readonly Entry<FlowChange>[]): Promise<Map<string, Written>> {
  const { events, ofEntry, places } = eventsInOrder(entries)
  const inner = entries.filter((entry) => entry.change?.is_inner)
  const values = [
    plainArray(entries, (entry) => entry.runId),
    plainArray(entries, (entry) => entry.fence),
    plainArray(entries, (entry) => entry.events.length),
    `[${entries.map((entry) => cleanJson(entry.change ?? {})).join(',')}]`,
    `{${ofEntry.join(',')}}`,
    `{${places.join(',')}}`,
    plainArray(events, (event) => event.id),
    plainArray(events, (event) => event.kind),
    `[${events.map((event) => event.data).join(',')}]`,
  ]
  const { rows } = await (inner.length === 0
    ? db.query<Answer>(entries.every(isPlain) ? APPEND_PLAIN : APPEND, values)
    : db.query<Answer>(APPEND_INNER, [...values, plainArray(inner, (entry) => entry.runId)]))
  return rows[0]?.written ? writtenIn(entries, rows[0].written, rows[0].at) : new Map()
}

/** Reads `answer`, which holds for each written entry its place, its first seq, and an x if the end was asked for. */
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
  // The earlier attempt may still be under way. Its outcome is known once its locks are released.
  await db.query(`select from flow_runs where id = any($1::uuid[]) order by ${INNER_FIRST} for no key update`, [runIds])
  const { rows } = await db.query<{ run_id: string; seq: number; at: Date }>(
    'select run_id, seq, at from flow_events where run_id = any($1::uuid[]) and id = any($2::uuid[])',
    [runIds, entries.map((entry) => entry.events[0]?.id ?? null)],
  )
  return new Map(rows.map((row) => [row.run_id, { firstSeq: row.seq, at: row.at }]))
}
