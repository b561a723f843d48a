import { z } from 'zod'
import { jsonObject } from './fields.ts'

/** A tool in the list from which people choose an agent's tools, under the name that an agent's definition uses. */
export const listedTool = z.strictObject({
  name: z.string(),
  source: z.enum(['built_in', 'app', 'mcp']),
  description: z.string(),
  effect: z
    .enum(['readonly', 'keyed', 'unsafe'])
    .describe(
      'readonly: a call changes nothing. keyed: a call is made again after a crash, under the same key. unsafe: a call is not made again. If calls differ, this is the effect of the worst one.',
    ),
  input_schema: jsonObject,
})
export type ListedTool = z.infer<typeof listedTool>
