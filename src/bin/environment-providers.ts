// Providers that need no set-up: the offline model, providers whose keys are in the environment, and a local Ollama.
import type { Db, Pool } from '../db/pool.ts'
import type { Egress } from '../egress/egress.ts'
import { isListening } from '../egress/is-listening.ts'
import type { Log } from '../kernel/log.ts'
import type { ProviderInput } from '../kernel/provider.ts'
import { sealOldOptions, upsertProvider } from '../models/providers.ts'
import type { Cipher } from '../secrets/cipher.ts'
import type { ProviderVariables } from './config.ts'

const OLLAMA_PORT = 11_434
const OLLAMA = `http://127.0.0.1:${OLLAMA_PORT}`
const OLLAMA_ANSWERS_WITHIN_MS = 500

export async function offerProviders(db: Pool, cipher: Cipher, variables: ProviderVariables): Promise<void> {
  await sealOldOptions(db, cipher)
  await upsertProvider(db, cipher, { name: 'offline', kind: 'offline', source: 'built-in' })
  for (const provider of providersFrom(variables)) {
    await upsertProvider(db, cipher, { ...provider, source: 'environment' })
  }
}

function providersFrom(variables: ProviderVariables): ProviderInput[] {
  const found: ProviderInput[] = []
  if (variables.openaiKey) found.push({ name: 'openai', kind: 'openai', api_key: variables.openaiKey })
  if (variables.anthropicKey) found.push({ name: 'anthropic', kind: 'anthropic', api_key: variables.anthropicKey })
  if (variables.googleKey) found.push({ name: 'google', kind: 'google', api_key: variables.googleKey })
  if (variables.vertexProject) {
    const options = { project: variables.vertexProject, location: variables.vertexLocation ?? 'us-central1' }
    found.push({ name: 'google-vertex', kind: 'google-vertex', options })
  }
  return found
}

/** Looks for Ollama after the start, because most machines have none and the start should not wait for an answer. */
export async function offerOllama(db: Db, cipher: Cipher, egress: Egress, log: Log): Promise<void> {
  try {
    if (!(await isListening(OLLAMA_PORT, OLLAMA_ANSWERS_WITHIN_MS))) return log.debug({}, 'no local Ollama')
    const signal = AbortSignal.timeout(OLLAMA_ANSWERS_WITHIN_MS)
    const answer = await egress.fetch('trusted')(`${OLLAMA}/api/tags`, { signal })
    await answer.body?.cancel()
    if (!answer.ok) return
    const base_url = `${OLLAMA}/v1`
    await upsertProvider(db, cipher, { name: 'ollama', kind: 'openai-compatible', base_url, source: 'environment' })
    log.info({ base_url }, 'a local Ollama was found')
  } catch {
    log.debug({}, 'no local Ollama')
  }
}
