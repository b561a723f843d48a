// A tick claims the due schedules, starts their runs and sets their next times, all in one transaction: a due time
// gives one run, and a process that dies in between has changed nothing.
import type { Client, Db, Pool, PreparedSql } from '../db/pool.ts'
import { inTransaction } from '../db/transaction.ts'
import { newId } from '../kernel/id.ts'
import type { Log } from '../kernel/log.ts'
import type { CatchUp } from '../kernel/schedule.ts'
import { insertStarts, type Start } from '../runs/start.ts'
import { type DueRuns, dueRuns } from './due-runs.ts'

const MOST_ROWS = 200
/** Without this limit a batch of schedules that all catch up would insert twenty thousand runs in one statement. */
const MOST_RUNS = 2_000

export interface TickParts {
  pool: Pool
  log: Log
  /** Called after runs were committed, so that a worker claims them. */
  onReady: () => void
}

interface DueRow {
  agent_id: string
  project_id: string
  cron_schedule: string
  timezone: string
  catch_up: CatchUp
  next_run_at: Date
  unhalted_at: Date | null
  back_at: Date
  now: Date
}

/** Starts the due runs that no other process is starting, and returns their number. */
export async function tick({ pool, log, onReady }: TickParts): Promise<number> {
  await watch(pool)
  let runs = 0
  for (;;) {
    const batch = await inTransaction(pool, (tx) => startDue(tx, log))
    if (batch.runs > 0) {
      log.debug(batch, 'scheduled runs were started')
      onReady()
    }
    runs += batch.runs
    if (!batch.hasMore) return runs
  }
}

/** Notes that a process watches the schedules. Ticks in a time without any process count as missed. */
export async function watch(db: Db): Promise<void> {
  await db.query(WATCH)
}

const WATCH: PreparedSql = {
  name: 'schedule_watch',
  text: `with seen as (
      update schedule_watch set seen_at = muster.now(),
        back_at = case when seen_at < muster.now() - interval '5 s' then muster.now() else least(back_at, muster.now()) end
      where seen_at not between muster.now() - interval '900 ms' and muster.now() + interval '5 s'
    )
    insert into schedule_watch (seen_at, back_at) select muster.now(), muster.now()
    where not exists (select from schedule_watch) on conflict do nothing`,
}

/** Milliseconds until a schedule is due, or null if none is within this time. */
export async function dueWithin(db: Db, ms: number): Promise<number | null> {
  const { rows } = await db.query<{ ms: number }>(DUE_WITHIN, [ms])
  return rows[0]?.ms ?? null
}

const DUE_WITHIN: PreparedSql = {
  name: 'schedule_due_within',
  text: `select (extract(epoch from s.next_run_at - muster.now()) * 1000)::float8 as ms
    from schedules s join projects p on p.id = s.project_id
    where s.next_run_at < muster.now() + $1 * interval '1 ms' and p.halted_at is null order by s.next_run_at limit 1`,
}

async function startDue(tx: Client, log: Log): Promise<{ schedules: number; runs: number; hasMore: boolean }> {
  const rows = await claimDue(tx)
  const starts: Start[] = []
  const moves: { agentId: string; nextRunAt: Date | null }[] = []
  for (const row of rows) {
    if (starts.length >= MOST_RUNS) break
    const { ticks, nextRunAt } = readDue(row, log)
    moves.push({ agentId: row.agent_id, nextRunAt })
    for (const at of ticks) starts.push(startOf(row, at.toISOString()))
  }
  const made = starts.length > 0 ? await insertStarts(tx, starts) : new Map<string, unknown>()
  const started = new Set(starts.flatMap(({ id, agentId }) => (made.has(id) ? [agentId] : [])))
  if (moves.length > 0) {
    await tx.query(
      `update schedules s set next_run_at = m.next_run_at,
         last_run_at = case when m.is_started then muster.now() else s.last_run_at end
       from unnest($1::uuid[], $2::timestamptz[], $3::boolean[]) as m (agent_id, next_run_at, is_started)
       where s.agent_id = m.agent_id`,
      [
        moves.map(({ agentId }) => agentId),
        moves.map(({ nextRunAt }) => nextRunAt),
        moves.map(({ agentId }) => started.has(agentId)),
      ],
    )
  }
  return { schedules: moves.length, runs: made.size, hasMore: rows.length === MOST_ROWS || moves.length < rows.length }
}

/**
 * The projects are locked too, because the runs' foreign key will lock them anyway. A project that is being deleted is
 * skipped: its deletion waits for rows that this transaction holds.
 */
async function claimDue(tx: Client): Promise<DueRow[]> {
  const { rows } = await tx.query<DueRow>(
    `select s.agent_id, s.project_id, s.cron_schedule, s.timezone, s.catch_up, s.next_run_at, p.unhalted_at, w.back_at,
       muster.now() as now
     from schedules s join projects p on p.id = s.project_id cross join schedule_watch w
     where s.next_run_at <= muster.now() and p.halted_at is null
     order by s.next_run_at limit $1
     for update of s skip locked for key share of p skip locked`,
    [MOST_ROWS],
  )
  return rows
}

/** A schedule that cannot be read must not keep the others from running. */
function readDue(row: DueRow, log: Log): DueRuns {
  try {
    return dueRuns({
      cron: row.cron_schedule,
      zone: row.timezone,
      catchUp: row.catch_up,
      nextRunAt: row.next_run_at,
      now: row.now,
      backAt: row.back_at,
      unhaltedAt: row.unhalted_at,
    })
  } catch (error) {
    log.error({ err: error, agent_id: row.agent_id }, 'a schedule is invalid; it starts no run until it is changed')
    return { ticks: [], nextRunAt: null }
  }
}

const startOf = (row: DueRow, scheduledAt: string): Start => ({
  id: newId(),
  projectId: row.project_id,
  agentId: row.agent_id,
  trigger: { type: 'schedule', scheduled_at: scheduledAt },
  input: { scheduled_at: scheduledAt },
})
