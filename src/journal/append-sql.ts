// The statements that append to journals of runs, and their values.
import { markChangedIf } from '../db/changed-in.ts'
import type { PreparedSql } from '../db/pool.ts'
import { cleanJson } from './clean-json.ts'
import { type Entry, eventsInOrder } from './entry.ts'
import { THIS_MONTH } from './month.ts'
import { plainArray } from './plain-array.ts'
import { ADD_TO_DAY, DAY_COLUMNS, SUMS_OF_DAY } from './usage-days.ts'

interface Kind {
  /** True if others may be writing some of the rows, too. */
  isShared: boolean
  /**
   * The part of the rows that changes, besides the number of events. Each part contains those before it. The fewer
   * columns a statement sets, the less it costs: `nothing` takes 14 to 19 % less time than `all`, and `counts` 11 %.
   */
  sets: 'nothing' | 'counts' | 'all'
  /** False if no entry has tokens to charge or to give back. Such a statement takes 12 % less time. */
  isCharged: boolean
}

/**
 * One statement for many runs. It also charges the agents, or the project for a run without an agent, in the order of
 * their ids, and counts the tokens of the day (usage-days.ts). PostgreSQL executes `charged_project` before `charged`,
 * because that comes later in the text: the projects are locked before the agents, as in project-calls.ts, and a test
 * watches it. The agents of `payers` are charged too, but not for the project's month, nor for the day, which count a
 * call once. Tried and rejected: one insert per run (50 in flight: a fifth of the throughput); `insert … on conflict
 * (id)` for retries (a second unique index on the hottest table; retries look their ids up); the events' data as an
 * array of its own (10 % slower than one JSON list).
 *
 * Rows that others may be writing too (ancestors, facts from outside) are locked in the order of their ids first, so
 * that two processes do not wait for each other. The lock costs 15 %, and an owner's own runs do not need it.
 *
 * An event of a sub-run is stored once, in the sub-run's own journal. In the journal of an ancestor a row with its own
 * seq names the sub-run and the event's seq there; read.ts puts both together. Compared with copies, three levels deep,
 * events of 20 KB take a quarter of the space and a third of the time, and events of 1 KB a third of the space. Tried
 * and rejected: finding the events that are still valid after an owner has lost its run in the same statement (half as
 * slow again); a lost run is rare, and costs a second statement.
 */
function appendSql(kind: Kind): PreparedSql {
  const { isShared, sets, isCharged } = kind
  const fields = fieldsOf(kind)
  const insert = isShared ? insertShared : insertOwn
  return {
    name: `journal_append${isShared ? '_shared' : ''}_${sets}${isCharged ? '' : '_free'}`,
    text: `
    with ${isShared ? `given as (${given(fields)}), ${LOCKED}` : `entries as (${given(fields)})`}, changed as (
      update agent_runs r set
        last_seq = r.last_seq + e.events${sets === 'nothing' ? '' : `, ${COUNTS}`}${sets === 'all' ? `, ${setAll(isShared)}` : ''}
      from entries e
      where r.id = e.run_id and r.id = any($1::uuid[]) and ${isShared ? MAY_WRITE : 'e.fence = r.fence'}
      returning r.id, r.last_seq - e.events as before_first, e.entry${isCharged ? `, ${CHARGEABLE}` : ''}
    )${isCharged ? `, ${CHARGED}` : ''}, written as (${insert(fields.length + 1)})
    select muster.now() as at, string_agg(entry || ' ' || before_first + 1, ',') as written
      ${isShared ? ', (select array_agg(run_id::text) from lost) as lost' : ''}
    from changed`,
  }
}

/** A sub-run's event and a fact from outside have no fence. */
const MAY_WRITE = `(e.fence is null or e.fence = r.fence) and not (e.is_forwarded and r.completed_at is not null)`

const COUNTS = `
        step_count = r.step_count + e.steps,
        crashes = case when e.steps > 0 then 0 else r.crashes end,
        input_tokens = r.input_tokens + e.input_tokens,
        output_tokens = r.output_tokens + e.output_tokens,
        cost_usd = case when e.cost is null then r.cost_usd else coalesce(r.cost_usd, 0) + e.cost end,
        reserved = r.reserved - e.settled`

