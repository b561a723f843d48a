import { z } from 'zod'
import { durationField, idField, instantField, jsonObject } from './fields.ts'

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

export const usageSchema = z.strictObject({
  input_tokens: z.int(),
  output_tokens: z.int(),
  total_tokens: z.int(),
  estimated: z.boolean().describe('True where the provider gave no figures for a call.'),
  cost_usd: z.number().nullable().describe('Null where the model has no price.'),
})

export const runSchema = z.strictObject({
  id: idField,
  project_id: idField,
  agent_id: idField.nullable().describe('Null for runs of a supervisor system.'),
  status: z.enum(runStatuses),
  trigger: z.looseObject({ type: z.enum(triggerTypes) }),
  input: z.unknown(),
  summary: z.string().nullable(),
  error_code: z.string().nullable(),
  error_message: z.string().nullable(),
  pause_reason: z.enum(pauseReasons).nullable(),
  step_count: z.int(),
  max_steps: z.int().nullable(),
  timeout: z.int().nullable(),
  parent_run_id: idField.nullable(),
  resumed_from: idField.nullable(),
  forked_from: idField.nullable(),
  duration: z.int().nullable(),
  created_at: instantField,
  started_at: instantField.nullable(),
  completed_at: instantField.nullable(),
  usage: usageSchema,
  trace_url: z.string().nullable(),
})
export type Run = z.infer<typeof runSchema>

export const hasEnded = (run: { completed_at: string | null }): boolean => run.completed_at !== null

export const runInput = z.union([z.string().max(1_000_000), jsonObject])
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
  result: z.unknown().optional(),
})
export type ResumeInput = z.infer<typeof resumeInput>

export const forkInput = z.strictObject({
  after_step: z.int().min(0).max(1_000_000),
  input: runInput.optional(),
  agent_id: idField.optional(),
})
export type ForkInput = z.infer<typeof forkInput>

export const blockedReasons = [
  'doom_loop',
  'step_limit',
  'timeout',
  'capability',
  'recursion_limit',
  'spawn_depth',
  'budget',
] as const
export type BlockedReason = (typeof blockedReasons)[number]

const stepUsage = z.strictObject({
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
      .describe('The call may have taken effect or not, and the run waits for somebody to say; result is null.'),
    started_at: instantField,
    duration: z.int(),
  }),
])
export type Step = z.infer<typeof stepSchema>
