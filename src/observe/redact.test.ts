import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { cpuTime } from '../../test/kit/cpu-time.ts'
import { createRedactor, isSecretName } from './redact.ts'

const random = (bytes: number): string => randomBytes(bytes).toString('base64url')

/** Texts that are logged, and the part of each that must not be seen. They are put together at run time, so that secret
 * scanners do not take this file for a leak. */
const shapes: [string, string][] = [
  `mk_${random(36)}`,
  `whsec_${randomBytes(24).toString('base64')}`,
  random(32),
  `sk-${random(24)}`,
  `sk-ant-api03-${random(60)}`,
  `sk-proj-${random(60)}`,
  `sk_live_${random(18)}`,
  `AIza${random(26)}`,
  `ghp_${random(27)}`,
  `github_pat_${random(40)}`,
  `xoxb-123456789012-${random(18)}`,
  `AKIA${'ABCDEFGHIJKLMNOP'}`,
  `lsv2_pt_${random(24)}`,
  `eyJhbGciOiJIUzI1NiJ9.${random(20)}.${random(24)}`,
].flatMap((secret): [string, string][] => [
  [secret, secret],
  [`the key "${secret}" is wrong`, secret],
  [`key=${secret};`, secret],
  [`{"nested":"{\\"k\\":\\"${secret}\\"}"}`, secret],
  [`https://example.com/sign-in/${secret}?x=1`, secret],
])

const places: [string, string][] = [
  ['Authorization: Bearer abc', 'abc'],
  ['authorization=bearer abc.def', 'abc.def'],
  [`Basic ${Buffer.from('user:canary').toString('base64')}`, Buffer.from('user:canary').toString('base64')],
  ['postgres://muster:canary@127.0.0.1:5432/muster', 'canary'],
  ['postgresql://muster:can@ry@127.0.0.1/muster?sslmode=require', 'can@ry'],
  ['redis://:canary@host', 'canary'],
  ['GET /callback?code=canary&state=1', 'canary'],
  ['https://x.test/?a=1&access_token=canary#x', 'canary'],
  ['https://x.test/?key=canary', 'canary'],
  ['cookie: session=canary; other=canary', 'canary'],
  ['Set-Cookie: session=canary; HttpOnly', 'canary'],
  ['password=canary', 'canary'],
  ['api_key = "canary"', 'canary'],
  ['OPENAI_API_KEY=canary', 'canary'],
  ['{"password":"canary two","user":"x"}', 'canary two'],
  ['{\\"client_secret\\": \\"canary\\"}', 'canary'],
  ["{ 'refresh_token': 'canary' }", 'canary'],
  ['-----BEGIN PRIVATE KEY-----\ncanary\n-----END PRIVATE KEY-----', 'canary'],
  ['-----BEGIN EC PRIVATE KEY-----\ncanary', 'canary'],
]

test('a text that looks like a secret is masked wherever it stands', () => {
  const { scrub } = createRedactor()
  for (const [text, secret] of [...shapes, ...places]) {
    const scrubbed = scrub(text)
    assert.ok(!scrubbed.includes(secret), `${text} -> ${scrubbed}`)
    assert.ok(scrubbed.includes('[redacted]'), text)
    assert.equal(scrub(scrubbed), scrubbed, `twice: ${scrubbed}`)
  }
})

test('ordinary text stays unchanged', () => {
  const { scrub } = createRedactor()
  for (const text of [
    'a step of the run has ended',
    '0b7c2a3e-1111-4222-8333-444455556666',
    'run 0b7c2a3e-1111-4222-8333-444455556666 used 1200 tokens, max_tokens=4096',
    'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
    'https://example.com:8080/path?limit=20&cursor=abc',
    'at claimRun (file:///srv/muster/src/runs/claim.ts:12:34)',
    'node_modules/@opentelemetry/exporter-trace-otlp-http/dist/index.mjs',
    'the key mk_AbCdEfGh was revoked',
    'Unexpected token } in JSON at position 3',
    'Send a valid key as "Authorization: Bearer <key>", or sign in.',
    'Basic authentication is not supported',
    'admin@localhost',
    'muster_http_request_duration_seconds',
    '{"token":null,"password":""}',
  ]) {
    assert.equal(scrub(text), text)
  }
})

