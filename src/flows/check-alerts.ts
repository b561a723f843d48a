// Flow runs that take much longer than expected: people are told once, however many processes look.
import type { Db, Pool, PreparedSql } from '../db/pool.ts'
import { inTransaction } from '../db/transaction.ts'
import type { FlowEvent } from '../kernel/flow-run.ts'
import { newId } from '../kernel/id.ts'
import { defaultSettings } from '../kernel/project.ts'
import type { AlertAction } from './alerts.ts'
import type { FlowJournal } from './flow-journal.ts'
import { type FlowRecord, readRecord } from './flow-record.ts'
import { describeCause, hasAdaptive, slowestStage, stagesOf, suspectOf } from './suspected-cause.ts'
import { tasksOf } from './trace.ts'

/** So many completed runs of a flow say better than its tree how long it takes; older ones say nothing. */
const FEWEST_RUNS = 3
const MOST_RUNS = 100
const MOST_AT_ONCE = 200
const SHORTEST_WAIT_MS = 2_000

interface SlowRun {
  id: string
  project_id: string
  elapsed: number
  expected: number
}

interface LookedAt extends SlowRun {
  is_slow: boolean
  /** Milliseconds after its start from which on it is late; null where nothing is expected of it. */
  late_after: number | null
}

// An alert that was acked is repeated when the run has taken twice as long as it had when that one was made.
const NOT_TOLD = `not exists (
  select from flow_alerts a where a.flow_run_id = r.id and a.kind = 'slow'
    and (a.acked_at is null or muster.now() - r.started_at < 2 * (a.created_at - r.started_at)))`

// Of each run that is due for a look: whether people should be told. A median is taken once per flow.
const FIND_SLOW: PreparedSql = {
  name: 'flow_find_slow',
  text: `
    with due as materialized (
      select r.id, r.project_id, r.flow_id, r.started_at, r.expected,
        (extract(epoch from muster.now() - r.started_at) * 1000)::float8 as elapsed,
        case when jsonb_typeof(p.settings->'alert_factor') = 'number'
          then (p.settings->>'alert_factor')::float8 else $1::float8 end as factor,
        r.status = 'running' and r.cancel_requested_at is null and p.halted_at is null as may_tell
      from (select * from flow_runs where check_at <= muster.now() order by check_at limit $4) r
      join projects p on p.id = r.project_id
    ), measured as (
      select flow_id, percentile_cont(0.5) within group (order by duration) as median
      from (select distinct flow_id from due where flow_id is not null) f
      cross join lateral (
        select duration from flow_runs where flow_id = f.flow_id and status = 'completed'
        order by completed_at desc limit $2
      ) d
      group by flow_id having count(*) >= $3
    )
    select r.id, r.project_id, r.elapsed, coalesce(m.median, r.expected)::float8 as expected,
      coalesce(r.may_tell and r.elapsed > r.factor * coalesce(m.median, r.expected), false)
        and ${NOT_TOLD} as is_slow,
      r.factor * coalesce(m.median, r.expected) as late_after
    from due r left join measured m using (flow_id)`,
}

/**
 * A run is looked at again as soon as it would be late, and at the latest when it has been under way a tenth longer:
 * the expected duration may change meanwhile. Slow runs are looked at again shortly, in case no alert is made.
 */
const LOOK_AGAIN: PreparedSql = {
  name: 'flow_look_again',
  text: `
    update flow_runs r set check_at = case when r.cancel_requested_at is null then muster.now() + w.in_ms * interval '1 ms' end
    from unnest($1::uuid[], $2::float8[]) as w (id, in_ms)
    where r.id = w.id and r.id in (
      select id from flow_runs where id = any($1::uuid[]) and check_at <= muster.now() for no key update skip locked)`,
}

/** Answers how many alerts were made. A run whose alert fails does not keep the others from theirs. */
export async function checkAlerts({ pool, journal }: { pool: Pool; journal: FlowJournal }): Promise<number> {
  const { rows } = await pool.query<LookedAt>(FIND_SLOW, [
    defaultSettings.alert_factor,
    MOST_RUNS,
    FEWEST_RUNS,
    MOST_AT_ONCE,
  ])
  if (rows.length === 0) return 0
  await pool.query(LOOK_AGAIN, [rows.map((run) => run.id), rows.map(lookAgainInMs)])
  let made = 0
  const failures: unknown[] = []
  for (const run of rows) {
    if (!run.is_slow) continue
    try {
      if (await tell(pool, journal, run)) made++
    } catch (error) {
      failures.push(error)
    }
  }
  if (failures.length > 0) throw new AggregateError(failures, 'Some alerts could not be made.')
  return made
}

