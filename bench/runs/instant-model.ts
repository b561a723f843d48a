// The same work for every side: a model that answers at once, in parts, and asks for one tool call in each step but the
// last, which has only text.
import type { LanguageModelV4, LanguageModelV4StreamPart, LanguageModelV4Usage } from '@ai-sdk/provider'

export interface Script {
  steps: number
  /** Pieces of text in each step. */
  parts: number
}

export const TOOL = {
  name: 'look_up',
  description: 'Looks something up.',
  inputSchema: {
    type: 'object',
    properties: { topic: { type: 'string' }, page: { type: 'integer' } },
    required: ['topic', 'page'],
    additionalProperties: false,
  },
} as const

export const lookUp = (): { found: string; isLast: boolean } => ({ found: 'what was looked for', isLast: false })

/** The call of a step, counted from 1. The arguments differ in each step, because repeated calls are refused. */
export const argumentsOf = (step: number): { topic: string; page: number } => ({ topic: 'benches', page: step })

export const textPart = (index: number): string => `piece ${index} `

export function createInstantModel({ steps, parts }: Script): LanguageModelV4 {
  const answers = Array.from({ length: steps }, (_, index) => answerOf(index + 1, index + 1 === steps, parts))
  return {
    specificationVersion: 'v4',
    provider: 'bench',
    modelId: 'instant',
    supportedUrls: {},
    doStream: async ({ prompt }) => {
      let said = 0
      for (const message of prompt) if (message.role === 'assistant') said++
      return { stream: streamOf(answers[said] ?? []) }
    },
    doGenerate: async () => {
      throw new Error('this model only streams')
    },
  }
}

const USAGE: LanguageModelV4Usage = {
  inputTokens: { total: 400, noCache: 400, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 40, text: 40, reasoning: 0 },
}

function answerOf(step: number, isLast: boolean, parts: number): LanguageModelV4StreamPart[] {
  const unified = isLast ? 'stop' : 'tool-calls'
  const call = { type: 'tool-call', toolCallId: `call_${step}`, toolName: TOOL.name } as const
  return [
    { type: 'stream-start', warnings: [] },
    { type: 'text-start', id: 'text' },
    ...Array.from({ length: parts }, (_, index) => textDelta(textPart(index))),
    { type: 'text-end', id: 'text' },
    ...(isLast ? [] : [{ ...call, input: JSON.stringify(argumentsOf(step)) }]),
    { type: 'finish', finishReason: { unified, raw: unified }, usage: USAGE },
  ]
}

const textDelta = (delta: string) => ({ type: 'text-delta', id: 'text', delta }) as const

function streamOf(parts: readonly LanguageModelV4StreamPart[]): ReadableStream<LanguageModelV4StreamPart> {
  return new ReadableStream({
    start(controller) {
      for (const part of parts) controller.enqueue(part)
      controller.close()
    },
  })
}
