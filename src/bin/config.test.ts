import assert from 'node:assert/strict'
import { isAbsolute } from 'node:path'
import { test } from 'node:test'
import { ConfigError, readConfig, readServerConfig, settings } from './config.ts'
import { refusedPorts } from './config-values.ts'

test('an empty environment gives the defaults of the contract', () => {
  const config = readConfig({})
  assert.equal(config.port, 8080)
  assert.equal(config.host, '127.0.0.1')
  assert.ok(isAbsolute(config.dataDir) && config.dataDir.endsWith('.muster'))
  assert.equal(config.databaseUrl, null)
  assert.equal(config.role, 'all')
  assert.equal(config.publicUrl.href, 'http://127.0.0.1:8080/')
  assert.deepEqual(config.trustProxy, [])
  assert.equal(config.rateLimit, 300)
  assert.deepEqual(config.egressAllow, [])
  assert.equal(config.demo, true)
  assert.equal(config.otlpEndpoint, null)
  assert.equal(config.faultPlan, null)
  assert.equal(config.pool, 20)
  assert.equal(config.drainMs, 25_000)
})

test('an empty variable is an unset one', () => {
  assert.deepEqual(readConfig({ PORT: '', DATABASE_URL: '', MUSTER_PUBLIC_URL: '' }), readConfig({}))
})

const wrong: [variable: string, value: string][] = [
  ['PORT', 'abc'],
  ['PORT', '0'],
  ['PORT', '65536'],
  ['PORT', '80.5'],
  ['PORT', '-1'],
  ['DATABASE_URL', 'mysql://x'],
  ['DATABASE_URL', 'nonsense'],
  ['MUSTER_ADMIN_TOKEN', 'two words'],
  ['MUSTER_ROLE', 'boss'],
  ['MUSTER_PUBLIC_URL', 'muster.example'],
  ['MUSTER_PUBLIC_URL', 'ftp://muster.example'],
  ['MUSTER_TRUST_PROXY', 'everybody'],
  ['MUSTER_RATE_LIMIT', '-1'],
  ['MUSTER_RATE_LIMIT', 'none'],
  ['MUSTER_EGRESS_ALLOW', 'http://10.0.0.1'],
  ['MUSTER_DEMO', 'maybe'],
  ['MUSTER_LOG_LEVEL', 'loud'],
  ['MUSTER_DRAIN', '25s'],
  ['MUSTER_DRAIN', '3600001'],
  ['MUSTER_FAULTS', 'nowhere=kill'],
  ['MUSTER_FAULTS', 'migrate.mid=explode'],
  ['MUSTER_POOL', '1'],
  ['MUSTER_POOL', 'many'],
  ['OTEL_EXPORTER_OTLP_ENDPOINT', 'collector:4318'],
  ['SYSTEM_VARIANT', 'not a name'],
  ['MUSTER_PROMPTS_URL', 'prompts:8080'],
  ['MUSTER_PROMPTS_KEY', 'two words'],
  ['MUSTER_SERVE', 'everything'],
  ['MUSTER_AGENT_URL', 'agent-service:8080'],
  ['MUSTER_AGENT_URL', 'http://u:p@agent:8080'],
  ['MUSTER_AGENT_URL', 'http://agent:8080/?x=1'],
  ['MUSTER_TRACE_URL', 'http://jaeger/trace/'],
  ['MUSTER_TRACE_URL', '{trace_id}'],
  ['LANGSMITH_API_KEY', 'two words'],
  ['LANGSMITH_ENDPOINT', 'smith'],
  ['LANGSMITH_PROJECT', 'a\nb'],
  ['OTEL_EXPORTER_OTLP_HEADERS', 'no equals sign'],
  ['OTEL_EXPORTER_OTLP_HEADERS', 'a=%zz'],
  ['OTEL_EXPORTER_OTLP_HEADERS', 'a=%0d%0ab'],
]

for (const [variable, value] of wrong) {
  test(`${variable}=${value} is refused and named`, () => {
    assert.throws(
      () => readConfig({ [variable]: value }),
      (error: unknown) => error instanceof ConfigError && error.message.startsWith(`${variable} `),
    )
  })
}

