import { findAgent } from '../agents/agents.ts'
import { changeAudited } from '../audit/record.ts'
import type { Db } from '../db/pool.ts'
import type { Creator } from '../kernel/task.ts'
import type { WriteResult } from '../kernel/tool.ts'
import { onlyTask, TASK_COLUMNS, type TaskRow } from './task-row.ts'
import type { TaskArguments } from './write-tools.ts'

export interface TaskRequest {
  taskId: string
  projectId: string
  agentId: string
  runId: string
  depth: number
  args: TaskArguments
}

/** Work that an agent asks for. */
export async function createTaskAsAgent(tx: Db, request: TaskRequest): Promise<WriteResult> {
  const { taskId, projectId, agentId, runId, depth, args } = request
  const assignee = args.assigned_to === undefined ? null : await findAgent(tx, projectId, args.assigned_to)
  if (args.assigned_to !== undefined && !assignee) {
    const error = `There is no agent called "${args.assigned_to}".`
    return { result: { error }, isError: true, blocked: null, hasStarted: false }
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
      depth,
    ],
    note: {
      action: 'task.create',
      actor: { type: 'agent', id: agentId, requestId: null, address: null },
      projectId,
      targetType: 'task',
      targetId: taskId,
      details: { title: args.title, run_id: runId },
    },
  })
  const { id, title, status, assigned_to } = onlyTask(rows)
  return { result: { id, title, status, assigned_to }, isError: false, blocked: null, hasStarted: false }
}
