// Tools for agents with subordinates. They reach the agent's own tasks, tasks that it made and tasks of its direct
// subordinates; any other task is refused and audited.
import { z } from 'zod'
import { findAgent } from '../agents/agents.ts'
import { recordAudit } from '../audit/record.ts'
import type { Db } from '../db/pool.ts'
import { MusterError } from '../kernel/errors.ts'
import { idField, nameField } from '../kernel/fields.ts'
import { isId } from '../kernel/id.ts'
import type { Log } from '../kernel/log.ts'
import { agentActor } from '../kernel/principal.ts'
import { settableStatuses, taskPatch, taskPriorities, taskStatuses } from '../kernel/task.ts'
import type { WriteCall, WriteResult, WriteTool } from '../kernel/tool.ts'
import { updateTaskIn } from '../tasks/update-task.ts'
import { zodArguments } from '../tools/arguments.ts'
import { giveTokens } from './give-tokens.ts'
import { taskChanged } from './task-changed.ts'
import { resultText } from './task-text.ts'

const listArguments = z.strictObject({
  status: z.enum(taskStatuses).optional(),
  assigned_to: nameField.optional().describe('The name or the id of an agent: you, or a direct subordinate.'),
})
const updateArguments = z.strictObject({
  id: idField,
  status: z.enum(settableStatuses).optional(),
  result: taskPatch.shape.result,
  assigned_to: nameField.optional().describe('The name or the id of an agent: you, or a direct subordinate.'),
  priority: z.enum(taskPriorities).optional(),
})
const budgetArguments = z.strictObject({
  agent: nameField.describe('The name or the id of a direct subordinate.'),
  tokens: z.int().min(1).max(1_000_000_000_000),
})

const tool = (name: string, description: string, schema: z.ZodObject): WriteTool => {
  const made: WriteTool = { kind: 'write', name, description, ...zodArguments(schema), inMode: () => made }
  return made
}

export const seniorTools: readonly WriteTool[] = [
  tool('task_list', 'Lists your own tasks, tasks you made, and tasks of your direct subordinates.', listArguments),
  tool(
    'task_update',
    'Changes a task of yours, one you made, or one of a direct subordinate: reassign, reorder, complete or cancel it.',
    updateArguments,
  ),
  tool(
    'budget_add',
    'Gives a direct subordinate tokens. They are taken from your own allocation if you have one.',
    budgetArguments,
  ),
]

const MOST_LISTED = 50
const MOST_SUBORDINATES = 200

type Handler = (tx: Db, log: Log, call: WriteCall) => Promise<unknown>

const handlers: Readonly<Record<string, Handler>> = {
  task_list: listTasks,
  task_update: changeTask,
  budget_add: addBudget,
}

export const isSeniorTool = (name: string): boolean => Object.hasOwn(handlers, name)

/** A refusal is an error result to the model, and an entry in the audit. */
class Refused extends Error {}

export async function callSeniorTool(tx: Db, log: Log, call: WriteCall): Promise<WriteResult> {
  try {
    const result = await handlers[call.name]?.(tx, log, call)
    return { result, isError: false, blocked: null, hasStarted: false, hasTasks: true }
  } catch (error) {
    const message = error instanceof Refused || error instanceof MusterError ? error.message : null
    if (message === null) throw error
    const failed: WriteResult = { result: { error: message }, isError: true, blocked: null, hasStarted: false }
    if (!(error instanceof Refused)) return failed
    const refused = call.name === 'budget_add' ? 'budget.refused' : 'task.refused'
    await auditRefusal(tx, refused, call, message)
    return { ...failed, refused }
  }
}

async function auditRefusal(
  tx: Db,
  action: string,
  { name, projectId, agentId, runId, args }: WriteCall,
  message: string,
): Promise<void> {
  await recordAudit(tx, {
    action,
    actor: agentActor(agentId),
    projectId,
    targetType: 'agent',
    targetId: agentId,
    details: { tool: name, run_id: runId, args, message },
  })
}