test('a port to which fetch does not connect is refused, for it could never be opened in a browser', async () => {
  assert.ok(refusedPorts.has(6000) && !refusedPorts.has(8080))
  for (const port of refusedPorts) {
    await assert.rejects(
      fetch(`http://127.0.0.1:${port}`),
      ({ cause }: Error) => cause instanceof Error && cause.message === 'bad port',
    )
    assert.throws(() => readConfig({ PORT: String(port) }), {
      constructor: ConfigError,
      message: /^PORT must be another port: browsers refuse to open this one/,
    })
  }
})

test('the variant and the prompt library are unset unless they are named, and empty is unset', () => {
  const empty = { SYSTEM_VARIANT: '', MUSTER_PROMPTS_URL: '', MUSTER_PROMPTS_KEY: '' }
  for (const { systemVariant, prompts } of [readConfig({}), readConfig(empty)]) {
    assert.deepEqual([systemVariant, prompts], [null, null])
  }
  assert.equal(readConfig({ SYSTEM_VARIANT: 'green' }).systemVariant, 'green')
  const url = 'http://prompts:8080'
  assert.deepEqual(readConfig({ MUSTER_PROMPTS_URL: url }).prompts, { url: new URL(url), key: null })
  assert.equal(readConfig({ MUSTER_PROMPTS_URL: url, MUSTER_PROMPTS_KEY: 'k' }).prompts?.key, 'k')
})

test('the roles api and worker need an external database', () => {
  assert.throws(() => readConfig({ MUSTER_ROLE: 'worker' }), /MUSTER_ROLE=worker needs DATABASE_URL/)
  assert.equal(readConfig({ MUSTER_ROLE: 'worker', DATABASE_URL: 'postgres://h/d' }).role, 'worker')
})

const database = { DATABASE_URL: 'postgres://h/d' }
const agent = { MUSTER_AGENT_URL: 'http://agent:8080' }

test('a process is every service unless MUSTER_SERVE names one', () => {
  for (const empty of [{}, { MUSTER_SERVE: '' }]) assert.equal(readConfig(empty).serve, 'all')
  assert.equal(readConfig({ MUSTER_SERVE: 'agent' }).serve, 'agent')
  const ui = readConfig({ MUSTER_SERVE: 'ui', ...agent })
  assert.deepEqual([ui.serve, ui.agentUrl?.href, ui.databaseUrl], ['ui', 'http://agent:8080/', null])
})

test('the prompt library and genUI need an external database, and have no workers', () => {
  for (const serve of ['prompts', 'genui'] as const) {
    assert.throws(() => readConfig({ MUSTER_SERVE: serve }), {
      constructor: ConfigError,
      message: `MUSTER_SERVE=${serve} needs DATABASE_URL: the embedded database serves one process.`,
    })
    const config = readConfig({ MUSTER_SERVE: serve, ...database })
    assert.deepEqual([config.serve, config.role], [serve, 'api'])
  }
})

const contradictions: [env: Record<string, string>, says: string][] = [
  [{ MUSTER_SERVE: 'ui' }, 'MUSTER_SERVE=ui needs MUSTER_AGENT_URL: the agent-service to which it forwards.'],
  [agent, 'MUSTER_AGENT_URL is for MUSTER_SERVE=ui, which forwards to it.'],
  [{ MUSTER_SERVE: 'agent', ...agent }, 'MUSTER_AGENT_URL is for MUSTER_SERVE=ui, which forwards to it.'],
  [
    { MUSTER_SERVE: 'prompts', MUSTER_ROLE: 'worker', ...database },
    'MUSTER_SERVE=prompts and MUSTER_ROLE=worker exclude each other: a worker serves nothing.',
  ],
  [
    { MUSTER_SERVE: 'prompts', MUSTER_PROMPTS_URL: 'http://p', ...database },
    'MUSTER_SERVE=prompts is the prompt library itself: leave MUSTER_PROMPTS_URL unset.',
  ],
  ...['http://127.0.0.1:8080', 'http://localhost:8080', 'http://[::1]:8080/base'].map(
    (url): [Record<string, string>, string] => [
      { MUSTER_SERVE: 'ui', HOST: '0.0.0.0', MUSTER_AGENT_URL: url },
      'MUSTER_AGENT_URL is the address of this process itself: name the agent-service.',
    ],
  ),
]

