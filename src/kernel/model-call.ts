import type { LanguageModelV4FunctionTool, LanguageModelV4Prompt, SharedV4ProviderMetadata } from '@ai-sdk/provider'
import type { JsonSchema } from './tool.ts'

export interface ModelRequest {
  prompt: LanguageModelV4Prompt
  tools: readonly LanguageModelV4FunctionTool[]
  /** With `none` the tools are shown, because the history names them, but may not be called. */
  toolChoice: 'auto' | 'none'
  maxOutputTokens: number
  temperature?: number
  /** Asks for JSON that fits the schema, under this name. */
  answerSchema?: { name: string; schema: JsonSchema }
}

export interface CallUsage {
  inputTokens: number
  outputTokens: number
  /** True if the provider gave no figures (a cut stream, a server that does not count) and Muster estimated them. */
  isEstimated: boolean
}

/** A tool call as the model asked for it. `input` is the raw text, which may be no JSON. */
export interface RequestedCall {
  id: string
  name: string
  input: string
  /** Data that the provider wants back with the history (a thought signature). */
  metadata?: SharedV4ProviderMetadata
}

export interface ReasoningPart {
  text: string
  metadata?: SharedV4ProviderMetadata
}

/** Failures are data: a model call never throws. */
export type ModelOutcome =
  | {
      kind: 'answered'
      text: string
      reasoning: ReasoningPart[]
      calls: RequestedCall[]
      /** The SDK's unified reason; only `stop` and `tool-calls` are good endings. */
      finishReason: string
      usage: CallUsage
    }
  | {
      kind: 'failed'
      /** True for 408, 429, 5xx, cut streams and lost connections, which may pass; other refusals will not. */
      isRetryable: boolean
      /** The wait that Retry-After asked for. */
      retryAfterMs: number | null
      /** quota: the quota is used up · context: the request is too long for the model. */
      reason?: 'quota' | 'context' | undefined
      message: string
      text: string
      usage: CallUsage
    }
  | { kind: 'aborted'; text: string; usage: CallUsage }

export interface ModelCallOptions {
  signal: AbortSignal
  onText: (delta: string) => void
}

export interface Model {
  call(request: ModelRequest, options: ModelCallOptions): Promise<ModelOutcome>
  /** The most tokens of one request, input and output together. */
  contextTokens: number
  /** USD per million tokens; null if the price is unknown. */
  price: { input: number; output: number } | null
}
