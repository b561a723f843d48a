// A chat with the supervisor as `useChat` of the AI SDK speaks it: its body, and its UI message stream (version 1).
import { z } from 'zod'
import { variantName } from './supervisor.ts'

export const CHAT_STREAM_HEADER = { name: 'x-vercel-ai-ui-message-stream', value: 'v1' } as const

const CHAT_ID = /^[^\p{Cc}]{1,200}$/u
export const isChatId = (text: string): boolean => CHAT_ID.test(text)

// Front ends and other versions of the AI SDK add fields of their own to every object here; unknown fields are ignored.
const chatMessage = z.looseObject({
  role: z.enum(['system', 'user', 'assistant']),
  parts: z.array(z.looseObject({ type: z.string() })),
})
export type ChatMessage = z.infer<typeof chatMessage>

export const chatRequest = z.looseObject({
  id: z
    .string()
    .refine(isChatId, 'must have 1 to 200 characters and no control characters')
    .describe('The chat, which belongs to the project.'),
  messages: z.array(chatMessage).describe('The newest message of the user is the task.'),
  trigger: z.enum(['submit-message', 'regenerate-message']).nullish(),
  messageId: z.string().nullish(),
  system_variant: variantName.nullish(),
})
export type ChatRequest = z.infer<typeof chatRequest>

export interface ChatMetadata {
  run_id: string
  status?: 'DONE' | 'ESCALATE' | 'FAILED'
  error?: { code: string; message: string }
}

export type ChatChunk =
  | { type: 'start'; messageId: string; messageMetadata: ChatMetadata }
  | { type: 'start-step' }
  | { type: 'text-start'; id: string }
  | { type: 'text-delta'; id: string; delta: string }
  | { type: 'text-end'; id: string }
  /** Takes back everything since `start-step`. */
  | { type: 'reset-step' }
  | { type: 'finish-step' }
  | { type: 'data-status'; data: Readonly<Record<string, unknown>>; transient: true }
  | { type: 'message-metadata'; messageMetadata: ChatMetadata }
  | { type: 'error'; errorText: string }
  | { type: 'finish'; finishReason: 'stop' | 'error'; messageMetadata: ChatMetadata }
