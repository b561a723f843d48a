// Tasks are pieces of work with an assignee: an agent (work), or people (suggestions to approve, questions to answer).
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
import { dueSql } from './task-queue.ts'
import { onlyTask, TASK_COLUMNS, type TaskRow, toTask } from './task-row.ts'

/**
 * Creates a task for a person. One statement makes the task and its agent's place in the queue. With `isAnnounced` the
 * commit notifies the processes that start tasks.
 */
export async function createTask(
  db: Db,
  projectId: string,
  input: TaskInput,
  { actor, isAnnounced }: { actor: Actor; isAnnounced: boolean },
): Promise<Task> {
  const id = newId()
  const { assigned_to: assignedTo = null, parent_task_id: parentId = null } = input
  const rows = await changeAudited<TaskRow>(db, {
    sql: `insert into tasks (id, project_id, kind, title, description, priority, assigned_to, created_by, parent_task_id, metadata)
          select $1::uuid, $2::uuid, 'work', $3, $4, $5, $6::uuid, $7::jsonb, $8::uuid, $9::jsonb
          where ($6::uuid is null or exists (select from agents where id = $6 and project_id = $2 and deleted_at is null for key share))
            and ($8::uuid is null or exists (select from tasks where id = $8 and project_id = $2))
          returning ${TASK_COLUMNS}`,
    also: dueSql('select assigned_to, $2::uuid from change', { isAnnounced: '$10' }),
    values: [
      id,
      projectId,
      input.title,
      input.description ?? '',
      input.priority ?? 'medium',
      assignedTo,
      JSON.stringify(creatorOf(actor)),
      parentId,
      JSON.stringify(input.metadata ?? {}),
      isAnnounced,
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
  if (rows.length === 0) throw await whyNot(db, projectId, assignedTo)
  return onlyTask(rows)
}

async function whyNot(db: Db, projectId: string, assignedTo: string | null): Promise<Error> {
  if (assignedTo !== null) await requireAssignee(db, projectId, assignedTo)
  return invalidRequest('parent_task_id names no task of this project.')
}

/** The word for tasks that are assigned to no agent: people do them. */
export const NOBODY = 'none'

export interface TaskFilter {
  kind?: Task['kind'] | undefined
  status?: TaskStatus | undefined
  /** An agent, or `NOBODY`. */
  assigned_to?: string | undefined
  parent_task_id?: string | undefined
}

export async function listTasks(db: Db, projectId: string, filter: TaskFilter, query: PageQuery): Promise<Page<Task>> {
  const { kind, status, parent_task_id } = filter
  const isForPeople = filter.assigned_to === NOBODY
  const assigned_to = isForPeople ? undefined : filter.assigned_to
  const select = `select ${TASK_COLUMNS} from tasks`
  const isFiltered = Object.values(filter).some((value) => value !== undefined)
  return listPage<TaskRow, Task>(db, {
    ...(isFiltered
      ? selectByStatus({
          select,
          // The index on the parent comes first, because a task has fewer subtasks than an agent has tasks.
          ...(parent_task_id === undefined
            ? { by: { project_id: projectId, assigned_to } }
            : { by: { parent_task_id }, also: { project_id: projectId, assigned_to } }),
          within: isForPeople ? 'assigned_to is null' : undefined,
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

/** Clients see a person as a user, or as the API key that the person used. */
const creatorOf = ({ id }: Actor): Creator => ({ type: 'user', id })
