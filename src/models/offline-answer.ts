// The next words of the offline model, as a pure function of the conversation. The rules are in offline-model.ts.
import type {
  LanguageModelV4CallOptions,
  LanguageModelV4FunctionTool,
  LanguageModelV4Prompt,
  LanguageModelV4ToolResultOutput,
} from '@ai-sdk/provider'
import { canonicalJson } from '../kernel/canonical-json.ts'
import { argumentsFor, type Message, parsed, readMessage } from './offline-arguments.ts'
import { type SchemaNode, schemaInstance } from './schema-instance.ts'

export interface OfflineAnswer {
  text: string
  call: { id: string; name: string; input: string } | null
}

interface Conversation {
  /** The newest user message; if that is an event of the graph, the agent's instructions instead. */
  task: string
  /** The object of the event, if the message is one. */
  objectId: string | null
  /** The tool results after the message. */
  results: { name: string; text: string; isError: boolean }[]
  made: Set<string>
  /** The number of tool calls in the whole conversation. */
  callCount: number
  hasSpoken: boolean
}

export function offlineAnswer(options: LanguageModelV4CallOptions): OfflineAnswer {
  const conversation = readConversation(options.prompt)
  const format = options.responseFormat
  if (options.toolChoice?.type !== 'none') {
    const tools = (options.tools ?? []).filter((tool) => tool.type === 'function')
    for (const { tool, args } of wishes(tools, conversation)) {
      if (conversation.made.has(keyOf(tool.name, args))) continue
      const id = `offline_${conversation.callCount + 1}`
      return { text: '', call: { id, name: tool.name, input: JSON.stringify(args) } }
    }
  }
  if (format?.type === 'json') {
    // A JSON Schema is a plain object here; a boolean schema asks for nothing.
    return { text: JSON.stringify(schemaInstance((format.schema ?? { type: 'object' }) as SchemaNode)), call: null }
  }
  const text = options.toolChoice?.type === 'none' ? summaryOf(conversation) : answerOf(conversation)
  return { text, call: null }
}

interface Wish {
  tool: LanguageModelV4FunctionTool
  args: unknown
}

/** Every call the message asks for, in the order of the message. Each call is made up only when the caller needs it. */
function* wishes(
  tools: readonly LanguageModelV4FunctionTool[],
  { task, objectId, hasSpoken }: Conversation,
): Generator<Wish> {
  const message = readMessage(task)
  const byName = new Map(tools.map((tool) => [tool.name, tool]))
  const names = [...byName.keys()].filter((name) => name !== 'finish_loop')
  const named = new Set<string>()
  for (const { word, at } of message.placesOf(names)) {
    const tool = byName.get(word)
    if (!tool) continue
    named.add(word)
    yield { tool, args: aboutObject(tool, objectId, argumentsFor(tool, message, message.text.slice(at))) }
  }
  const meant: [name: string, isMeant: (message: Message) => boolean][] = [
    ['http_fetch', ({ url }) => url() !== null],
    ['spawn_agent', ({ delegation }) => delegation() !== null],
    ['ask_human', ({ hasWord }) => hasWord('ask') || hasWord('human')],
    ['finish_loop', () => hasSpoken],
  ]
  for (const [name, isMeant] of meant) {
    const tool = byName.get(name)
    if (tool && !named.has(name) && isMeant(message)) yield { tool, args: argumentsFor(tool, message, null) }
  }
}

/** In answer to an event, a tool that wants an id is called for the object of that event. */
function aboutObject(tool: LanguageModelV4FunctionTool, objectId: string | null, args: unknown): unknown {
  const takesId = typeof tool.inputSchema.properties === 'object' && 'id' in tool.inputSchema.properties
  return objectId !== null && takesId && args !== null && typeof args === 'object' ? { id: objectId, ...args } : args
}

function answerOf({ task, results }: Conversation): string {
  if (results.length === 0) return `You said: ${quoted(task)} This is the offline model, which answers without a key.`
  return `Done: ${quoted(task)} ${results.map(toldOf).join(' ')}`
}

function summaryOf({ task, results }: Conversation): string {
  const told = results.length === 0 ? 'No tool was called.' : results.map(toldOf).join(' ')
  return `Summary so far: the task is ${quoted(task)} ${told}`
}

function toldOf({ name, text, isError }: Conversation['results'][number]): string {
  return `${name} ${isError ? 'failed' : 'answered'}: ${quoted(text)}`
}

const LONGEST_QUOTE = 300
/** White space is left out of a quote, so more text than a quote holds is read, but no more than this. */
const LONGEST_QUOTED = 10_000

function quoted(text: string): string {
  const plain = text.slice(0, LONGEST_QUOTED).replace(/\s+/g, ' ').trim()
  return `"${plain.length > LONGEST_QUOTE ? `${plain.slice(0, LONGEST_QUOTE)}…` : plain}".`
}

function readConversation(prompt: LanguageModelV4Prompt): Conversation {
  const read: Conversation = { task: '', objectId: null, results: [], made: new Set(), callCount: 0, hasSpoken: false }
  let instructions = ''
  for (const message of prompt) {
    if (message.role === 'system') {
      instructions = message.content
      continue
    }
    if (message.role === 'user') {
      const said = message.content.map((part) => (part.type === 'text' ? part.text : '')).join(' ')
      read.objectId = objectOfEvent(said)
      read.task = read.objectId === null ? said : instructions
      read.results = []
      read.made = new Set()
      continue
    }
    for (const part of message.content) {
      if (part.type === 'text' && part.text.trim() !== '') read.hasSpoken = true
      if (part.type === 'tool-call') {
        read.callCount += 1
        read.made.add(keyOf(part.toolName, part.input))
      }
      if (part.type === 'tool-result') read.results.push({ name: part.toolName, ...readOutput(part.output) })
    }
  }
  return read
}

/** Twice the largest object there is. */
const LONGEST_EVENT = 2_097_152

/** The input of a reacting agent is JSON; any other text is no event. */
function objectOfEvent(said: string): string | null {
  const event = said.startsWith('{') && said.length <= LONGEST_EVENT ? parsed(said) : null
  const object = typeof event?.event === 'string' ? event.object : null
  const isOne = object !== null && typeof object === 'object' && 'id' in object && typeof object.id === 'string'
  return isOne ? String(object.id) : null
}

function readOutput(output: LanguageModelV4ToolResultOutput): { text: string; isError: boolean } {
  switch (output.type) {
    case 'text':
      return { text: output.value, isError: false }
    case 'error-text':
      return { text: output.value, isError: true }
    case 'json':
      return { text: JSON.stringify(output.value), isError: false }
    case 'error-json':
      return { text: JSON.stringify(output.value), isError: true }
    case 'execution-denied':
      return { text: output.reason ?? 'denied', isError: true }
    case 'content':
      return { text: output.value.map((part) => (part.type === 'text' ? part.text : '')).join(' '), isError: false }
  }
}

const keyOf = (name: string, args: unknown): string => `${name} ${canonicalJson(args)}`
