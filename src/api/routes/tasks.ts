import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import { recordAudit } from '../../audit/record.ts'
import type { Db, Pool } from '../../db/pool.ts'
import type { Journal } from '../../journal/journal.ts'
import { wakeWaiting } from '../../journal/wake.ts'
import { idField, pageOf } from '../../kernel/fields.ts'
import type { Log } from '../../kernel/log.ts'
import {
  approvalResultSchema,
  isResolved,
  rejectInput,
  suggestedCall,
  type Task,
  taskIds,
  taskInput,
  taskKinds,
  taskPatch,
  taskSchema,
  taskStatuses,
} from '../../kernel/task.ts'
import type { ObjectWriter } from '../../objects/write-objects.ts'
import { taskChanged } from '../../org/task-changed.ts'
import { endHeld } from '../../runs/held-run.ts'
import { decideOutcome, lockUndecided } from '../../runs/undecided.ts'
import { anewDecision, isBeginAnewTask } from '../../tasks/begin-anew-tasks.ts'
import type { ApprovalTools } from '../../tasks/decide-call.ts'
import { isOutcomeTask, outcomeOf } from '../../tasks/outcome-tasks.ts'
import { approveMany, approveSuggestion, rejectSuggestion } from '../../tasks/suggestions.ts'
import { createTask, getTask, listTasks, NOBODY } from '../../tasks/tasks.ts'
import { updateTask } from '../../tasks/update-task.ts'
import type { App } from '../http/app.ts'
import { actorOf } from '../http/auth.ts'
import type { Create } from '../http/idempotency.ts'
import { routesOf } from '../http/routes-of.ts'
import type { OrgServices } from '../http/run-services.ts'
import { answers, emptyBody, listQuery, pathId, projectParams, requireId } from '../http/shapes.ts'

const openTo = routesOf('Tasks')
const taskParams = z.strictObject({ id: pathId, taskId: pathId })
const taskQuery = listQuery.extend({
  kind: z.enum(taskKinds).optional(),
  status: z.enum(taskStatuses).optional(),
  assigned_to: z
    .union([idField, z.literal(NOBODY)])
    .optional()
    .describe('An agent; or `none`, for tasks that are assigned to no agent, which people do.'),
  parent_task_id: idField.optional().describe('The subtasks of this task.'),
})

interface TaskRouteParts {
  pool: Pool
  create: Create
  log: Log
  writer: ObjectWriter
  journal: Journal
  onReady: () => void
  org: OrgServices
  tools: ApprovalTools
}

export function addTaskRoutes(app: App, parts: TaskRouteParts): void {
  const { pool, create, journal, log, onReady, org } = parts
  app.post(
    '/api/projects/:id/tasks',
    openTo('member', 'Create a task', {
      params: projectParams,
      body: taskInput,
      response: answers(201, taskSchema),
    }),
    async (request, reply) => {
      const answer = await create(request, reply, (db) =>
        createTask(db, request.params.id, request.body, { actor: actorOf(request), isAnnounced: org.isAnnounced }),
      )
      org.arrived(request.params.id)
      return answer
    },
  )

  app.get(
    '/api/projects/:id/tasks',
    openTo('viewer', 'List the tasks', {
      isHeavy: true,
      params: projectParams,
      querystring: taskQuery,
      response: answers(200, pageOf(taskSchema)),
    }),
    (request) => {
      const { limit, cursor, ...filter } = request.query
      return listTasks(pool, request.params.id, filter, { limit, cursor })
    },
  )

  app.get(
    '/api/projects/:id/tasks/:taskId',
    openTo('viewer', 'Read a task', { params: taskParams, response: answers(200, taskSchema) }),
    (request) => getTask(pool, request.params.id, requireId(request.params.taskId, 'task')),
  )

  app.patch(
    '/api/projects/:id/tasks/:taskId',
    openTo(
      'member',
      'Change or resolve a task; the answer to a question, or the outcome of a call, lets its run go on',
      {
        params: taskParams,
        body: taskPatch,
        response: answers(200, taskSchema),
      },
    ),
    async (request) => {
      const { id: projectId } = request.params
      const taskId = requireId(request.params.taskId, 'task')
      const task = await updateTask(pool, projectId, taskId, request.body, {
        actor: actorOf(request),
        onChanged: async (tx, before, after) => {
          if (isResolved(after.status) && !isResolved(before.status)) await tellRun(tx, journal, after, request)
          await taskChanged(tx, log, before, after)
        },
        lockRun: lockUndecided,
      })
      onReady()
      org.poke(projectId)
      return task
    },
  )

  addDecisionRoutes(app, parts)
}

function addDecisionRoutes(app: App, { pool, writer, onReady, tools }: TaskRouteParts): void {
  const parts = { pool, writer, tools }
  app.post(
    '/api/projects/:id/tasks/approve',
    openTo('member', 'Approve several suggestions, each by itself', {
      params: projectParams,
      body: taskIds,
      response: answers(200, approvalResultSchema),
    }),
    async (request) => {
      const actor = actorOf(request)
      const { results, started } = await approveMany(parts, request.body.ids, {
        projectId: request.params.id,
        actor,
      })
      if (started > 0) onReady()
      return { results }
    },
  )

  app.post(
    '/api/projects/:id/tasks/:taskId/approve',
    openTo('member', "Approve a suggestion: its changes, or its call, are made in the agent's name", {
      params: taskParams,
      body: emptyBody,
      response: answers(200, taskSchema),
    }),
    async (request) => {
      const taskId = requireId(request.params.taskId, 'task')
      const decision = { projectId: request.params.id, taskId, actor: actorOf(request) }
      const { task, started } = await approveSuggestion(parts, decision)
      if (started > 0) onReady()
      return task
    },
  )

  app.post(
    '/api/projects/:id/tasks/:taskId/reject',
    openTo('member', 'Reject a suggestion: nothing changes, and a run that waits with a call gets the reason', {
      params: taskParams,
      body: rejectInput,
      response: answers(200, taskSchema),
    }),
    async (request) => {
      const taskId = requireId(request.params.taskId, 'task')
      const reason = request.body?.reason
      const decision = { projectId: request.params.id, taskId, actor: actorOf(request), reason }
      const task = await rejectSuggestion(pool, decision)
      if (suggestedCall(task)) onReady()
      return task
    },
  )
}

/** Wakes the run that waits for the answer, in the commit that stores the answer. */
async function tellRun(tx: Db, journal: Journal, task: Task, request: FastifyRequest): Promise<void> {
  if (task.kind !== 'escalation' || task.run_id === null) return
  if (isBeginAnewTask(task) && anewDecision(task) === 'stop') return void (await endHeld(tx, journal, task.run_id))
  if (!isOutcomeTask(task)) return void (await wakeWaiting(tx, task.run_id, 'human'))
  const outcome = outcomeOf(task)
  const { id: projectId } = request.params as { id: string } // every route of this file has this parameter
  const run = outcome && (await decideOutcome(tx, projectId, task, outcome))
  if (!run) return
  await recordAudit(tx, {
    action: 'run.start',
    actor: actorOf(request),
    projectId,
    targetType: 'run',
    targetId: run.id,
    details: { agent_id: run.agent_id, trigger: run.trigger.type },
  })
}
