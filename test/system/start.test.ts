// One command starts everything: as root, as an ordinary user, and a second time, but never twice on one folder.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { chmod, chown, mkdir, readdir, readFile, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { before } from 'node:test'
import { promisify } from 'node:util'
import { atEnd } from '../kit/at-end.ts'
import { createUnusedDatabase } from '../kit/database.ts'
import { cannotRunAsOthers, isRoot, nobody } from '../kit/embedded-kit.ts'
import {
  endServersUnder,
  type Muster,
  makeFolder,
  postmasterPid,
  readiness,
  repository,
  runMuster,
  startMuster,
} from '../kit/process.ts'
import { inSystem, inTest as test } from '../kit/tiers.ts'

const wholeFile = { after: atEnd }
const escapeCode = '\u001b['
const onlyRoot = isRoot ? false : 'only root can become another user'
const KEY = 'the key that seals the secrets of this test'

/** One server that most tests only read from. */
let muster: Muster

before(async () => {
  muster = await startMuster(wholeFile)
})

test('the first start answers 200 on /readyz and has a demo project', async () => {
  const ready = await muster.call('GET /readyz', { token: null })
  assert.equal(ready.status, 200)
  assert.deepEqual(ready.body.checks, { database: true, migrations: true, worker: true })
  const { body } = await muster.call<{ items: { name: string }[] }>('GET /api/projects')
  assert.deepEqual(
    body.items.map(({ name }) => name),
    ['Demo'],
  )
})

test('the server listens on this machine only, and so does its database', async () => {
  const listening = await listeningPorts()
  assert.ok(listening.includes(`0100007F:${hexPort(muster.port)}`), 'the server was not found among the open ports')
  const database = Number(await readFile(join(muster.dataDir, 'postgres.port'), 'utf8'))
  for (const port of [muster.port, database]) {
    const addresses = listening.filter((entry) => entry.endsWith(`:${hexPort(port)}`))
    assert.deepEqual(addresses, [`0100007F:${hexPort(port)}`])
  }
})

test('muster.pid holds the pid of the server while it runs', async () => {
  const text = await readFile(join(muster.dataDir, 'muster.pid'), 'utf8')
  assert.equal(Number(text.split('\n')[0]), muster.pid)
})

test('every file of the data folder that holds a secret has mode 0600', async () => {
  const names = await readdir(muster.dataDir)
  for (const name of ['admin.token', 'secret.key', 'postgres.password', 'postgres.log']) {
    assert.ok(names.includes(name), `${name} is missing`)
  }
  for (const name of names) {
    const file = await stat(join(muster.dataDir, name))
    if (name === 'postgres') assert.equal(file.mode & 0o777, 0o700)
    // The lock file is empty, because it is only locked and never read.
    else if (!name.startsWith('muster.lock')) assert.equal(file.mode & 0o777, 0o600, name)
  }
  const { mode } = await stat(muster.dataDir)
  assert.equal(mode & 0o066, 0, 'others can list or change the data folder')
})

test('a second server on the same folder refuses with one sentence, and the first is unharmed', async (t) => {
  const database = await postmasterPid(muster)
  const second = await runMuster(t, ['start'], { dataDir: muster.dataDir })
  assert.equal(second.code, 1)
  assert.equal(
    second.stderr,
    `muster: Another Muster server (pid ${muster.pid}) is using the data folder ${muster.dataDir}: stop it, or give this one another folder.\n`,
  )
  assert.equal(second.stdout, '')
  assert.equal(await readiness(muster), 200)
  assert.equal(await postmasterPid(muster), database)
  assert.equal(Number((await readFile(join(muster.dataDir, 'muster.pid'), 'utf8')).split('\n')[0]), muster.pid)
})

test('status prints ready and exits with 0, also if the public address is another', async (t) => {
  const here = { dataDir: muster.dataDir, port: muster.port }
  const plain = await runMuster(t, ['status'], here)
  assert.equal(plain.stdout, `A server runs on this data folder (pid ${muster.pid}).\n${muster.url}: ready\n`)
  assert.equal(plain.code, 0)
  const behindProxy = await runMuster(t, ['status', '--public-url', 'https://muster.invalid'], here)
  assert.equal(behindProxy.code, 0, behindProxy.stdout)
  const everywhere = await runMuster(t, ['status', '--host', '0.0.0.0'], here)
  assert.equal(everywhere.code, 0, everywhere.stdout)
})

test('status exits with 1 if no server answers', async (t) => {
  const { code, stdout } = await runMuster(t, ['status'])
  assert.match(stdout, /^No server runs on this data folder\.\nhttp:\/\/127\.0\.0\.1:\d+: no answer\n$/)
  assert.equal(code, 1)
})

