import type { Db, PreparedSql } from '../../db/pool.ts'
import { type JournalEvent, type PageOf, pageSql, readPage } from '../../journal/read.ts'
import { roundCost } from '../../kernel/cost.ts'
import { runNotFound } from '../../kernel/errors.ts'
import type { FlowNode } from '../../kernel/flow.ts'
import type { Patterns } from '../machine/pattern.ts'
import { type FlowRunRow, flowHasEnded, readFlowRow } from './flow-runs.ts'
import type { LeafRun, RecordedRun, TaskUsage } from './trace.ts'

const READ: PreparedSql = { name: 'flow_journal_read', text: pageSql('flow_events') }

const PAGE = 500

export async function readFlowEvents(db: Db, runId: string, page: PageOf = {}): Promise<JournalEvent[]> {
  const { events } = await readPage(db, READ, runId, { limit: PAGE, ...page })
  return events
}

const READ_KINDS: PreparedSql = {
  name: 'flow_kinds_read',
  text: `select seq, kind, '{}'::jsonb as data, at from flow_events where run_id = $1 and seq > $2 order by seq limit $3`,
}

/** Leaves out the data, which may be large: for those who only wait for an event of some kind. */
export async function readFlowKinds(db: Db, runId: string, { after }: { after: number }): Promise<JournalEvent[]> {
  const { rows } = await db.query<JournalEvent>(READ_KINDS, [runId, after, PAGE])
  return rows
}

export interface FlowRecord extends RecordedRun {
  run: FlowRunRow
  /** The time of the database's clock. */
  readAt: Date
}

/** The events of the flow run's tasks, without inputs and results. */
export async function readRecord(db: Db, projectId: string, runId: string, patterns: Patterns): Promise<FlowRecord> {
  const run = await readFlowRow(db, projectId, runId)
  const { rows } = await db.query<{ root: FlowNode; now: Date }>(
    'select root, muster.now() as now from flow_runs where id = $1',
    [run.id],
  )
  const { rows: events } = await db.query<JournalEvent>(
    `select seq, kind, data - '{input,output,result,called}'::text[] as data, at from flow_events
     where run_id = $1 and (kind like 'task.%' or kind like 'flow.%') order by seq`,
    [run.id],
  )
  const read = rows[0]
  if (!read) throw runNotFound()
  const { root, now: readAt } = read
  return { run, readAt, root, patterns, hasEnded: flowHasEnded(run), events, runs: await readLeafRuns(db, run.id) }
}

/** The newest run of each leaf, and its usage: of all its runs, of their sub-runs, and of the calls of its function. */
async function readLeafRuns(db: Db, flowRunId: string): Promise<Map<string, LeafRun>> {
  const { rows } = await db.query<TaskUsage & { task_id: string; run_id: string | null }>(
    `select task_id, (array_agg(id order by created_at desc, id desc) filter (where id is not null))[1] as run_id,
       sum(input_tokens)::float8 as input_tokens, sum(output_tokens)::float8 as output_tokens,
       sum(input_tokens + output_tokens)::float8 as total_tokens, bool_or(usage_estimated) as estimated,
       sum(cost_usd)::float8 as cost_usd
     from (
       select trigger->>'task_id' as task_id, id, created_at, input_tokens, output_tokens, usage_estimated, cost_usd
       from agent_runs where flow_run_id = $1
       union all
       select task_id, null, null, input_tokens, output_tokens, usage_estimated, cost_usd
       from flow_leaf_usage where flow_run_id = $1
     ) used group by task_id`,
    [flowRunId],
  )
  return new Map(
    rows.map(({ task_id, run_id, cost_usd, ...usage }) => [
      task_id,
      { run_id, usage: { ...usage, cost_usd: cost_usd === null ? null : roundCost(cost_usd) } },
    ]),
  )
}