for (const [env, says] of contradictions) {
  test(`${JSON.stringify(env)} is refused with one sentence`, () => {
    assert.throws(() => readConfig(env), { constructor: ConfigError, message: says })
  })
}

test('traces are not sent unless a collector is named, and an empty name is none', () => {
  const empty = { LANGSMITH_API_KEY: '', LANGSMITH_ENDPOINT: '', LANGSMITH_PROJECT: '', MUSTER_TRACE_URL: '' }
  for (const config of [readConfig({}), readConfig(empty)]) {
    assert.deepEqual(
      [config.otlpEndpoint, config.otlpHeaders, config.langsmith, config.traceUrl],
      [null, {}, null, null],
    )
  }
  const { langsmith } = readConfig({ LANGSMITH_API_KEY: 'k' })
  assert.deepEqual(langsmith, { url: new URL('https://api.smith.langchain.com'), key: 'k', project: 'default' })
  const headers = readConfig({ OTEL_EXPORTER_OTLP_HEADERS: 'X-Key=a%20b, other=c=d' }).otlpHeaders
  assert.deepEqual(headers, { 'x-key': 'a b', other: 'c=d' })
})

test('a server may listen on a wildcard address, but its public address is another', () => {
  assert.equal(readConfig({ HOST: '0.0.0.0', PORT: '9000' }).publicUrl.origin, 'http://localhost:9000')
  assert.equal(readConfig({ HOST: '::1' }).publicUrl.origin, 'http://[::1]:8080')
  assert.equal(readConfig({ MUSTER_PUBLIC_URL: 'https://m.example' }).publicUrl.origin, 'https://m.example')
})

test('lists are split at commas and spaces; off is an empty list', () => {
  assert.deepEqual(readConfig({ MUSTER_TRUST_PROXY: '10.0.0.0/8, ::1' }).trustProxy, ['10.0.0.0/8', '::1'])
  assert.deepEqual(readConfig({ MUSTER_TRUST_PROXY: 'off' }).trustProxy, [])
})

test('every setting with a flag is a variable that is read', () => {
  for (const { variable } of settings) {
    const bad = '\u0000 nonsense'
    const read = (): unknown => readConfig({ [variable]: bad })
    const differs = (): boolean => JSON.stringify(read()) !== JSON.stringify(readConfig({}))
    try {
      assert.ok(differs(), `${variable} changes nothing`)
    } catch (error) {
      assert.ok(error instanceof ConfigError && error.message.startsWith(variable), `${variable}: ${error}`)
    }
  }
})

test('a command finds its server by the data folder, or by MUSTER_URL with MUSTER_KEY', () => {
  const local = readServerConfig({ PORT: 'of no concern here', MUSTER_ADMIN_TOKEN: 'token' })
  assert.equal(local.url, null)
  assert.equal(local.key, 'token')
  assert.ok(isAbsolute(local.dataDir) && local.dataDir.endsWith('.muster'))
  const remote = { MUSTER_URL: 'https://muster.example', MUSTER_KEY: 'key', MUSTER_ADMIN_TOKEN: 'token' }
  assert.deepEqual(readServerConfig(remote).url?.href, 'https://muster.example/')
  assert.equal(readServerConfig(remote).key, 'key')
  assert.equal(readServerConfig(remote).project, null)
  assert.equal(readServerConfig({ ...remote, MUSTER_PROJECT: '' }).project, null)
  assert.equal(readServerConfig({ ...remote, MUSTER_PROJECT: 'Support desk' }).project, 'Support desk')
  assert.throws(() => readServerConfig({ ...remote, MUSTER_KEY: '' }), /MUSTER_URL needs MUSTER_KEY/)
  assert.throws(() => readServerConfig({ ...remote, MUSTER_URL: 'muster.example' }), /MUSTER_URL must be an http/)
  assert.throws(() => readServerConfig({ MUSTER_KEY: 'two words' }), /MUSTER_KEY must not hold white space/)
})
