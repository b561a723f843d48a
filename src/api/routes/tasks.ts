import { z } from 'zod'
import type { Db, Pool } from '../../db/pool.ts'
import { wakeWaiting } from '../../journal/wake.ts'
import { idField, pageOf } from '../../kernel/fields.ts'
import { isResolved, type Task, taskInput, taskKinds, taskPatch, taskSchema, taskStatuses } from '../../kernel/task.ts'
import { createTask, getTask, listTasks } from '../../tasks/tasks.ts'
import { updateTask } from '../../tasks/update-task.ts'
import { actorOf } from '../auth.ts'
import type { Create } from '../idempotency.ts'
import type { App } from '../server.ts'
import { answers, listQuery, pathId, projectParams, requireId } from '../shapes.ts'

const tags = ['Tasks']
const taskParams = z.strictObject({ id: pathId, taskId: pathId })
const taskQuery = listQuery.extend({
  kind: z.enum(taskKinds).optional(),
  status: z.enum(taskStatuses).optional(),
  assigned_to: idField.optional(),
})

export function addTaskRoutes(
  app: App,
  { pool, create, onReady }: { pool: Pool; create: Create; onReady: () => void },
): void {
  app.post(
    '/api/projects/:id/tasks',
    {
      config: { access: 'member' },
      schema: {
        tags,
        summary: 'Ask for a piece of work',
        params: projectParams,
        body: taskInput,
        response: answers(201, taskSchema),
      },
    },
    (request, reply) =>
      create(request, reply, (db) => createTask(db, request.params.id, request.body, actorOf(request))),
  )

  app.get(
    '/api/projects/:id/tasks',
    {
      config: { access: 'viewer' },
      schema: {
        tags,
        summary: 'List the tasks',
        params: projectParams,
        querystring: taskQuery,
        response: answers(200, pageOf(taskSchema)),
      },
    },
    (request) => {
      const { limit, cursor, ...filter } = request.query
      return listTasks(pool, request.params.id, filter, { limit, cursor })
    },
  )

  app.get(
    '/api/projects/:id/tasks/:taskId',
    {
      config: { access: 'viewer' },
      schema: { tags, summary: 'Read a task', params: taskParams, response: answers(200, taskSchema) },
    },
    (request) => getTask(pool, request.params.id, requireId(request.params.taskId, 'task')),
  )

  app.patch(
    '/api/projects/:id/tasks/:taskId',
    {
      config: { access: 'member' },
      schema: {
        tags,
        summary: 'Change or resolve a task; answering a question lets its run go on',
        params: taskParams,
        body: taskPatch,
        response: answers(200, taskSchema),
      },
    },
    async (request) => {
      const taskId = requireId(request.params.taskId, 'task')
      const task = await updateTask(pool, request.params.id, taskId, request.body, {
        actor: actorOf(request),
        onResolved: wakeAsker,
      })
      if (isAnswered(task)) onReady()
      return task
    },
  )
}

const isAnswered = (task: Task): boolean =>
  task.kind === 'escalation' && task.run_id !== null && isResolved(task.status)

async function wakeAsker(tx: Db, task: Task): Promise<void> {
  if (task.kind === 'escalation' && task.run_id !== null) await wakeWaiting(tx, task.run_id, 'human')
}
