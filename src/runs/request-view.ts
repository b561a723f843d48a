// A request to a model as middleware sees it, and back. Messages that middleware leaves alone are sent as they were.
import { isDeepStrictEqual } from 'node:util'
import type {
  LanguageModelV4FunctionTool,
  LanguageModelV4Message,
  LanguageModelV4ToolResultPart,
  SharedV4ProviderMetadata,
} from '@ai-sdk/provider'
import { copyJson } from '../kernel/copy-json.ts'
import type { MiddlewareMessage, MiddlewareRequest, RequestChanges } from '../kernel/middleware.ts'
import type { ModelRequest } from '../kernel/model-call.ts'
import { assistantMessage, resultPart, userMessage } from './messages.ts'

type AssistantView = Extract<MiddlewareMessage, { role: 'assistant' }>

/** The view is a copy: nothing of the request can be changed through it. */
export function requestView(request: ModelRequest): MiddlewareRequest {
  const { system, messages } = partsOf(request.prompt)
  const { temperature = null, answerSchema } = request
  return {
    system,
    messages: messages.map(messageView),
    tools: request.tools.map(({ name, description = '', inputSchema }) => ({
      name,
      description,
      input_schema: copyJson(inputSchema) as Record<string, unknown>, // a JSON schema
    })),
    tool_choice: request.toolChoice,
    max_output_tokens: request.maxOutputTokens,
    temperature,
    answer_schema: answerSchema ? { name: answerSchema.name, schema: copyJson({ ...answerSchema.schema }) } : null,
  }
}

/** The request after its view was changed from `before` to `after`, or the problem with the change. */
export function changeRequest(
  request: ModelRequest,
  before: MiddlewareRequest,
  after: MiddlewareRequest,
): { ok: true; request: ModelRequest } | { ok: false; problem: string } {
  const problem = problemOf(before, after)
  if (problem !== null) return { ok: false, problem }
  const { messages } = partsOf(request.prompt)
  const splice = spliceOf(before.messages, after.messages)
  const { temperature: _, ...rest } = request
  return {
    ok: true,
    request: {
      ...rest,
      prompt: [
        ...(after.system === '' ? [] : [{ role: 'system' as const, content: after.system }]),
        ...messages.slice(0, splice?.at),
        ...(splice ? splice.added.flatMap(toMessage) : []),
        ...(splice ? messages.slice(splice.at + splice.removed) : []),
      ],
      tools: changeTools(request.tools, before.tools, after.tools),
      toolChoice: after.tool_choice,
      maxOutputTokens: after.max_output_tokens,
      ...(after.temperature === null ? {} : { temperature: after.temperature }),
    },
  }
}

/** The parts that differ, for the journal. Null if no part differs. */
export function requestChanges(before: MiddlewareRequest, after: MiddlewareRequest): RequestChanges | null {
  const { messages: _, ...fields } = after
  const changed = Object.entries(fields).filter(
    ([name, value]) => !isDeepStrictEqual(value, before[name as keyof typeof fields]), // a name of one of the fields
  )
  const splice = spliceOf(before.messages, after.messages)
  if (changed.length === 0 && !splice) return null
  return { ...Object.fromEntries(changed), ...(splice ? { messages: splice } : {}) }
}

function partsOf(prompt: ModelRequest['prompt']): { system: string; messages: LanguageModelV4Message[] } {
  const [first, ...rest] = prompt
  return first?.role === 'system'
    ? { system: first.content, messages: rest }
    : { system: '', messages: first ? [first, ...rest] : [] }
}

function messageView(message: LanguageModelV4Message): MiddlewareMessage {
  switch (message.role) {
    case 'user':
      return { role: 'user', content: message.content.flatMap(textOf).join('\n\n') }
    case 'assistant':
      return assistantView(message.content)
    case 'tool':
      return {
        role: 'tool',
        results: message.content.flatMap((part) => (part.type === 'tool-result' ? [resultView(part)] : [])),
      }
    case 'system':
      throw new Error('a system message stands in mid-conversation')
  }
}

const textOf = (part: { type: string; text?: string }): string[] => (part.type === 'text' ? [part.text ?? ''] : [])

