import { z } from 'zod'
import { durationField, idField, instantField, nameField } from './fields.ts'

const objectType = z.string().min(1).max(200)
const count = z.int().min(1).max(1_000_000)
const promptText = z.string().max(200_000)

/** `name`, or `mcp:<server>/<tool>`, or `mcp:<server>/*`. */
export const toolNameField = z
  .string()
  .regex(/^([A-Za-z0-9_-]{1,64}|mcp:[A-Za-z0-9._-]{1,63}\/([A-Za-z0-9_.-]{1,128}|\*))$/, 'must be a tool name')

export const modelChoice = z.strictObject({
  provider: z.string().min(1).max(63),
  name: z.string().min(1).max(200),
  temperature: z.number().min(0).max(2).optional(),
  max_output_tokens: z.int().min(1).max(10_000_000).default(4_096),
  context_tokens: z.int().min(256).max(100_000_000).optional(),
})
export type ModelChoice = z.infer<typeof modelChoice>

export const capabilitiesField = z.strictObject({
  canCreateObjects: z.boolean().default(true),
  canUpdateObjects: z.boolean().default(true),
  canDeleteObjects: z.boolean().default(true),
  /** Absent means all types, an empty list means none. */
  allowedObjectTypes: z.array(objectType).max(1_000).optional(),
})
export type Capabilities = z.infer<typeof capabilitiesField>

export const reactionConfig = z.strictObject({
  objectTypes: z.array(objectType).min(1).max(1_000),
  events: z
    .array(z.enum(['created', 'updated', 'deleted']))
    .min(1)
    .default(['created', 'updated', 'deleted']),
  ignoreSelfTriggered: z.boolean().default(true),
  ignoreAgentTriggered: z.boolean().default(false),
  concurrencyStrategy: z.enum(['skip', 'parallel']).default('skip'),
})

/** A step of a sequential agent: its own prompt and, if given, its own tools. */
export const agentStep = z.strictObject({
  prompt: promptText.min(1),
  tools: z.array(toolNameField).max(200).optional(),
})

/** Everything a person decides about an agent. */
export const agentFields = {
  name: nameField,
  role: z.string().max(1_000),
  prompt: promptText.nullable(),
  prompt_id: z.string().min(1).max(200).nullable(),
  model: modelChoice.nullable(),
  tools: z.array(toolNameField).max(200),
  flow_type: z.enum(['single', 'sequential', 'loop']),
  steps: z.array(agentStep).max(100),
  max_iterations: count.nullable(),
  max_steps: count.nullable(),
  default_timeout: durationField.min(1).nullable(),
  trigger_type: z.enum(['manual', 'schedule', 'webhook', 'reaction']),
  cron_schedule: z.string().max(200).nullable(),
  timezone: z.string().max(100),
  catch_up: z.enum(['once', 'skip', 'all']),
  reaction_config: reactionConfig.nullable(),
  execution_mode: z.enum(['execute', 'suggest', 'hybrid']),
  capabilities: capabilitiesField,
  senior_id: idField.nullable(),
  competencies: z
    .array(z.string().min(1).max(200))
    .max(100)
    .refine((all) => all.join('').length <= 10_000, 'must not hold more than 10,000 characters together'),
  token_allocation: z.int().min(0).nullable(),
  enabled: z.boolean(),
}

/** Rounds of a loop agent that names no number. */
export const DEFAULT_ITERATIONS = 10

export const agentDefinition = z.strictObject(agentFields)
export type AgentDefinition = z.infer<typeof agentDefinition>

export const agentDefaults: Omit<AgentDefinition, 'name'> = {
  role: '',
  prompt: null,
  prompt_id: null,
  model: null,
  tools: [],
  flow_type: 'single',
  steps: [],
  max_iterations: null,
  max_steps: null,
  default_timeout: null,
  trigger_type: 'manual',
  cron_schedule: null,
  timezone: 'UTC',
  catch_up: 'once',
  reaction_config: null,
  execution_mode: 'execute',
  capabilities: { canCreateObjects: true, canUpdateObjects: true, canDeleteObjects: true },
  senior_id: null,
  competencies: [],
  token_allocation: null,
  enabled: true,
}

const namedType = objectType.refine((type) => type !== '*', 'must not be "*": leave the list out to allow all types')
/** Only requests are held to this rule: an agent that was stored with "*" can still be read and changed. */
const sentCapabilities = capabilitiesField.extend({ allowedObjectTypes: z.array(namedType).max(1_000).optional() })
export const agentPatch = agentDefinition.partial().extend({ capabilities: sentCapabilities.optional() })
export const agentInput = agentPatch.required({ name: true })
export type AgentInput = z.infer<typeof agentInput>
export type AgentPatch = z.infer<typeof agentPatch>

export const agentSchema = agentDefinition.extend({
  id: idField,
  project_id: idField,
  token_used: z.int(),
  status: z.enum(['active', 'bored', 'stuck', 'paused']),
  paused_for: z
    .enum(['stopped', 'budget'])
    .nullable()
    .describe('Why it is paused: somebody stopped it, or its tokens are used up.'),
  last_active_at: instantField.nullable(),
  last_worked_at: instantField.nullable(),
  last_polled_at: instantField.nullable(),
  created_at: instantField,
  updated_at: instantField,
})
export type Agent = z.infer<typeof agentSchema>

/** The first rule the fields break together, or null. Each field alone was checked by the schema. */
export function definitionProblem(definition: AgentDefinition): string | null {
  if (definition.prompt !== null && definition.prompt_id !== null) return 'prompt and prompt_id exclude each other'
  if (definition.flow_type === 'sequential' && definition.steps.length === 0) return 'a sequential agent needs steps'
  if (definition.flow_type !== 'sequential' && definition.steps.length > 0) return 'only a sequential agent has steps'
  if (definition.trigger_type === 'reaction' && definition.reaction_config === null) {
    return 'a reaction agent needs reaction_config with objectTypes'
  }
  if (definition.trigger_type === 'schedule' && definition.cron_schedule === null) {
    return 'a scheduled agent needs cron_schedule'
  }
  return null
}
