// The part of an answer that has arrived so far. This code runs for every part of every stream, so it does little.
import type { LanguageModelV4StreamPart, LanguageModelV4Usage, SharedV4ProviderMetadata } from '@ai-sdk/provider'
import type { CallUsage, ModelRequest, ReasoningPart, RequestedCall } from '../kernel/model-call.ts'
import { estimateInputTokens, estimateOutputTokens } from './estimate-tokens.ts'

export interface Gathered {
  text: string
  reasoning: ReasoningPart[]
  calls: RequestedCall[]
  /** Characters of text, reasoning and arguments, counted to stop an endless answer. */
  length: number
  /** Reasoning parts by the id the stream gives them; the map is made when the first arrives. */
  openReasoning: Map<string, ReasoningPart> | null
}

export const nothingGathered = (): Gathered => ({
  text: '',
  reasoning: [],
  calls: [],
  length: 0,
  openReasoning: null,
})

/** Gathers every part but text, errors and the end, which the caller handles itself. */
export function gatherPart(gathered: Gathered, part: LanguageModelV4StreamPart): void {
  switch (part.type) {
    case 'reasoning-start':
    case 'reasoning-end':
      gatherReasoning(gathered, part.id, '', part.providerMetadata)
      break
    case 'reasoning-delta':
      gatherReasoning(gathered, part.id, part.delta, part.providerMetadata)
      break
    case 'tool-input-delta':
      gathered.length += part.delta.length
      break
    case 'tool-call':
      if (part.providerExecuted) break
      gathered.calls.push({
        id: part.toolCallId,
        name: part.toolName,
        // Some providers send an empty text for a tool without arguments.
        input: part.input === '' ? '{}' : part.input,
        ...(part.providerMetadata && { metadata: part.providerMetadata }),
      })
      break
  }
}

/** The last metadata of a part counts: a signature comes at the part's end. */
function gatherReasoning(
  gathered: Gathered,
  id: string,
  delta: string,
  metadata: SharedV4ProviderMetadata | undefined,
): void {
  gathered.openReasoning ??= new Map()
  let part = gathered.openReasoning.get(id)
  if (!part) {
    part = { text: '' }
    gathered.openReasoning.set(id, part)
    gathered.reasoning.push(part)
  }
  part.text += delta
  gathered.length += delta.length
  if (metadata) part.metadata = metadata
}

/** The provider's figures if it gave any. A server that does not count gives none, or two zeros. */
export function usageOf(
  reported: LanguageModelV4Usage | undefined,
  request: ModelRequest,
  gathered: Gathered,
): CallUsage {
  const inputTokens = reported?.inputTokens?.total
  const outputTokens = reported?.outputTokens?.total
  if (isCount(inputTokens) && isCount(outputTokens) && inputTokens + outputTokens > 0) {
    return { inputTokens, outputTokens, isEstimated: false }
  }
  return {
    inputTokens: estimateInputTokens(request),
    outputTokens: estimateOutputTokens(gathered.text, gathered.reasoning, gathered.calls),
    isEstimated: true,
  }
}

const isCount = (value: number | undefined): value is number => Number.isFinite(value) && (value ?? -1) >= 0
