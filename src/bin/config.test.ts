import assert from 'node:assert/strict'
import { isAbsolute } from 'node:path'
import { test } from 'node:test'
import { ConfigError, readConfig, settings } from './config.ts'

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
]

for (const [variable, value] of wrong) {
  test(`${variable}=${value} is refused and named`, () => {
    assert.throws(
      () => readConfig({ [variable]: value }),
      (error: unknown) => error instanceof ConfigError && error.message.startsWith(`${variable} `),
    )
  })
}

test('a role of its own needs an external database', () => {
  assert.throws(() => readConfig({ MUSTER_ROLE: 'worker' }), /MUSTER_ROLE=worker needs DATABASE_URL/)
  assert.equal(readConfig({ MUSTER_ROLE: 'worker', DATABASE_URL: 'postgres://h/d' }).role, 'worker')
})

test('a wildcard address is where it listens, not where people go', () => {
  assert.equal(readConfig({ HOST: '0.0.0.0', PORT: '9000' }).publicUrl.origin, 'http://localhost:9000')
  assert.equal(readConfig({ HOST: '::1' }).publicUrl.origin, 'http://[::1]:8080')
  assert.equal(readConfig({ MUSTER_PUBLIC_URL: 'https://m.example' }).publicUrl.origin, 'https://m.example')
})

test('lists are split at commas and spaces; off is an empty one', () => {
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
