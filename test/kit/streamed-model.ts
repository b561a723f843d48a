// An AI SDK model without a network: a test writes its stream.
import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4StreamPart } from '@ai-sdk/provider'

export type StreamOf = (
  options: LanguageModelV4CallOptions,
) => ReadableStream<LanguageModelV4StreamPart> | Promise<ReadableStream<LanguageModelV4StreamPart>>

export function createStreamedModel(streamOf: StreamOf): LanguageModelV4 {
  return {
    specificationVersion: 'v4',
    provider: 'scripted',
    modelId: 'scripted',
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error('only streams')),
    doStream: async (options) => ({ stream: await streamOf(options) }),
  }
}

/** The parts, then the end; or an error after them; or silence. */
export function partStream(
  parts: readonly LanguageModelV4StreamPart[],
  ending: 'close' | 'silence' | { error: unknown } = 'close',
  onCancel: () => void = () => undefined,
): ReadableStream<LanguageModelV4StreamPart> {
  let next = 0
  return new ReadableStream({
    pull(controller) {
      const part = parts[next]
      next += 1
      if (part) return controller.enqueue(part)
      if (ending === 'close') return controller.close()
      if (ending === 'silence') return new Promise(() => undefined)
      controller.error(ending.error)
    },
    cancel: onCancel,
  })
}

export const textPart = (delta: string): LanguageModelV4StreamPart => ({ type: 'text-delta', id: 't', delta })

export function finishPart(
  unified: 'stop' | 'length' | 'content-filter' | 'tool-calls' | 'error' | 'interrupted' | 'other' = 'stop',
  input: number | undefined = 7,
  output: number | undefined = 3,
): LanguageModelV4StreamPart {
  return {
    type: 'finish',
    finishReason: { unified, raw: unified },
    usage: {
      inputTokens: { total: input, noCache: input, cacheRead: undefined, cacheWrite: undefined },
      outputTokens: { total: output, text: output, reasoning: undefined },
    },
  }
}
