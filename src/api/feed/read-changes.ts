// The statements of the feed. Each finds its rows by an index on (project_id, changed_in), so its cost is one descent of
// an index for each project and kind, and the rows that changed. With 100,000 runs and nothing new it reads three pages
// for each of them. Tried and rejected: a table of changes, written with each change (a row and an index entry more for
// every change of a run, which is several times the cost of the entry in an index of a row that is written anyway), and
// triggers that notify (commits of transactions that notify wait for each other).
import type { Db, PreparedSql } from '../../db/pool.ts'
import { eitherSeen, readSnapshot, type Seen, seenBefore, wholeNumberOf } from './seen.ts'

interface Kind {
  table: string
  status: string
  at: string
}

/** SQL of each kind of thing, for its row `r`. */
const KINDS = {
  run: { table: 'agent_runs', status: 'r.status', at: lastEventAt('run_events') },
  flow_run: { table: 'flow_runs', status: 'r.status', at: lastEventAt('flow_events') },
  task: { table: 'tasks', status: 'r.status', at: 'r.changed_at' },
  agent: {
    table: 'agents',
    status: `case when r.deleted_at is null then r.status else 'deleted' end`,
    at: 'r.changed_at',
  },
  object: {
    table: 'objects',
    status: `case when r.deleted_at is not null then 'deleted' when r.version = 1 then 'created' else 'updated' end`,
    at: 'r.updated_at',
  },
  alert: {
    table: 'flow_alerts',
    status: `case when r.acked_at is null then 'open' else 'acked' end`,
    at: 'coalesce(r.acked_at, r.created_at)',
  },
  message: { table: 'agent_messages', status: `'sent'`, at: 'r.created_at' },
} as const satisfies Record<string, Kind>

export type ChangeKind = keyof typeof KINDS

export interface Change {
  kind: ChangeKind
  id: string
  project_id: string
  status: string
  at: Date
  /** The transaction of the change. */
  transaction: number
}

export interface Changes {
  /** In the order of their transactions, each thing once, in its last state. */
  changes: Change[]
  /** The transactions whose changes these are, together with those that were seen before. */
  seen: Seen
  /** False if there are more changes: `seen` is then earlier than `present`. */
  isWhole: boolean
  /** True if one transaction changed too much to be told: the lists must be read again. */
  isTooMuch: boolean
  present: Seen
  /** Milliseconds by the database's clock. */
  at: number
}

/** The rows of a page; a transaction is never split, so a page may have more, but never more than `TOO_MANY`. */
const MOST_IN_ALL = 5_000
const TOO_MANY = 20_000
const MOST_OF_KIND = 1_000
const LEAST_OF_KIND = 50

/** The time of the last event in the journal of a run, which is the time of its last change. */
function lastEventAt(events: string): string {
  return `coalesce((select e.at from ${events} e where e.run_id = r.id and e.seq = r.last_seq), r.created_at)`
}

const entriesOfKinds = Object.entries(KINDS)

/**
 * Values: the projects, the first transaction not seen, earlier ones not seen, the most rows of a kind, and in all. The
 * planner does not see values in a `(select …)`, so a plan for these values seems no better than the plan for any values,
 * and PostgreSQL keeps that one. Otherwise it would plan the statement every time, which takes far longer than to execute
 * it.
 */
const READ_CHANGES: PreparedSql = {
  name: 'feed_read_changes',
  text: `
    with watched as (
      select p.id from unnest((select $1::uuid[])) as w (id) join projects p on p.id = w.id and p.deleted_at is null
    ), found as (
      select w.id as project_id, c.* from watched w cross join lateral (
        ${entriesOfKinds.map(([kind, sql]) => `${newerOf(kind, sql)} union all ${lateOf(kind, sql)}`).join(' union all ')}
      ) c
    )
    select s.snapshot, s.at as read_at, f.* from (select pg_current_snapshot()::text as snapshot, muster.now() as at) s
    left join (
      select * from (select * from found order by transaction fetch first ((select $5::int)) rows with ties) page limit ${TOO_MANY}
    ) f on true order by f.transaction`,
}

/** The upper bound passes over numbers of another database's transactions, which a copy of its rows may have. */
function newerOf(kind: string, sql: Kind): string {
  return `(${columnsOf(kind, sql)} and r.changed_in >= (select $2::xid8)
    and r.changed_in < pg_snapshot_xmax(pg_current_snapshot())
    order by r.changed_in fetch first ((select $4::int)) rows with ties)`
}

/** Changes of transactions that were open when the reader's place was taken. */
function lateOf(kind: string, sql: Kind): string {
  return `(${columnsOf(kind, sql)} and r.changed_in = any((select $3::xid8[])::xid8[]))`
}

