// One model call, from the request to an outcome. Every behaviour of a provider (it refuses, breaks off, falls silent,
// talks without end, ignores an abort) is returned as data.
//
// Cost with an instant in-process model: a few µs per call and under one per part. So there is no timer and no promise
// race per part: an interval counts ticks since the last part, and an abort ends the call from outside the loop.
import type { LanguageModelV4, LanguageModelV4StreamPart, SharedV4ProviderOptions } from '@ai-sdk/provider'
import type { CallUsage, ModelCallOptions, ModelOutcome, ModelRequest } from '../kernel/model-call.ts'
import { type Gathered, gatherPart, nothingGathered, usageOf } from './gather-parts.ts'
import { readFailure } from './read-failure.ts'

export interface CallSettings extends ModelCallOptions {
  /** The longest silence, before the answer and within it. It is noticed at most a quarter of this time late. */
  idleTimeoutMs: number
  totalTimeoutMs?: number
  /** Characters of text, reasoning and arguments after which an answer is ended as `length`. */
  maxTextLength?: number
  /** The provider's name in messages; the default is the model's own name for it. */
  providerName?: string
  secrets?: readonly string[]
  providerOptions?: SharedV4ProviderOptions | undefined
}

const TICKS = 4
const MAX_TEXT_LENGTH = 10_000_000
const NOTHING_USED: CallUsage = { inputTokens: 0, outputTokens: 0, isEstimated: false }

/** Never throws and never rejects. */
export function callModel(
  model: LanguageModelV4,
  request: ModelRequest,
  settings: CallSettings,
): Promise<ModelOutcome> {
  if (settings.signal.aborted) return Promise.resolve({ kind: 'aborted', text: '', usage: { ...NOTHING_USED } })
  return new CallUnderWay(model, request, settings).outcome
}

class CallUnderWay {
  readonly outcome: Promise<ModelOutcome>
  readonly #resolve: (outcome: ModelOutcome) => void
  readonly #model: LanguageModelV4
  readonly #request: ModelRequest
  readonly #settings: CallSettings
  readonly #gathered: Gathered = nothingGathered()
  readonly #controller = new AbortController()
  readonly #onAbort = () => this.#cut({ kind: 'aborted', text: this.#gathered.text, usage: this.#estimate() })
  readonly #idleTimer: NodeJS.Timeout
  readonly #totalTimer: NodeJS.Timeout | undefined
  #reader: ReadableStreamDefaultReader<LanguageModelV4StreamPart> | null = null
  #quietTicks = 0
  #isOver = false

  constructor(model: LanguageModelV4, request: ModelRequest, settings: CallSettings) {
    const { promise, resolve } = Promise.withResolvers<ModelOutcome>()
    this.outcome = promise
    this.#resolve = resolve
    this.#model = model
    this.#request = request
    this.#settings = settings
    const { idleTimeoutMs, totalTimeoutMs } = settings
    this.#idleTimer = setInterval(() => {
      this.#quietTicks += 1
      if (this.#quietTicks > TICKS) this.#timeOut(`sent nothing for ${idleTimeoutMs} ms`)
    }, idleTimeoutMs / TICKS)
    if (totalTimeoutMs !== undefined) {
      this.#totalTimer = setTimeout(() => this.#timeOut(`took longer than ${totalTimeoutMs} ms`), totalTimeoutMs)
    }
    settings.signal.addEventListener('abort', this.#onAbort)
    void this.#run()
  }

  async #run(): Promise<void> {
    try {
      const { stream } = await this.#model.doStream(this.#callOptions())
      if (this.#isOver) return await stream.cancel()
      this.#reader = stream.getReader()
      await this.#read(this.#reader)
    } catch (error) {
      if (!this.#isOver) this.#fail(error)
    }
  }

  async #read(reader: ReadableStreamDefaultReader<LanguageModelV4StreamPart>): Promise<void> {
    const gathered = this.#gathered
    const { onText, maxTextLength = MAX_TEXT_LENGTH } = this.#settings
    for (;;) {
      const { done, value: part } = await reader.read()
      if (this.#isOver) return
      if (done) return this.#fail(new Error('it ended without a finish'))
      this.#quietTicks = 0
      switch (part.type) {
        case 'text-delta':
          if (part.delta === '') break
          gathered.text += part.delta
          gathered.length += part.delta.length
          onText(part.delta)
          break
        case 'error':
          return this.#fail(part.error)
        case 'finish':
          this.#end(this.#answered(part.finishReason.unified, usageOf(part.usage, this.#request, gathered)))
          return await drain(reader)
        default:
          gatherPart(gathered, part)
      }
      if (gathered.length > maxTextLength) return this.#cut(this.#answered('length', this.#estimate()))
    }
  }

  #callOptions() {
    const { temperature, answerSchema } = this.#request
    const { providerOptions } = this.#settings
    return {
      prompt: this.#request.prompt,
      maxOutputTokens: this.#request.maxOutputTokens,
      abortSignal: this.#controller.signal,
      toolChoice: { type: this.#request.toolChoice },
      ...(this.#request.tools.length > 0 && { tools: [...this.#request.tools] }),
      ...(temperature !== undefined && { temperature }),
      ...(answerSchema && { responseFormat: { type: 'json' as const, ...answerSchema } }),
      ...(providerOptions && { providerOptions }),
    }
  }

  #answered(finishReason: string, usage: CallUsage): ModelOutcome {
    const { text, reasoning, calls } = this.#gathered
    return { kind: 'answered', text, reasoning, calls, finishReason, usage }
  }

  #estimate(): CallUsage {
    return usageOf(undefined, this.#request, this.#gathered)
  }

  #timeOut(what: string): void {
    this.#cut({
      kind: 'failed',
      isRetryable: true,
      retryAfterMs: null,
      message: `${this.#providerName()} ${what}.`,
      text: this.#gathered.text,
      usage: this.#estimate(),
    })
  }

  #fail(error: unknown): void {
    const { isRetryable, retryAfterMs, reason, message, isFree } = readFailure(error, {
      provider: this.#providerName(),
      secrets: this.#settings.secrets ?? [],
      phase: this.#reader ? 'stream' : 'request',
    })
    const usage = isFree ? { ...NOTHING_USED } : this.#estimate()
    const because = reason === undefined ? {} : { reason }
    this.#cut({ kind: 'failed', isRetryable, retryAfterMs, ...because, message, text: this.#gathered.text, usage })
  }

  #providerName(): string {
    return this.#settings.providerName ?? this.#model.provider
  }

  /** Ends the call before the provider has ended: the provider is told, and not waited for. */
  #cut(outcome: ModelOutcome): void {
    if (this.#isOver) return
    this.#end(outcome)
    this.#controller.abort()
    this.#reader?.cancel().catch(ignore)
  }

  #end(outcome: ModelOutcome): void {
    this.#isOver = true
    clearInterval(this.#idleTimer)
    clearTimeout(this.#totalTimer)
    this.#settings.signal.removeEventListener('abort', this.#onAbort)
    this.#resolve(outcome)
  }
}

/** Reads the end of a body behind the last part, so that its connection can be used again. */
async function drain(reader: ReadableStreamDefaultReader<unknown>): Promise<void> {
  const { done } = await reader.read()
  if (!done) await reader.cancel()
}

const ignore = () => undefined
