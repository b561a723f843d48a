// A mistake in the settings ends the start with one sentence that names the variable, before a part has started or
// after all parts have stopped.
import assert from 'node:assert/strict'
import { stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { freePort } from '../kit/free-port.ts'
import { makeFolder, runMuster, startMuster } from '../kit/process.ts'

const mistakes: { env: Record<string, string>; says: string }[] = [
  { env: { PORT: 'abc' }, says: 'PORT must be a whole number' },
  { env: { PORT: '0' }, says: 'PORT must be at least 1' },
  { env: { PORT: '65536' }, says: 'PORT must be at most 65535' },
  {
    env: { MUSTER_ROLE: 'worker' },
    says: 'MUSTER_ROLE=worker needs DATABASE_URL: the embedded database serves one process.',
  },
  { env: { MUSTER_ROLE: 'queen' }, says: 'MUSTER_ROLE must be all, api or worker' },
  { env: { DATABASE_URL: 'nonsense' }, says: 'DATABASE_URL must be a postgres:// URL' },
  { env: { MUSTER_RATE_LIMIT: '-1' }, says: 'MUSTER_RATE_LIMIT must be a whole number' },
  { env: { MUSTER_DEMO: 'maybe' }, says: 'MUSTER_DEMO must be on or off' },
  { env: { MUSTER_LOG_LEVEL: 'loud' }, says: 'MUSTER_LOG_LEVEL must be debug, info, warn, error or silent' },
  { env: { MUSTER_PUBLIC_URL: 'ftp://x' }, says: 'MUSTER_PUBLIC_URL must be an http(s) URL' },
  { env: { MUSTER_TRUST_PROXY: 'nonsense' }, says: 'MUSTER_TRUST_PROXY must be addresses or CIDR ranges' },
  { env: { MUSTER_EGRESS_ALLOW: 'http://x/' }, says: 'MUSTER_EGRESS_ALLOW must be hosts, host:port or CIDR ranges' },
  { env: { MUSTER_FAULTS: 'everything=kill' }, says: 'MUSTER_FAULTS names no fault: everything=kill' },
]

for (const { env, says } of mistakes) {
  const setting = Object.entries(env).map(([name, value]) => `${name}=${value}`)
  test(`${setting} is refused by name, before anything is made`, async (t) => {
    const { code, stdout, stderr, muster } = await runMuster(t, ['start'], { env })
    assert.deepEqual({ code, stdout, stderr }, { code: 1, stdout: '', stderr: `Configuration: ${says}\n` })
    await assert.rejects(stat(muster.dataDir), { code: 'ENOENT' })
  })
}

test('a flag wins over its variable', async (t) => {
  const { stderr, code } = await runMuster(t, ['start', '--port', 'abc'], { env: { PORT: '8080' } })
  assert.equal(stderr, 'Configuration: PORT must be a whole number\n')
  assert.equal(code, 1)
})

test('a data folder that is a file is refused by its name', async (t) => {
  const dataDir = join(await makeFolder(t), 'file')
  await writeFile(dataDir, '')
  const { code, stdout, stderr } = await runMuster(t, ['start'], { dataDir })
  assert.deepEqual({ code, stdout }, { code: 1, stdout: '' })
  assert.match(stderr, /^muster: The data folder \S+\/file cannot be used [^\n]+\n$/)
})

test('a port or an address that cannot be used is refused by its variable, and no database is left', async (t) => {
  const port = await freePort()
  const taken = createServer()
  await new Promise<void>((resolve) => taken.listen(port, '127.0.0.1', resolve))
  t.after(() => new Promise<void>((resolve) => taken.close(() => resolve())))
  const dataDir = join(await makeFolder(t), 'data')

  const inUse = await runMuster(t, ['start'], { dataDir, port })
  assert.equal(inUse.code, 1)
  assert.equal(complaint(inUse.stderr), `Configuration: PORT ${port} is in use. Choose another: PORT=8081 npm start`)
  assert.deepEqual(await inUse.muster.processes(), [])
  await assert.rejects(stat(join(dataDir, 'muster.pid')), { code: 'ENOENT' })

  const foreign = await runMuster(t, ['start'], { dataDir, env: { HOST: '203.0.113.1' } })
  assert.equal(foreign.code, 1)
  assert.equal(complaint(foreign.stderr), 'Configuration: HOST 203.0.113.1 is no address of this machine.')
  assert.deepEqual(await foreign.muster.processes(), [])

  // Without the mistake the same folder starts, so the refusals above were caused by the mistake.
  await startMuster(t, { dataDir })
})

/** The output without log lines; a stack would show here. */
const complaint = (stderr: string): string =>
  stderr
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('{'))
    .join('\n')