/** Only ancestors have sub-runs that end in the same batch. */
const setAll = (isShared: boolean): string => `
        open_children = case when e.change ? 'ended' then 0
          else r.open_children${isShared ? ' - e.children_ended' : ''} end,
        status = coalesce(e.change->>'status', r.status),
        pause_reason = case when e.change ? 'pause_reason' then e.change->>'pause_reason' else r.pause_reason end,
        summary = case when e.change ? 'summary' then e.change->>'summary' else r.summary end,
        error_code = case when e.change ? 'error_code' then e.change->>'error_code' else r.error_code end,
        error_message = case when e.change ? 'error_message' then e.change->>'error_message' else r.error_message end,
        usage_estimated = r.usage_estimated or coalesce(e.change ? 'usage_estimated', false),
        model = coalesce(e.change->'model', r.model),
        waits_for = case when e.change ? 'ended' then null when e.change ? 'waits_for' then e.change->>'waits_for' else r.waits_for end,
        waiting_for = case when e.change ?| '{release,ended}' then e.change->>'waiting_for' else r.waiting_for end,
        wait_message = case when e.change ?| '{release,ended}' then e.change->>'wait_message' else r.wait_message end,
        owner = case when e.change ?| '{release,ended}' then null else r.owner end,
        ready_at = case
          when e.change ? 'ended' then null
          when e.change ? 'release' and (r.cancel_requested_at is not null
            or r.signals > (e.change->>'seen_signals')::int
            or (e.change->>'waits_for' = 'children' and r.open_children <= 0)
            or (e.change->>'waits_for' = 'provider' and r.stop_requested_at is not null)
            or (e.change->>'ready_in_ms')::float8 <= 0) then muster.now()
          ${isShared ? CHILDREN_DONE : ''}
          else r.ready_at end,
        wake_at = case
          when e.change ? 'ended' then null
          when (e.change->>'ready_in_ms')::float8 > 0
            then muster.now() + (e.change->>'ready_in_ms')::float8 * interval '1 ms'
          else r.wake_at end,
        completed_at = case when e.change ? 'ended' then muster.now() else r.completed_at end,
        duration = case when e.change ? 'ended'
          then least(extract(epoch from muster.now() - coalesce(r.started_at, r.created_at)) * 1000, 2147483647)::int
          else r.duration end,
        ${markChangedIf(`e.change ?| '{status,release,ended}'`, 'r')}`

const CHILDREN_DONE = `when e.children_ended > 0 and r.owner is null and r.waits_for = 'children'
            and r.open_children <= e.children_ended then muster.now()`

const CHARGEABLE = `r.agent_id, r.payers, r.project_id, e.input_tokens + e.output_tokens as tokens, e.settled,
        e.input_tokens, e.output_tokens, e.cost`

const CHARGED = `
  charged as (
    insert into agent_tokens as t (agent_id, used, reserved, last_active_at, last_worked_at, month, month_used,
      ${DAY_COLUMNS})
    select agent_id, sum(tokens), -sum(settled), muster.now(), muster.now(), ${THIS_MONTH},
      sum(input_tokens) + sum(output_tokens), ${SUMS_OF_DAY}
    from (
      select agent_id, tokens, settled, input_tokens, output_tokens, cost from changed
      union all select unnest(payers), tokens, settled, 0, 0, null from changed where payers <> '{}'
    ) paid
    where agent_id is not null and (tokens <> 0 or settled <> 0) group by agent_id order by agent_id
    on conflict (agent_id) do update set used = t.used + excluded.used, reserved = t.reserved + excluded.reserved,
      last_active_at = excluded.last_active_at, last_worked_at = excluded.last_worked_at,
      month = excluded.month,
      month_used = excluded.month_used + case when t.month = excluded.month then t.month_used else 0 end,
      ${ADD_TO_DAY}
  ), charged_project as (
    insert into project_tokens as t (project_id, month, used, ${DAY_COLUMNS})
    select project_id, ${THIS_MONTH}, sum(tokens), ${SUMS_OF_DAY} from changed where agent_id is null and tokens <> 0
    group by project_id order by project_id
    on conflict (project_id, month) do update set used = t.used + excluded.used, ${ADD_TO_DAY}
  )`

/** A field of the entries as the statement receives it: a list with a value for each entry. */
interface Field {
  name: string
  type: string
  values: (entries: readonly Entry[]) => string
}

const field = (name: string, type: string, value: (entry: Entry) => string | number | boolean | null): Field => ({
  name,
  type,
  values: (entries) => plainArray(entries, value),
})

const IDENTITY = [
  field('run_id', 'uuid[]', (entry) => entry.runId),
  field('fence', 'bigint[]', (entry) => entry.fence),
  field('events', 'int[]', (entry) => entry.events.length),
]
const COUNTED = [
  field('steps', 'int[]', ({ change }) => change?.steps ?? 0),
  field('input_tokens', 'bigint[]', ({ change }) => change?.inputTokens ?? 0),
  field('output_tokens', 'bigint[]', ({ change }) => change?.outputTokens ?? 0),
  field('cost', 'float8[]', ({ change }) => change?.costUsd ?? null),
  field('settled', 'bigint[]', ({ change }) => change?.settled ?? 0),
]
const CHANGE: Field = {
  name: 'change',
  type: 'jsonb',
  values: (entries) => `[${entries.map(({ change }) => (change?.set ? cleanJson(change.set) : 'null')).join(',')}]`,
}
const OF_ANCESTORS = [
  field('is_forwarded', 'boolean[]', (entry) => entry.isForwarded),
  field('children_ended', 'int[]', ({ events }) => events.filter((event) => event.origin?.endsChild).length),
]

