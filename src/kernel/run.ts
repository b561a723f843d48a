import { z } from 'zod'
import { durationField, idField, instantField, jsonObject, pageOf } from './fields.ts'

export const runStatuses = ['queued', 'running', 'completed', 'failed', 'cancelled', 'paused'] as const
export type RunStatus = (typeof runStatuses)[number]

export const pauseReasons = [
  'step_limit',
  'timeout',
  'context',
  'budget',
  'outcome_unknown',
  'human',
  'halted',
  'stopped',
  'unavailable',
] as const
export type PauseReason = (typeof pauseReasons)[number]

export const triggerTypes = [
  'manual',
  'schedule',
  'webhook',
  'reaction',
  'spawn',
  'task',
  'flow',
  'supervisor',
  'resume',
  'fork',
] as const
export type TriggerType = (typeof triggerTypes)[number]

/** Stored as JSON when the run began, so the fields are told as they are and not checked. */
const storedId = z.string().meta({ format: 'uuid' }).optional()

/** The cause of a run. Each type has fields of its own. */
const triggerSchema = z.looseObject({
  type: z.enum(triggerTypes),
  scheduled_at: z
    .string()
    .meta({ format: 'date-time', description: 'With type schedule: the time at which the run was due.' })
    .optional(),
  hook_id: storedId.describe('With type webhook: the hook.'),
  webhook_id: z.string().optional().describe('With type webhook: the header webhook-id of the request.'),
  entry_id: storedId.describe('With type reaction: the entry in the processing log of the agent.'),
  flow_run_id: storedId.describe('With type flow: the flow run whose leaf this run is.'),
  task_id: z.string().optional().describe('With type task: the task. With type flow: the id of the leaf.'),
  parent_run_id: storedId.describe('With type spawn: the run that called spawn_agent.'),
  call_id: z.string().optional().describe('With type spawn: the id of that call.'),
  resumed_from: storedId.describe('With type resume: the run that this one continues.'),
  forked_from: storedId.describe('With type fork: the run that was forked.'),
  after_step: z.int().optional().describe('With type fork: the last step that was taken over.'),
  system_variant: z.string().optional().describe('With type supervisor: the variant of the system.'),
  node: z.string().optional().describe('With type supervisor: the part of the system.'),
  eval_id: storedId.describe('The eval of which the run is a case.'),
})

export const usageSchema = z.strictObject({
  input_tokens: z.int(),
  output_tokens: z.int(),
  total_tokens: z.int(),
  estimated: z.boolean().describe('True if the provider gave no figures for a call.'),
  cost_usd: z.number().nullable().describe('Null if the model has no price.'),
})

export const runSchema = z.strictObject({
  id: idField,
  project_id: idField,
  agent_id: idField.nullable().describe('Null for runs of a supervisor system.'),
  status: z.enum(runStatuses),
  trigger: triggerSchema,
  input: z.unknown(),
  summary: z.string().nullable(),
  error_code: z.string().nullable(),
  error_message: z.string().nullable(),
  pause_reason: z.enum(pauseReasons).nullable(),
  is_wait: z
    .boolean()
    .describe('True: the same run continues by itself or by an answer. False for a pause that is an end.'),
  waiting_for: z
    .string()
    .nullable()
    .describe(
      '"approval", "person", "provider <name>", "tool <name>", "tokens" or "money"; null if it waits for none.',
    ),
  wait_message: z.string().nullable().describe("The provider's own words, at most 500 characters."),
  next_try_at: instantField.nullable().describe('The time of the next try; null unless the run tries by itself.'),
  step_count: z.int(),
  max_steps: z.int().nullable(),
  timeout: z.int().nullable(),
  parent_run_id: idField.nullable(),
  resumed_from: idField.nullable(),
  resumed_as: idField.nullable().describe('The run that continues this one.'),
  forked_from: idField.nullable(),
  flow_run_id: idField.nullable().describe('The flow run that the run of an agent with flow_type "flow" has started.'),
  duration: z.int().nullable(),
  last_seq: z.int().describe('The last event in the journal; as Last-Event-ID it gives the events after this answer.'),
  created_at: instantField,
  started_at: instantField.nullable(),
  completed_at: instantField.nullable(),
  model: z
    .strictObject({ provider: z.string(), name: z.string() })
    .nullable()
    .describe(
      'The model of its last call, noted when the run ends or waits. Null before that, and for a run that calls no model itself.',
    ),
  usage: usageSchema,
  trace_url: z.string().nullable(),
})
export type Run = z.infer<typeof runSchema>

