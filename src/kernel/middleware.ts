// Middleware of an app module: functions around the model calls and the tool calls of runs, for policies, safety checks
// and transformations. These are the shapes that middleware sees. They stay as they are when Muster changes inside.
import { z } from 'zod'

/** Data that the provider wants back with the history, like a thought signature. Leave it where it is. */
const metadata = z.record(z.string(), z.record(z.string(), z.unknown())).optional()

const call = {
  id: z.string(),
  name: z.string(),
  /** The arguments, or the model's own text where it is no JSON object. */
  args: z.union([z.record(z.string(), z.unknown()), z.string()]),
}

/** A tool call as the model asked for it. */
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
  /** May be lowered. */
  max_output_tokens: z.int().min(1),
  temperature: z.number().nullable(),
  /** The JSON that is asked for, under this name: `supervisor_decision`, for example. Cannot be changed. */
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
  /** The tokens that the call took. Cannot be changed. */
  usage: z.strictObject({ input_tokens: z.number(), output_tokens: z.number(), estimated: z.boolean() }),
})

export type MiddlewareMessage = z.output<typeof message>
/** A request to a model. */
export type MiddlewareRequest = z.output<typeof middlewareRequest>
export type ChangedRequest = Partial<z.input<typeof middlewareRequest>>
/** The answer of a model. */
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
  /** The agent's name. Of a supervisor system: `supervisor`, `finalizer`, `hitl_escalation`, or the specialist's name. */
  agent: string
  /** The ordinal of the model call; of a tool call, the step that asked for it. */
  step: number
}

/** The parts of a request that middleware changed, as the model saw them. */
export interface RequestChanges extends Partial<Omit<MiddlewareRequest, 'messages'>> {
  /** From the message at this place on, so many were taken out and these put in. */
  messages?: { at: number; removed: number; added: MiddlewareMessage[] }
}

/** The signal fires when the run is cancelled, stopped or late, or the hook has taken longer than `tool_timeout`. */
interface Heeded {
  ctx: MiddlewareContext
  signal: AbortSignal
}

type Returned<Value> = Value | undefined | Promise<Value | undefined>

/**
 * Hooks are awaited, in the order of the list. Each is given a copy of its own; what it returns counts, nothing else. Parts
 * of a request or a response that it does not return stay as they are.
 * A hook of a finished step is never repeated; one whose step was cut off by a crash or tried again is.
 */
export interface Middleware {
  /** Before each request to a model, retries included. A throw fails the run with MIDDLEWARE_ERROR. */
  beforeModel?(given: Heeded & { request: MiddlewareRequest }): Returned<ChangedRequest>
  /** After each whole answer of a model. A throw fails the run with MIDDLEWARE_ERROR. */
  afterModel?(given: Heeded & { response: MiddlewareResponse }): Returned<Partial<MiddlewareResponse>>
  /** With a `{result}` the tool is not called; the model gets that result. A throw is an error result. */
  beforeTool?(given: Heeded & { call: MiddlewareCall }): Returned<{ result: unknown; is_error?: boolean }>
  /** `result` as the model will see it; an error has the form `{error}`. A throw is an error result. */
  afterTool?(given: Heeded & { call: MiddlewareCall; result: unknown; is_error: boolean }): unknown
  /**
   * Whether text is streamed while it arrives, although `afterModel` has not seen it yet. The default is false: where a
   * middleware has an `afterModel`, text is shown once that is done.
   */
  live?: boolean
}
