import type {
  JSONValue,
  LanguageModelV4Message,
  LanguageModelV4ToolResultPart,
  SharedV4ProviderOptions,
} from '@ai-sdk/provider'
import type { ReasoningPart } from '../kernel/model-call.ts'
import type { StepCall } from '../kernel/run-event.ts'

export function userMessage(...texts: string[]): LanguageModelV4Message {
  return { role: 'user', content: texts.map((text) => ({ type: 'text', text })) }
}

/** The model's own message, in the form in which it is sent back. Null if the model said nothing at all. */
export function assistantMessage(
  text: string,
  calls: readonly StepCall[],
  reasoning: readonly ReasoningPart[],
): LanguageModelV4Message | null {
  const content: Extract<LanguageModelV4Message, { role: 'assistant' }>['content'] = []
  for (const part of reasoning) content.push({ type: 'reasoning', text: part.text, ...providerOptions(part.metadata) })
  if (text !== '') content.push({ type: 'text', text })
  for (const call of calls) {
    // Arguments that were not JSON are sent back as an object, because every wire format wants one.
    const input = typeof call.args === 'string' ? { malformed: call.args } : call.args
    const { id: toolCallId, name: toolName } = call
    content.push({ type: 'tool-call', toolCallId, toolName, input, ...providerOptions(call.metadata) })
  }
  return content.length > 0 ? { role: 'assistant', content } : null
}

export function resultPart(completed: {
  call_id: string
  name: string
  result: unknown
  is_error: boolean
}): LanguageModelV4ToolResultPart {
  const { call_id: toolCallId, name: toolName, result, is_error } = completed
  const output: LanguageModelV4ToolResultPart['output'] =
    typeof result === 'string'
      ? { type: is_error ? 'error-text' : 'text', value: result }
      : { type: is_error ? 'error-json' : 'json', value: result as JSONValue } // results are checked to be JSON
  return { type: 'tool-result', toolCallId, toolName, output }
}

const providerOptions = (metadata: unknown): { providerOptions?: SharedV4ProviderOptions } =>
  metadata ? { providerOptions: metadata as SharedV4ProviderOptions } : {} // goes back as it came
