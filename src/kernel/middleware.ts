// Middleware of an app module: functions around the model calls and tool calls of runs. These shapes, which middleware
// sees, stay as they are when Muster changes inside.
import { z } from 'zod'

/** Data that the provider wants back with the history, like a thought signature. Leave it in its place. */
const metadata = z.record(z.string(), z.record(z.string(), z.unknown())).optional()

const call = {
  id: z.string(),
  name: z.string(),
  /** The arguments, or the model's own text if it is no JSON object. */
  args: z.union([z.record(z.string(), z.unknown()), z.string()]),
}

const requestedCall = z.strictObject({ ...call, metadata })

const reasoning = z.array(z.strictObject({ text: z.string(), metadata }))

const message = z.discriminatedUnion('role', [
  z.strictObject({ role: z.literal('user'), content: z.string() }),
  z.strictObject({
    role: z.literal('assistant'),
    content: z.string(),
    tool_calls: z.array(requestedCall).default([]),
    reasoning: reasoning.default([]),
  }),
  /** The results of all calls of the message before, in the order of the calls. */
  z.strictObject({
    role: z.literal('tool'),
    results: z
      .array(z.strictObject({ call_id: z.string(), name: z.string(), result: z.unknown(), is_error: z.boolean() }))
      .min(1),
  }),
])

const shownTool = z.strictObject({
  name: z.string(),
  description: z.string(),
  input_schema: z.record(z.string(), z.unknown()),
})

const request = {
  system: z.string(),
  /** Tools may be left out or described differently; others cannot be added. */
  tools: z.array(shownTool),
  tool_choice: z.enum(['auto', 'none']),
  /** A hook may lower this limit. */
  max_output_tokens: z.int().min(1),
  temperature: z.number().nullable(),
  /** The JSON that is asked for, by name, like `supervisor_decision`. A hook cannot change the schema. */
  answer_schema: z.strictObject({ name: z.string(), schema: z.record(z.string(), z.unknown()) }).nullable(),
}

const systemMessage = z.strictObject({ role: z.literal('system'), content: z.string() })

/** A request that a hook returned. System messages among its messages join the instructions: providers refuse them there. */
export const middlewareRequest = z
  .strictObject({ ...request, messages: z.array(z.union([message, systemMessage])) })
  .transform(({ system, messages, ...rest }) => ({
    ...rest,
    system: [system, ...messages.flatMap((each) => (each.role === 'system' ? [each.content] : []))]
      .filter((text) => text !== '')
      .join('\n\n'),
    messages: messages.filter((each) => each.role !== 'system'),
  }))
  .refine(({ messages }) => messages.length > 0, { path: ['messages'], message: 'there must be at least one message' })

export const middlewareResponse = z.strictObject({
  text: z.string(),
  tool_calls: z.array(requestedCall),
  reasoning,
  /** `stop`, `tool-calls`, `length`, `content-filter`, or another word of the provider's. */
  finish_reason: z.string().min(1).max(100),
  /** The tokens that the call took. A hook cannot change these figures. */
  usage: z.strictObject({ input_tokens: z.number(), output_tokens: z.number(), estimated: z.boolean() }),
})

export type MiddlewareMessage = z.output<typeof message>
export type MiddlewareRequest = z.output<typeof middlewareRequest>
export type ChangedRequest = Partial<z.input<typeof middlewareRequest>>
export type MiddlewareResponse = z.output<typeof middlewareResponse>

/** A tool call that is about to be made, or was made. `args` are checked, with their defaults filled in. */
export interface MiddlewareCall {
  id: string
  name: string
  args: Record<string, unknown>
}

export interface MiddlewareContext {
  run_id: string
  project_id: string
  /** The agent's name; in a supervisor system `supervisor`, `finalizer`, `hitl_escalation` or a specialist. */
  agent: string
  /** The ordinal of the model call; for a tool call, the ordinal of the model call that asked for it. */
  step: number
}

/** The parts of a request that middleware changed, as the model saw them. */
export interface RequestChanges extends Partial<Omit<MiddlewareRequest, 'messages'>> {
  /** From the place `at` on, `removed` messages were taken out and the messages in `added` were put in. */
  messages?: { at: number; removed: number; added: MiddlewareMessage[] }
}

/** The signal fires when the run is cancelled, stopped or late, or the hook has taken longer than `tool_timeout`. */
interface Heeded {
  ctx: MiddlewareContext
  signal: AbortSignal
}

type Returned<Value> = Value | undefined | Promise<Value | undefined>

/**
 * Hooks are awaited, in the order of the list. Each is given a copy; only the value that it returns counts, and the
 * parts that it does not return stay as they are. The hooks of a finished step are never repeated; those of a step that
 * a crash cut off, or that is tried again, are.
 */
export interface Middleware {
  /** Before each request to a model, retries included. A throw fails the run with MIDDLEWARE_ERROR. */
  beforeModel?(given: Heeded & { request: MiddlewareRequest }): Returned<ChangedRequest>
  /** After each whole answer of a model. A throw fails the run with MIDDLEWARE_ERROR. */
  afterModel?(given: Heeded & { response: MiddlewareResponse }): Returned<Partial<MiddlewareResponse>>
  /** If the hook returns `{result}`, the model gets that result without a call. A throw is an error result. */
  beforeTool?(given: Heeded & { call: MiddlewareCall }): Returned<{ result: unknown; is_error?: boolean }>
  /** `result` is as the model will see it; an error has the form `{error}`. A throw is an error result. */
  afterTool?(given: Heeded & { call: MiddlewareCall; result: unknown; is_error: boolean }): unknown
  /** True if text is streamed before `afterModel` has seen it. By default text is shown once `afterModel` is done. */
  live?: boolean
}
