// Fills in the variables of a prompt in one pass: a value that holds `{{PLAN_JSON}}` itself is not looked at again.
// Anything else in double braces stays as it is, because a prompt may well speak of placeholders. People who save a
// prompt are shown the names that are not variables (`unknownVariables`).

import { MusterError } from '../kernel/errors.ts'
import { LARGEST_VALUE_BYTES } from '../kernel/limits.ts'
import { type PromptMessage, type PromptVariable, promptVariables } from '../kernel/prompt.ts'

export type PromptValues = Readonly<Partial<Record<PromptVariable, string>>>

const VARIABLE = new RegExp(`\\{\\{\\s*(${promptVariables.join('|')})\\s*\\}\\}`, 'g')
const ANY_NAME = /\{\{\s*(\w[\w.]*)\s*\}\}/g

const MOST_NAMED = 100

/** Throws PAYLOAD_TOO_LARGE as soon as the messages together would hold more than 16 MiB. */
export function renderPrompt(messages: readonly PromptMessage[], values: PromptValues): PromptMessage[] {
  // A variable that stands in many places multiplies its value.
  let room = LARGEST_VALUE_BYTES
  const spend = (characters: number): void => {
    room -= characters
    if (room < 0) {
      throw new MusterError('PAYLOAD_TOO_LARGE', 'The prompt with its variables filled in takes more than 16 MiB.')
    }
  }
  return messages.map(({ role, content }) => {
    spend(content.length)
    const filled = content.replaceAll(VARIABLE, (_, name: PromptVariable) => {
      const value = values[name] ?? ''
      spend(value.length)
      return value
    })
    return { role, content: filled }
  })
}

export const usesVariable = (messages: readonly PromptMessage[], variable: PromptVariable): boolean =>
  messages.some(({ content }) => content.matchAll(VARIABLE).some(([, name]) => name === variable))

/** The names in double braces that are not variables, each once. */
export function unknownVariables(messages: readonly PromptMessage[]): string[] {
  const names = new Set<string>()
  for (const { content } of messages) {
    for (const [, name = ''] of content.matchAll(ANY_NAME)) {
      if (!promptVariables.some((known) => known === name)) names.add(name)
      if (names.size === MOST_NAMED) return [...names]
    }
  }
  return [...names]
}
