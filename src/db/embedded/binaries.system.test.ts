import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { chmod, cp, mkdir, readdir, readFile, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import {
  cannotRunAsOthers,
  isRoot,
  makeFolder,
  makeServer,
  nobody,
  startChild,
} from '../../../test/kit/embedded-kit.ts'
import { type Binaries, findPackagedBinaries, prepareBinaries, program } from './binaries.ts'

const run = promisify(execFile)

/** The package as it lies on the disk when install scripts are denied: without the links between libraries. */
async function installWithoutScripts(to: string): Promise<Binaries> {
  const { native, version } = await findPackagedBinaries()
  const links: { target: string }[] = JSON.parse(await readFile(join(native, 'pg-symlinks.json'), 'utf8'))
  const missing = new Set(links.map(({ target }) => basename(target)))
  assert.ok(missing.size > 0)
  await cp(native, to, {
    recursive: true,
    verbatimSymlinks: true,
    filter: (path) => !missing.has(basename(path)) && !path.endsWith('.a'),
  })
  return { native: to, version }
}

test('library links that the install script did not make are made', async (t) => {
  const { path } = await makeFolder(t)
  const packaged = await installWithoutScripts(join(path, 'native'))
  await assert.rejects(run(program(packaged, 'postgres'), ['--version']), /shared librar/)
  const needs = { packaged, runAs: null, dataDir: path, relocationDir: path, onProgress: () => undefined }
  assert.deepEqual(await prepareBinaries(needs), packaged)
  const { stdout } = await run(program(packaged, 'postgres'), ['--version'])
  assert.match(stdout, /^postgres \(PostgreSQL\) 18/)
  assert.deepEqual(await prepareBinaries(needs), packaged)
})

test('an ordinary user who cannot make the links gets a copy in the data folder', async (t) => {
  if (cannotRunAsOthers !== null) return t.skip(cannotRunAsOthers)
  const folder = await makeFolder(t)
  const packaged = await installWithoutScripts(join(folder.path, 'native'))
  const dataDir = join(folder.path, 'data')
  await mkdir(dataDir)
  await chmod(dataDir, 0o777)
  const child = await startChild(folder, { dataDir, packaged }, nobody)
  assert.equal(child.said.error, undefined)
  assert.equal(child.said.outcome, 'created')
  assert.ok((await readdir(dataDir)).includes(`postgresql-${packaged.version}-${process.arch}`))
  await child.kill('SIGTERM')
})

test('as root, programs in a private folder are copied once to a place that their user can reach', async (t) => {
  if (!isRoot) return t.skip('only root runs the server as another user')
  const folder = await makeFolder(t)
  const home = join(folder.path, 'home')
  await mkdir(home, { mode: 0o700 })
  const packaged = await installWithoutScripts(join(home, 'native'))
  // Npm installs the package with these modes under umask 077.
  await run('chmod', ['-R', 'go=', packaged.native])
  const relocationDir = join(folder.path, 'public')
  const sentences: string[] = []
  const options = { packaged, relocationDir, onProgress: (sentence: string) => sentences.push(sentence) }
  const server = makeServer(folder, { ...options, dataDir: join(home, 'data') })
  await mkdir(join(home, 'data'))
  assert.equal(await server.start(), 'created')
  const copy = join(relocationDir, `postgresql-${packaged.version}-${process.arch}`)
  assert.equal(sentences[0], `Copying PostgreSQL to ${copy}.`)
  const before = (await stat(copy)).ctimeMs
  await server.stop()
  assert.equal(await server.start(), 'started')
  assert.equal((await stat(copy)).ctimeMs, before)
  assert.equal(sentences.filter((sentence) => sentence.startsWith('Copying')).length, 1)
  assert.deepEqual(
    (await readdir(relocationDir)).filter((name) => name.includes('.copy-')),
    [],
  )
})