function assistantView(content: Extract<LanguageModelV4Message, { role: 'assistant' }>['content']): AssistantView {
  const view: AssistantView = { role: 'assistant', content: '', tool_calls: [], reasoning: [] }
  for (const part of content) {
    const metadata = 'providerOptions' in part && part.providerOptions ? copyJson(part.providerOptions) : undefined
    const data = metadata ? { metadata: metadata as Record<string, Record<string, unknown>> } : {} // plain JSON
    if (part.type === 'text') view.content += part.text
    if (part.type === 'reasoning') view.reasoning.push({ text: part.text, ...data })
    if (part.type === 'tool-call') {
      const args = copyJson(part.input) as AssistantView['tool_calls'][number]['args'] // assistantMessage made it an object
      view.tool_calls.push({ id: part.toolCallId, name: part.toolName, args, ...data })
    }
  }
  return view
}

function resultView({ toolCallId, toolName, output }: LanguageModelV4ToolResultPart) {
  const isError = output.type === 'error-text' || output.type === 'error-json'
  const result: unknown = 'value' in output ? copyJson(output.value) : null
  return { call_id: toolCallId, name: toolName, result, is_error: isError }
}

/** Returns no message if a message of the model is empty, because providers refuse empty messages. */
function toMessage(view: MiddlewareMessage): LanguageModelV4Message[] {
  switch (view.role) {
    case 'user':
      return [userMessage(view.content)]
    case 'assistant': {
      const parts = view.reasoning.map(({ text, metadata }) => ({
        text,
        ...(metadata ? { metadata: metadata as SharedV4ProviderMetadata } : {}), // checked to be JSON
      }))
      const message = assistantMessage(view.content, view.tool_calls, parts)
      return message ? [message] : []
    }
    case 'tool':
      return [{ role: 'tool', content: view.results.map(resultPart) }]
  }
}

/** The one range of messages that differs; the messages before and after it are the same in both. */
function spliceOf(
  before: readonly MiddlewareMessage[],
  after: readonly MiddlewareMessage[],
): RequestChanges['messages'] | null {
  const shorter = Math.min(before.length, after.length)
  let at = 0
  while (at < shorter && isDeepStrictEqual(before[at], after[at])) at++
  let behind = 0
  while (behind < shorter - at && isDeepStrictEqual(before.at(-1 - behind), after.at(-1 - behind))) behind++
  const removed = before.length - at - behind
  const added = after.slice(at, after.length - behind)
  return removed === 0 && added.length === 0 ? null : { at, removed, added }
}

/** An unchanged tool stays the same object, because providers and the token estimate recognise it. */
function changeTools(
  tools: readonly LanguageModelV4FunctionTool[],
  before: MiddlewareRequest['tools'],
  after: MiddlewareRequest['tools'],
): LanguageModelV4FunctionTool[] {
  const shownOf = new Map(before.map((shown) => [shown.name, shown]))
  const toolOf = new Map(tools.map((tool) => [tool.name, tool]))
  return after.flatMap((shown) => {
    const tool = toolOf.get(shown.name)
    if (!tool) return []
    if (isDeepStrictEqual(shown, shownOf.get(shown.name))) return [tool]
    return [{ ...tool, description: shown.description, inputSchema: shown.input_schema }]
  })
}

function problemOf(before: MiddlewareRequest, after: MiddlewareRequest): string | null {
  if (!isDeepStrictEqual(before.answer_schema, after.answer_schema)) return 'answer_schema cannot be changed'
  if (after.max_output_tokens > before.max_output_tokens) {
    return `max_output_tokens is ${after.max_output_tokens}, and may be ${before.max_output_tokens} at most`
  }
  const names = new Set(before.tools.map(({ name }) => name))
  for (const { name } of after.tools) {
    if (!names.delete(name)) return `tools names "${name}" twice, or the request did not have it`
  }
  // A history that was shortened may have lost a call or a result already.
  return pairProblem(before.messages) === null ? pairProblem(after.messages) : null
}

/** Every provider refuses a call without its result, and a result without its call. */
function pairProblem(messages: readonly MiddlewareMessage[]): string | null {
  for (const [index, message] of messages.entries()) {
    const previous = index > 0 ? messages[index - 1] : undefined
    const asked = previous?.role === 'assistant' ? previous.tool_calls.map(({ id }) => id) : []
    const given = message.role === 'tool' ? message.results.map((result) => result.call_id) : []
    if (!isDeepStrictEqual([...asked].sort(), [...given].sort())) {
      return `messages.${index}: the results of all tool calls before it, and no others, must stand there`
    }
  }
  const last = messages.at(-1)
  return last?.role === 'assistant' && last.tool_calls.length > 0
    ? 'messages ends with tool calls that have no results'
    : null
}
