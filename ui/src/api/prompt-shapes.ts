// Shapes of the prompt library's answers. Their types in src/kernel are of rows, which have no name of the author.
import type { z } from 'zod'
import type { listedPromptSchema, promptSchema, promptVersionSchema } from '../../../src/kernel/prompt.ts'
import type { SystemConfig } from '../../../src/kernel/supervisor.ts'

export type ListedPrompt = z.infer<typeof listedPromptSchema>
export type Prompt = z.infer<typeof promptSchema>
export type Version = z.infer<typeof promptVersionSchema>

export interface System extends SystemConfig {
  variant: string
  updated_at: string | null
}

export interface ListedSystem extends System {
  /** The part (0 to 1) of the requests that name no variant. */
  share: number
}
