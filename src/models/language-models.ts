// The models of this instance. A built provider is kept while its row stays the same, and the row is read again every
// two seconds: many steps cost no query each, and a changed key or a deleted provider takes effect within that time.
import type { LanguageModelV4 } from '@ai-sdk/provider'
import type { ModelChoice } from '../kernel/agent.ts'
import type { Model, ModelOutcome } from '../kernel/model-call.ts'
import type { Provider } from '../kernel/provider.ts'
import { callModel } from './call-model.ts'
import { contextTokensOf } from './known-models.ts'
import { type OpenedProvider, type OpenParts, openProvider, problemOf } from './open-provider.ts'
import { findProvider } from './providers.ts'

export interface LanguageModelsOptions extends OpenParts {
  /** Models of an app or a test, by the name of their provider. These models come before the database's. */
  extra?: Readonly<Record<string, (name: string) => LanguageModelV4>>
  /** A provider's `options.idle_timeout_ms` comes first. */
  idleTimeoutMs?: number
  totalTimeoutMs?: number
  /** Milliseconds that only go forward. */
  now?: () => number
}

export interface LanguageModels {
  /** Null if there is no such provider. A provider that is set up wrongly gives a model whose calls fail and tell the
   * reason. Rejects if the database does. */
  resolve(choice: ModelChoice): Promise<Model | null>
  /** Called when the provider was changed in this process: its row is read again at once. */
  forget(provider: string): void
}

const ROW_KEPT_MS = 2_000
const IDLE_TIMEOUT_MS = 120_000

interface Entry {
  provider: Provider
  result: OpenedProvider
  readAt: number
}

export function createLanguageModels(options: LanguageModelsOptions): LanguageModels {
  const { db, extra = {}, now = () => performance.now() } = options
  const entries = new Map<string, Entry>()
  const reading = new Map<string, Promise<Entry | null>>()

  function entryOf(name: string): Promise<Entry | null> | Entry {
    const known = entries.get(name)
    if (known && now() - known.readAt < ROW_KEPT_MS) return known
    const underWay = reading.get(name)
    if (underWay) return underWay
    const read = readEntry(name, known).finally(() => reading.delete(name))
    reading.set(name, read)
    return read
  }

  async function readEntry(name: string, known: Entry | undefined): Promise<Entry | null> {
    const provider = await findProvider(db, name)
    if (!provider) {
      entries.delete(name)
      return null
    }
    const isSame =
      known?.provider.updated_at === provider.updated_at && known.provider.created_at === provider.created_at
    const result = isSame ? known.result : await openProvider(options, provider)
    const entry = { provider, result, readAt: now() }
    entries.set(name, entry)
    return entry
  }

  function modelOf({ provider, result }: Entry, choice: ModelChoice): Model {
    const price = Object.hasOwn(provider.prices, choice.name) ? (provider.prices[choice.name] ?? null) : null
    const facts = { contextTokens: choice.context_tokens ?? contextTokensOf(choice.name), price }
    if (!result.ok) return { ...facts, call: async () => failed(result.problem) }
    const { built } = result
    let model: LanguageModelV4
    try {
      model = built.modelOf(choice.name)
    } catch (error) {
      const { problem } = problemOf(provider.name, error)
      return { ...facts, call: async () => failed(problem) }
    }
    const fixed = {
      providerName: provider.name,
      secrets: built.secrets,
      idleTimeoutMs: idleTimeoutOf(provider) ?? options.idleTimeoutMs ?? IDLE_TIMEOUT_MS,
      ...(options.totalTimeoutMs !== undefined && { totalTimeoutMs: options.totalTimeoutMs }),
    }
    return {
      ...facts,
      call: (request, { signal, onText }) =>
        callModel(model, request, { ...fixed, signal, onText, providerOptions: built.optionsFor(request) }),
    }
  }

  function extraModel(model: LanguageModelV4, choice: ModelChoice): Model {
    const idleTimeoutMs = options.idleTimeoutMs ?? IDLE_TIMEOUT_MS
    return {
      contextTokens: choice.context_tokens ?? contextTokensOf(choice.name),
      price: null,
      call: (request, { signal, onText }) =>
        callModel(model, request, { signal, onText, idleTimeoutMs, providerName: choice.provider }),
    }
  }

  return {
    async resolve(choice) {
      const own = Object.hasOwn(extra, choice.provider) ? extra[choice.provider] : undefined
      if (own) return extraModel(own(choice.name), choice)
      const entry = await entryOf(choice.provider)
      return entry && modelOf(entry, choice)
    },
    forget(provider) {
      const known = entries.get(provider)
      if (known) known.readAt = Number.NEGATIVE_INFINITY
    },
  }
}

function idleTimeoutOf({ options }: Provider): number | null {
  const value = options.idle_timeout_ms
  return typeof value === 'number' && value >= 1 ? value : null
}

function failed(message: string): ModelOutcome {
  const usage = { inputTokens: 0, outputTokens: 0, isEstimated: false }
  return { kind: 'failed', isRetryable: false, retryAfterMs: null, message, text: '', usage }
}
