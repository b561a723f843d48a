// The words of a chat while an answer is written, and those about its failures.
import { z } from 'zod'
import { type AgentRunAnswer, type ToDo, toDo } from '../../../../src/kernel/supervisor.ts'
import type { Message } from './kept-chats.ts'

export interface Doing {
  /** The part of the system that is at work. */
  agent: string | null
  plan: readonly ToDo[]
}

export const IDLE: Doing = { agent: null, plan: [] }

const statusData = z.looseObject({ active_agent: z.string().nullish(), plan: z.array(toDo).optional() })

/** A `data-status` part names only what changed. Parts of other kinds and shapes change nothing. */
export function nextDoing(before: Doing, part: { type: string; data: unknown }): Doing {
  const told = part.type === 'data-status' ? statusData.safeParse(part.data) : null
  if (!told?.success) return before
  const { active_agent: agent, plan } = told.data
  return { agent: agent === undefined ? before.agent : agent, plan: plan ?? before.plan }
}

export const agentName = (agent: string): string => agent.replaceAll('_', ' ')

/** A refused request has Muster's JSON as its message; one that gets no answer has the browser's own words. */
function wordsOf(error: Error): string {
  if (error instanceof TypeError) return 'Muster does not answer. Is it running?'
  try {
    const { error: told }: { error?: { message?: unknown } } = JSON.parse(error.message)
    return typeof told?.message === 'string' ? told.message : error.message
  } catch {
    return error.message
  }
}

export const isCancelled = (message: Message | undefined): boolean => message?.metadata?.error?.code === 'CANCELLED'

/** Why the newest message has no answer, or null. */
export function problemOf(last: Message | undefined, error: Error | undefined): string | null {
  if (isCancelled(last)) return null
  return last?.metadata?.error?.message ?? (error ? wordsOf(error) : null)
}

/** The messages with the answer of a run that has ended or asks, in place of the part that was kept. */
export function withAnswer(messages: Message[], id: string, result: AgentRunAnswer['result']): Message[] {
  const { status, output, error } = result
  if (status === 'RUNNING') return messages
  return messages.map((message) => {
    if (message.id !== id || !message.metadata || message.metadata.status !== undefined) return message
    const fault = error ? { error: { code: error.code, message: error.message } } : {}
    const parts: Message['parts'] = output ? [{ type: 'text', text: output.content }] : message.parts
    return { ...message, parts, metadata: { ...message.metadata, status, ...fault } }
  })
}
