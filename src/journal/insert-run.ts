import type { Db, PreparedSql } from '../db/pool.ts'
import type { SystemPart } from '../kernel/supervisor.ts'

export interface NewRun {
  id: string
  projectId: string
  agentId: string | null
  /** The part of a supervisor system that a run without an agent plays. */
  part?: SystemPart | null
  trigger: Readonly<Record<string, unknown>> & { type: string }
  input: unknown
  maxSteps: number | null
  timeoutMs: number | null
  parentRunId?: string | null
  resumedFrom?: string | null
  forkedFrom?: string | null
  /** The runs whose streams show this run's events, from the top. */
  ancestors?: readonly string[]
  /** The number of runs above this one, if it differs from the number of its ancestors. */
  depth?: number
  /** The entry of the processing log that the run works on. */
  entryId?: string | null
  /** The task that the run is an attempt at. */
  taskId?: string | null
  rights?: Readonly<Record<string, unknown>>
  base?: { runId: string; seq: number; steps: number } | null
  priority?: number
  chainDepth?: number
}

const INSERT: PreparedSql = {
  name: 'run_insert',
  text: `
    insert into agent_runs (id, project_id, agent_id, trigger, input, max_steps, timeout, parent_run_id, resumed_from,
      forked_from, ancestors, depth, rights, base_run_id, base_seq, step_count, priority, chain_depth, entry_id,
      task_id, is_task_open, part)
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $18, $12, $13, $14, $15, $16, $17, $19, $20, $20::uuid is not null, $21)
    on conflict (id) do nothing`,
}

/** Returns false if this very run was inserted before, by an attempt whose connection was cut. */
export async function insertRun(db: Db, run: NewRun): Promise<boolean> {
  const { rowCount } = await db.query(INSERT, [
    run.id,
    run.projectId,
    run.agentId,
    JSON.stringify(run.trigger),
    JSON.stringify(run.input),
    run.maxSteps,
    run.timeoutMs,
    run.parentRunId ?? null,
    run.resumedFrom ?? null,
    run.forkedFrom ?? null,
    run.ancestors ?? [],
    JSON.stringify(run.rights ?? {}),
    run.base?.runId ?? null,
    run.base?.seq ?? null,
    run.base?.steps ?? 0,
    run.priority ?? 0,
    run.chainDepth ?? 0,
    run.depth ?? run.ancestors?.length ?? 0,
    run.entryId ?? null,
    run.taskId ?? null,
    run.part ? JSON.stringify(run.part) : null,
  ])
  return rowCount === 1
}
