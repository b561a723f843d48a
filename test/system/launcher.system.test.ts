// bin/muster.mjs is the command that npm links: under an old Node it hands over to the Node that npm installed.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { copyFile, mkdir, readFile, stat, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { before, test } from 'node:test'
import { promisify } from 'node:util'
import manifest from '../../package.json' with { type: 'json' }
import { makeFolder, repository, runMuster, startMuster } from '../kit/process.ts'
import { processesOfGroup } from '../kit/processes-left.ts'
import { until } from '../kit/until.ts'

const launcher = join(repository, manifest.bin.muster)
const needsOldNode = 'there is no Node older than 24.7 on this machine'
/** A Node that cannot run Muster, as many machines have it. */
let oldNode: string | null = null

before(async () => {
  for (const path of ['/usr/bin/node', '/usr/local/bin/node', '/opt/homebrew/bin/node']) {
    const version = await promisify(execFile)(path, ['-p', 'process.versions.node']).catch(() => null)
    const [major = 99, minor = 0] = version?.stdout.split('.').map(Number) ?? []
    if (major >= 16 && (major < 24 || (major === 24 && minor < 7))) oldNode ??= path
  }
})

test('under a new Node the launcher runs the command itself', async (t) => {
  const { stdout, stderr, code } = await runMuster(t, ['--version'], { command: [process.execPath, launcher] })
  assert.deepEqual({ stdout, stderr, code }, { stdout: `${manifest.version}\n`, stderr: '', code: 0 })
})

test('the launcher is executable, and finds Node by PATH', async (t) => {
  assert.equal((await stat(launcher)).mode & 0o111, 0o111)
  const { stdout, stderr } = await runMuster(t, ['--version'], { command: [launcher] })
  assert.equal(stdout, `${manifest.version}\n`, stderr)
})

test('under an old Node the launcher hands over, with arguments, output and exit code', async (t) => {
  if (oldNode === null) return t.skip(needsOldNode)
  const version = await runMuster(t, ['--version'], { command: [oldNode, launcher] })
  assert.deepEqual([version.stdout, version.code], [`${manifest.version}\n`, 0], version.stderr)
  const failed = await runMuster(t, ['start', '--port', 'abc'], { command: [oldNode, launcher] })
  assert.deepEqual([failed.stderr, failed.code], ['Configuration: PORT must be a whole number\n', 1])
})

test('under an old Node a server starts, stops by a signal to the command, and leaves no process', async (t) => {
  if (oldNode === null) return t.skip(needsOldNode)
  const muster = await startMuster(t, { command: [oldNode, launcher] })
  const server = Number((await readFile(join(muster.dataDir, 'muster.pid'), 'utf8')).split('\n')[0])
  assert.notEqual(server, muster.pid, 'the old Node runs the server itself')
  await muster.stop()
  assert.deepEqual(await muster.processes(), [])
})

test('under an old Node the command ends when its server is killed', async (t) => {
  if (oldNode === null) return t.skip(needsOldNode)
  const muster = await startMuster(t, { command: [oldNode, launcher] })
  process.kill(Number((await readFile(join(muster.dataDir, 'muster.pid'), 'utf8')).split('\n')[0]), 'SIGKILL')
  await until(() => !muster.isRunning(), 'the command ends with its server')
  assert.deepEqual(await muster.exited, { code: null, signal: 'SIGKILL' })
})

// Without exec npm's shell dies of the signal, and the server runs on with no parent that could stop it.
const needsExec = manifest.scripts.start.startsWith('exec ')
  ? false
  : '"start" in package.json does not begin with exec'

test('SIGTERM to `npm start`, as systemd and containers send it, ends the server', { skip: needsExec }, async (t) => {
  const muster = await startMuster(t, { command: ['npm', '--silent'], cwd: repository })
  t.after(async () => {
    for (const line of await processesOfGroup(muster.pid)) process.kill(Number.parseInt(line, 10), 'SIGTERM')
    await until(
      async () => (await muster.processes()).length === 0,
      'the server that npm left behind has ended',
      60_000,
    )
  })
  await muster.kill('SIGTERM')
  assert.deepEqual(await muster.processes(), [])
})

test('without a new Node the launcher names the needed version in one sentence', async (t) => {
  if (oldNode === null) return t.skip(needsOldNode)
  const folder = await makeFolder(t)
  const copy = join(folder, 'bin', 'muster.mjs')
  // A Node among the dependencies that is old as well must not be handed over to.
  await mkdir(join(folder, 'bin'))
  await mkdir(join(folder, 'node_modules', '.bin'), { recursive: true })
  await symlink(oldNode, join(folder, 'node_modules', '.bin', 'node'))
  await copyFile(launcher, copy)
  const { stdout, stderr, code } = await runMuster(t, ['start'], { command: [oldNode, copy] })
  assert.deepEqual({ stdout, code }, { stdout: '', code: 1 })
  assert.match(
    stderr,
    /^muster: Muster needs Node 24\.7 or newer, and this is v\d+\.\d+\.\d+\. Run "npm install"[^\n]*\n$/,
  )
})
