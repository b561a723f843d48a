// The words of the supervisor system: the state of its graph, and the request and the answer of `POST /v1/agent/run`.
import { z } from 'zod'
import { agentFields, modelChoice, requireApprovalField, sentCapabilities, toolNameField } from './agent.ts'
import { filledText, idField, jsonObject } from './fields.ts'
import { isPromptName } from './prompt.ts'

export const supervisorStatuses = ['RUNNING', 'DONE', 'ESCALATE'] as const
export const toDoStatuses = ['PENDING', 'IN_PROGRESS', 'DONE', 'BLOCKED'] as const
export type ToDoStatus = (typeof toDoStatuses)[number]
export const agentResults = ['COMPLETED', 'NEEDS_ASSISTANCE', 'FAILED'] as const

const text = z.string().max(200_000)
const shortId = z.string().min(1).max(200)

export const toDo = z.strictObject({
  id: shortId,
  description: text,
  status: z.enum(toDoStatuses),
  owner_agent: z.string().max(200).optional(),
  parent_id: shortId.optional(),
  metadata: jsonObject.optional(),
})
export type ToDo = z.infer<typeof toDo>

export const agentSummary = z.strictObject({
  agent_name: z.string(),
  step_id: z.string(),
  result: z.enum(agentResults),
  short_summary: z.string(),
  key_decisions: z.array(z.string()),
  next_instructions_for_supervisor: z.string(),
})
export type AgentSummary = z.infer<typeof agentSummary>

export const supervisorState = z.strictObject({
  task_id: z.string().optional(),
  context_id: z.string().optional(),
  status: z.enum(supervisorStatuses),
  plan: z.array(toDo),
  history: z.array(agentSummary),
  active_agent: z.string().optional(),
  notes: z.string().optional(),
})
export type SupervisorState = z.infer<typeof supervisorState>

export const agentState = z.strictObject({
  messages: z.array(z.unknown()),
  tool_events: z.array(z.unknown()),
  recursion_depth: z.int().min(0),
  scratchpad: z.record(z.string(), z.unknown()),
})
export type AgentState = z.infer<typeof agentState>

export interface GraphState {
  supervisor: SupervisorState
  agent: AgentState
}

export const newSupervisorState = (taskId: string, contextId: string | null): SupervisorState => ({
  task_id: taskId,
  ...(contextId === null ? {} : { context_id: contextId }),
  status: 'RUNNING',
  plan: [],
  history: [],
})

export const newAgentState = (): AgentState => ({ messages: [], tool_events: [], recursion_depth: 0, scratchpad: {} })

/** The nodes that every graph has. No specialist may be called like one of them. */
const FIXED_NODES = ['supervisor', 'finalizer', 'hitl_escalation'] as const
const TAKEN_NAMES: readonly string[] = [...FIXED_NODES, 'supervisor_state', 'agent_state']

const promptIdField = z.string().refine(isPromptName, 'must be the id of a prompt')
const part = { prompt_id: promptIdField, model: modelChoice.nullable().describe('null: the project’s default_model') }
const specialistName = z
  .string()
  .regex(/^[A-Za-z][A-Za-z0-9_-]{0,62}$/, 'must begin with a letter and hold letters, digits, _ and - only')
  // LangGraph looks up node names in a plain object, so names that every object has, like "constructor", are refused.
  .refine((name) => !TAKEN_NAMES.includes(name) && !(name in {}), 'is the name of a part of every system')

export const specialistConfig = z.strictObject({
  name: specialistName,
  ...part,
  tools: z.array(toolNameField).max(200),
  description: z.string().max(2_000).optional().describe('The work that it is for, as the planner is told.'),
  execution_mode: agentFields.execution_mode.optional(),
  capabilities: sentCapabilities.optional().describe('The changes of objects that the specialist may make or suggest.'),
  require_approval: requireApprovalField.optional(),
})
type SpecialistConfig = z.infer<typeof specialistConfig>

export const systemConfig = z.strictObject({
  supervisor: z.strictObject(part),
  specialists: z
    .array(specialistConfig)
    .min(1)
    .max(50)
    .refine((all) => new Set(all.map(({ name }) => name)).size === all.length, 'must have different names'),
  finalizer: z.strictObject(part),
  escalation: z.strictObject(part),
  traffic: z.int().min(0).max(1_000_000).describe('The weight among the variants if a request names none.'),
})
export type SystemConfig = z.infer<typeof systemConfig>

export const variantName = z.string().refine(isPromptName, 'must be the name of a variant, like blue')

/** The part of a system that a run plays, as it was configured when the run started. */
export type SystemPart =
  | {
      variant: string
      node: 'supervisor'
      config: Omit<SystemConfig, 'traffic'>
      context: { context_id: string | null; metadata: Record<string, unknown> }
    }
  | {
      variant: string
      node: string
      config: SpecialistConfig
      /** The values of the variables in its prompt; `USER_INPUT` is the run's input. */
      values: { PLAN_JSON: string; HISTORY_JSON: string; CONTEXT_METADATA: string }
    }

export type SpecialistPart = Extract<SystemPart, { values: unknown }>
export type SupervisorPart = Extract<SystemPart, { context: unknown }>

export const isSpecialist = (part: SystemPart | null): part is SpecialistPart => part !== null && 'values' in part
export const isSupervisor = (part: SystemPart | null): part is SupervisorPart => part !== null && 'context' in part

const contextField = z.strictObject({
  context_id: z.string().min(1).max(200).nullish(),
  metadata: jsonObject.nullish(),
})

export const runInput = z.strictObject({
  task: filledText(1_000_000),
  context: contextField.nullish(),
})

const runRequest = z.strictObject({
  input: runInput.nullish().describe('Required, except to let a run go on that was unavailable.'),
  options: z
    .strictObject({
      system_variant: variantName.nullish(),
      stream: z.boolean().nullish(),
      run_id: idField.nullish().describe('An escalated run that this task answers, or one that was unavailable.'),
    })
    .nullish(),
})
export const agentRunRequest = runRequest.refine(({ input, options }) => Boolean(input ?? options?.run_id), {
  path: ['input'],
  message: 'is required',
})
export type AgentRunRequest = z.infer<typeof agentRunRequest>

const runFault = z.strictObject({ code: z.string(), message: z.string(), details: jsonObject.nullable() })
export type RunFault = z.infer<typeof runFault>

const textOutput = z.strictObject({ type: z.literal('text'), content: z.string() })

export const agentRunAnswer = z.strictObject({
  result: z.strictObject({
    status: z.enum([...supervisorStatuses, 'FAILED']),
    output: textOutput.nullable().describe('The answer, or the question to a person; null while there is none.'),
    supervisor_state: supervisorState,
    error: runFault.optional(),
  }),
  metadata: z.strictObject({
    run_id: idField,
    system_variant: z.string(),
    trace_url: z.string().optional(),
  }),
})
export type AgentRunAnswer = z.infer<typeof agentRunAnswer>