test('keys admin shows the token that the server accepts', async (t) => {
  const { stdout, stderr, code } = await runMuster(t, ['keys', 'admin'], { dataDir: muster.dataDir })
  assert.equal(code, 0, stderr)
  const me = await muster.call('GET /api/me', { token: stdout.trim() })
  assert.equal(me.body.type, 'instance_admin')
})

test('keys link makes a link that signs in once', async (t) => {
  const { stdout, stderr } = await runMuster(t, ['keys', 'link'], { dataDir: muster.dataDir, port: muster.port })
  assert.match(stdout, /^http:\/\/127\.0\.0\.1:\d+\/sign-in\/\S+\n$/, stderr)
  const route = `GET ${new URL(stdout.trim()).pathname}`
  const first = await muster.call(route, { token: null })
  assert.equal(first.status, 303)
  const cookie = first.headers.getSetCookie()[0]?.split(';')[0] ?? ''
  assert.equal((await muster.call('GET /api/me', { cookie })).body.type, 'user')
  assert.equal((await muster.call(route, { token: null })).status, 401)
})

test('keys names its arguments, and reports a missing data folder without making one', async (t) => {
  const unknown = await runMuster(t, ['keys', 'everything'])
  assert.equal(unknown.stderr, 'Configuration: keys takes admin or link, not everything.\n')
  assert.equal(unknown.code, 1)
  const nowhere = await runMuster(t, ['keys', 'admin'])
  assert.match(nowhere.stderr, /^muster: There is no data folder at .*\. Start Muster once/)
  assert.equal(nowhere.code, 1)
  await assert.rejects(stat(nowhere.muster.dataDir), { code: 'ENOENT' })
})

test('migrate beside a running server finds nothing to do', async (t) => {
  const { stdout, code } = await runMuster(t, ['migrate'], { dataDir: muster.dataDir })
  assert.equal(stdout, 'The database is up to date.\n')
  assert.equal(code, 0)
  assert.equal(await readiness(muster), 200)
})

test('migrate on a new folder makes the database, and leaves no process', async (t) => {
  const { stdout, code, muster: command } = await runMuster(t, ['migrate'])
  assert.match(stdout, /Applied \d+ migrations?\.\n$/)
  assert.equal(code, 0)
  assert.deepEqual(await command.processes(), [])
})

test('--help names every command and setting', async (t) => {
  const all = await runMuster(t, ['--help'])
  assert.equal(all.code, 0)
  for (const command of ['start', 'migrate', 'status', 'keys', 'doctor', 'backup', 'restore']) {
    assert.match(all.stdout, new RegExp(`^  ${command} `, 'm'))
  }
  const start = await runMuster(t, ['start', '--help'])
  for (const variable of ['PORT', 'DATABASE_URL', 'MUSTER_DATA_DIR', 'MUSTER_ROLE']) {
    assert.match(start.stdout, new RegExp(`\\[${variable}\\]`))
  }
  assert.equal((await runMuster(t, ['fly'])).code, 1)
})

test('piped output has no colours; a terminal gets them', async (t) => {
  assert.equal((muster.stdout() + muster.stderr()).includes(escapeCode), false)
  const failed = await runMuster(t, ['start'], { env: { PORT: 'abc' } })
  assert.equal(failed.stderr.includes(escapeCode), false)

  const command = ['script', '-qec', `${process.execPath} ${join(repository, 'src/bin/muster.ts')} start`, '/dev/null']
  const onTerminal = await runMuster(t, [], { command, env: { PORT: 'abc', TERM: 'xterm' } }).catch(() => null)
  if (onTerminal === null) return t.diagnostic('there is no `script` here to make a terminal with')
  assert.ok(onTerminal.stdout.includes(escapeCode), onTerminal.stdout)
  assert.match(onTerminal.stdout, /PORT must be a whole number/)
})

test('a stop ends every process, and the second start is faster and finds the same data', async (t) => {
  const dataDir = join(await makeFolder(t), 'data')
  const first = await startMuster(t, { dataDir })
  const made = await first.call('POST /api/projects', { body: { name: 'kept over the stop' } })
  assert.equal(made.status, 201)
  assert.ok((await first.processes()).length >= 3, 'the check for processes finds none')
  await first.stop()
  assert.deepEqual(await first.processes(), [])
  await assert.rejects(stat(join(dataDir, 'muster.pid')), { code: 'ENOENT' })

  const second = await startMuster(t, { dataDir })
  assert.match(second.stdout(), /embedded PostgreSQL, started/)
  const kept = await second.call(`GET /api/projects/${made.body.id}`)
  assert.equal(kept.body.name, 'kept over the stop')
  const { body } = await second.call<{ items: unknown[] }>('GET /api/projects')
  assert.equal(body.items.length, 2, 'a second start made another demo project')
  t.diagnostic(`ready in ${readyIn(first)} s at the first start, ${readyIn(second)} s at the second`)
  assert.ok(readyIn(second) < 10)
  await second.stop()
})

