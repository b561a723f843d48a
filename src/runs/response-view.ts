// An answer of a model as middleware sees it, and back.
import { isDeepStrictEqual } from 'node:util'
import type { SharedV4ProviderMetadata } from '@ai-sdk/provider'
import { copyJson } from '../kernel/copy-json.ts'
import type { MiddlewareResponse } from '../kernel/middleware.ts'
import type { ModelOutcome } from '../kernel/model-call.ts'
import { parseArguments } from './judge-calls.ts'

export type Answered = Extract<ModelOutcome, { kind: 'answered' }>

/** The view is a copy: nothing of the answer can be changed through it. */
export function responseView({ text, calls, reasoning, finishReason, usage }: Answered): MiddlewareResponse {
  return {
    text,
    tool_calls: calls.map(({ id, name, input, metadata }) => ({
      id,
      name,
      args: parseArguments(input).args,
      ...toData(metadata),
    })),
    reasoning: reasoning.map((part) => ({ text: part.text, ...toData(part.metadata) })),
    finish_reason: finishReason,
    usage: { input_tokens: usage.inputTokens, output_tokens: usage.outputTokens, estimated: usage.isEstimated },
  }
}

/** The changed answer, or the problem with the change. */
export function changeResponse(
  answered: Answered,
  after: MiddlewareResponse,
): { ok: true; answered: Answered } | { ok: false; problem: string } {
  const { usage } = responseView(answered)
  if (!isDeepStrictEqual(after.usage, usage)) return { ok: false, problem: 'usage cannot be changed' }
  // Middleware that removes all calls need not change finish_reason.
  const hasNoneLeft = after.tool_calls.length === 0 && answered.calls.length > 0
  return {
    ok: true,
    answered: {
      ...answered,
      text: after.text,
      calls: after.tool_calls.map(({ id, name, args, metadata }) => ({
        id,
        name,
        input: typeof args === 'string' ? args : JSON.stringify(args),
        ...toMetadata(metadata),
      })),
      reasoning: after.reasoning.map((part) => ({ text: part.text, ...toMetadata(part.metadata) })),
      finishReason: hasNoneLeft && after.finish_reason === 'tool-calls' ? 'stop' : after.finish_reason,
    },
  }
}

type Data = Record<string, Record<string, unknown>>

const toData = (metadata: SharedV4ProviderMetadata | undefined): { metadata?: Data } =>
  metadata ? { metadata: copyJson(metadata) as Data } : {} // plain JSON

const toMetadata = (data: Data | undefined): { metadata?: SharedV4ProviderMetadata } =>
  data ? { metadata: data as SharedV4ProviderMetadata } : {} // checked to be JSON
