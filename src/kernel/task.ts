import { z } from 'zod'
import { filledText, idAsSent, idField, instantField, jsonObject } from './fields.ts'

export const taskKinds = ['work', 'suggestion', 'escalation'] as const
export const taskPriorities = ['low', 'medium', 'high', 'urgent'] as const
export const taskStatuses = [
  'pending',
  'in-progress',
  'completed',
  'failed',
  'blocked',
  'rejected',
  'cancelled',
] as const
export type TaskStatus = (typeof taskStatuses)[number]
export type TaskPriority = (typeof taskPriorities)[number]

/** The statuses that people may set. The others come about by work, approval and failure. */
export const settableStatuses = ['pending', 'completed', 'cancelled'] as const

/** Nobody waits for a resolved task any more. */
export const isResolved = (status: TaskStatus): boolean =>
  status === 'completed' || status === 'failed' || status === 'rejected' || status === 'cancelled'

export const MAX_TITLE = 500
const titleField = filledText(MAX_TITLE)
const descriptionField = z.string().max(200_000)

/** One change that a suggestion proposes; before and after are whole properties. */
export const changeSchema = z.strictObject({
  op: z.enum(['create', 'update', 'delete', 'relate']),
  object_type: z.string().describe('For a relationship: the type of the object that it starts from.'),
  object_id: idField.nullable(),
  key: z.string().nullable().optional().describe('The key of an object that is to be created.'),
  base_version: z.int().nullable(),
  before: jsonObject.nullable(),
  after: jsonObject.nullable(),
})

export type SuggestedChange = z.infer<typeof changeSchema>

/** A tool call that waits for a person; it is made in the run that asked for it. */
export const suggestedCallSchema = z.strictObject({
  op: z.literal('call'),
  tool: z.string().describe('The tool by the name that agents list it under: `refund`, `mcp:stripe/refund`.'),
  args: z.unknown().describe('The arguments as the tool will get them.'),
})
export type SuggestedCall = z.infer<typeof suggestedCallSchema>

const suggestedSchema = z.discriminatedUnion('op', [changeSchema, suggestedCallSchema])
export type Suggested = z.infer<typeof suggestedSchema>

/** The call that a suggestion is about; null if it is about objects. */
export function suggestedCall({ changes }: { changes: readonly Suggested[] | null }): SuggestedCall | null {
  const [only] = changes ?? []
  return only?.op === 'call' ? only : null
}

/** The changes of objects that a suggestion proposes. */
export const objectChanges = ({ changes }: { changes: readonly Suggested[] | null }): SuggestedChange[] =>
  (changes ?? []).filter((change) => change.op !== 'call')
export const changeVerbs = { create: 'Create', update: 'Update', delete: 'Delete', relate: 'Relate' } as const

export const creatorSchema = z.strictObject({
  type: z.enum(['user', 'agent']),
  id: z
    .string()
    .nullable()
    .describe("The person's or agent's id, else the API key's or the instance's; null if nobody acted."),
})
export type Creator = z.infer<typeof creatorSchema>

export const taskSchema = z.strictObject({
  id: idField,
  kind: z.enum(taskKinds),
  title: z.string(),
  description: z.string(),
  priority: z.enum(taskPriorities),
  status: z.enum(taskStatuses),
  assigned_to: idField.nullable().describe('An agent, or null for people.'),
  created_by: creatorSchema,
  parent_task_id: idField.nullable(),
  result: z.unknown(),
  error_message: z.string().nullable(),
  changes: z.array(suggestedSchema).nullable(),
  reasoning: z.string().nullable(),
  run_id: idField.nullable(),
  progress: z.strictObject({
    done: z.int(),
    total: z.int(),
    note: z.string().nullable(),
  }),
  metadata: jsonObject,
  created_at: instantField,
  completed_at: instantField.nullable(),
})
export type Task = z.infer<typeof taskSchema>

export const taskInput = z.strictObject({
  title: titleField,
  description: descriptionField.optional(),
  priority: z.enum(taskPriorities).optional(),
  assigned_to: idField.nullish(),
  parent_task_id: idField.nullish(),
  metadata: jsonObject.optional(),
})
export type TaskInput = z.infer<typeof taskInput>

export const rejectInput = z.strictObject({ reason: z.string().max(20_000).optional() }).nullish()
// Verdicts repeat each id as it was sent, so that a caller finds its own ids.
export const taskIds = z.strictObject({ ids: z.array(idAsSent).min(1).max(200) })
export const approvalResultSchema = z.strictObject({
  results: z.array(
    z.strictObject({
      id: idAsSent,
      ok: z.boolean(),
      error: z.strictObject({ code: z.string(), message: z.string() }).optional(),
    }),
  ),
})

export const taskPatch = z.strictObject({
  status: z.enum(settableStatuses).optional(),
  result: z.unknown().optional(),
  assigned_to: idField.nullable().optional(),
  priority: z.enum(taskPriorities).optional(),
  title: titleField.optional(),
  description: descriptionField.optional(),
  metadata: jsonObject.optional(),
})
export type TaskPatch = z.infer<typeof taskPatch>

/** The reason why the patch does not fit the task's state, or null. */
export function patchProblem(task: Pick<Task, 'kind' | 'status'>, patch: TaskPatch): string | null {
  const { status } = patch
  // People must approve a suggestion exactly as it was made.
  if (task.kind === 'suggestion' && Object.keys(patch).some((field) => field !== 'priority')) {
    return 'A suggestion stands as it was made: it is approved or rejected, and only its priority can be changed.'
  }
  if (task.kind === 'escalation' && patch.assigned_to) {
    return 'This task asks people, and no agent takes it up. Answer it, or give the work that it is about to another agent.'
  }
  // A failed task may be tried again; a completed, rejected or cancelled one stays so.
  const isReopened = status === 'pending' && task.status === 'failed'
  if (isResolved(task.status) && !isReopened && (status !== undefined || patch.result !== undefined)) {
    return `This task is ${task.status} already.`
  }
  return null
}
