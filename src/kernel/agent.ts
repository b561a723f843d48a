import { z } from 'zod'
import { durationField, idField, instantField, nameField } from './fields.ts'
import { sourceField } from './source.ts'

const objectType = z.string().min(1).max(200)
const count = z.int().min(1).max(1_000_000)
const promptText = z.string().max(200_000)

/** `name`, or `mcp:<server>/<tool>`, or `mcp:<server>/*`. */
export const toolNameField = z
  .string()
  .regex(/^([A-Za-z0-9_-]{1,64}|mcp:[A-Za-z0-9._-]{1,63}\/([A-Za-z0-9_.-]{1,128}|\*))$/, 'must be a tool name')

export const requireApprovalField = z
  .array(toolNameField)
  .max(200)
  .describe(
    'Tools whose calls wait until a person approves them, by name or pattern: "refund", "mcp:stripe/*". Each must be a tool of the agent.',
  )

export const modelChoice = z.strictObject({
  provider: z.string().min(1).max(63).describe('The name of a provider: GET /api/providers lists them.'),
  name: z.string().min(1).max(200).describe('The name of the model, as the provider spells it.'),
  temperature: z.number().min(0).max(2).optional().describe('Left out: the default of the provider.'),
  max_output_tokens: z.int().min(1).max(10_000_000).default(4_096).describe('The most tokens of one answer.'),
  context_tokens: z
    .int()
    .min(256)
    .max(100_000_000)
    .optional()
    .describe('The most tokens of one request. A longer history is shortened to fit.'),
})
export type ModelChoice = z.infer<typeof modelChoice>

export const capabilitiesField = z.strictObject({
  canCreateObjects: z.boolean().default(true).describe('The agent may make objects.'),
  canUpdateObjects: z.boolean().default(true).describe('The agent may change objects.'),
  canDeleteObjects: z.boolean().default(true).describe('The agent may delete objects.'),
  allowedObjectTypes: z
    .array(objectType)
    .max(1_000)
    .optional()
    .describe('The types of objects that the agent may change. Left out: all types. An empty list: none.'),
})
export type Capabilities = z.infer<typeof capabilitiesField>

export const reactionConfig = z.strictObject({
  objectTypes: z
    .array(objectType)
    .min(1)
    .max(1_000)
    .describe('The types of objects whose changes start the agent, compared exactly. ["*"] means all types.'),
  events: z
    .array(z.enum(['created', 'updated', 'deleted']))
    .min(1)
    .default(['created', 'updated', 'deleted'])
    .describe('The changes that start the agent.'),
  ignoreSelfTriggered: z.boolean().default(true).describe('True: changes that the agent itself made do not start it.'),
  ignoreAgentTriggered: z.boolean().default(false).describe('True: changes that any agent made do not start it.'),
  concurrencyStrategy: z
    .enum(['skip', 'parallel'])
    .default('skip')
    .describe(
      'skip: an event is passed over while the agent works on the same version of the same object. parallel: each event starts a run.',
    ),
})
export const agentStep = z.strictObject({
  prompt: promptText.min(1).describe('The instructions for this step.'),
  tools: z.array(toolNameField).max(200).optional().describe('The tools of this step. Left out: those of the agent.'),
})

