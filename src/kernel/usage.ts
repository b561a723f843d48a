// The tokens and the cost of a project by day and agent. A call counts once, for the agent that made it.
import { z } from 'zod'
import { idField } from './fields.ts'

/**
 * The makers of calls: agents · the supervisor system · functions called muster.* in flows · Muster itself, for layouts
 * and recommendations.
 */
export const usageSources = ['agent', 'supervisor', 'function', 'other'] as const

export const dayField = z.iso.date()
const amounts = {
  input_tokens: z.int(),
  output_tokens: z.int(),
  total_tokens: z.int(),
  cost_usd: z.number().nullable().describe('Null if no model that was called has a price.'),
}
const maker = {
  agent_id: idField.nullable().describe('Null for calls that no agent made; `source` tells their maker.'),
  name: z.string().nullable().describe('The name of the agent, also of one that was deleted.'),
  source: z.enum(usageSources),
}

export const amountsSchema = z.strictObject(amounts)
export type Amounts = z.infer<typeof amountsSchema>

export const usageOfDaySchema = z.strictObject({ day: dayField, ...amounts })
export const usageOfAgentSchema = z.strictObject({ ...maker, ...amounts })
export const usageItemSchema = z.strictObject({ day: dayField, ...maker, ...amounts })
export type UsageItem = z.infer<typeof usageItemSchema>

export const usageReportSchema = z.strictObject({
  from: dayField,
  to: dayField,
  totals: amountsSchema,
  days: z.array(usageOfDaySchema).describe('Every day from `from` to `to`, newest first.'),
  agents: z.array(usageOfAgentSchema).describe('The makers with the most tokens, at most 200.'),
  items: z
    .array(usageItemSchema)
    .describe(
      'By day and maker, newest first. An agent that is a flow makes no calls of its own: the calls of its leaves stand with their agents, those of functions under `function`.',
    ),
  next_cursor: z.string().nullable(),
})
export type UsageReport = z.infer<typeof usageReportSchema>
