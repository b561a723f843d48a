// Model providers on loopback: a third party's mock of their wire formats, and a bare server for cases beyond the mock.
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { LLMock } from '@copilotkit/aimock'
import type { ProviderInput } from '../../src/kernel/provider.ts'
import { atEnd } from './at-end.ts'
import { serveLocally } from './local-server.ts'

export interface ModelServer {
  url: string
  mock: LLMock
}

export async function startModelServer(): Promise<ModelServer> {
  const mock = new LLMock({ port: 0, host: '127.0.0.1' })
  const url = await mock.start()
  atEnd(() => mock.stop())
  return { url, mock }
}

/** A server that answers with this listener, which may also stay silent. */
export const startBareServer = (listener: RequestListener): Promise<string> => serveLocally({ after: atEnd }, listener)

/** An address on loopback on which no server listens. */
export async function findClosedUrl(): Promise<string> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  // A server that listens on TCP has an address and a port.
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return `http://127.0.0.1:${port}`
}

export const MODEL_KEY = 'contract-key-0123456789'

export interface ProviderSubject {
  label: string
  model: string
  /** The provider's row with its path on the server at `url`. */
  rowAt(url: string): ProviderInput
  /** True if arguments are sent as text, which the mock can break. */
  hasRawArguments: boolean
  /** True if the provider sends the name of an answer's schema, not only the schema. */
  sendsSchemaName: boolean
}

const vertexPath = '/v1/projects/p/locations/us-central1/publishers/google'

/** Every kind of provider that talks to a server; OpenAI with both of its APIs. */
export const providerSubjects: readonly ProviderSubject[] = [
  subject('openai', 'gpt-4o', { kind: 'openai' }, '/v1', { hasRawArguments: true, sendsSchemaName: true }),
  subject('openai responses', 'gpt-4o', { kind: 'openai', options: { api: 'responses' } }, '/v1', {
    hasRawArguments: true,
    sendsSchemaName: true,
  }),
  subject('openai-compatible', 'llama3', { kind: 'openai-compatible' }, '/v1', {
    hasRawArguments: true,
    sendsSchemaName: true,
  }),
  subject('anthropic', 'claude-sonnet-4-5', { kind: 'anthropic' }, '/v1', {
    hasRawArguments: false,
    sendsSchemaName: false,
  }),
  subject('google', 'gemini-2.5-flash', { kind: 'google' }, '/v1beta', {
    hasRawArguments: false,
    sendsSchemaName: false,
  }),
  subject('google-vertex', 'gemini-2.5-flash', { kind: 'google-vertex', options: { project: 'p' } }, vertexPath, {
    hasRawArguments: false,
    sendsSchemaName: false,
  }),
]

function subject(
  label: string,
  model: string,
  row: Omit<ProviderInput, 'name'>,
  path: string,
  facts: Pick<ProviderSubject, 'hasRawArguments' | 'sendsSchemaName'>,
): ProviderSubject {
  const rowAt = (url: string): ProviderInput => ({
    ...row,
    name: label.replace(' ', '-'),
    base_url: `${url}${path}`,
    // Google Cloud takes a short-lived token instead of a key.
    api_key: row.kind === 'google-vertex' ? `ya29.${MODEL_KEY}` : MODEL_KEY,
    prices: { [model]: { input: 1, output: 2 } },
  })
  return { label, model, rowAt, ...facts }
}
