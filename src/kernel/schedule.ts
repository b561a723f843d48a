import { z } from 'zod'
import { agentFields } from './agent.ts'
import { idField, instantField } from './fields.ts'

export const scheduleSchema = z.strictObject({
  agent_id: idField,
  name: agentFields.name,
  cron_schedule: z.string(),
  timezone: agentFields.timezone,
  next_run_at: instantField.nullable(),
  last_run_at: instantField.nullable().describe('When a run was last started by the schedule.'),
})
export type Schedule = z.infer<typeof scheduleSchema>

export type CatchUp = z.infer<typeof agentFields.catch_up>
