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
  /** The number of runs above this one. For the run of a leaf these are more than its ancestors. */
  depth?: number
  /** The entry of the processing log that the run works on. */
  entryId?: string | null
  taskId?: string | null
  rights?: Readonly<Record<string, unknown>>
  /** The scope of the keys of its calls; without one it is the run itself. */
  keyScope?: string | null
  /** Agents above the run whose allocations its calls count for, too. */
  payers?: readonly string[]
  /** The flow run whose leaf this run is. */
  flowRunId?: string | null
  /** The decision that the run makes. */
  answer?: { name: string; schema: Record<string, unknown> } | null
  base?: { runId: string; seq: number; steps: number } | null
  priority?: number
  chainDepth?: number
}

/** The place of a sub-run below its parent. */
export const placeBelow = ({ id, ancestors, depth }: { id: string; ancestors: readonly string[]; depth: number }) => ({
  parentRunId: id,
  ancestors: [...ancestors, id],
  depth: depth + 1,
})

const COLUMNS = {
  id: ['uuid', (run) => run.id],
  project_id: ['uuid', (run) => run.projectId],
  agent_id: ['uuid', (run) => run.agentId],
  trigger: ['jsonb', (run) => JSON.stringify(run.trigger)],
  input: ['jsonb', (run) => JSON.stringify(run.input)],
  max_steps: ['int', (run) => run.maxSteps],
  timeout: ['int', (run) => run.timeoutMs],
  parent_run_id: ['uuid', (run) => run.parentRunId],
  resumed_from: ['uuid', (run) => run.resumedFrom],
  forked_from: ['uuid', (run) => run.forkedFrom],
  ancestors: ['uuid[]', (run) => run.ancestors ?? []],
  depth: ['smallint', (run) => run.depth ?? 0],
  rights: ['jsonb', (run) => JSON.stringify(run.rights ?? {})],
  key_scope: ['text', (run) => run.keyScope],
  base_run_id: ['uuid', (run) => run.base?.runId],
  base_seq: ['bigint', (run) => run.base?.seq],
  step_count: ['int', (run) => run.base?.steps ?? 0],
  priority: ['smallint', (run) => run.priority ?? 0],
  chain_depth: ['int', (run) => run.chainDepth ?? 0],
  entry_id: ['uuid', (run) => run.entryId],
  task_id: ['uuid', (run) => run.taskId],
  is_task_open: ['boolean', (run) => typeof run.taskId === 'string'],
  part: ['jsonb', (run) => (run.part ? JSON.stringify(run.part) : null)],
  payers: ['uuid[]', (run) => run.payers ?? []],
  flow_run_id: ['uuid', (run) => run.flowRunId],
  answer: ['jsonb', (run) => (run.answer ? JSON.stringify(run.answer) : null)],
} satisfies Record<string, [type: string, value: (run: NewRun) => unknown]>

const INSERT: PreparedSql = {
  name: 'run_insert',
  text: `insert into agent_runs (${Object.keys(COLUMNS).join(', ')})
    values (${Object.values(COLUMNS).map(([type], place) => `$${place + 1}::${type}`)}) on conflict (id) do nothing`,
}

/** Returns false if this very run was inserted before, by an attempt whose connection was cut. */
export async function insertRun(db: Db, run: NewRun): Promise<boolean> {
  const values = Object.values(COLUMNS).map(([, value]) => value(run) ?? null)
  const { rowCount } = await db.query(INSERT, values)
  return rowCount === 1
}

/** For each column that new runs set, the SQL of its value. */
type RunValues = Record<'id' | 'project_id' | 'agent_id' | 'trigger' | 'input' | 'max_steps' | 'timeout', string> &
  Readonly<Record<string, string>>

/** SQL that inserts a run for each row of `from`, for statements that write the reason for the runs as well. */
export const insertRunsSql = (values: RunValues, from: string): string =>
  `insert into agent_runs (${Object.keys(values).join(', ')}) select ${Object.values(values).join(', ')} ${from}`
