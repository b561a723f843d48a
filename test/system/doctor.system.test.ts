// `muster doctor` as people call it: its output, its exit code, and proof that it changes nothing.
import assert from 'node:assert/strict'
import { chmod, mkdir, readdir, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { before, test } from 'node:test'
import { atEnd } from '../kit/at-end.ts'
import { createEmptyDatabase } from '../kit/database.ts'
import { freePort } from '../kit/free-port.ts'
import { type Muster, type MusterOptions, makeFolder, runMuster, startMuster } from '../kit/process.ts'

const wholeFile = { after: atEnd }
let server: Muster

before(async () => {
  server = await startMuster(wholeFile)
})

async function consult(t: { after(clean: () => Promise<void>): void }, options: MusterOptions) {
  const { code, stdout, stderr } = await runMuster(t, ['doctor'], options)
  assert.equal(stderr, '')
  return { code, text: stdout, lines: stdout.trim().split('\n') }
}

test('before the first start doctor finds no fault and changes nothing', async (t) => {
  const folder = await makeFolder(t)
  const { code, lines } = await consult(t, { dataDir: join(folder, 'deep', 'data') })
  assert.equal(code, 0)
  assert.match(lines[0] ?? '', /^✓ Node\.js 24\./)
  assert.match(lines[1] ?? '', /^✓ PostgreSQL 18 \(npm package 18\./)
  assert.equal(lines[2], `✓ The data folder ${folder}/deep/data will be made at the first start`)
  assert.match(lines[3] ?? '', /^[✓!] [\d.]+ GiB free on the disk of /)
  assert.equal(lines[4], '✓ The database will be made at the first start')
  assert.match(lines[5] ?? '', /^✓ Port \d+ is free$/)
  assert.deepEqual(await readdir(folder), [])
})

test('doctor finds no fault in a running server, its database, its key and its port', async (t) => {
  const { code, text } = await consult(t, { dataDir: server.dataDir, port: server.port })
  assert.equal(code, 0, text)
  assert.match(text, /✓ The database \(embedded PostgreSQL 18[\d.]*\) answers/)
  assert.match(text, /✓ The tables are those of this release \(migration \d+\)/)
  assert.match(text, /✓ The secret key fits the database/)
  assert.match(text, new RegExp(`✓ The server \\(pid ${server.pid}\\) answers on port ${server.port}`))
  assert.match(text, /✓ \S+\/postgres\.password is private/)
  const elsewhere = await consult(t, { dataDir: server.dataDir, port: await freePort() })
  assert.equal(elsewhere.code, 0)
  // The running server's own address counts, not the PORT of this command.
  assert.match(elsewhere.text, new RegExp(`✓ The server \\(pid ${server.pid}\\) answers on port ${server.port}`))
})

test('a key that does not fit and a file that others can read must be mended', async (t) => {
  const wrong = { MUSTER_SECRET_KEY: 'a key of sufficient length but another' }
  const misfit = await consult(t, { dataDir: server.dataDir, port: server.port, env: wrong })
  assert.equal(misfit.code, 1)
  assert.match(
    misfit.text,
    /✗ The secret key does not fit the database: put the key that it was made with into MUSTER_SECRET_KEY/,
  )
  assert.match(misfit.text, /1 thing to mend\./)
  const path = join(server.dataDir, 'secret.key')
  await chmod(path, 0o644)
  const open = await consult(t, { dataDir: server.dataDir, port: server.port })
  assert.equal(open.code, 1)
  assert.match(open.text, new RegExp(`✗ ${path} can be read by others: run "chmod 600 ${path}"`))
  assert.equal((await stat(path)).mode & 0o777, 0o644)
  await chmod(path, 0o600)
})

test('a stopped database is not started, and a database of another PostgreSQL is reported', async (t) => {
  const dataDir = join(await makeFolder(t), 'data')
  const short = await startMuster(t, { dataDir })
  await short.stop()
  const before = await fingerprint(dataDir)
  const { code, text } = await consult(t, { dataDir })
  assert.equal(code, 0, text)
  assert.match(text, /✓ The database \(PostgreSQL 18\) is not running; it starts with the server/)
  assert.deepEqual(await fingerprint(dataDir), before)
  await writeFile(join(dataDir, 'postgres', 'PG_VERSION'), '17\n')
  const old = await consult(t, { dataDir })
  assert.equal(old.code, 1)
  assert.match(old.text, /✗ The database was made by PostgreSQL 17, and this Muster brings 18: back it up with/)
})

test('a database outside of the data folder is named, and reported if it is missing', async (t) => {
  const folder = await makeFolder(t)
  const dataDir = join(folder, 'data')
  await mkdir(join(folder, 'cluster'))
  await mkdir(dataDir)
  await writeFile(join(dataDir, 'postgres.location'), `${folder}/cluster\n`, { mode: 0o600 })
  const there = await consult(t, { dataDir })
  assert.match(there.text, new RegExp(`! The database is outside the data folder, in ${folder}/cluster: copy both`))
  assert.equal(there.code, 0)
  await writeFile(join(dataDir, 'postgres.location'), `${folder}/gone\n`)
  const gone = await consult(t, { dataDir })
  assert.match(gone.text, new RegExp(`✗ The database should be in ${folder}/gone, which does not exist`))
  assert.equal(gone.code, 1)
})

test('an external database is asked; if it does not answer, the report does not show its password', async (t) => {
  const fresh = await consult(t, { databaseUrl: await createEmptyDatabase() })
  assert.equal(fresh.code, 0, fresh.text)
  // Some builds name themselves after the number: 15.19 (Debian 15.19-0+deb12u1).
  assert.match(
    fresh.text,
    /✓ The database \(external PostgreSQL \d+\.\d.*\) answers\n! \d+ migrations? waits?: the next start/,
  )
  assert.doesNotMatch(fresh.text, /npm package/)
  const nowhere = `postgres://someone:not-a-password@127.0.0.1:${await freePort()}/muster`
  const silent = await consult(t, { databaseUrl: nowhere })
  assert.equal(silent.code, 1)
  assert.match(silent.text, /✗ The database does not answer \(connect ECONNREFUSED .*\): check DATABASE_URL/)
  assert.doesNotMatch(silent.text, /not-a-password/)
})

test('a port that another program uses must be mended, and weak settings are pointed out', async (t) => {
  const squatter = createServer((socket) =>
    socket
      .on('error', () => {})
      .resume()
      .end('220 not HTTP\r\n'),
  )
  const port = await freePort()
  await new Promise<void>((resolve) => squatter.listen(port, '127.0.0.1', resolve))
  t.after(() => new Promise((resolve) => squatter.close(resolve)))
  const taken = await consult(t, { port })
  assert.equal(taken.code, 1)
  assert.match(taken.text, new RegExp(`✗ Port ${port} is used by another program`))

  const env = { HOST: '0.0.0.0', MUSTER_ADMIN_TOKEN: 'short', MUSTER_SECRET_KEY: 'short too' }
  const weak = await consult(t, { env })
  assert.equal(weak.code, 0, weak.text)
  assert.match(weak.text, /! MUSTER_ADMIN_TOKEN is short/)
  assert.match(weak.text, /! MUSTER_SECRET_KEY is short/)
  assert.match(weak.text, /! Muster listens on 0\.0\.0\.0, but links use http:\/\/localhost:\d+: set MUSTER_PUBLIC_URL/)
  assert.match(weak.text, /It will work; 3 things to look at\./)
  const told = await consult(t, { env: { ...env, MUSTER_PUBLIC_URL: 'https://muster.example.org' } })
  assert.doesNotMatch(told.text, /Muster listens on/)
})

test('doctor checks the agent-service of the pages’ service, and no database or folder', async (t) => {
  const env = { MUSTER_SERVE: 'ui', MUSTER_AGENT_URL: server.url }
  const well = await consult(t, { env })
  assert.deepEqual([well.code, well.lines.length], [0, 5], well.text)
  assert.equal(well.lines[1], `✓ The agent-service at ${server.url} is ready`)
  const url = `http://127.0.0.1:${await freePort()}`
  const { code, lines } = await consult(t, { env: { ...env, MUSTER_AGENT_URL: url } })
  assert.equal(code, 1)
  assert.equal(lines[1], `✗ The agent-service at ${url} does not answer: start it, or set MUSTER_AGENT_URL.`)
})

async function fingerprint(folder: string): Promise<string[]> {
  const names = (await readdir(folder, { recursive: true })).sort()
  return Promise.all(names.map(async (name) => `${name} ${(await stat(join(folder, name))).mtimeMs}`))
}
