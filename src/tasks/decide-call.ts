// People decide about a call that waits. The decision and the wake-up of the run are one transaction; the owner that takes
// up the run makes the call.
import { getAgent } from '../agents/agents.ts'
import { recordAudit } from '../audit/record.ts'
import type { Db, Pool } from '../db/pool.ts'
import { inTransaction } from '../db/transaction.ts'
import { getSettings } from '../identity/settings.ts'
import { wakeWaiting } from '../journal/wake.ts'
import { agentDefaults } from '../kernel/agent.ts'
import { conflict, MusterError } from '../kernel/errors.ts'
import { fault } from '../kernel/fault.ts'
import type { GraphChange } from '../kernel/object.ts'
import type { Actor } from '../kernel/principal.ts'
import { type AgentRights, capabilityProblem, fitsTool, type Rights, rightsWithin } from '../kernel/rights.ts'
import { isSpecialist, type SpecialistPart, type SystemPart } from '../kernel/supervisor.ts'
import { isResolved, type SuggestedCall, suggestedCall, type Task } from '../kernel/task.ts'
import type { Tool } from '../kernel/tool.ts'
import { isGraphTool, parseChange } from '../objects/object-tools.ts'
import { findObject } from '../objects/objects.ts'
import type { ToolRegistry } from '../tools/registry.ts'
import { listedName, schemaHash } from '../tools/tool-identity.ts'
import { expireCalls } from './call-suggestions.ts'
import { liveRights } from './live-rights.ts'
import { liveSpecialist } from './live-specialist.ts'
import { isOverAbove } from './over-above.ts'
import { onlyTask, TASK_COLUMNS, type TaskRow } from './task-row.ts'

/** Finds the tool of a call: in this process, or by its name in any live process. */
export type ApprovalTools = Pick<ToolRegistry, 'resolve' | 'check'>

export interface SuggestionDecision {
  projectId: string
  taskId: string
  actor: Actor
}

/** A suggestion about a call, with the run that waits for it. */
export type CallTask = Task & { run_id: string }

export const isCallTask = (task: Task): task is CallTask => suggestedCall(task) !== null && task.run_id !== null

interface WaitingRun {
  agent_id: string | null
  part: SystemPart | null
  rights: Partial<Rights>
  ancestors: string[]
}

/** Lets the run make the call, if all that the call needs is still there; otherwise the task says what is not. */
export async function approveCall(
  pool: Pool,
  tools: ApprovalTools,
  task: CallTask,
  { projectId, taskId, actor }: SuggestionDecision,
): Promise<Task> {
  const timeoutMs = (await getSettings(pool, projectId)).approval_timeout
  // The run rejects its late calls when it wakes; a halted run, or one that makes other calls, wakes later.
  if (timeoutMs !== null) await expireCalls(pool, [taskId], timeoutMs)
  const run = await readRun(pool, task.run_id)
  const tool = run && (await findTool(pool, tools, projectId, task, run))
  const outcome = await inTransaction(pool, async (tx): Promise<Task | MusterError> => {
    // An agent is locked before its runs, and a run before its tasks, as by all who change several of them.
    const refusal = run ? await refusalOf(tx, { projectId, task, run, tool }) : 'Its run is gone.'
    const isOpen = await lockOpenRun(tx, task.run_id)
    const { schema_hash: hash } = await lockCall(tx, projectId, taskId)
    const stale =
      refusal ??
      (isOpen ? null : 'Its run no longer waits for it.') ??
      ((await isOverAbove(tx, task.run_id)) ? 'The work above its run was cancelled or has ended.' : null) ??
      (typeof tool === 'object' && tool !== null && schemaHash(tool) !== hash
        ? "The tool's arguments have changed since this was suggested."
        : null)
    if (stale !== null) {
      await markStale(tx, taskId, stale)
      return conflict(`${stale} ${tool === 'nowhere' ? LATER : INSTEAD}`)
    }
    await fault('approval.after_decision_before_apply')
    const result = { approved_by: actor.id }
    const approved = await resolveCall(tx, { projectId, taskId, actor, status: 'completed', result })
    await wakeWaiting(tx, task.run_id, 'human')
    return approved
  })
  if (outcome instanceof MusterError) throw outcome
  return outcome
}

