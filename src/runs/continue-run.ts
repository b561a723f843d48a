// One mechanism for everything that retries above a call: Resume, the next attempt at a task, a retry of a leaf or of an
// entry of the processing log. A continuation is a new run with the journal of the run before it as its history, so
// that finished calls are not made again. A run has at most one continuation: whoever makes one holds the run's row.
import type { Db } from '../db/pool.ts'
import type { ClaimedRun, Settlement } from '../journal/claim.ts'
import { insertRun, type NewRun } from '../journal/insert-run.ts'
import type { Agent } from '../kernel/agent.ts'
import { defined } from '../kernel/defined.ts'
import { newId } from '../kernel/id.ts'
import type { PauseReason, RunStatus, TriggerType } from '../kernel/run.ts'
import { SENIOR_TOOLS } from '../tasks/decide-call.ts'
import { withdrawOutcomeTasks } from '../tasks/outcome-tasks.ts'
import { modelToolName, parseMcpName } from '../tools/registry.ts'
import { decisionsSoFar } from './decisions.ts'
import { continuationOf } from './run-row.ts'

/** The row of a run, locked, with everything that its continuation inherits. */
export interface EarlierRun
  extends Pick<
    ClaimedRun,
    | 'id'
    | 'project_id'
    | 'agent_id'
    | 'key_scope'
    | 'answer'
    | 'parent_run_id'
    | 'depth'
    | 'rights'
    | 'payers'
    | 'chain_depth'
    | 'task_id'
    | 'step_count'
    | 'max_steps'
    | 'timeout'
    | 'last_seq'
    | 'input'
  > {
  status: RunStatus
  pause_reason: PauseReason | null
  error_code: string | null
  error_message: string | null
  started_at: Date | null
  completed_at: Date | null
  trigger: Record<string, unknown> & { type: TriggerType; settled?: Settlement | Settlement[] }
  entry_id: string | null
  flow_run_id: string | null
  started_flow_run_id: string | null
  /** True if the run above, or the newest run that continues it, has not ended. */
  is_parent_open: boolean
  /** True if a sub-run has not ended. */
  has_open_children: boolean
  /** The run that continues this one. */
  continued_by: string | null
}

type Facts = Pick<EarlierRun, 'is_parent_open' | 'has_open_children' | 'continued_by'>

const COLUMNS = `id, project_id, agent_id, status, pause_reason, error_code, error_message, started_at, completed_at, trigger, input, step_count, max_steps,
  timeout, last_seq, rights, key_scope, answer, payers, chain_depth, parent_run_id, depth, entry_id, task_id, flow_run_id,
  started_flow_run_id`

/** Locks the run, so that only one continuation of it is made. Null if there is no such run. */
export async function lockEarlier(tx: Db, projectId: string, runId: string): Promise<EarlierRun | null> {
  const { rows } = await tx.query<Omit<EarlierRun, keyof Facts>>(
    `select ${COLUMNS} from agent_runs where id = $1 and project_id = $2 for update`,
    [runId, projectId],
  )
  const [row] = rows
  if (!row) return null
  // These are read after the lock, so that of two continuations the second sees the first.
  const { rows: facts } = await tx.query<Facts>(
    `select (${continuationOf('$1')}) as continued_by,
       exists (select from agent_runs where parent_run_id = $1 and completed_at is null) as has_open_children,
       exists (
         with recursive above (id, completed_at) as (
           select id, completed_at from agent_runs where id = $2
           union select r.id, r.completed_at from above a join agent_runs r on r.base_run_id = a.id and r.resumed_from = a.id
         )
         select from above where completed_at is null) as is_parent_open`,
    [runId, row.parent_run_id],
  )
  return facts[0] ? { ...row, ...facts[0] } : null
}

/** The newest run of the chain that begins with this one. */
export async function newestOfChain(db: Db, runId: string): Promise<string> {
  let newest = runId
  for (;;) {
    const { rows } = await db.query<{ id: string }>(continuationOf('$1'), [newest])
    if (!rows[0]) return newest
    newest = rows[0].id
  }
}

/** True if the run, or a run that it continues, started a flow run. Such a history is continued by a flow alone. */
export async function hasStartedFlow(db: Db, runId: string): Promise<boolean> {
  const { rowCount } = await db.query(
    `with recursive chain (id, base_run_id, flow_run_id) as (
       select id, base_run_id, started_flow_run_id from agent_runs where id = $1
       union select r.id, r.base_run_id, r.started_flow_run_id from chain c join agent_runs r on r.id = c.base_run_id
     )
     select from chain where flow_run_id is not null limit 1`,
    [runId],
  )
  return rowCount === 1
}

const CANNOT_CONTINUE: ReadonlySet<string> = new Set(['DOOM_LOOP', 'CRASH_LOOP'])