const fieldsOf = ({ isShared, sets }: Pick<Kind, 'isShared' | 'sets'>): Field[] => [
  ...IDENTITY,
  ...(sets === 'nothing' ? [] : COUNTED),
  ...(sets === 'all' ? [CHANGE] : []),
  ...(isShared ? OF_ANCESTORS : []),
]

const given = (fields: readonly Field[]): string => `
  select ${fields.map(({ name }) => (name === 'change' ? `nullif(change, 'null') as change` : name)).join(', ')}, entry
  from rows from (${fields
    .map(({ type }, index) => `${type === 'jsonb' ? 'jsonb_array_elements' : 'unnest'}($${index + 1}::${type})`)
    .join(', ')}) with ordinality as e (${fields.map(({ name }) => name).join(', ')}, entry)`

/** If an owner has lost a run, nothing is written, so that no event of that run reaches its ancestors. */
const LOCKED = `
  locked as (
    select id, fence from agent_runs where id = any($1::uuid[]) order by id for update
  ), lost as (
    select g.run_id from given g left join locked l on l.id = g.run_id
    where g.fence is not null and g.fence is distinct from l.fence
  ), entries as (
    select g.* from given g join locked l on l.id = g.run_id where not exists (select from lost)
  )`

/** `first` is the place of the first list about events among the values. */
const eventLists = (first: number): string =>
  `unnest($${first}::bigint[]), unnest($${first + 1}::int[]), unnest($${first + 2}::uuid[]),
    unnest($${first + 3}::text[]), jsonb_array_elements($${first + 4}::jsonb)`

const insertOwn = (first: number): string => `
  insert into run_events (run_id, seq, id, kind, data)
  select c.id, c.before_first + v.place, v.id, v.kind, v.data
  from rows from (${eventLists(first)}) as v (entry, place, id, kind, data)
  join changed c on c.entry = v.entry`

const insertShared = (first: number): string => `
  insert into run_events (run_id, seq, id, kind, data, origin_seq)
  select c.id, c.before_first + v.place, v.id, v.kind, v.data, o.before_first + v.origin_place
  from rows from (${eventLists(first)}, unnest($${first + 5}::bigint[]), unnest($${first + 6}::int[]))
    as v (entry, place, id, kind, data, origin, origin_place)
  join changed c on c.entry = v.entry left join changed o on o.entry = v.origin`

const statements = (kind: Pick<Kind, 'isShared' | 'sets'>) => ({
  fields: fieldsOf(kind),
  charged: kind.sets === 'nothing' ? null : appendSql({ ...kind, isCharged: true }),
  free: appendSql({ ...kind, isCharged: false }),
})

const SHARED = statements({ isShared: true, sets: 'all' })
const OWN = {
  nothing: statements({ isShared: false, sets: 'nothing' }),
  counts: statements({ isShared: false, sets: 'counts' }),
  all: statements({ isShared: false, sets: 'all' }),
}

/** The cheapest statement that writes the entries. */
export function statementFor(entries: readonly Entry[]): { sql: PreparedSql; values: string[] } {
  const isShared = entries.some((entry) => entry.fence === null)
  const { fields, charged, free } = isShared ? SHARED : OWN[setBy(entries)]
  return {
    sql: charged && entries.some(isCharged) ? charged : free,
    values: [...fields.map((field) => field.values(entries)), ...eventValues(entries, isShared)],
  }
}

function setBy(entries: readonly Entry[]): Kind['sets'] {
  let sets: Kind['sets'] = 'nothing'
  for (const { change } of entries) {
    if (change?.set) return 'all'
    if (change) sets = 'counts'
  }
  return sets
}

const isCharged = ({ change }: Entry): boolean =>
  Boolean(change?.inputTokens || change?.outputTokens || change?.settled)

function eventValues(entries: readonly Entry[], isShared: boolean): string[] {
  const { events, ofEntry, places } = eventsInOrder(entries)
  const values = [
    `{${ofEntry.join(',')}}`,
    `{${places.join(',')}}`,
    plainArray(events, (event) => event.id),
    plainArray(events, (event) => event.kind),
    `[${events.map(({ origin, data }) => (origin ? `{"run_id":"${origin.runId}"}` : data)).join(',')}]`,
  ]
  if (!isShared) return values
  const own = new Map(entries.flatMap((entry, index) => (entry.isForwarded ? [] : [[entry.runId, index + 1]])))
  return [
    ...values,
    plainArray(events, ({ origin }) => (origin ? (own.get(origin.runId) ?? null) : null)),
    plainArray(events, ({ origin }) => origin?.place ?? null),
  ]
}
