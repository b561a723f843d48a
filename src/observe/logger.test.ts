import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { MusterError } from '../kernel/errors.ts'
import type { Log } from '../kernel/log.ts'
import { createLogger, type Logger } from './logger.ts'
import { createPrettifier } from './prettify.ts'

const prettify = await createPrettifier()

function open(options: { pretty?: boolean; level?: 'debug' | 'info' } = {}): { log: Logger; lines: string[] } {
  const lines: string[] = []
  const destination = { write: (line: string) => lines.push(line) }
  return {
    log: createLogger({ level: options.level ?? 'debug', prettify: options.pretty ? prettify : null, destination }),
    lines,
  }
}

const canary = `mk_${randomBytes(36).toString('base64url')}`
const registered = 'correct horse battery'

/** Every way by which a secret gets into a log line. */
const paths: [string, (log: Logger, secret: string) => void][] = [
  ['message', (log, secret) => log.info({}, `failed with ${secret}`)],
  ['message alone', (log, secret) => log.info(secret)],
  ['formatted message', (log, secret) => log.info({}, 'failed with %s and %o', secret, { secret })],
  ['field', (log, secret) => log.info({ note: secret }, 'x')],
  ['nested field', (log, secret) => log.info({ a: { b: { c: { d: `x ${secret} y` } } } }, 'x')],
  ['array', (log, secret) => log.info({ list: [1, [secret]] }, 'x')],
  ['field name', (log, secret) => log.info({ [secret]: 1 }, 'x')],
  ['error', (log, secret) => log.error(new Error(secret))],
  ['error as err', (log, secret) => log.error({ err: new Error(secret) }, 'x')],
  ['error by another name', (log, secret) => log.error({ failure: { inner: new Error(secret) } }, 'x')],
  ['cause', (log, secret) => log.error({ err: new Error('a', { cause: new Error('b', { cause: secret }) }) }, 'x')],
  ['aggregate', (log, secret) => log.error({ err: new AggregateError([new Error(secret)], 'a') }, 'x')],
  [
    'error details',
    (log, secret) => log.error({ err: new MusterError('CONFLICT', 'x', { details: { s: secret } }) }, 'x'),
  ],
  ['child bindings', (log, secret) => log.child({ note: secret }).info({}, 'x')],
  [
    'child of child',
    (log, secret) =>
      log
        .child({ a: 1 })
        .child({ deep: { note: secret } })
        .warn({}, 'x'),
  ],
  [
    'bindings set later',
    (log, secret) => {
      const child = log.child({})
      child.setBindings({ note: secret })
      child.info({}, 'x')
    },
  ],
  ['message prefix', (log, secret) => log.child({}, { msgPrefix: secret }).info({}, 'x')],
  ['map', (log, secret) => log.info({ map: new Map([[1, secret]]) }, 'x')],
]

for (const pretty of [false, true]) {
  test(`no secret gets into a line by any path (${pretty ? 'pretty' : 'JSON'})`, () => {
    for (const [name, write] of paths) {
      const { log, lines } = open({ pretty })
      log.registerSecret(registered)
      for (const secret of [canary, registered]) write(log, secret)
      const text = lines.join('')
      assert.ok(!text.includes(canary) && !text.includes(registered), `${name}: ${text}`)
    }
  })
}

test('control: without a secret each path does write its text', () => {
  for (const [name, write] of paths) {
    const { log, lines } = open()
    write(log, 'harmless words')
    assert.ok(lines.join('').includes('harmless words'), name)
  }
})

test('secret fields are masked by name, also in child bindings and headers', () => {
  const { log, lines } = open()
  log.info({ headers: { authorization: 'plain', cookie: ['plain'] }, api_key: 'plain', ok: 'yes' }, 'x')
  log.child({ password: 'plain', nested: { token: 'plain' } }).info({ raw: ['Cookie', 'plain'] }, 'x')
  for (const line of lines) assert.ok(!line.includes('plain'), line)
  assert.equal(JSON.parse(lines[0] ?? '').ok, 'yes')
})

test('a line is one JSON object with level, instant, sentence and ids', () => {
  const { log, lines } = open({ level: 'info' })
  const asLog: Log = log.child({ run_id: 'r1' })
  asLog.info({ step: 2 }, 'a step has ended')
  asLog.debug({}, 'not written')
  assert.equal(lines.length, 1)
  const { time, ...line } = JSON.parse(lines[0] ?? '')
  assert.deepEqual(line, { level: 'info', pid: process.pid, run_id: 'r1', step: 2, msg: 'a step has ended' })
  assert.match(time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
})

test('an error is logged with its kind, stack, fields and whole chain of causes', () => {
  const { log, lines } = open()
  const root = Object.assign(new TypeError('root'), { code: 'ECONNRESET' })
  log.error({ err: new Error('top', { cause: new Error('middle', { cause: root }) }) }, 'failed')
  const { err } = JSON.parse(lines[0] ?? '')
  assert.deepEqual([err.type, err.message], ['Error', 'top'])
  assert.match(err.stack, /Error: top\n\s+at /)
  assert.equal(err.cause.message, 'middle')
  assert.deepEqual([err.cause.cause.type, err.cause.cause.code], ['TypeError', 'ECONNRESET'])
})

test('a pretty line is for people, and is one line unless it shows an error', () => {
  const { log, lines } = open({ pretty: true })
  log.warn({ run_id: 'r1', agent_id: 'a1' }, 'the run is late')
  assert.match(lines.join(''), /^[^{].*WARN.*the run is late.*run_id.*r1.*a1.*\n$/)
  log.error({ err: new Error('no luck') }, 'it failed')
  assert.match(lines.at(-1) ?? '', /no luck[\s\S]*\n\s+at /)
})

test('without a destination the logger writes to standard output, and nothing is lost at exit', async () => {
  const program = `
    import { createLogger } from '${new URL('./logger.ts', import.meta.url)}'
    const log = createLogger({ level: 'info' })
    for (let i = 0; i < 1000; i += 1) log.info({ i }, 'line')
    process.exit(0)`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program])
  assert.equal(stdout.trim().split('\n').length, 1000)
})
