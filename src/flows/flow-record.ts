import type { Db, PreparedSql } from '../db/pool.ts'
import { type JournalEvent, type PageOf, pageSql, readPage } from '../journal/read.ts'
import { roundCost } from '../kernel/cost.ts'
import { runNotFound } from '../kernel/errors.ts'
import type { FlowNode } from '../kernel/flow.ts'
import { type FlowRunRow, flowHasEnded, readFlowRow } from './flow-runs.ts'
import type { Recorded, TaskUsage } from './trace.ts'

const READ: PreparedSql = { name: 'flow_journal_read', text: pageSql('flow_events') }

const PAGE = 500

/** A page of a flow run's journal, oldest first. */
export async function readFlowEvents(db: Db, runId: string, page: PageOf = {}): Promise<JournalEvent[]> {
  const { events } = await readPage(db, READ, runId, { limit: PAGE, ...page })
  return events
}

export interface FlowRecord extends Recorded {
  run: FlowRunRow
  /** By the database's clock. */
  readAt: Date
}

/** The events of the flow run's tasks, without inputs and results. */
export async function readRecord(db: Db, projectId: string, runId: string): Promise<FlowRecord> {
  const run = await readFlowRow(db, projectId, runId)
  const { rows } = await db.query<{ root: FlowNode; now: Date }>(
    'select root, muster.now() as now from flow_runs where id = $1',
    [run.id],
  )
  const { rows: events } = await db.query<JournalEvent>(
    `select seq, kind, data - '{input,output,result}'::text[] as data, at from flow_events
     where run_id = $1 and (kind like 'task.%' or kind like 'flow.%') order by seq`,
    [run.id],
  )
  const read = rows[0]
  if (!read) throw runNotFound()
  const { root, now: readAt } = read
  return { run, readAt, root, hasEnded: flowHasEnded(run), events, usage: await readUsage(db, run.id) }
}

/** The usage of the flow's agents, all attempts together. */
async function readUsage(db: Db, flowRunId: string): Promise<Map<string, TaskUsage>> {
  const { rows } = await db.query<TaskUsage & { task_id: string }>(
    `select trigger->>'task_id' as task_id, sum(input_tokens)::float8 as input_tokens,
       sum(output_tokens)::float8 as output_tokens, sum(input_tokens + output_tokens)::float8 as total_tokens,
       bool_or(usage_estimated) as estimated,
       case when count(cost_usd) = count(*) then sum(cost_usd)::float8 end as cost_usd
     from agent_runs where flow_run_id = $1 group by 1`,
    [flowRunId],
  )
  return new Map(
    rows.map(({ task_id, cost_usd, ...usage }) => [
      task_id,
      { ...usage, cost_usd: cost_usd === null ? null : roundCost(cost_usd) },
    ]),
  )
}
