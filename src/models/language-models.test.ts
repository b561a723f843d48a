import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { test } from 'node:test'
import { createTestDatabase } from '../../test/kit/database.ts'
import { createStreamedModel, finishPart, partStream, textPart } from '../../test/kit/streamed-model.ts'
import type { Db } from '../db/pool.ts'
import type { Fetch } from '../egress/egress.ts'
import { modelChoice } from '../kernel/agent.ts'
import type { Model, ModelRequest } from '../kernel/model-call.ts'
import { systemActor } from '../kernel/principal.ts'
import type { ProviderInput } from '../kernel/provider.ts'
import { createCipher } from '../secrets/cipher.ts'
import { contextTokensOf } from './known-models.ts'
import { createLanguageModels, type LanguageModelsOptions } from './language-models.ts'
import { createProvider, deleteProvider, updateProvider } from './providers.ts'
import { isStrictSchema } from './strict-schema.ts'

const { pool } = await createTestDatabase()
const cipher = createCipher('test-secret-key')

interface Sent {
  url: string
  headers: Headers
  body: string
}

/** Models whose server answers every request with the same refusal and remembers the requests. */
function createModels(more: Partial<LanguageModelsOptions> = {}) {
  const sent: Sent[] = []
  const fetch: Fetch = async (input, init) => {
    const url = input instanceof Request ? input.url : String(input)
    sent.push({ url, headers: new Headers(init?.headers), body: String(init?.body) })
    if (url.includes('oauth2')) return Response.json({ access_token: 'fresh-token', expires_in: 3600 })
    return Response.json({ error: { message: 'Not today' } }, { status: 403 })
  }
  let queries = 0
  const db: Db = new Proxy(pool, {
    get(target, name) {
      if (name === 'query') queries += 1
      const value = Reflect.get(target, name)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  let nowMs = 0
  const models = createLanguageModels({ db, cipher, fetch, now: () => nowMs, ...more })
  return {
    models,
    sent,
    queries: () => queries,
    pass: (ms: number) => {
      nowMs += ms
    },
    resolve: (provider: string, name = 'm-1') => models.resolve(modelChoice.parse({ provider, name })),
  }
}

const add = (input: ProviderInput) => createProvider(pool, cipher, input, systemActor)

const request: ModelRequest = {
  prompt: [{ role: 'user', content: [{ type: 'text', text: 'Hello' }] }],
  tools: [],
  toolChoice: 'auto',
  maxOutputTokens: 100,
}

async function call(model: Model | null) {
  assert.ok(model)
  return model.call(request, { signal: new AbortController().signal, onText: () => undefined })
}

test('an unknown provider has no models', async () => {
  const { resolve } = createModels()
  assert.equal(await resolve('nobody'), null)
  assert.equal(await resolve('toString'), null)
})

test('a hot loop asks the database once in two seconds', async () => {
  await add({ name: 'hot', kind: 'openai', api_key: 'first-key' })
  const { resolve, queries, pass } = createModels()
  await Promise.all(Array.from({ length: 20 }, () => resolve('hot')))
  for (let step = 0; step < 20; step += 1) await resolve('hot')
  assert.equal(queries(), 2, 'the row and its key')
  pass(2_000)
  await resolve('hot')
  await resolve('hot')
  assert.equal(queries(), 3, 'the row, which is the same')
})

test('a changed provider holds after two seconds, a deleted one is gone', async () => {
  await add({ name: 'moving', kind: 'openai', api_key: 'first-key' })
  const { resolve, sent, pass } = createModels()
  await call(await resolve('moving'))
  await updateProvider(
    pool,
    cipher,
    'moving',
    { api_key: 'second-key', prices: { 'm-1': { input: 3, output: 4 } } },
    systemActor,
  )
  await call(await resolve('moving'))
  pass(2_000)
  const model = await resolve('moving')
  await call(model)
  assert.deepEqual(
    sent.map(({ headers }) => headers.get('authorization')),
    ['Bearer first-key', 'Bearer first-key', 'Bearer second-key'],
  )
  assert.deepEqual(model?.price, { input: 3, output: 4 })
  assert.equal((await resolve('moving', 'm-2'))?.price, null)
  await deleteProvider(pool, 'moving', systemActor)
  pass(2_000)
  assert.equal(await resolve('moving'), null)
})

test('nothing is taken from the environment', async () => {
  const names = ['OPENAI_API_KEY', 'ANTHROPIC_API_KEY', 'GOOGLE_GENERATIVE_AI_API_KEY', 'GOOGLE_VERTEX_API_KEY']
  const places = ['OPENAI_BASE_URL', 'ANTHROPIC_BASE_URL', 'GOOGLE_VERTEX_PROJECT', 'GOOGLE_VERTEX_LOCATION']
  for (const name of [...names, ...places]) process.env[name] = 'https://from-the-environment.test'
  try {
    const { resolve, sent } = createModels()
    const options = { project: 'p', access_token: 'token-of-the-row' }
    for (const kind of ['openai', 'anthropic', 'google', 'google-vertex'] as const) {
      await add({ name: `bare-${kind}`, kind, options })
      await call(await resolve(`bare-${kind}`))
    }
    assert.deepEqual(
      sent.map(({ url }) => new URL(url).hostname),
      [
        'api.openai.com',
        'api.anthropic.com',
        'generativelanguage.googleapis.com',
        'us-central1-aiplatform.googleapis.com',
      ],
    )
    assert.ok(!JSON.stringify(sent.map(({ headers }) => [...headers])).includes('from-the-environment'))
  } finally {
    for (const name of [...names, ...places]) delete process.env[name]
  }
})

const apis: [what: string, row: Omit<ProviderInput, 'name'>, path: string][] = [
  ['OpenAI itself', { kind: 'openai' }, '/v1/responses'],
  ['OpenAI in the old way', { kind: 'openai', options: { api: 'chat' } }, '/v1/chat/completions'],
  ['a base URL', { kind: 'openai', base_url: 'https://acme.test/v1' }, '/v1/chat/completions'],
  [
    'a base URL in the new way',
    { kind: 'openai', base_url: 'https://acme.test/v1', options: { api: 'responses' } },
    '/v1/responses',
  ],
]
for (const [index, [what, row, path]] of apis.entries()) {
  test(`${what} is called at ${path}`, async () => {
    await add({ ...row, name: `api-${index}` })
    const { resolve, sent } = createModels()
    await call(await resolve(`api-${index}`))
    assert.equal(new URL(sent[0]?.url ?? '').pathname, path)
    assert.equal(sent[0]?.body.includes('"store":false'), path === '/v1/responses')
  })
}

test('headers of the row are sent', async () => {
  const options = { headers: { 'x-team': 'blue', 'x-wrong': 7 } }
  await add({ name: 'headed', kind: 'openai-compatible', base_url: 'https://acme.test/v1', options })
  const { resolve, sent } = createModels()
  await call(await resolve('headed'))
  assert.equal(sent[0]?.headers.get('x-team'), 'blue')
  assert.equal(sent[0]?.headers.has('authorization'), false)
})

const { privateKey } = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  publicKeyEncoding: { type: 'spki', format: 'pem' },
})
const account = {
  type: 'service_account',
  client_email: 'robot@acme.test',
  private_key: privateKey,
  project_id: 'of-the-robot',
}

test('a service account signs in through the one way out, once, and its project is the default', async () => {
  await add({
    name: 'robot',
    kind: 'google-vertex',
    api_key: JSON.stringify(account),
    options: { location: 'europe-west1' },
  })
  const { resolve, sent, pass } = createModels()
  await call(await resolve('robot'))
  pass(5_000)
  await call(await resolve('robot'))
  const [token, ...calls] = sent
  assert.equal(token?.url, 'https://oauth2.googleapis.com/token')
  assert.match(token?.body ?? '', /assertion=ey/)
  assert.equal(calls.length, 2)
  for (const { url, headers } of calls) {
    assert.match(url, /^https:\/\/europe-west1-aiplatform\.googleapis\.com\/.*\/projects\/of-the-robot\//)
    assert.equal(headers.get('authorization'), 'Bearer fresh-token')
  }
})

test('Google Cloud is called with a token of the row, a plain key, or injected credentials', async () => {
  await add({ name: 'token', kind: 'google-vertex', options: { project: 'p', access_token: 'short-lived' } })
  await add({ name: 'express', kind: 'google-vertex', api_key: 'express-key' })
  const { resolve, sent } = createModels()
  await call(await resolve('token'))
  await call(await resolve('express'))
  assert.equal(sent[0]?.headers.get('authorization'), 'Bearer short-lived')
  assert.equal(sent[1]?.headers.get('x-goog-api-key'), 'express-key')
  // The SDK calls only getAccessToken of an authClient.
  const authClient = { getAccessToken: async () => ({ token: 'injected' }) } as never
  const other = createModels({ googleAuthOptions: { authClient } })
  await call(await other.resolve('token'))
  assert.equal(other.sent[0]?.headers.get('authorization'), 'Bearer injected')
})

const problems: [ProviderInput, RegExp][] = [
  [{ name: 'no-url', kind: 'openai-compatible' }, /^The provider no-url cannot be used: it has no base_url\.$/],
  [{ name: 'no-project', kind: 'google-vertex' }, /its options name no project\.$/],
  [
    { name: 'half-account', kind: 'google-vertex', api_key: '{"client_email":"x"}' },
    /service account and is not one\.$/,
  ],
  [{ name: 'no-account', kind: 'google-vertex', api_key: '{secret' }, /service account and is not one\.$/],
]
for (const [row, message] of problems) {
  test(`calls of ${row.name} fail and say why`, async () => {
    await add(row)
    const outcome = await call(await createModels().resolve(row.name))
    assert.ok(outcome.kind === 'failed' && !outcome.isRetryable)
    assert.match(outcome.message, message)
    assert.ok(!outcome.message.includes('{secret'))
  })
}

test('a key that cannot be read fails the calls and says why', async () => {
  await add({ name: 'lost-key', kind: 'openai', api_key: 'some-key' })
  const outcome = await call(await createModels({ cipher: createCipher('another-key') }).resolve('lost-key'))
  assert.ok(outcome.kind === 'failed' && !outcome.isRetryable)
  assert.match(outcome.message, /lost-key cannot be used: The stored secret cannot be read: it was sealed with another/)
})

test('models of an app come before those of the database and need no row', async () => {
  const extra = {
    own: (name: string) => createStreamedModel(() => partStream([textPart(`I am ${name}.`), finishPart()])),
  }
  const { resolve, queries } = createModels({ extra })
  const outcome = await call(await resolve('own', 'special'))
  assert.equal(outcome.kind === 'answered' && outcome.text, 'I am special.')
  assert.equal(queries(), 0)
})

test('the offline provider is a row like others', async () => {
  await add({ name: 'demo', kind: 'offline', options: { delay_ms: 1 } })
  const outcome = await call(await createModels().resolve('demo'))
  assert.equal(outcome.kind === 'answered' && outcome.finishReason, 'stop')
  assert.match(outcome.kind === 'answered' ? outcome.text : '', /^I have read your message, "Hello"/)
})

test('the context size is that of the agent, else that of a known model name', async () => {
  await add({ name: 'wide', kind: 'offline' })
  const { models, resolve } = createModels()
  const chosen = await models.resolve(modelChoice.parse({ provider: 'wide', name: 'gpt-4o', context_tokens: 5_000 }))
  assert.equal(chosen?.contextTokens, 5_000)
  assert.equal((await resolve('wide', 'gpt-4.1-mini'))?.contextTokens, 1_000_000)
  const known = {
    'gpt-4o-mini': 128_000,
    'gpt-4': 8_000,
    'gpt-5-nano': 400_000,
    'o3-pro': 200_000,
    'anthropic/claude-x': 200_000,
    'gemini-3': 1_000_000,
    mystery: 128_000,
  }
  for (const [name, tokens] of Object.entries(known)) assert.equal(contextTokensOf(name), tokens, name)
})

test('only closed schemas whose properties are all required are strict', () => {
  const closed = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'], additionalProperties: false }
  const cases: [object, boolean][] = [
    [closed, true],
    [{ ...closed, additionalProperties: true }, false],
    [{ ...closed, required: [] }, false],
    [{ ...closed, properties: { a: { type: 'array', items: closed } } }, true],
    [{ ...closed, properties: { a: { type: 'array', items: { type: 'object' } } } }, false],
    [{ ...closed, properties: { a: { anyOf: [closed, { type: 'null' }] } } }, true],
    [{ ...closed, properties: { a: { oneOf: [closed] } } }, false],
    [{ ...closed, $defs: { b: { properties: { c: {} } } } }, false],
  ]
  // Literals of an object type are records of unknown values.
  for (const [schema, expected] of cases)
    assert.equal(isStrictSchema(schema as Record<string, unknown>), expected, JSON.stringify(schema))
})
