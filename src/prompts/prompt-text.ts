// A prompt as a text that people read and write: the messages one after another, each below the name of its role.
//   # Lines before the first role that begin like this are comments.
//   [system]
//   You plan the work of a team.
//   [user]
//   The task: {{USER_INPUT}}
//
// Blank lines around a message are not part of it.
import { type PromptMessage, promptMessages } from '../kernel/prompt.ts'

const ROLE = /^\[(\w+)\]$/

/** Throws a sentence that says what is wrong with the text. */
export function parsePromptText(text: string): PromptMessage[] {
  const messages: { role: string; lines: string[] }[] = []
  for (const line of text.split(/\r?\n/)) {
    const role = ROLE.exec(line)?.[1]
    const last = messages.at(-1)
    if (role !== undefined) messages.push({ role, lines: [] })
    else if (last) last.lines.push(line)
    else if (line.trim() !== '' && !line.startsWith('#')) throw new Error('it must begin with [system] or [user]')
  }
  const parsed = promptMessages.safeParse(
    messages.map(({ role, lines }) => ({ role, content: withoutBlankEnds(lines.join('\n')) })),
  )
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  throw new Error(`messages.${issue?.path.join('.')}: ${issue?.message}`)
}

export const formatPromptText = (messages: readonly PromptMessage[]): string =>
  messages.map(({ role, content }) => `[${role}]\n${content}\n`).join('\n')

const withoutBlankEnds = (text: string): string => text.replace(/^(?:[^\S\n]*\n)+/, '').trimEnd()