function columnsOf(kind: string, { table, status, at }: Kind): string {
  return `select '${kind}' as kind, r.id, ${status} as status, ${at} as at, r.changed_in::text::bigint as transaction
    from ${table} r where r.project_id = w.id`
}

interface ChangeRow extends Change {
  snapshot: string
  read_at: Date
}

/** The changes in the projects that `since` has not seen. One statement, so one snapshot, reads all of them. */
export async function readChanges(db: Db, projects: readonly string[], since: Seen): Promise<Changes> {
  const ofKind = Math.max(LEAST_OF_KIND, Math.min(MOST_OF_KIND, Math.ceil(MOST_IN_ALL / Math.max(1, projects.length))))
  const { rows } = await db.query<ChangeRow | (ChangeRow & { kind: null })>(READ_CHANGES, [
    projects,
    since.before,
    since.except,
    ofKind,
    MOST_IN_ALL,
  ])
  const now = readSnapshot(rows[0]?.snapshot ?? '')
  const at = rows[0]?.read_at.getTime() ?? 0
  const found = rows.filter((row) => row.kind !== null)
  if (found.length >= TOO_MANY) return { changes: [], seen: now, isWhole: true, isTooMuch: true, present: now, at }
  const complete = completeBefore(found, since, ofKind)
  const changes = found.filter(({ transaction }) => transaction < complete)
  return {
    changes: changes.map(({ snapshot: _snapshot, read_at: _at, ...change }) => change),
    seen: eitherSeen(since, seenBefore(now, complete)),
    isWhole: complete >= now.before,
    isTooMuch: false,
    present: now,
    at,
  }
}

/** Before this transaction no change is missing: a scan that reached its limit ended with the transaction before it. */
function completeBefore(found: readonly Change[], since: Seen, ofKind: number): number {
  const scans = Map.groupBy(
    found.filter(({ transaction }) => transaction >= since.before),
    ({ kind, project_id }) => `${kind} ${project_id}`,
  )
  const full = [...scans.values()].filter((scan) => scan.length >= ofKind)
  if (found.length >= MOST_IN_ALL) full.push([...found])
  const ends = full.map((scan) => (scan.at(-1)?.transaction ?? 0) + 1)
  return Math.min(Number.POSITIVE_INFINITY, ...ends)
}

/**
 * Runs and flow runs that a process works on at the moment: their appends leave `changed_in` alone. The index of owned
 * rows has as many entries as there are slots. A row that is as its last marked change left it is not progress.
 */
const READ_PROGRESS: PreparedSql = {
  name: 'feed_read_progress',
  text: `
    with runs as materialized (
      select id, project_id, status, last_seq, created_at, xmin from agent_runs
      where owner is not null and changed_in::xid is distinct from xmin
    ), flows as materialized (
      select id, project_id, status, last_seq, created_at, xmin from flow_runs
      where owner is not null and changed_in::xid is distinct from xmin
    )
    select s.snapshot, f.* from (select pg_current_snapshot()::text as snapshot) s left join (
      ${progressOf('run', 'runs')} union all ${progressOf('flow_run', 'flows')}
    ) f on true`,
}

function progressOf(kind: 'run' | 'flow_run', rows: string): string {
  return `select '${kind}' as kind, r.id, r.project_id, r.status, ${KINDS[kind].at} as at,
      r.xmin::text::bigint as transaction
    from ${rows} r join projects p on p.id = r.project_id and p.deleted_at is null
    where r.project_id = any($1::uuid[])`
}

/** The runs and flow runs at work in the projects, each with the transaction that wrote it last. */
export async function readProgress(db: Db, projects: readonly string[]): Promise<Pick<Changes, 'changes' | 'seen'>> {
  const { rows } = await db.query<ChangeRow | (ChangeRow & { kind: null })>(READ_PROGRESS, [projects])
  const seen = readSnapshot(rows[0]?.snapshot ?? '')
  const changes = rows
    .filter((row) => row.kind !== null)
    .map(({ snapshot: _snapshot, ...row }) => ({ ...row, transaction: wholeNumberOf(row.transaction, seen) }))
  return { changes, seen }
}

/** The present place. The database's own name is that of its cluster and its number in it. */
export async function readPresent(db: Db): Promise<{ database: string; at: number; seen: Seen }> {
  const { rows } = await db.query<{ database: string; at: Date; snapshot: string }>(
    `select left(md5(system_identifier::text || ' ' || oid::text), 8) as database, muster.now() as at,
       pg_current_snapshot()::text as snapshot
     from pg_control_system(), pg_database where datname = current_database()`,
  )
  const [row] = rows
  if (!row) throw new Error('the database did not tell its name')
  return { database: row.database, at: row.at.getTime(), seen: readSnapshot(row.snapshot) }
}
