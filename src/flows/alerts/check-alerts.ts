// Makes alerts about flow runs that take much longer than expected: one alert, even if many processes check.
import type { Db, Pool, PreparedSql } from '../../db/pool.ts'
import { inTransaction } from '../../db/transaction.ts'
import type { AlertAction } from '../../kernel/alert.ts'
import type { FlowEvent } from '../../kernel/flow-run.ts'
import { newId } from '../../kernel/id.ts'
import { defaultSettings } from '../../kernel/project.ts'
import { providerWords } from '../../kernel/why-stopped.ts'
import type { FlowJournal } from '../execution/journal.ts'
import { type ExpectedDuration, readExpectations } from '../history/expectation.ts'
import { type FlowRecord, readRecord } from '../history/record.ts'
import { tasksOf } from '../history/trace.ts'
import type { Patterns } from '../machine/pattern.ts'
import { topologiesIn } from '../machine/topologies.ts'
import { helpfulAdjustment } from './helpful-adjustment.ts'
import { describeCause, slowestStage, stagesOf, suspectOf } from './suspected-cause.ts'

const MOST_AT_ONCE = 200
const SHORTEST_WAIT_MS = 2_000

/** Times are milliseconds; those of the run leave out the time in which it only waited for people. */
interface SlowRun {
  id: string
  project_id: string
  elapsed: number
  expected: number
  expectation: ExpectedDuration | null
}

interface DueRun extends Omit<SlowRun, 'expected'> {
  flow_id: string | null
  expected: number | null
  factor: number
  /** The time since its start, waits included. */
  age: number
  may_tell: boolean
  /** Every leaf under way waits for a person: the clock stands still, and an answer makes the run due again. */
  is_waiting: boolean
}

// An acked alert is repeated when the run has taken twice as long as it had when that alert was made.
const isTold = (elapsed: string): string => `exists (
  select from flow_alerts a where a.flow_run_id = r.id and a.kind = 'slow' and (a.acked_at is null
    or ${elapsed} < 2 * coalesce(a.elapsed, extract(epoch from a.created_at - r.started_at) * 1000)))`

/** A flow run that waits for a provider or for a tool is worth an alert: nobody was asked anything. */
const WAITS_UNASKED = `(exists (select from agent_runs a where a.flow_run_id = flow_runs.id and a.completed_at is null
    and (a.waits_for = 'tool' or (a.status = 'paused' and a.pause_reason = 'unavailable')))
  or exists (select from provider_waits w where w.flow_run_id = flow_runs.id))`

const FIND_DUE: PreparedSql = {
  name: 'flow_find_due',
  text: `
    with due as materialized (
      select r.id, r.project_id, r.flow_id, r.started_at, r.expected, r.stands_since is not null as is_waiting,
        (extract(epoch from muster.now() - r.started_at) * 1000)::float8 as age,
        r.waited + coalesce(extract(epoch from muster.now() - r.stands_since) * 1000, 0)::float8 as waited,
        case when jsonb_typeof(p.settings->'alert_factor') = 'number'
          then (p.settings->>'alert_factor')::float8 else $1::float8 end as factor,
        r.status = 'running' and r.cancel_requested_at is null and p.halted_at is null as is_under_way
      from (
        select *, case when all_wait_since is not null and not ${WAITS_UNASKED} then all_wait_since end as stands_since
        from flow_runs where check_at <= muster.now() order by check_at limit $2
      ) r
      join projects p on p.id = r.project_id
    )
    select id, project_id, flow_id, age, age - waited as elapsed, expected, factor, is_waiting,
      is_under_way and not is_waiting and not ${isTold('r.age - r.waited')} as may_tell
    from due r`,
}

/**
 * A run is checked again when it would be late, and at the latest when it has been under way a tenth longer, because
 * the expected duration may change. Slow runs are checked again shortly, in case no alert is made.
 */
const LOOK_AGAIN: PreparedSql = {
  name: 'flow_look_again',
  text: `
    update flow_runs r set check_at = case when r.cancel_requested_at is null then muster.now() + w.in_ms * interval '1 ms' end
    from unnest($1::uuid[], $2::float8[]) as w (id, in_ms)
    where r.id = w.id and r.id in (
      select id from flow_runs where id = any($1::uuid[]) and check_at <= muster.now() for no key update skip locked)`,
}

