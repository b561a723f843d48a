// The parts of a prompt of the library: the system part, which goes with every call, and the messages with which the
// conversation begins. `{{USER_INPUT}}` is the task. The other variables are empty, except in a supervisor system.
import type { PromptMessage } from '../kernel/prompt.ts'
import { renderPrompt, usesVariable } from '../prompts/render-prompt.ts'

export interface PromptText {
  messages: readonly PromptMessage[]
  rendered?: boolean
  /** For a rendered prompt: true if the task stands in it. */
  shows_task?: boolean
}

/** All system messages as one text: a system message later in the conversation is an error on Gemini. */
export const systemPart = (prompt: PromptText, task: string): string => textsOf('system', prompt, task).join('\n\n')

/** The texts that show the model its task. If the prompt has no place for the task, the task comes last. */
export function taskTexts(prompt: PromptText, task: string): string[] {
  const texts = textsOf('user', prompt, task)
  const isShown = prompt.rendered ? prompt.shows_task : usesVariable(prompt.messages, 'USER_INPUT')
  return texts.length > 0 && isShown ? texts : [...texts, task]
}

/** Providers refuse empty messages, so a message that was nothing but an empty variable is left out. */
const textsOf = (role: PromptMessage['role'], { messages, rendered }: PromptText, task: string): string[] =>
  (rendered ? messages : renderPrompt(messages, { USER_INPUT: task }))
    .filter((message) => message.role === role && message.content.trim() !== '')
    .map(({ content }) => content)