/** True if a retry that nobody asked for may continue the history of this run. */
export const canContinue = (earlier: EarlierRun): boolean =>
  earlier.completed_at !== null &&
  earlier.status !== 'completed' &&
  (earlier.error_code === null || !CANNOT_CONTINUE.has(earlier.error_code)) &&
  earlier.pause_reason !== 'context'

export interface NewContinuation {
  id?: string
  trigger: NewRun['trigger']
  input: unknown
  maxSteps: number | null
  timeoutMs: number | null
  taskId?: string | null
}

/** The continuation inherits rights, payers, depth and the scope of keys; its limits count for itself alone. */
export function continuationRun(earlier: EarlierRun, given: NewContinuation): NewRun {
  // A run that ended before it began has journalled neither its input nor a person's word about a call.
  const input = given.input ?? (earlier.started_at === null ? earlier.input : null)
  return {
    id: given.id ?? newId(),
    projectId: earlier.project_id,
    agentId: earlier.agent_id,
    trigger: { ...inherited(earlier), ...given.trigger },
    input,
    maxSteps: given.maxSteps,
    timeoutMs: given.timeoutMs,
    taskId: given.taskId ?? null,
    ...historyOf(earlier),
    rights: earlier.rights,
    payers: earlier.payers,
    chainDepth: earlier.chain_depth,
    // No run above waits for the new run, and the streams above may have ended.
    parentRunId: earlier.parent_run_id,
    depth: earlier.depth,
    entryId: earlier.entry_id,
    flowRunId: earlier.flow_run_id,
    answer: earlier.answer,
  }
}

/** With these a new run continues the history of the earlier one, and its calls keep their keys. */
export const historyOf = (earlier: EarlierRun): Pick<NewRun, 'resumedFrom' | 'keyScope' | 'base'> => ({
  resumedFrom: earlier.id,
  keyScope: earlier.key_scope ?? earlier.id,
  base: { runId: earlier.id, seq: earlier.last_seq, steps: earlier.step_count },
})

/** A continuation belongs to the same eval and the same leaf. */
function inherited({ trigger, started_at, flow_run_id: flowRunId }: EarlierRun): Record<string, unknown> {
  const { eval_id, settled, flow_run_id, task_id } = trigger
  const ofLeaf = flowRunId === null ? {} : { flow_run_id, task_id }
  return defined({ eval_id, ...ofLeaf, settled: started_at === null ? settled : undefined })
}

/** The new run asks about the calls that nobody has decided about; the questions of the earlier run are withdrawn. */
export async function insertContinuation(tx: Db, earlier: EarlierRun, given: NewContinuation): Promise<string> {
  const isUndecided = earlier.pause_reason === 'outcome_unknown' && given.trigger.settled === undefined
  const settled = isUndecided ? await decisionsSoFar(tx, earlier.id) : []
  const trigger = settled.length > 0 ? { ...given.trigger, settled } : given.trigger
  const run = continuationRun(earlier, { ...given, trigger })
  await insertRun(tx, run)
  if (isUndecided) await withdrawOutcomeTasks(tx, [earlier.id])
  return run.id
}

/**
 * Returns the tools that the history calls and that the agent has lost. A provider may refuse a history with calls of
 * tools that the request does not offer.
 */
export async function lostTools(
  db: Db,
  runId: string,
  agent: Pick<Agent, 'id' | 'tools' | 'steps' | 'flow_type'>,
): Promise<string[]> {
  const { rows } = await db.query<{ name: string }>(
    `with recursive chain (id, base_run_id) as (
       select id, base_run_id from agent_runs where id = $1
       union select r.id, r.base_run_id from chain c join agent_runs r on r.id = c.base_run_id
     )
     select distinct e.data->>'name' as name from chain c join run_events e on e.run_id = c.id
     where e.kind = 'tool.started' and e.origin_seq is null and not e.data ? 'run_id'`,
    [runId],
  )
  const named = [...agent.tools, ...agent.steps.flatMap((step) => step.tools ?? [])]
  if (await isSenior(db, agent.id)) named.push(...SENIOR_TOOLS)
  if (agent.flow_type === 'loop') named.push('finish_loop')
  const ofServers = named.flatMap((name) => parseMcpName(name) ?? [])
  const offered = new Set([...named, ...ofServers.map(({ server, tool }) => modelToolName(server, tool, new Set()))])
  const wholeServers = ofServers.filter(({ tool }) => tool === '*').map(({ server }) => server.replace(/[^\w-]/g, '_'))
  const isOffered = (name: string): boolean =>
    offered.has(name) || wholeServers.some((server) => name.startsWith(`mcp_${server}_`))
  return rows.map(({ name }) => name).filter((name) => !isOffered(name))
}

async function isSenior(db: Db, agentId: string): Promise<boolean> {
  const { rowCount } = await db.query('select from agents where senior_id = $1 and deleted_at is null limit 1', [
    agentId,
  ])
  return (rowCount ?? 0) > 0
}