export interface AlertDeps {
  pool: Pool
  journal: FlowJournal
  patterns: Patterns
  /** The most leaves under way in a run that sets no number; without it no such run is advised to have more. */
  usualWorkers?: number
}

/** Returns the number of alerts made. A run whose alert fails does not keep other runs from theirs. */
export async function checkAlerts(deps: AlertDeps): Promise<number> {
  const { pool } = deps
  const { rows } = await pool.query<DueRun>(FIND_DUE, [defaultSettings.alert_factor, MOST_AT_ONCE])
  if (rows.length === 0) return 0
  const expectationOf = await readExpectations(pool, rows)
  const runs = rows.map((run) => judged(run, expectationOf(run)))
  await pool.query(LOOK_AGAIN, [runs.map((run) => run.id), runs.map((run) => run.againInMs)])
  let made = 0
  const failures: unknown[] = []
  for (const run of runs) {
    if (!run.isSlow) continue
    try {
      if (await tell(deps, run)) made++
    } catch (error) {
      failures.push(error)
    }
  }
  if (failures.length > 0) throw new AggregateError(failures, 'Some alerts could not be made.')
  return made
}

function judged(run: DueRun, expectation: ExpectedDuration | null): SlowRun & { isSlow: boolean; againInMs: number } {
  const { id, project_id, elapsed, age, factor, may_tell, is_waiting } = run
  const expected = expectation?.ms ?? Number.POSITIVE_INFINITY
  const lateAfter = factor * expected
  const isSlow = may_tell && elapsed > lateAfter
  const longestMs = Math.max(SHORTEST_WAIT_MS, age / 10)
  const isLateSoon = !is_waiting && lateAfter > elapsed
  const againInMs = isSlow ? SHORTEST_WAIT_MS : isLateSoon ? Math.min(longestMs, lateAfter - elapsed + 1) : longestMs
  return { id, project_id, elapsed, expected, expectation, isSlow, againInMs }
}

async function tell({ pool, journal, patterns, usualWorkers }: AlertDeps, run: SlowRun): Promise<boolean> {
  const record = await readRecord(pool, run.project_id, run.id, patterns)
  const { cause: suspectedCause, isWaiting } = await findCause(pool, record, run)
  const hasTopology = topologiesIn(record.root, patterns).length > 0
  const adjust = isWaiting ? null : helpfulAdjustment(record.run, usualWorkers ?? null, run.expectation)
  const actions: AlertAction[] = [
    'cancel',
    ...(isWaiting ? [] : (['add_workers'] as const)),
    ...(hasTopology && !isWaiting ? (['switch_topology'] as const) : []),
    ...(adjust ? (['adjust'] as const) : []),
  ]
  return inTransaction(pool, async (tx) => {
    // From here on the run cannot end, so there is no alert about a run that is over. A run that has written nothing
    // yet begins its journal by itself.
    const { rowCount: isUnderWay } = await tx.query(
      `select from flow_runs where id = $1 and status = 'running' and last_seq > 0 for no key update`,
      [run.id],
    )
    if (!isUnderWay) return false
    const id = newId()
    const { rowCount: isNews } = await tx.query(
      `insert into flow_alerts (id, project_id, flow_run_id, kind, progress, suspected_cause, actions, elapsed, adjust)
       select $1, r.project_id, r.id, 'slow', r.progress, $3, $4, $5, $6 from flow_runs r
       where r.id = $2 and not ${isTold('$5::float8')}
       on conflict (flow_run_id, kind) where acked_at is null do nothing`,
      [id, run.id, suspectedCause, JSON.stringify(actions), run.elapsed, adjust && JSON.stringify(adjust)],
    )
    if (!isNews) return false
    // No other alert can be made before this one is acked.
    await tx.query('update flow_runs set check_at = null where id = $1', [run.id])
    const event: FlowEvent = { kind: 'alert', data: { alert_id: id, kind: 'slow', suspected_cause: suspectedCause } }
    await journal.appendIn(tx, { runId: run.id, fence: null, events: [event] })
    return true
  })
}

