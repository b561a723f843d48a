import { z } from 'zod'
import { durationField, idField, instantField } from './fields.ts'
import { progressSchema } from './flow-run.ts'

const alertKinds = ['slow'] as const
const alertActions = ['cancel', 'add_workers', 'switch_topology', 'adjust'] as const
export type AlertAction = (typeof alertActions)[number]

export const alertSchema = z.strictObject({
  id: idField,
  flow_run_id: idField,
  kind: z.enum(alertKinds).describe('slow: the flow run takes longer than alert_factor times the expected duration.'),
  progress: progressSchema.describe('The progress of the flow run when the alert was made.'),
  suspected_cause: z.string(),
  actions: z.array(z.enum(alertActions)).describe('The actions that people may take.'),
  adjust: z
    .strictObject({ timeout: durationField.optional(), workers: z.int().optional() })
    .nullable()
    .describe('The change for the action adjust, as PATCH of the flow run takes it; null if none would help.'),
  created_at: instantField,
  acked_at: instantField.nullable(),
})
export type Alert = z.infer<typeof alertSchema>