inSystem('an ordinary user can start a server too', { skip: cannotRunAsOthers ?? false }, async (t) => {
  const folder = await makeFolder(t)
  await chown(folder, nobody.uid, nobody.gid)
  const server = await startMuster(t, { dataDir: join(folder, 'data'), user: nobody })
  assert.equal((await stat(join(folder, 'data', 'postgres'))).uid, nobody.uid)
  assert.equal((await stat(join(folder, 'data', 'admin.token'))).uid, nobody.uid)
  assert.equal((await server.call('POST /api/projects', { body: { name: 'by nobody' } })).status, 201)
  await server.stop()
  assert.deepEqual(await server.processes(), [])
})

inSystem('a start that fails after it listens ends with a sentence, and leaves no process behind', async (t) => {
  const folder = await makeFolder(t)
  // The address of the server cannot be written, because a folder has the file's name.
  await mkdir(join(folder, 'data', 'muster.address'), { recursive: true })
  const { code, stderr, muster: failed } = await runMuster(t, ['start'], { dataDir: join(folder, 'data') })
  assert.equal(code, 1, stderr)
  assert.match(stderr, /muster: .*muster\.address/)
  assert.deepEqual(await failed.processes(), [])
})

inSystem('root can keep the data under a folder that is closed to others', { skip: onlyRoot }, async (t) => {
  const home = join(await makeFolder(t), 'home')
  await mkdir(home)
  await chmod(home, 0o700)
  const dataDir = join(home, 'data')
  const first = await startMuster(t, { dataDir })
  const place = (await readFile(join(dataDir, 'postgres.location'), 'utf8')).trim()
  t.after(async () => {
    await first.kill('SIGKILL')
    await endServersUnder(place)
    await rm(place, { recursive: true, force: true })
  })
  assert.equal((await stat(home)).mode & 0o777, 0o700)
  const made = await first.call('POST /api/projects', { body: { name: 'under a closed folder' } })
  await first.stop()
  const second = await startMuster(t, { dataDir })
  assert.equal((await second.call(`GET /api/projects/${made.body.id}`)).status, 200)
  await second.stop()
})

inSystem('a start with another MUSTER_SECRET_KEY is refused with a sentence, and leaves no process', async (t) => {
  const dataDir = join(await makeFolder(t), 'data')
  const first = await startMuster(t, { dataDir, env: { MUSTER_SECRET_KEY: KEY } })
  await first.stop()
  await assert.rejects(stat(join(dataDir, 'secret.key')), { code: 'ENOENT' })

  const refused = await runMuster(t, ['start'], { dataDir, env: { MUSTER_SECRET_KEY: `${KEY}!` } })
  assert.match(
    lastLine(refused.stderr),
    /^muster: This database was made with another secret key\. Set MUSTER_SECRET_KEY/,
  )
  assert.equal(refused.code, 1)
  assert.deepEqual(await refused.muster.processes(), [])
  await startMuster(t, { dataDir, env: { MUSTER_SECRET_KEY: KEY } })
})

inSystem('a worker serves health and metrics, and nothing else', async (t) => {
  const databaseUrl = await createUnusedDatabase()
  const worker = await startMuster(t, { databaseUrl, env: { MUSTER_ROLE: 'worker' } })
  assert.doesNotMatch(worker.stdout(), /sign-in/)
  for (const path of ['/healthz', '/readyz', '/metrics']) {
    assert.equal((await worker.call(`GET ${path}`)).status, 200, path)
  }
  assert.equal((await worker.call('GET /metrics', { token: null })).status, 401)
  const others = ['/', '/api/me', '/api/projects', '/api/providers', '/openapi.json', '/docs', '/sign-in/x']
  for (const path of others) {
    assert.equal((await worker.call(`GET ${path}`)).status, 404, path)
    assert.notEqual((await muster.call(`GET ${path}`)).status, 404, `${path} is served by nobody`)
  }
  await worker.stop()
})

/** The time that the start itself prints, without the time in which Node loads the program. */
const readyIn = (server: Muster): number => Number(/ready in ([\d.]+) s/.exec(server.stdout())?.[1])

const lastLine = (text: string): string => text.trimEnd().split('\n').at(-1) ?? ''

const hexPort = (port: number): string => port.toString(16).toUpperCase().padStart(4, '0')

async function listeningPorts(): Promise<string[]> {
  const { stdout } = await promisify(execFile)('cat', ['/proc/net/tcp', '/proc/net/tcp6'])
  return stdout.split('\n').flatMap((line) => {
    const [, local = '', , state] = line.trim().split(/\s+/)
    return state === '0A' ? [local] : []
  })
}
