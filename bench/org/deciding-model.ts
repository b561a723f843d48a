// A model that answers at once: with the decisions that the bench needs, and with one word to everything else.
import type { LanguageModelV4, LanguageModelV4StreamPart, LanguageModelV4Usage } from '@ai-sdk/provider'

const USAGE: LanguageModelV4Usage = {
  inputTokens: { total: 400, noCache: 400, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 40, text: 40, reasoning: 0 },
}

export function createDecidingModel(onCall: (prompt: string) => void, subordinate: string | null): LanguageModelV4 {
  return {
    specificationVersion: 'v4',
    provider: 'bench',
    modelId: 'deciding',
    supportedUrls: {},
    doStream: async ({ prompt, responseFormat }) => {
      const asked = responseFormat?.type === 'json' ? responseFormat.name : undefined
      const [, message] = prompt
      const part = message?.role === 'user' ? message.content[0] : undefined
      onCall(part?.type === 'text' ? part.text : '')
      return { stream: streamOf(answerTo(asked, subordinate)) }
    },
    doGenerate: async () => {
      throw new Error('this model only streams')
    },
  }
}

function answerTo(asked: string | undefined, subordinate: string | null): string {
  if (asked === 'delegation_decision') {
    return JSON.stringify({ delegate: subordinate !== null, subordinate, reasoning: 'It suits the task.' })
  }
  return asked === 'task_plan' ? '{"subtasks":[]}' : 'Done.'
}

function streamOf(text: string): ReadableStream<LanguageModelV4StreamPart> {
  const parts: LanguageModelV4StreamPart[] = [
    { type: 'stream-start', warnings: [] },
    { type: 'text-start', id: 'text' },
    { type: 'text-delta', id: 'text', delta: text },
    { type: 'text-end', id: 'text' },
    { type: 'finish', finishReason: { unified: 'stop', raw: 'stop' }, usage: USAGE },
  ]
  return new ReadableStream({
    start(controller) {
      for (const part of parts) controller.enqueue(part)
      controller.close()
    },
  })
}