async function listTasks(tx: Db, _log: Log, { projectId, agentId, args }: WriteCall): Promise<unknown> {
  const { status, assigned_to: named } = listArguments.parse(args)
  const assignee = named === undefined ? null : await requireWithinReach(tx, projectId, agentId, named)
  const { rows } = await tx.query<{ id: string; result: unknown; error_message: string | null }>(
    `with reach as (
       select $2::uuid as id union all (select id from agents where senior_id = $2 and deleted_at is null limit ${MOST_SUBORDINATES})
     ), found as (
       (select t.id, t.created_at from reach r cross join unnest($3::text[]) as s (status) cross join lateral (
          select id, created_at from tasks where project_id = $1 and assigned_to = r.id and kind = 'work' and status = s.status
          order by created_at desc, id desc limit ${MOST_LISTED}) t
        where $4::uuid is null or r.id = $4)
       union
       (select id, created_at from tasks where created_by->>'type' = 'agent' and created_by->>'id' = $2::text
          and project_id = $1 and status = any($3) and ($4::uuid is null or assigned_to = $4)
        order by created_at desc, id desc limit ${MOST_LISTED})
     ), newest as (
       select id from found order by created_at desc, id desc limit ${MOST_LISTED}
     )
     select t.id, t.title, t.status, t.priority, a.name as assigned_to, t.parent_task_id, t.result, t.error_message
     from newest join tasks t using (id) left join agents a on a.id = t.assigned_to
     order by t.created_at desc, t.id desc`,
    [projectId, agentId, status === undefined ? taskStatuses : [status], assignee],
  )
  return {
    tasks: rows.map((row) => ({ ...row, result: row.result === null ? null : resultText(row.result).slice(0, 500) })),
  }
}

async function changeTask(tx: Db, log: Log, call: WriteCall): Promise<unknown> {
  const { projectId, agentId, runId } = call
  const { id, assigned_to: named, ...change } = updateArguments.parse(call.args)
  const { rows } = await tx.query<{ is_within: boolean; attempt_run_id: string | null; kind: string }>(
    `select t.kind, t.attempt_run_id, t.kind = 'work' and (t.assigned_to = $3
         or t.created_by = jsonb_build_object('type', 'agent', 'id', $3::text)
         or t.assigned_to in (select id from agents where senior_id = $3 and deleted_at is null)) as is_within
     from tasks t where t.id = $1 and t.project_id = $2`,
    [id, projectId, agentId],
  )
  const task = rows[0]
  if (!task?.is_within)
    throw new Refused('You may not change this task: it belongs neither to you nor to a direct subordinate.')
  if (task.attempt_run_id === runId && (change.status !== undefined || named !== undefined)) {
    throw new Refused('This is the task you are working on: your answer completes it.')
  }
  const assignedTo = named === undefined ? undefined : await requireWithinReach(tx, projectId, agentId, named)
  const patch = { ...change, ...(assignedTo === undefined ? {} : { assigned_to: assignedTo }) }
  const changed = await updateTaskIn(tx, projectId, id, patch, {
    actor: agentActor(agentId),
    onChanged: async (inner, before, after) => void (await taskChanged(inner, log, before, after, runId)),
    lockRun: async () => {},
  })
  return { id, status: changed.status, assigned_to: changed.assigned_to, priority: changed.priority }
}

async function addBudget(tx: Db, log: Log, { projectId, agentId, args, runId }: WriteCall): Promise<unknown> {
  const { agent: named, tokens } = budgetArguments.parse(args)
  const subordinate = await requireWithinReach(tx, projectId, agentId, named)
  if (subordinate === agentId) throw new Refused('You may not give yourself tokens.')
  const problem = await giveTokens(tx, log, { projectId, from: agentId, to: subordinate, tokens, runId })
  if (problem !== null) throw new Refused(problem)
  return { agent: named, tokens }
}

/** The agent itself, or one of its direct subordinates. */
async function requireWithinReach(tx: Db, projectId: string, agentId: string, named: string): Promise<string> {
  const found = await findAgent(tx, projectId, isId(named) ? named.toLowerCase() : named)
  if (!found || (found.id !== agentId && found.senior_id !== agentId)) {
    throw new Refused(`"${named}" is no direct subordinate of yours.`)
  }
  return found.id
}
