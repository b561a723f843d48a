// Builds the SDK for a provider's row. Every setting is passed: an SDK takes missing ones from the environment. SDKs
// are loaded when first used; each takes 0.15 s.
import type { LanguageModelV4, SharedV4ProviderOptions } from '@ai-sdk/provider'
import type { Fetch } from '../egress/egress.ts'
import type { ModelRequest } from '../kernel/model-call.ts'
import type { Provider } from '../kernel/provider.ts'
import { listModels } from './list-models.ts'
import { createOfflineModel } from './offline-model.ts'
import { isStrictSchema } from './strict-schema.ts'
import { createVertexModels, type GoogleAuthOptions } from './vertex-models.ts'

export interface BuiltProvider {
  /** May throw for a name that the SDK does not take. */
  modelOf(name: string): LanguageModelV4
  optionsFor(request: ModelRequest): SharedV4ProviderOptions | undefined
  /** The names of the server's models, where no model is known beforehand. Throws as a call of a model does. */
  listModels?(signal: AbortSignal): Promise<string[]>
  secrets: readonly string[]
}

export interface ProviderBuild {
  provider: Provider
  apiKey: string | null
  fetch: Fetch
  /** Replaces the row's credentials in tests, which have no Google account. */
  googleAuthOptions: GoogleAuthOptions | undefined
}

/** Throws an Error whose message names the setting that the row lacks. */
export async function buildProvider(build: ProviderBuild): Promise<BuiltProvider> {
  const { provider, apiKey, fetch } = build
  const { options } = provider
  const baseURL = provider.base_url
  const headers = stringsOf(options.headers)
  // An empty key keeps the SDK from reading the environment; servers without keys ignore it.
  const key = apiKey ?? ''
  // A short value may be an ordinary word in any message.
  const secrets = [...(apiKey === null ? [] : [apiKey]), ...Object.values(headers).filter((text) => text.length >= 8)]
  const plain = { secrets, optionsFor: () => undefined }
  switch (provider.kind) {
    case 'offline': {
      const pace = typeof options.delay_ms === 'number' ? { delayMs: Math.max(0, options.delay_ms) } : {}
      return { ...plain, modelOf: (name) => createOfflineModel(name, pace) }
    }
    case 'openai': {
      const { createOpenAI } = await import('@ai-sdk/openai')
      const openai = createOpenAI({
        apiKey: key,
        baseURL: baseURL ?? 'https://api.openai.com/v1',
        headers,
        fetch,
        ...(typeof options.organization === 'string' && { organization: options.organization }),
        ...(typeof options.project === 'string' && { project: options.project }),
      })
      if (usesChat(provider)) {
        return { secrets, modelOf: (name) => openai.chat(name), optionsFor: (request) => asWish('openai', request) }
      }
      // Muster keeps the history itself, so OpenAI stores nothing unless the options ask for it.
      const store = options.store === true
      return {
        secrets,
        modelOf: (name) => openai.responses(name),
        optionsFor: (request) => ({ openai: { store, ...asWish('openai', request)?.openai } }),
      }
    }
    case 'openai-compatible': {
      if (baseURL === null) throw new Error('it has no base_url')
      const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible')
      const compatible = createOpenAICompatible({
        name: provider.name,
        baseURL,
        headers,
        fetch,
        includeUsage: true,
        supportsStructuredOutputs: options.structured_outputs !== false,
        ...(apiKey !== null && { apiKey }),
      })
      const sent = { ...(apiKey !== null && { authorization: `Bearer ${apiKey}` }), ...headers }
      return {
        secrets,
        modelOf: (name) => compatible.chatModel(name),
        optionsFor: (request) => asWish('openaiCompatible', request),
        listModels: (signal) => listModels({ fetch, baseUrl: baseURL, headers: sent }, signal),
      }
    }
    case 'anthropic': {
      const { createAnthropic } = await import('@ai-sdk/anthropic')
      const anthropic = createAnthropic({
        apiKey: key,
        baseURL: baseURL ?? 'https://api.anthropic.com/v1',
        headers,
        fetch,
      })
      return { ...plain, modelOf: (name) => anthropic(name) }
    }
    case 'google': {
      const { createGoogleGenerativeAI } = await import('@ai-sdk/google')
      const google = createGoogleGenerativeAI({
        apiKey: key,
        baseURL: baseURL ?? 'https://generativelanguage.googleapis.com/v1beta',
        headers,
        fetch,
      })
      return { ...plain, modelOf: (name) => google(name) }
    }
    case 'google-vertex': {
      const vertex = await createVertexModels({ ...build, headers })
      return { modelOf: vertex.modelOf, secrets: [...secrets, ...vertex.secrets], optionsFor: () => undefined }
    }
  }
}

/** Other servers behind a base URL usually know only the chat API; `options.api` overrides that. */
function usesChat({ base_url, options }: Provider): boolean {
  if (options.api === 'responses') return false
  return options.api === 'chat' || base_url !== null
}

function asWish(key: string, { answerSchema }: ModelRequest): SharedV4ProviderOptions | undefined {
  return answerSchema && !isStrictSchema(answerSchema.schema) ? { [key]: { strictJsonSchema: false } } : undefined
}

function stringsOf(value: unknown): Record<string, string> {
  if (typeof value !== 'object' || value === null) return {}
  return Object.fromEntries(Object.entries(value).filter(([, text]) => typeof text === 'string'))
}
