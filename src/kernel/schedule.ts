import { z } from 'zod'
import { agentFields } from './agent.ts'
import { idField, instantField } from './fields.ts'

export const scheduleSchema = z.strictObject({
  agent_id: idField,
  name: agentFields.name,
  cron_schedule: z.string(),
  timezone: agentFields.timezone,
  next_run_at: instantField.nullable(),
  last_run_at: instantField.nullable().describe('The last time at which the schedule started a run.'),
})
export type Schedule = z.infer<typeof scheduleSchema>

export const schedulePreviewSchema = z.strictObject({
  cron_schedule: z.string(),
  timezone: agentFields.timezone,
  items: z.array(instantField).describe('The next times, soonest first.'),
})
export type SchedulePreview = z.infer<typeof schedulePreviewSchema>

export type CatchUp = z.infer<typeof agentFields.catch_up>
