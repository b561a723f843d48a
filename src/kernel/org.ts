import { z } from 'zod'
import { agentSchema } from './agent.ts'
import { idField, instantField } from './fields.ts'

const { id, name, role, status, paused_for, competencies, token_allocation, token_used } = agentSchema.shape

const orgAgentFields = {
  id,
  name,
  role,
  status,
  paused_for,
  competencies,
  load: z.int().describe('The number of open tasks that the agent holds.'),
  token_allocation,
  token_used,
}

export interface OrgAgent extends z.infer<z.ZodObject<typeof orgAgentFields>> {
  subordinates: OrgAgent[]
}

export const orgAgentSchema: z.ZodType<OrgAgent> = z.strictObject({
  ...orgAgentFields,
  get subordinates(): z.ZodArray<z.ZodType<OrgAgent>> {
    return z.array(orgAgentSchema)
  },
})

export const orgSchema = z.strictObject({ items: z.array(orgAgentSchema) })

export const agentHealthSchema = z.strictObject({
  agent_id: idField,
  running: z.boolean().describe('True if the agent takes up tasks: it is enabled and not paused.'),
  heartbeat_at: instantField.nullable().describe('The last round of the organisation that served its project.'),
})
export type AgentHealth = z.infer<typeof agentHealthSchema>

export const budgetInput = z.strictObject({ add: z.int().min(1).max(1_000_000_000_000) })