/** `isWaiting`: nothing is at work, and more workers would only wait as well. */
async function findCause(
  db: Db,
  record: FlowRecord,
  { elapsed, expected }: SlowRun,
): Promise<{ cause: string; isWaiting: boolean }> {
  const suspect = suspectOf(tasksOf(record), record.readAt)
  const found = suspect?.how === 'running' ? await readDetail(db, record, suspect.task) : ''
  const wait = await readWait(db, record.run.id)
  const cause = describeCause(suspect, { elapsedMs: elapsed, expectedMs: expected, detail: found, wait })
  return { cause, isWaiting: wait !== '' && suspect?.how !== 'running' }
}

/** The first leaf that waits for a provider or for a tool, in a sentence. */
async function readWait(db: Db, flowRunId: string): Promise<string> {
  const { rows } = await db.query<{ waiting_for: string; message: string | null; leaf: string }>(
    `(select waiting_for, wait_message as message, trigger->>'task_id' as leaf from agent_runs
      where flow_run_id = $1 and waiting_for is not null and completed_at is null
        and (waits_for = 'tool' or (status = 'paused' and pause_reason = 'unavailable')) limit 1)
     union all
     (select 'provider ' || w.provider, o.message, w.task_id from provider_waits w
      left join provider_outages o on o.provider = w.provider and o.model = w.model where w.flow_run_id = $1 limit 1)
     limit 1`,
    [flowRunId],
  )
  const [wait] = rows
  if (!wait) return ''
  const words = providerWords({ waiting_for: wait.waiting_for, wait_message: wait.message })
  return `${wait.leaf} waits for ${wait.waiting_for}${words ?? '.'}`
}

async function readDetail(db: Db, record: FlowRecord, task: { id: string; kind: string }): Promise<string> {
  return task.kind === 'agent' ? readAgent(db, record.run.id, task.id) : readStage(db, record, task.id)
}

/** An agent's run may itself wait: for a slot, a person, its budget. */
async function readAgent(db: Db, flowRunId: string, leafId: string): Promise<string> {
  const { rows } = await db.query<{ id: string; status: string; pause_reason: string | null }>(
    `select id, status, pause_reason from agent_runs where flow_run_id = $1 and trigger->>'task_id' = $2
     order by created_at desc, id desc limit 1`,
    [flowRunId, leafId],
  )
  const [run] = rows
  if (!run || run.status === 'running') return ''
  return `Its run ${run.id} is ${run.status}${run.pause_reason === null ? '' : ` (${run.pause_reason})`}.`
}

async function isPipeline(db: Db, flowRunId: string, leafId: string): Promise<boolean> {
  const { rowCount } = await db.query(
    `select from flow_events where run_id = $1 and kind = 'pipeline.started' and data->>'task_id' = $2 limit 1`,
    [flowRunId, leafId],
  )
  return rowCount === 1
}

/** The stage of a pipeline that the other stages wait for. */
async function readStage(db: Db, { root, run, patterns }: FlowRecord, leafId: string): Promise<string> {
  const stages = stagesOf(root, leafId, patterns)
  if (!stages || !(await isPipeline(db, run.id, leafId))) return ''
  const { rows } = await db.query<{ stage: number; done: number }>(
    `select (data->>'stage')::int as stage,
       sum(jsonb_array_length(coalesce(data->'results', data->'errors')))::float8 as done
     from flow_events where run_id = $1 and kind in ('items.completed', 'items.skipped') and data->>'task_id' = $2
     group by 1`,
    [run.id, leafId],
  )
  const done = new Map(rows.map((row) => [row.stage, row.done]))
  const place = slowestStage(stages.map((_, stage) => done.get(stage) ?? 0))
  const stage = stages[place]
  if (!stage) return ''
  const name = stage.id ?? ('agent' in stage ? stage.agent : stage.function)
  return `The others wait for its stage ${place} (${name}), which has done ${done.get(place) ?? 0} items.`
}
