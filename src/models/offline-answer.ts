// The next words of the offline model, as a pure function of the conversation. The rules are in offline-model.ts.
import type {
  LanguageModelV4CallOptions,
  LanguageModelV4FunctionTool,
  LanguageModelV4Prompt,
  LanguageModelV4ToolResultOutput,
} from '@ai-sdk/provider'
import { canonicalJson } from '../kernel/canonical-json.ts'
import { argumentsFor, hasObjectAt, LONGEST_MESSAGE, type Message, parsed, readMessage } from './offline-arguments.ts'
import { offlineDecision } from './offline-decisions.ts'
import { type Assignment, offlineProse, offlineSummary, type ToldResult } from './offline-prose.ts'
import { writeAsNode } from './offline-supervisor.ts'
import { readSystemMessage, type SystemMessage } from './offline-system-message.ts'
import { ordersIn, readContinuation, readTaskMessage } from './offline-tasks.ts'
import { type SchemaNode, schemaInstance } from './schema-instance.ts'

export interface OfflineAnswer {
  text: string
  call: { id: string; name: string; input: string } | null
}

interface Conversation extends Assignment {
  message: string
  /** The message taken apart, if it is a prompt of a supervisor system. */
  system: SystemMessage | null
  /** The words that tell what to do, and may name tools. */
  orders: string
  results: ToldResult[]
  /** The calls that were made since the message, and whether each has failed. */
  made: Map<string, { hasFailed: boolean }>
  /** The number of tool calls in the whole conversation. */
  callCount: number
  hasSpoken: boolean
  said: string
}

export function offlineAnswer(options: LanguageModelV4CallOptions): OfflineAnswer {
  const conversation = readConversation(options.prompt)
  const format = options.responseFormat
  if (options.toolChoice?.type !== 'none') {
    const tools = (options.tools ?? []).filter((tool) => tool.type === 'function')
    const insists = INSISTS.test(conversation.orders.slice(0, LONGEST_MESSAGE))
    for (const { tool, args } of wishes(tools, conversation)) {
      const before = conversation.made.get(keyOf(tool.name, args))
      if (before && !(before.hasFailed && insists)) continue
      const id = `offline_${conversation.callCount + 1}`
      return { text: '', call: { id, name: tool.name, input: JSON.stringify(args) } }
    }
  }
  if (format?.type === 'json') {
    const asked = conversation.system ? conversation.message : conversation.task
    const decision = offlineDecision(format.name, asked, conversation.said)
    // A JSON Schema is a plain object here; a boolean schema asks for nothing.
    const value = decision ?? schemaInstance((format.schema ?? { type: 'object' }) as SchemaNode)
    return { text: JSON.stringify(value), call: null }
  }
  const written = conversation.system && writeAsNode(conversation.system)
  if (written) return { text: written, call: null }
  const text = options.toolChoice?.type === 'none' ? offlineSummary(conversation) : offlineProse(conversation)
  return { text, call: null }
}

/** With these words a call that failed is made again; the guard against doom loops ends the repetition. */
const INSISTS = /\buntil (?:it|they|this|that) (?:works?|succeeds?)\b/i

interface Wish {
  tool: LanguageModelV4FunctionTool
  args: unknown
}

/** Every call the message asks for, in the order of the message. Each call is made up only when the caller needs it. */
function* wishes(
  tools: readonly LanguageModelV4FunctionTool[],
  { orders, objectId, hasSpoken }: Conversation,
): Generator<Wish> {
  const message = readMessage(orders)
  const byName = new Map(tools.map((tool) => [tool.name, tool]))
  const names = [...byName.keys()].filter((name) => name !== 'finish_loop')
  const named = new Set<string>()
  for (const { word, at } of message.placesOf(names)) {
    const tool = byName.get(word)
    if (!tool) continue
    // A text may name a tool several times: all places without arguments of their own make one call.
    if (named.has(word) && !hasObjectAt(message.text, at)) continue
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

function readConversation(prompt: LanguageModelV4Prompt): Conversation {
  const read: Conversation = {
    message: '',
    system: null,
    task: '',
    instructions: '',
    orders: '',
    objectId: null,
    results: [],
    made: new Map(),
    callCount: 0,
    hasSpoken: false,
    said: '',
  }
  const keys = new Map<string, string>()
  for (const message of prompt) {
    if (message.role === 'system') {
      read.instructions = message.content
      continue
    }
    if (message.role === 'user') {
      const said = message.content.map((part) => (part.type === 'text' ? part.text : '')).join(' ')
      const continued = readContinuation(said)
      if (continued) {
        // The earlier messages hold the task; calls that failed may be made again.
        if (continued.advice !== '') read.orders = `${read.orders}\n\n${continued.advice}`
        for (const [key, call] of read.made) if (call.hasFailed) read.made.delete(key)
        continue
      }
      read.message = said
      read.system = readSystemMessage(said)
      // A specialist is told its part of the task; the plan and the summaries beside it ask for nothing.
      const told = read.system?.task ?? said
      read.earlier = read.system?.history.map(({ agent_name: name }) => name)
      read.objectId = objectOfEvent(told)
      read.task = read.objectId === null ? told : read.instructions
      read.orders = read.objectId === null ? ordersOf(told, read.instructions) : read.instructions
      read.results = []
      read.made = new Map()
      continue
    }
    for (const part of message.content) {
      if (part.type === 'text' && part.text.trim() !== '') {
        read.hasSpoken = true
        read.said = part.text
      }
      if (part.type === 'tool-call') {
        read.callCount += 1
        const key = keyOf(part.toolName, part.input)
        keys.set(part.toolCallId, key)
        read.made.set(key, { hasFailed: false })
      }
      if (part.type === 'tool-result') {
        const result = { name: part.toolName, ...readOutput(part.output) }
        read.results.push(result)
        read.made.set(keys.get(part.toolCallId) ?? '', { hasFailed: result.isError })
      }
    }
  }
  return read
}

/** An agent that is to help a stuck agent follows its own prompt; any other task contains its orders. */
function ordersOf(said: string, instructions: string): string {
  const task = readTaskMessage(said.slice(0, LONGEST_MESSAGE))
  if (!task) return said
  return task.stuck ? instructions : ordersIn(task)
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