export const agentFields = {
  name: nameField.describe('The name of the agent, once per project.'),
  role: z.string().max(1_000).describe('The role in a few words. The model and other agents read it.'),
  prompt: promptText.nullable().describe('The instructions for the model.'),
  prompt_id: z
    .string()
    .min(1)
    .max(200)
    .nullable()
    .describe('The id of a prompt in the prompt library, in place of prompt.'),
  model: modelChoice.nullable().describe('The model. Null: the setting default_model of the project.'),
  tools: z
    .array(toolNameField)
    .max(200)
    .describe('The tools by name: "http_fetch", "mcp:server/tool", "mcp:server/*". GET /tools lists them.'),
  flow_type: z
    .enum(['single', 'sequential', 'loop', 'flow'])
    .describe(
      'single: the model works until it is done. sequential: it works through steps. loop: it repeats until it calls finish_loop. flow: each run is a run of flow.',
    ),
  steps: z.array(agentStep).max(100).describe('With flow_type "sequential": the steps, in their order.'),
  max_iterations: count.nullable().describe('With flow_type "loop": the most rounds. Null: 10.'),
  flow: nameField
    .nullable()
    .describe('With flow_type "flow": the id or the name of a stored flow, or the name of a template.'),
  max_steps: count.nullable().describe('The most model calls of a run; then it pauses with a summary. Null: no limit.'),
  default_timeout: durationField
    .min(1)
    .nullable()
    .describe('The most milliseconds of a run that names no timeout. Null: no limit.'),
  trigger_type: z
    .enum(['manual', 'schedule', 'webhook', 'reaction'])
    .describe(
      'The one trigger of the agent: nothing, its cron_schedule, a request to one of its hooks, or a change of an object. POST …/trigger, tasks and other agents can start every agent.',
    ),
  cron_schedule: z
    .string()
    .max(200)
    .nullable()
    .describe('With trigger_type "schedule": minute, hour, day of the month, month and day of the week.'),
  timezone: z.string().max(100).describe('The time zone of cron_schedule, such as Europe/Berlin.'),
  catch_up: z
    .enum(['once', 'skip', 'all'])
    .describe(
      'Runs that were due while no Muster was running. once: one run for all of them. skip: none. all: each of them, the last 100 at most.',
    ),
  reaction_config: reactionConfig
    .nullable()
    .describe('With trigger_type "reaction": the changes of objects that start the agent.'),
  execution_mode: z
    .enum(['execute', 'suggest', 'hybrid'])
    .describe(
      'execute: the agent acts by itself. suggest: people decide about each change of an object and each call with an effect outside Muster. hybrid: the agent chooses for each of them.',
    ),
  capabilities: capabilitiesField.describe('The changes of objects that the agent may make or suggest.'),
  require_approval: requireApprovalField,
  senior_id: idField.nullable().describe('The id of the agent that is told when this one is stuck or bored.'),
  competencies: z
    .array(z.string().min(1).max(200))
    .max(100)
    .refine((all) => all.join('').length <= 10_000, 'must not hold more than 10,000 characters together')
    .describe('The skills of the agent in a word or two each. Tasks are delegated by them.'),
  token_allocation: z.int().min(0).nullable().describe('The most tokens of all runs of the agent. Null: no limit.'),
  enabled: z.boolean().describe('False: nothing starts the agent.'),
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
  flow: null,
  max_steps: null,
  default_timeout: null,
  trigger_type: 'manual',
  cron_schedule: null,
  timezone: 'UTC',
  catch_up: 'once',
  reaction_config: null,
  execution_mode: 'execute',
  capabilities: { canCreateObjects: true, canUpdateObjects: true, canDeleteObjects: true },
  require_approval: [],
  senior_id: null,
  competencies: [],
  token_allocation: null,
  enabled: true,
}

const namedType = objectType.refine((type) => type !== '*', 'must not be "*": leave the list out to allow all types')
/** Only requests are held to this rule: an agent that was stored with "*" can still be read and changed. */
export const sentCapabilities = capabilitiesField.extend({
  allowedObjectTypes: z.array(namedType).max(1_000).optional(),
})
export const agentPatch = agentDefinition
  .partial()
  .extend({ capabilities: sentCapabilities.optional().describe(agentFields.capabilities.description ?? '') })
export const agentInput = agentPatch.required({ name: true })
export type AgentInput = z.infer<typeof agentInput>
export type AgentPatch = z.infer<typeof agentPatch>

export const agentSchema = agentDefinition.extend({
  id: idField,
  project_id: idField,
  source: sourceField,
  token_used: z.int(),
  status: z.enum(['active', 'bored', 'stuck', 'paused']),
  paused_for: z
    .enum(['stopped', 'budget'])
    .nullable()
    .describe('Why the agent is paused: somebody stopped it, or its tokens are used up.'),
  last_active_at: instantField.nullable(),
  last_worked_at: instantField.nullable(),
  last_polled_at: instantField.nullable(),
  created_at: instantField,
  updated_at: instantField,
})
export type Agent = z.infer<typeof agentSchema>

/** The first rule the fields break together, or null. Each field alone was checked by the schema. */
export function definitionProblem(definition: AgentDefinition): string | null {
  if (definition.prompt !== null && definition.prompt_id !== null) return 'prompt and prompt_id exclude each other.'
  if (definition.flow_type === 'sequential' && definition.steps.length === 0)
    return 'steps are missing: a sequential agent needs them.'
  if (definition.flow_type !== 'sequential' && definition.steps.length > 0)
    return 'steps: only a sequential agent has steps.'
  if (definition.flow_type === 'flow' && definition.flow === null)
    return 'flow is missing: an agent with flow_type "flow" needs it.'
  if (definition.flow_type !== 'flow' && definition.flow !== null)
    return 'flow: only an agent with flow_type "flow" has a flow.'
  if (definition.trigger_type === 'reaction' && definition.reaction_config === null) {
    return 'reaction_config is missing: a reaction agent needs it, with objectTypes.'
  }
  if (definition.trigger_type === 'schedule' && definition.cron_schedule === null) {
    return 'cron_schedule is missing: a scheduled agent needs it.'
  }
  return null
}
