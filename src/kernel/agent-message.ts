import { z } from 'zod'
import { idField, instantField } from './fields.ts'

const messageKinds = ['completion', 'budget', 'escalation', 'delegation', 'status'] as const
export type MessageKind = (typeof messageKinds)[number]

export const agentMessageSchema = z.strictObject({
  id: idField,
  from: idField.describe('The agent that sent the message.'),
  to: idField.describe('The agent that the message is for.'),
  kind: z.enum(messageKinds),
  body: z.string(),
  task_id: idField.nullable(),
  created_at: instantField,
})
export type AgentMessage = z.infer<typeof agentMessageSchema>
