import { z } from 'zod'
import { guessAgent } from '../agents/agent-names.ts'
import { findAgent } from '../agents/agents.ts'
import { holdAgents } from '../agents/seniors.ts'
import { changeAudited, recordAudit } from '../audit/record.ts'
import type { Db } from '../db/pool.ts'
import { getSettings } from '../identity/settings.ts'
import type { Agent } from '../kernel/agent.ts'
import { nameField } from '../kernel/fields.ts'
import { newId } from '../kernel/id.ts'
import { agentActor } from '../kernel/principal.ts'
import { type Creator, taskInput } from '../kernel/task.ts'
import type { WriteResult } from '../kernel/tool.ts'
import { makeDue } from './task-queue.ts'
import { onlyTask, TASK_COLUMNS, type TaskRow } from './task-row.ts'

export const taskArguments = z.strictObject({
  title: taskInput.shape.title,
  description: taskInput.shape.description,
  priority: taskInput.shape.priority,
  assigned_to: nameField.optional().describe('The name or the id of an agent. If it is left out, people do the task.'),
})
type TaskArguments = z.infer<typeof taskArguments>

export interface TaskRequest {
  taskId: string
  projectId: string
  agentId: string
  runId: string
  depth: number
  args: TaskArguments
}

export async function createTaskAsAgent(tx: Db, request: TaskRequest): Promise<WriteResult> {
  const { taskId, projectId, agentId, runId, depth, args } = request
  const assignee = args.assigned_to === undefined ? null : await findAgent(tx, projectId, args.assigned_to)
  const isThere = assignee !== null && (await holdAgents(tx, projectId, [assignee.id])).length === 1
  if (args.assigned_to !== undefined && !isThere) {
    const guess = await guessAgent(tx, projectId, args.assigned_to)
    return refusal(`There is no agent called "${args.assigned_to}".${guess}`)
  }
  const { reaction_chain_limit: limit } = await getSettings(tx, projectId)
  // A task is one level deeper than its run, so agents that give each other tasks endlessly reach the limit.
  const ownDepth = depth + 1
  if (ownDepth >= limit) {
    await refuseChain(tx, request, assignee, limit)
    const error = `This would be the ${ownDepth}th task in a chain of agents that give each other tasks. Do it yourself.`
    return { ...refusal(error), refused: 'task.refused' }
  }
  const creator: Creator = { type: 'agent', id: agentId }
  const rows = await changeAudited<TaskRow>(tx, {
    sql: `insert into tasks (id, project_id, kind, title, description, priority, assigned_to, created_by, run_id, chain_depth)
          values ($1, $2, 'work', $3, $4, $5, $6, $7, $8, $9) returning ${TASK_COLUMNS}`,
    values: [
      taskId,
      projectId,
      args.title,
      args.description ?? '',
      args.priority ?? 'medium',
      assignee?.id ?? null,
      JSON.stringify(creator),
      runId,
      ownDepth,
    ],
    note: {
      action: 'task.create',
      actor: agentActor(agentId),
      projectId,
      targetType: 'task',
      targetId: taskId,
      details: { title: args.title, run_id: runId },
    },
  })
  const { id, title, status, assigned_to } = onlyTask(rows)
  await makeDue(tx, projectId, [assigned_to])
  return {
    result: { id, title, status, assigned_to },
    isError: false,
    blocked: null,
    hasStarted: false,
    hasTasks: true,
  }
}

const refusal = (error: string): WriteResult => ({ result: { error }, isError: true, blocked: null, hasStarted: false })

/** Notes the refusal in the audit. People get one task for each pair of agents while that task is open. */
async function refuseChain(tx: Db, request: TaskRequest, assignee: Agent | null, limit: number): Promise<void> {
  const { projectId, agentId, runId, args } = request
  const details = { title: args.title, run_id: runId, assigned_to: assignee?.id ?? null, limit }
  await recordAudit(tx, {
    action: 'task.refused',
    actor: agentActor(agentId),
    projectId,
    targetType: 'agent',
    targetId: agentId,
    details,
  })
  const pair = [agentId, assignee?.id ?? 'people'].sort().join(' ')
  const creator: Creator = { type: 'agent', id: agentId }
  await tx.query(
    `insert into tasks (id, project_id, kind, title, description, priority, created_by, metadata)
     select $1, $2, 'escalation', $3, $4, 'high', $5, $6
     where not exists (select from tasks where project_id = $2 and kind = 'escalation'
       and status in ('pending', 'in-progress') and metadata->>'chainPair' = $7)`,
    [
      newId(),
      projectId,
      'Agents give each other tasks endlessly',
      `The task "${args.title}" was not made: it would have been number ${limit} in a chain of tasks that agents gave each other. Check the tasks of these agents.`,
      JSON.stringify(creator),
      JSON.stringify({ chainPair: pair, agents: [agentId, assignee?.id ?? null], limit, run_id: runId }),
      pair,
    ],
  )
}
