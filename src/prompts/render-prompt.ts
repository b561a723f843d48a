// Fills the variables of a prompt in, in one pass: a value that holds `{{PLAN_JSON}}` itself is not looked at again. A
// variable without a value is empty. Anything else in double braces stays as it is, because a prompt may well speak of
// templates; people are shown the names that no variable has when they save it (`unknownVariables`).
import { MusterError } from '../kernel/errors.ts'
import { type PromptMessage, type PromptVariable, promptVariables } from '../kernel/prompt.ts'

export type PromptValues = Readonly<Partial<Record<PromptVariable, string>>>

const VARIABLE = new RegExp(`\\{\\{\\s*(${promptVariables.join('|')})\\s*\\}\\}`, 'g')
const ANY_NAME = /\{\{\s*(\w[\w.]*)\s*\}\}/g

/** In characters. A variable that stands in many places multiplies its value. */
const MOST_RENDERED = 16 * 1_048_576
const MOST_NAMED = 100

/** Throws PAYLOAD_TOO_LARGE as soon as the messages together would hold more than 16 MiB. */
export function renderPrompt(messages: readonly PromptMessage[], values: PromptValues): PromptMessage[] {
  let room = MOST_RENDERED
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

/** The names in double braces that no variable has, each once. */
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
