// A model that needs no key and no network, so that a new installation works at once and tests of whole systems are
// deterministic: the same conversation always gets the same answer. The model understands nothing; its rules are these.
//   1. It reads the newest user message, a long one only at its beginning. Each tool named there is called, in that
//      order, one per step: with the JSON object behind the name (`search {"q": "cats"}`), else, once, with the required
//      properties filled from the message.
//   2. A URL means http_fetch, "spawn X" or "delegate … to X" spawn_agent, "ask" or "human" ask_human, if offered.
//      finish_loop is called once the model has said something. No call is made twice for the same message, unless it
//      failed and the message says "until it works".
//   3. If the message is an event of the graph, the agent's own prompt is read instead, and a tool that wants an id gets
//      the id of the event's object. In the message of a task the results and errors that it tells are not read for
//      tools; if the task is to help a stuck subordinate, the agent's own prompt is read instead (offline-tasks.ts).
//   4. Then it answers in sentences made of the words of the task and the results (offline-prose.ts). With tools
//      forbidden it writes "Summary so far: …".
//   5. Asked for a decision of Muster by name, it decides by the words of the prompt (offline-decisions.ts). Asked for
//      other JSON it gives the smallest value that fits the schema.
// Tokens are words, separated by white space, in the texts and the JSON of the request and the answer. The model named
// "paced" writes as fast as people read, so that they can watch; every other name answers at once.
import { setTimeout as wait } from 'node:timers/promises'
import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Content,
  LanguageModelV4StreamPart,
  LanguageModelV4Usage,
} from '@ai-sdk/provider'
import { type OfflineAnswer, offlineAnswer } from './offline-answer.ts'

export interface OfflineOptions {
  delayMs?: number
}

/** Milliseconds per word. */
const READING_PACE_MS = 200

export function createOfflineModel(name: string, options: OfflineOptions = {}): LanguageModelV4 {
  const delayMs = options.delayMs ?? (name === 'paced' ? READING_PACE_MS : 0)
  return {
    specificationVersion: 'v4',
    provider: 'offline',
    modelId: name,
    supportedUrls: {},
    async doStream(call) {
      const parts = partsOf(answerWithin(call), call)
      return { stream: delayMs > 0 ? slowStream(parts, delayMs, call.abortSignal) : instantStream(parts) }
    },
    async doGenerate(call) {
      const answer = answerWithin(call)
      const content: LanguageModelV4Content[] = []
      if (answer.text !== '') content.push({ type: 'text', text: answer.text })
      if (answer.call) content.push(callPart(answer.call))
      return { content, finishReason: finishReasonOf(answer), usage: usageOf(answer, call), warnings: [] }
    },
  }
}

type Answer = OfflineAnswer & { words: string[]; isCut: boolean }

function answerWithin(options: LanguageModelV4CallOptions): Answer {
  const { text, call } = offlineAnswer(options)
  const words = text.trimStart().match(/\S+\s*/g) ?? []
  const most = options.maxOutputTokens ?? Number.POSITIVE_INFINITY
  if (words.length <= most) return { text, call, words, isCut: false }
  const kept = words.slice(0, most)
  return { text: kept.join(''), call: null, words: kept, isCut: true }
}

function partsOf(answer: Answer, options: LanguageModelV4CallOptions): LanguageModelV4StreamPart[] {
  const parts: LanguageModelV4StreamPart[] = [{ type: 'stream-start', warnings: [] }]
  if (answer.words.length > 0) {
    parts.push({ type: 'text-start', id: 'text' })
    for (const delta of answer.words) parts.push({ type: 'text-delta', id: 'text', delta })
    parts.push({ type: 'text-end', id: 'text' })
  }
  if (answer.call) parts.push(callPart(answer.call))
  parts.push({ type: 'finish', finishReason: finishReasonOf(answer), usage: usageOf(answer, options) })
  return parts
}

const callPart = ({ id, name, input }: NonNullable<OfflineAnswer['call']>) =>
  ({ type: 'tool-call', toolCallId: id, toolName: name, input }) as const

function finishReasonOf(answer: Answer) {
  const unified = answer.isCut ? 'length' : answer.call ? 'tool-calls' : 'stop'
  return { unified, raw: unified } as const
}

function usageOf(answer: Answer, options: LanguageModelV4CallOptions): LanguageModelV4Usage {
  const tools = (options.tools ?? []).map((tool) => JSON.stringify(tool))
  const input =
    options.prompt.reduce((sum, { content }) => sum + contentWords(content), 0) + countWords(tools.join(' '))
  const output = answer.words.length + (answer.call ? countWords(`${answer.call.name} ${answer.call.input}`) : 0)
  return {
    inputTokens: { total: input, noCache: input, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: output, text: output, reasoning: 0 },
  }
}

function contentWords(content: LanguageModelV4CallOptions['prompt'][number]['content']): number {
  if (typeof content === 'string') return countWords(content)
  let sum = 0
  for (const part of content) sum += countWords(part.type === 'text' ? part.text : JSON.stringify(part))
  return sum
}

/** Counts letter by letter: a text of 16 MiB has millions of words, and a list of them takes ten times as long. */
function countWords(text: string): number {
  let words = 0
  let isWithin = false
  for (let at = 0; at < text.length; at += 1) {
    const isWord = !isSpace(text.charCodeAt(at))
    if (isWord && !isWithin) words += 1
    isWithin = isWord
  }
  return words
}

/** The white space that \s of a regular expression matches. */
const isSpace = (code: number): boolean =>
  code === 0x20 || (code >= 0x09 && code <= 0x0d) || (code >= 0xa0 && RARE_SPACES.has(code))

const RARE_SPACES = new Set([
  ...[0xa0, 0x1680, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000, 0xfeff],
  ...Array.from({ length: 11 }, (_, at) => 0x2000 + at),
])

function instantStream(parts: readonly LanguageModelV4StreamPart[]): ReadableStream<LanguageModelV4StreamPart> {
  return new ReadableStream({
    start(controller) {
      for (const part of parts) controller.enqueue(part)
      controller.close()
    },
  })
}

function slowStream(
  parts: readonly LanguageModelV4StreamPart[],
  delayMs: number,
  signal: AbortSignal | undefined,
): ReadableStream<LanguageModelV4StreamPart> {
  const ended = new AbortController()
  const stop = signal ? AbortSignal.any([signal, ended.signal]) : ended.signal
  let next = 0
  return new ReadableStream({
    async pull(controller) {
      const part = parts[next]
      next += 1
      if (!part) return controller.close()
      if (part.type === 'text-delta') await wait(delayMs, undefined, { signal: stop })
      controller.enqueue(part)
    },
    cancel: () => ended.abort(),
  })
}