/** A call that took effect, or may have: a retry that begins anew could repeat it. */
export const runEffectSchema = z.strictObject({
  run_id: idField.describe('The run that made the call: this one, one that it continues, or a sub-run of these.'),
  step: z.int(),
  call_id: z.string(),
  tool: z.string(),
  args: z.unknown(),
  result: z.unknown(),
  key: z.string().describe('The idempotency key of the call.'),
  effect: z
    .enum(['keyed', 'unsafe', 'run'])
    .describe('run: a tool of Muster itself, which is carried out once with its journal entry.'),
  outcome: z.enum(['finished', 'unknown']),
  at: instantField,
})
export type RunEffect = z.infer<typeof runEffectSchema>

export const runEffectsSchema = pageOf(runEffectSchema).extend({
  truncated: z
    .boolean()
    .describe('True if there are more calls: the answer has 1,000, unsafe ones first, and of the others the newest.'),
})
export type RunEffects = z.infer<typeof runEffectsSchema>

const repeatableCall = runEffectSchema.pick({ tool: true, args: true, at: true }).extend({
  outcome: z.literal('unknown').optional().describe('Only of a call whose outcome nobody knows.'),
})
export const forkedRunSchema = runSchema.extend({
  may_repeat: z
    .array(repeatableCall)
    .describe(
      'The calls with an effect after that step that are finished or of unknown outcome. The fork may make them once more.',
    ),
})
export type ForkedRun = z.infer<typeof forkedRunSchema>

export const hasEnded = (run: { completed_at: string | null }): boolean => run.completed_at !== null

const runInput = z.union([z.string().max(1_000_000), jsonObject])
const stepLimit = z.int().min(1).max(1_000_000)
const timeoutField = durationField.min(1)

export const triggerInput = z.strictObject({
  input: runInput,
  timeout: timeoutField.optional(),
  max_steps: stepLimit.optional(),
  resume_run_id: idField.optional(),
})

export const resumeInput = z.strictObject({
  input: runInput.optional(),
  max_steps: stepLimit.optional(),
  timeout: timeoutField.optional(),
  outcome: z.enum(['done', 'not_done']).optional(),
  call_id: z
    .string()
    .min(1)
    .max(1_000)
    .optional()
    .describe('The call that outcome is about, if several are undecided.'),
  result: z.unknown().optional(),
})
export type ResumeInput = z.infer<typeof resumeInput>

export const forkInput = z.strictObject({
  after_step: z.int().min(0).max(1_000_000),
  input: runInput.optional(),
  agent_id: idField.optional(),
})
export type ForkInput = z.infer<typeof forkInput>

const blockedReasons = [
  'doom_loop',
  'step_limit',
  'timeout',
  'capability',
  'recursion_limit',
  'spawn_depth',
  'budget',
] as const
export type BlockedReason = (typeof blockedReasons)[number]

export const stepUsage = z.strictObject({
  input_tokens: z.int(),
  output_tokens: z.int(),
  estimated: z.boolean(),
  cost_usd: z.number().nullable(),
})
export type StepUsage = z.infer<typeof stepUsage>

export const stepSchema = z.discriminatedUnion('kind', [
  z.strictObject({
    step: z.int(),
    seq: z.int(),
    kind: z.literal('model'),
    text: z.string(),
    tool_calls: z.array(z.strictObject({ id: z.string(), name: z.string(), args: z.unknown() })),
    finish_reason: z.string(),
    request_changes: z
      .unknown()
      .optional()
      .describe(
        'The parts of the request that middleware changed, as the model saw them; absent where it changed none.',
      ),
    usage: stepUsage,
    started_at: instantField,
    duration: z.int(),
  }),
  z.strictObject({
    step: z.int(),
    seq: z.int(),
    kind: z.literal('tool'),
    call_id: z.string(),
    name: z.string(),
    args: z.unknown(),
    result: z.unknown(),
    is_error: z.boolean(),
    blocked: z.enum(blockedReasons).nullable(),
    outcome: z
      .literal('unknown')
      .optional()
      .describe('The call may or may not have taken effect, and the run waits for somebody to say; result is null.'),
    decision: z
      .strictObject({
        decision: z.enum(['approved', 'rejected']),
        by: z.string().nullable().describe('The person or key; null if nobody decided in time.'),
        at: instantField,
      })
      .optional()
      .describe('The decision about a call that waited for approval.'),
    started_at: instantField,
    duration: z.int(),
  }),
  z.strictObject({
    seq: z.int(),
    kind: z.literal('flow'),
    flow_run_id: idField,
    started_at: instantField,
    duration: z.int().nullable().describe('Null while the flow run is under way.'),
  }),
])
export type Step = z.infer<typeof stepSchema>

/** A time in which a run waited for somebody or something outside, and held no slot. */
export const runWaitSchema = z.strictObject({
  seq: z.int(),
  reason: z.enum(pauseReasons),
  started_at: instantField,
  duration: z.int().nullable().describe('Null while the run waits.'),
})
export type RunWait = z.infer<typeof runWaitSchema>
