// Facts about runs that traces show beside the runs' events.
import { anyOf } from '../db/lists.ts'
import type { Db, PreparedSql } from '../db/pool.ts'
import type { ModelChoice } from '../kernel/agent.ts'

export interface TracedRun {
  id: string
  project_id: string
  agent_id: string | null
  /** The run at the top; the run itself if nothing started it. */
  root_id: string
  parent_run_id: string | null
  resumed_from: string | null
  flow_run_id: string | null
  task_id: string | null
  /** The variant, for a part of a supervisor system. */
  variant: string | null
  node: string | null
  /** The models of the parts, by their names; `model` is a specialist's own. */
  models: Readonly<Record<string, ModelChoice | null>> | null
  started_at: Date
  input_tokens: number
  output_tokens: number
}

const READ: PreparedSql = {
  name: 'journal_traced_runs',
  text: `select id, project_id, agent_id, coalesce(ancestors[1], id) as root_id, parent_run_id, resumed_from,
      flow_run_id, task_id, part->>'variant' as variant, part->>'node' as node,
      case when part is not null then jsonb_build_object('model', part->'config'->'model',
        'supervisor', part->'config'->'supervisor'->'model', 'finalizer', part->'config'->'finalizer'->'model',
        'hitl_escalation', part->'config'->'escalation'->'model') end as models,
      coalesce(started_at, created_at) as started_at, input_tokens, output_tokens
    from agent_runs where id = ${anyOf(1)}`,
}

export async function readTracedRuns(db: Db, runIds: readonly string[]): Promise<TracedRun[]> {
  const { rows } = await db.query<TracedRun>(READ, [runIds])
  return rows
}

const ROOTS: PreparedSql = {
  name: 'journal_roots',
  text: `select id, ancestors[1] as root_id from agent_runs where id = ${anyOf(1)} and ancestors[1] is not null`,
}

/** The top runs by the ids of the given runs; a run without an ancestor is left out. */
export async function rootsOfRuns(db: Db, runIds: readonly string[]): Promise<Map<string, string>> {
  const { rows } = await db.query<{ id: string; root_id: string }>(ROOTS, [runIds])
  return new Map(rows.map((row) => [row.id, row.root_id]))
}

const ANSWERS: PreparedSql = {
  name: 'journal_answers',
  text: `select count(*) filter (where kind = 'supervisor.answered')::int as count,
      max(at) filter (where kind = 'supervisor.answered') as last_at,
      coalesce(max(seq) filter (where kind = 'run.paused' and data->>'pause_reason' <> 'halted'), 0)
        > coalesce(max(seq) filter (where kind = 'supervisor.answered'), 0) as is_over
    from run_events
    where run_id = $1 and seq < $2 and kind in ('supervisor.answered', 'run.paused') and origin_seq is null`,
}

export interface Answers {
  /** The number of times that people had continued a supervisor's run. */
  count: number
  lastAt: Date | null
  /** True if the run has paused since the last answer, so that its span had ended. */
  isOver: boolean
}

/** The answers of people to a supervisor's run before an event of its journal. */
export async function readAnswers(db: Db, runId: string, beforeSeq: number): Promise<Answers> {
  const { rows } = await db.query<{ count: number; last_at: Date | null; is_over: boolean }>(ANSWERS, [
    runId,
    beforeSeq,
  ])
  return { count: rows[0]?.count ?? 0, lastAt: rows[0]?.last_at ?? null, isOver: rows[0]?.is_over ?? false }
}
