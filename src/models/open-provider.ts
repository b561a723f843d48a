// A provider's row with its secrets opened, as the SDK that calls it.
import type { Db } from '../db/pool.ts'
import type { Fetch } from '../egress/egress.ts'
import type { Provider } from '../kernel/provider.ts'
import type { Cipher } from '../secrets/cipher.ts'
import { type BuiltProvider, buildProvider } from './build-provider.ts'
import { openProviderKey, openSecretOptions } from './providers.ts'
import type { GoogleAuthOptions } from './vertex-models.ts'

export interface OpenParts {
  db: Db
  cipher: Cipher
  /** The `fetch` of the `trusted` policy, because the instance's admin sets the providers. */
  fetch: Fetch
  /** Replaces the row's credentials in tests, which have no Google account. */
  googleAuthOptions?: GoogleAuthOptions
}

export type OpenedProvider = { ok: true; built: BuiltProvider } | { ok: false; problem: string }

/** A provider that is set up wrongly is told as a problem. Rejects if the database does. */
export async function openProvider(parts: OpenParts, provider: Provider): Promise<OpenedProvider> {
  const { db, cipher, fetch, googleAuthOptions } = parts
  const hasSecretOptions = provider.has_access_token || provider.header_names.length > 0
  let apiKey: string | null
  let secretOptions: Record<string, unknown>
  try {
    apiKey = provider.has_api_key ? await openProviderKey(db, cipher, provider.name) : null
    secretOptions = hasSecretOptions ? await openSecretOptions(db, cipher, provider.name) : {}
  } catch (error) {
    if (error instanceof Error && error.name === 'SecretUnreadable') return problemOf(provider.name, error)
    throw error
  }
  try {
    const whole = { ...provider, options: { ...provider.options, ...secretOptions } }
    return { ok: true, built: await buildProvider({ provider: whole, apiKey, fetch, googleAuthOptions }) }
  } catch (error) {
    return problemOf(provider.name, error)
  }
}

export function problemOf(name: string, error: unknown): { ok: false; problem: string } {
  const reason = error instanceof Error ? error.message : String(error)
  return { ok: false, problem: `The provider ${name} cannot be used: ${reason.replace(/\.$/, '')}.` }
}
