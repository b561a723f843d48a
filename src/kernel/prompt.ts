// The prompt library. A prompt has variants (blue, green), each a list of messages; every change is a new version.
import { z } from 'zod'
import { idField, instantField } from './fields.ts'

/** The variables that a prompt may hold, as `{{USER_INPUT}}`. */
export const promptVariables = ['USER_INPUT', 'PLAN_JSON', 'HISTORY_JSON', 'CONTEXT_METADATA'] as const
export type PromptVariable = (typeof promptVariables)[number]

export const requiredPrompts = [
  'supervisor_planner',
  'research_agent',
  'transform_agent',
  'finalizer_agent',
  'hitl_escalation_handler',
] as const

export const DEFAULT_VARIANT = 'blue'

/** The names of prompts and variants. They stand in paths, in file names, in notices, and two of them in a cursor. */
export const isPromptName = (name: string): boolean => /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$/.test(name)

export const promptMessage = z.strictObject({
  role: z.enum(['system', 'user']),
  content: z.string().min(1).max(200_000),
})
export type PromptMessage = z.infer<typeof promptMessage>

export const promptMessages = z.array(promptMessage).min(1).max(50)

const versionNumber = z.int().min(0).max(1_000_000_000)
const expectedVersion = versionNumber
  .optional()
  .describe('The version that the change is made to, 0 for none; another one is a conflict.')

export const promptInput = z.strictObject({ messages: promptMessages, expected_version: expectedVersion })
export type PromptInput = z.infer<typeof promptInput>

export const rollbackInput = z.strictObject({ version: versionNumber.min(1), expected_version: expectedVersion })
export type RollbackInput = z.infer<typeof rollbackInput>

/** As the library keeps it: the names of actors are found when somebody looks. */
type Stored<Shown> = Omit<Shown, 'actor_name'>

const versionFacts = {
  version: versionNumber,
  seeded: z
    .boolean()
    .describe('True for a text that came with Muster; it follows new releases until somebody edits it.'),
  actor: z.strictObject({ type: z.string(), id: z.string().nullable() }),
  actor_name: z.string().nullable().describe('The e-mail address of a person, or the name of a key.'),
  created_at: instantField.describe('The time of this version.'),
}

export const promptVersionSchema = z.strictObject({
  ...versionFacts,
  messages: z.array(promptMessage).nullable().describe('Null if this version deleted the prompt.'),
  rolled_back_to: versionNumber.nullable().describe('The earlier version that this one repeats.'),
})
export type PromptVersion = Stored<z.infer<typeof promptVersionSchema>>

const promptNames = { project_id: idField, prompt_id: z.string(), variant_id: z.string() }

export const promptSchema = z.strictObject({
  ...promptNames,
  ...versionFacts,
  messages: z.array(promptMessage),
  unknown_variables: z
    .array(z.string())
    .describe('Names in double braces that are not variables; they are sent unchanged.'),
})
export type Prompt = Stored<z.infer<typeof promptSchema>>

export const listedPromptSchema = z.strictObject({
  ...promptNames,
  ...versionFacts,
  version: versionNumber.describe('The active version, which is the newest: there are as many versions.'),
  required: z.boolean().describe('True for the prompts that the supervisor system cannot do without.'),
  deleted: z.boolean().describe('True if the newest version deleted the prompt; a rollback brings it back.'),
})
export type ListedPrompt = Stored<z.infer<typeof listedPromptSchema>>

export const promptDiffSchema = z.strictObject({
  from: versionNumber,
  to: versionNumber,
  added: z.int().describe('The number of lines added.'),
  removed: z.int(),
  exact: z.boolean().describe('False if the texts differ so much that the whole text is shown as replaced.'),
  parts: z.array(z.strictObject({ op: z.enum(['same', 'added', 'removed']), text: z.string() })),
})
export type PromptDiff = z.infer<typeof promptDiffSchema>

export const promptRequest = z.strictObject({
  prompt_id: z.string().min(1).max(200),
  variant_id: z.string().min(1).max(200),
})
export const promptAnswer = z.strictObject({
  prompt: z.strictObject({
    id: z.string(),
    variant: z.strictObject({ id: z.string(), messages: z.array(promptMessage) }),
  }),
})