function lookAgainInMs({ is_slow, elapsed, late_after }: LookedAt): number {
  if (is_slow) return SHORTEST_WAIT_MS
  const longestMs = Math.max(SHORTEST_WAIT_MS, elapsed / 10)
  return late_after === null || late_after <= elapsed ? longestMs : Math.min(longestMs, late_after - elapsed + 1)
}

async function tell(pool: Pool, journal: FlowJournal, run: SlowRun): Promise<boolean> {
  const record = await readRecord(pool, run.project_id, run.id)
  const suspectedCause = await findCause(pool, record, run)
  const actions: AlertAction[] = ['cancel', 'add_workers', ...(hasAdaptive(record.root) ? topologyActions : [])]
  return inTransaction(pool, async (tx) => {
    // From here on the run cannot end, and its progress is the last: nobody is told about a flow that is over. A run
    // that has written nothing yet begins its journal by itself.
    const { rowCount: isUnderWay } = await tx.query(
      `select from flow_runs where id = $1 and status = 'running' and last_seq > 0 for no key update`,
      [run.id],
    )
    if (!isUnderWay) return false
    const id = newId()
    const { rowCount: isNews } = await tx.query(
      `insert into flow_alerts (id, project_id, flow_run_id, kind, progress, suspected_cause, actions)
       select $1, r.project_id, r.id, 'slow', r.progress, $3, $4 from flow_runs r where r.id = $2 and ${NOT_TOLD}
       on conflict (flow_run_id, kind) where acked_at is null do nothing`,
      [id, run.id, suspectedCause, JSON.stringify(actions)],
    )
    if (!isNews) return false
    // Nothing can be news before this one is acked.
    await tx.query('update flow_runs set check_at = null where id = $1', [run.id])
    const event: FlowEvent = { kind: 'alert', data: { alert_id: id, kind: 'slow', suspected_cause: suspectedCause } }
    await journal.appendIn(tx, { runId: run.id, fence: null, events: [event] })
    return true
  })
}

const topologyActions: readonly AlertAction[] = ['switch_topology']

async function findCause(db: Db, record: FlowRecord, { elapsed, expected }: SlowRun): Promise<string> {
  const suspect = suspectOf(tasksOf(record), record.readAt)
  const detail = suspect?.how === 'running' ? await readDetail(db, record, suspect.task) : ''
  return describeCause(suspect, { elapsedMs: elapsed, expectedMs: expected, detail })
}

async function readDetail(db: Db, record: FlowRecord, task: { id: string; kind: string }): Promise<string> {
  return task.kind === 'agent' ? readAgent(db, record.run.id, task.id) : readStage(db, record, task.id)
}

/** An agent may wait for something itself: for a slot, a person, its budget. */
async function readAgent(db: Db, flowRunId: string, taskId: string): Promise<string> {
  const { rows } = await db.query<{ id: string; status: string; pause_reason: string | null }>(
    `select id, status, pause_reason from agent_runs where flow_run_id = $1 and trigger->>'task_id' = $2
     order by created_at desc, id desc limit 1`,
    [flowRunId, taskId],
  )
  const [run] = rows
  if (!run || run.status === 'running') return ''
  return `Its run ${run.id} is ${run.status}${run.pause_reason === null ? '' : ` (${run.pause_reason})`}.`
}

async function isPipeline(db: Db, flowRunId: string, taskId: string): Promise<boolean> {
  const { rowCount } = await db.query(
    `select from flow_events where run_id = $1 and kind = 'pipeline.started' and data->>'task_id' = $2 limit 1`,
    [flowRunId, taskId],
  )
  return rowCount === 1
}

/** Of a pipeline, the stage that the others wait for. */
async function readStage(db: Db, { root, run }: FlowRecord, taskId: string): Promise<string> {
  const stages = stagesOf(root, taskId)
  if (!stages || !(await isPipeline(db, run.id, taskId))) return ''
  const { rows } = await db.query<{ stage: number; done: number }>(
    `select (data->>'stage')::int as stage,
       sum(jsonb_array_length(coalesce(data->'results', data->'errors')))::float8 as done
     from flow_events where run_id = $1 and kind in ('items.completed', 'items.skipped') and data->>'task_id' = $2
     group by 1`,
    [run.id, taskId],
  )
  const done = new Map(rows.map((row) => [row.stage, row.done]))
  const place = slowestStage(stages.map((_, stage) => done.get(stage) ?? 0))
  const stage = stages[place]
  if (!stage) return ''
  const name = stage.id ?? ('agent' in stage ? stage.agent : stage.function)
  return `The others wait for its stage ${place} (${name}), which has done ${done.get(place) ?? 0} items.`
}
