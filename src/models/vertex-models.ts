// Gemini on Google Cloud. The ways to sign in, in this order: an access token, a service account's JSON as the key, a
// plain API key (express mode), and the credentials that google-auth-library finds on the machine.
import type { GoogleVertexProviderSettings } from '@ai-sdk/google-vertex'
import type { LanguageModelV4 } from '@ai-sdk/provider'
import type { Fetch } from '../egress/egress.ts'
import type { Provider } from '../kernel/provider.ts'

export type GoogleAuthOptions = NonNullable<GoogleVertexProviderSettings['googleAuthOptions']>
type AuthClient = NonNullable<GoogleAuthOptions['authClient']>

export interface VertexBuild {
  provider: Provider
  apiKey: string | null
  fetch: Fetch
  headers: Record<string, string>
  googleAuthOptions: GoogleAuthOptions | undefined
}

interface SignIn {
  googleAuthOptions?: GoogleAuthOptions
  apiKey?: string
  project?: string
  secrets: string[]
}

export async function createVertexModels(
  build: VertexBuild,
): Promise<{ modelOf(name: string): LanguageModelV4; secrets: string[] }> {
  const { provider, fetch, headers } = build
  const signIn = build.googleAuthOptions
    ? { googleAuthOptions: build.googleAuthOptions, secrets: [] }
    : signInOf(provider, build.apiKey, fetch)
  const project = textOf(provider.options.project) ?? signIn.project ?? (provider.base_url === null ? null : 'unnamed')
  if (project === null && signIn.apiKey === undefined) throw new Error('its options name no project')
  const { createGoogleVertex } = await import('@ai-sdk/google-vertex')
  const vertex = createGoogleVertex({
    // Empty strings stand for absent settings, which the SDK would fill from the environment.
    apiKey: signIn.apiKey ?? '',
    project: project ?? '',
    location: textOf(provider.options.location) ?? 'us-central1',
    headers,
    fetch,
    ...(provider.base_url !== null && { baseURL: provider.base_url }),
    ...(signIn.googleAuthOptions && { googleAuthOptions: signIn.googleAuthOptions }),
  })
  return { modelOf: (name) => vertex(name), secrets: signIn.secrets }
}

function signInOf(provider: Provider, apiKey: string | null, fetch: Fetch): SignIn {
  const token = textOf(provider.options.access_token) ?? (apiKey?.startsWith('ya29.') ? apiKey : null)
  if (token !== null) return { googleAuthOptions: { authClient: holderOf(token) }, secrets: [token] }
  const clientOptions = { transporterOptions: { fetchImplementation: fetch } }
  if (apiKey === null) return { googleAuthOptions: { clientOptions }, secrets: [] }
  if (!apiKey.trimStart().startsWith('{')) return { apiKey, secrets: [] }
  const account = readServiceAccount(apiKey)
  const secrets = [account.private_key]
  return {
    googleAuthOptions: { credentials: account, clientOptions },
    secrets,
    ...(account.project_id && { project: account.project_id }),
  }
}

function holderOf(token: string): AuthClient {
  // The SDK calls only getAccessToken of an authClient.
  return { getAccessToken: async () => ({ token }) } as unknown as AuthClient
}

function readServiceAccount(text: string): { client_email: string; private_key: string; project_id?: string } {
  const refuse = () => new Error('its key begins like the JSON of a service account and is not one')
  let account: unknown
  try {
    account = JSON.parse(text)
  } catch {
    throw refuse()
  }
  // The fields are checked one by one below.
  const { client_email, private_key, project_id } = (account ?? {}) as Record<string, unknown>
  if (typeof client_email !== 'string' || typeof private_key !== 'string') throw refuse()
  return { client_email, private_key, ...(typeof project_id === 'string' && { project_id }) }
}

const textOf = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null)
