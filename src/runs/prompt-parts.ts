// The two parts of a prompt of the library, as a run uses them: the system part, which goes with every call, and the
// messages with which the conversation begins. `{{USER_INPUT}}` is the task; the other variables are empty, but for the
// parts of a supervisor system, whose prompts are journalled with their variables filled in.
import type { PromptMessage } from '../kernel/prompt.ts'
import { renderPrompt, usesVariable } from '../prompts/render-prompt.ts'

/** A prompt as it stands in the journal. */
export interface PromptText {
  messages: readonly PromptMessage[]
  rendered?: boolean
  /** Of a rendered prompt: the task stands in it. */
  shows_task?: boolean
}

/** All system messages as one text: a system message later in the conversation is an error on Gemini. */
export const systemPart = (prompt: PromptText, task: string): string => textsOf('system', prompt, task).join('\n\n')

/** The texts that show the model its task. A prompt that does not say where the task goes has it at the end. */
export function taskTexts(prompt: PromptText, task: string): string[] {
  const texts = textsOf('user', prompt, task)
  const isShown = prompt.rendered ? prompt.shows_task : usesVariable(prompt.messages, 'USER_INPUT')
  return texts.length > 0 && isShown ? texts : [...texts, task]
}

/** Providers refuse empty messages: one that was nothing but an empty variable is left out. */
const textsOf = (role: PromptMessage['role'], { messages, rendered }: PromptText, task: string): string[] =>
  (rendered ? messages : renderPrompt(messages, { USER_INPUT: task }))
    .filter((message) => message.role === role && message.content.trim() !== '')
    .map(({ content }) => content)