const LATER = 'Approve the call when a process with the tool is running, or reject it.'
const INSTEAD = 'Reject this suggestion, or let the agent make a new one.'

/** The run gets the reason as the call's error result. */
export async function rejectCall(
  pool: Pool,
  task: CallTask,
  { projectId, taskId, actor }: SuggestionDecision,
  reason: string | undefined,
): Promise<Task> {
  return inTransaction(pool, async (tx) => {
    await lockOpenRun(tx, task.run_id)
    await lockCall(tx, projectId, taskId)
    const result = reason === undefined ? null : { reason }
    const rejected = await resolveCall(tx, { projectId, taskId, actor, status: 'rejected', result })
    await wakeWaiting(tx, task.run_id, 'human')
    return rejected
  })
}

async function readRun(db: Db, runId: string): Promise<WaitingRun | null> {
  const { rows } = await db.query<WaitingRun>(
    'select agent_id, part, rights, ancestors from agent_runs where id = $1',
    [runId],
  )
  return rows[0] ?? null
}

/** The tool of a process other than this one is checked by the process that makes the call. nowhere: no live process has it. */
type FoundTool = Tool | 'elsewhere' | 'nowhere' | null

/** The tool as the run's agent has it now; null if the agent has it no longer. */
async function findTool(
  db: Db,
  tools: ApprovalTools,
  projectId: string,
  task: CallTask,
  run: WaitingRun,
): Promise<FoundTool> {
  const name = suggestedCall(task)?.tool ?? ''
  const given = await toolsGiven(db, projectId, run)
  if (given === null || !isGiven(given, name)) return null
  const resolved = await tools.resolve(projectId, [name])
  const found = resolved.tools.find((tool) => listedName(tool) === name)
  if (found) return found
  return (await tools.check(db, projectId, [name])) === null ? 'elsewhere' : 'nowhere'
}

/** The names of the tools that the run may call; null if its agent is deleted, or its specialist removed. */
async function toolsGiven(db: Db, projectId: string, run: WaitingRun): Promise<string[] | null> {
  if (run.agent_id === null) {
    return isSpecialist(run.part) ? ((await liveSpecialist(db, projectId, run.part))?.tools ?? null) : []
  }
  try {
    const { tools, steps, flow_type: type } = await getAgent(db, projectId, run.agent_id)
    const offered = [...SENIOR_TOOLS, ...(type === 'loop' ? ['finish_loop'] : [])]
    return [...tools, ...steps.flatMap((step) => step.tools ?? []), ...offered]
  } catch (error) {
    if (error instanceof MusterError && error.status === 404) return null
    throw error
  }
}

/** Every agent with subordinates has these tools, without naming them. */
export const SENIOR_TOOLS: readonly string[] = ['task_list', 'task_update', 'budget_add']

const isGiven = (given: readonly string[], name: string): boolean => given.some((pattern) => fitsTool(pattern, name))

/** The reason why the call cannot be made any more, with the agents locked; null if it can. */
async function refusalOf(
  tx: Db,
  { projectId, task, run, tool }: { projectId: string; task: CallTask; run: WaitingRun; tool: FoundTool },
): Promise<string | null> {
  const { agent_id: agentId, rights: bounds, ancestors } = run
  const hasAgent = agentId !== null
  let own = bounds
  if (isSpecialist(run.part)) {
    const specialist = await liveSpecialist(tx, projectId, run.part)
    if (!specialist) return 'Its specialist was removed.'
    own = rightsWithin(rightsWithin(bounds, rightsOf(run.part.config)), rightsOf(specialist))
  }
  const rights = await liveRights(tx, {
    runId: task.run_id,
    agentId: agentId ?? task.created_by.id ?? '',
    hasAgent,
    ancestors,
    bounds: own,
  })
  if (rights === null) return 'Its agent was deleted.'
  if (hasAgent && !(await getAgent(tx, projectId, agentId)).enabled) return 'Its agent is disabled.'
  const call = suggestedCall(task)
  const given = await toolsGiven(tx, projectId, run)
  if (!call || !tool || !isGiven(given ?? [], call.tool)) return 'Its agent no longer has this tool.'
  if (tool === 'nowhere') return `No running process has the tool "${call.tool}".`
  return rightsProblem(tx, projectId, rights, call)
}

