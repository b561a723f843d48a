// Tasks are pieces of work with an assignee: an agent (work), or people (suggestions to approve, questions to answer).
// Here they are made and read; each way of changing one has a file of its own.
import { changeAudited } from '../audit/record.ts'
import { listPage, type PageQuery } from '../db/list-page.ts'
import type { Db } from '../db/pool.ts'
import { selectByStatus } from '../db/select-by-status.ts'
import { invalidRequest } from '../kernel/errors.ts'
import type { Page } from '../kernel/fields.ts'
import { newId } from '../kernel/id.ts'
import type { Actor } from '../kernel/principal.ts'
import { type Creator, type Task, type TaskInput, type TaskStatus, taskKinds, taskStatuses } from '../kernel/task.ts'
import { requireAssignee } from './assignee.ts'
import { onlyTask, TASK_COLUMNS, type TaskRow, toTask } from './task-row.ts'

/** Work that a person asks for. */
export async function createTask(db: Db, projectId: string, input: TaskInput, actor: Actor): Promise<Task> {
  if (input.assigned_to) await requireAssignee(db, projectId, input.assigned_to)
  if (input.parent_task_id) await requireParent(db, projectId, input.parent_task_id)
  const id = newId()
  const rows = await changeAudited<TaskRow>(db, {
    sql: `insert into tasks (id, project_id, kind, title, description, priority, assigned_to, created_by, parent_task_id, metadata)
          values ($1, $2, 'work', $3, $4, $5, $6, $7, $8, $9) returning ${TASK_COLUMNS}`,
    values: [
      id,
      projectId,
      input.title,
      input.description ?? '',
      input.priority ?? 'medium',
      input.assigned_to ?? null,
      JSON.stringify(creatorOf(actor)),
      input.parent_task_id ?? null,
      JSON.stringify(input.metadata ?? {}),
    ],
    note: {
      action: 'task.create',
      actor,
      projectId,
      targetType: 'task',
      targetId: id,
      details: { title: input.title },
    },
  })
  return onlyTask(rows)
}

export interface TaskFilter {
  kind?: Task['kind'] | undefined
  status?: TaskStatus | undefined
  assigned_to?: string | undefined
}

export async function listTasks(db: Db, projectId: string, filter: TaskFilter, query: PageQuery): Promise<Page<Task>> {
  const { kind, status, assigned_to } = filter
  const select = `select ${TASK_COLUMNS} from tasks`
  const isFiltered = kind !== undefined || status !== undefined || assigned_to !== undefined
  return listPage<TaskRow, Task>(db, {
    ...(isFiltered
      ? selectByStatus({
          select,
          by: { project_id: projectId, assigned_to },
          among: {
            kind: kind === undefined ? taskKinds : [kind],
            status: status === undefined ? taskStatuses : [status],
          },
        })
      : { sql: `${select} where project_id = $1`, values: [projectId] }),
    query,
    toItem: toTask,
    largeColumns: ['title', 'description', 'result', 'error_message', 'changes', 'reasoning', 'metadata'],
  })
}

export async function getTask(db: Db, projectId: string, taskId: string): Promise<Task> {
  const { rows } = await db.query<TaskRow>(`select ${TASK_COLUMNS} from tasks where id = $1 and project_id = $2`, [
    taskId,
    projectId,
  ])
  return onlyTask(rows)
}

/** As clients see people: by themselves, or by the key they used. */
const creatorOf = ({ id }: Actor): Creator => ({ type: 'user', id })

async function requireParent(db: Db, projectId: string, taskId: string): Promise<void> {
  const { rowCount } = await db.query('select from tasks where id = $1 and project_id = $2', [taskId, projectId])
  if (!rowCount) throw invalidRequest('parent_task_id names no task of this project.')
}