test('a secret field is masked by its name, in any spelling and at any depth', () => {
  const names = [
    'authorization',
    'Authorization',
    'proxy-authorization',
    'cookie',
    'set-cookie',
    'api_key',
    'apiKey',
    'x-api-key',
    'key',
    'secret',
    'client_secret',
    'webhookSecret',
    'token',
    'access_token',
    'adminToken',
    'password',
    'MUSTER_SECRET_KEY',
    'DATABASE_URL',
    'privateKey',
  ]
  const { clean } = createRedactor()
  for (const name of names) {
    assert.ok(isSecretName(name), name)
    for (const value of ['canary', 12_345, ['canary'], { inner: 'canary' }]) {
      let nested: unknown = { [name]: value }
      for (let depth = 0; depth < 6; depth += 1) {
        assert.ok(!/canary|12345/.test(JSON.stringify(clean(nested))), `${name} at depth ${depth}`)
        nested = depth % 2 ? [nested] : { below: nested }
      }
    }
    assert.ok(!JSON.stringify(clean(new Headers({ [name.replace('_', '-')]: 'canary' }))).includes('canary'), name)
    assert.ok(!JSON.stringify(clean(new Map([[name, 'canary']]))).includes('canary'), name)
    assert.ok(!JSON.stringify(clean(['accept', '*', name, 'canary'])).includes('canary'), name)
  }
  const harmless = { tokens: 5, max_tokens: 9, idempotent: 'x', keyId: 'x', key_count: 1, token: null, secret: false }
  assert.deepEqual(clean(harmless), harmless)
})

test('a registered secret is masked in every form in which it may be written', () => {
  const redactor = createRedactor()
  const secret = 'my "odd" pass/phrases'
  assert.ok(redactor.registerSecret(secret))
  assert.ok(redactor.registerSecret('my "odd" pass/phrases and more'))
  for (const text of [secret, `x${secret}x`, encodeURIComponent(secret), JSON.stringify({ secret })]) {
    assert.ok(!/odd/.test(redactor.scrub(text)), text)
  }
  assert.equal(redactor.scrub('my "odd" pass/phrases and more'), '[redacted]')
  assert.deepEqual(redactor.clean({ [secret]: [secret] }), { '[redacted]': ['[redacted]'] })
  assert.equal(redactor.registerSecret('short'), false)
  assert.equal(redactor.scrub('short'), 'short')
})

test('anything can be cleaned: cycles, depths, hostile objects, sockets and values that JSON does not know', () => {
  const { clean } = createRedactor()
  const cycle: Record<string, unknown> = { name: 'x' }
  cycle.self = cycle
  assert.deepEqual(clean(cycle), { name: 'x', self: '[circular]' })
  const shared = { a: 1 }
  assert.deepEqual(clean([shared, shared]), [shared, shared])
  assert.deepEqual(
    clean({ n: 1n, at: new Date(0), url: new URL('http://u:canary@x/'), bytes: Buffer.from('canary') }),
    {
      n: '1',
      at: '1970-01-01T00:00:00.000Z',
      url: 'http://u:[redacted]@x/',
      bytes: '[6 bytes]',
    },
  )
  const hostile = {
    get value() {
      throw new Error('no')
    },
  }
  assert.equal(clean(hostile), '[unreadable]')
  const everyoneKnowsEveryone: Record<string, unknown>[] = Array.from({ length: 30 }, (_, id) => ({ id }))
  for (const person of everyoneKnowsEveryone) person.friends = [...everyoneKnowsEveryone]
  const startedAt = cpuTime()
  assert.ok(JSON.stringify(clean(everyoneKnowsEveryone)).length < 1_000_000)
  assert.ok(JSON.stringify(clean({ people: new Map(everyoneKnowsEveryone.entries()), process })).length < 1_000_000)
  assert.ok(cpuTime() - startedAt < 5_000)
})

test('no text makes the scrubbing slow', () => {
  const { scrub } = createRedactor()
  const parts = [
    'a',
    '-',
    'A',
    'a-',
    'token',
    'token=',
    'cookie:',
    'http://',
    '://a:',
    'Basic ',
    'eyJ',
    'eyJa.',
    'sk-',
    '"',
    ' ',
  ]
  parts.push('-----BEGIN PRIVATE KEY-----', 'password', 'a.b+', 'Bearer ', 'secret_', '\\"', '=', '@', 'x@')
  for (const part of parts) {
    const startedAt = cpuTime()
    scrub(part.repeat(100_000 / part.length))
    assert.ok(cpuTime() - startedAt < 2_000, JSON.stringify(part))
  }
})