const rightsOf = (config: SpecialistPart['config']): AgentRights => ({
  capabilities: config.capabilities ?? agentDefaults.capabilities,
  execution_mode: config.execution_mode ?? agentDefaults.execution_mode,
  require_approval: config.require_approval ?? [],
})

/** Only changes of objects need a right; every other call needs the tool alone. */
async function rightsProblem(
  tx: Db,
  projectId: string,
  { capabilities }: Rights,
  { tool, args }: SuggestedCall,
): Promise<string | null> {
  if (!isGraphTool(tool)) return null
  const { change } = parseChange(tool, args)
  return capabilityProblem(capabilities, change.op, await typesOf(tx, projectId, change))
}

/** The types of the objects that the change touches. The call itself says which of them is gone. */
async function typesOf(tx: Db, projectId: string, change: GraphChange): Promise<string[]> {
  if (change.op === 'create') return [change.type]
  const types: string[] = []
  for (const id of change.op === 'relate' ? [change.fromId, change.toId] : [change.id]) {
    const object = await findObject(tx, projectId, id)
    if (object) types.push(object.type)
  }
  return types
}

/** Locks the run. Returns whether it may still make calls. */
async function lockOpenRun(tx: Db, runId: string): Promise<boolean> {
  const { rows } = await tx.query<{ is_open: boolean }>(
    `select completed_at is null and cancel_requested_at is null as is_open from agent_runs where id = $1 for update`,
    [runId],
  )
  return rows[0]?.is_open ?? false
}

async function lockCall(tx: Db, projectId: string, taskId: string): Promise<{ schema_hash: string }> {
  const { rows } = await tx.query<TaskRow & { schema_hash: string }>(
    `select ${TASK_COLUMNS}, call->>'schema_hash' as schema_hash from tasks where id = $1 and project_id = $2 for update`,
    [taskId, projectId],
  )
  const { status } = onlyTask(rows)
  if (isResolved(status)) throw conflict(`This suggestion is already ${status}.`)
  return { schema_hash: rows[0]?.schema_hash ?? '' }
}

/** A stale task stays open: it can be rejected, and its list entry no longer says that it can be approved. */
export async function markStale(tx: Db, taskId: string, why: string): Promise<void> {
  await tx.query(
    `update tasks set metadata = metadata || jsonb_build_object('stale', true, 'stale_reason', $2::text) where id = $1`,
    [taskId, why],
  )
}

async function resolveCall(
  tx: Db,
  {
    projectId,
    taskId,
    actor,
    status,
    result,
  }: SuggestionDecision & { status: 'completed' | 'rejected'; result: object | null },
): Promise<Task> {
  const { rows } = await tx.query<TaskRow>(
    `update tasks set status = $2, result = $3, decided_by = $4, completed_at = muster.now(),
       metadata = case when $2 = 'completed' then metadata - 'stale' - 'stale_reason' else metadata end
     where id = $1 returning ${TASK_COLUMNS}`,
    [taskId, status, result === null ? null : JSON.stringify(result), actor.id],
  )
  const action = status === 'completed' ? 'task.approve' : 'task.reject'
  await recordAudit(tx, { action, actor, projectId, targetType: 'task', targetId: taskId })
  return onlyTask(rows)
}
