import assert from 'node:assert/strict'
import { chmod, chown, cp, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import {
  cannotRunAsOthers,
  isRoot,
  makeFolder,
  makeServer,
  nobody,
  query,
  startChild,
  type TestFolder,
} from '../../../test/kit/embedded-kit.ts'
import { clusterFolder } from './cluster-place.ts'
import { claimDataFolder } from './data-folder.ts'
import { firstObstacle, giveTree } from './run-as.ts'

interface PrivateHome {
  readonly folder: TestFolder
  readonly dataDir: string
  readonly relocationDir: string
}

/** A data folder under a home of mode 0700, like root's. */
async function makePrivateHome(t: TestContext): Promise<PrivateHome> {
  const folder = await makeFolder(t)
  const dataDir = join(folder.path, 'home', 'data')
  await mkdir(dataDir, { recursive: true })
  await chmod(join(folder.path, 'home'), 0o700)
  return { folder, dataDir, relocationDir: join(folder.path, 'public') }
}

const needsRoot = 'only root can run the server as another user'

test('as root in a public folder the server runs as another user, with everything in the data folder', async (t) => {
  if (cannotRunAsOthers !== null) return t.skip(cannotRunAsOthers)
  const folder = await makeFolder(t)
  const dataDir = join(folder.path, 'data')
  const claim = await claimDataFolder(dataDir)
  folder.defer(() => claim.release())
  const server = makeServer(folder, { dataDir, relocationDir: join(folder.path, 'unused') })
  assert.equal(await server.start(), 'created')
  assert.equal((await stat(dataDir)).mode & 0o777, 0o711)
  assert.notEqual((await stat(join(dataDir, 'postgres'))).uid, 0)
  assert.equal((await stat(join(dataDir, 'postgres'))).mode & 0o777, 0o700)
  for (const name of [
    'postgres.password',
    'postgres.port',
    'postgres.log',
    'muster.pid',
    'muster.claim',
    'muster.lock',
  ]) {
    const found = await stat(join(dataDir, name))
    assert.deepEqual([found.uid, found.mode & 0o777], [0, 0o600], name)
  }
  assert.deepEqual(await readdir(folder.path), ['data'])
  assert.equal(await clusterFolder(dataDir), join(dataDir, 'postgres'))
})

test('as root under a folder of mode 0700 the cluster is put in a place that its user can reach', async (t) => {
  if (!isRoot) return t.skip(needsRoot)
  const { folder, dataDir, relocationDir } = await makePrivateHome(t)
  const server = makeServer(folder, { dataDir, relocationDir })
  assert.equal(await server.start(), 'created')
  await query(server.url(), 'create table kept as select 42 as answer')
  const place = (await readFile(join(dataDir, 'postgres.location'), 'utf8')).trim()
  assert.match(place, new RegExp(`^${relocationDir}/cluster-[0-9a-f]{16}$`))
  assert.match(await readFile(join(place, 'BELONGS-TO'), 'utf8'), new RegExp(`data folder ${dataDir}\n`))
  assert.equal(await clusterFolder(dataDir), join(place, 'data'))
  assert.equal((await stat(join(dataDir, 'postgres.password'))).mode & 0o777, 0o600)
  assert.equal((await stat(join(folder.path, 'home'))).mode & 0o777, 0o700)
  await server.stop()
  assert.equal(await server.start(), 'started')
  assert.deepEqual(await query(server.url(), 'select answer from kept'), [{ answer: 42 }])
  await server.stop()

  await rm(dataDir, { recursive: true })
  await mkdir(dataDir)
  assert.equal(await server.start(), 'created')
  assert.notEqual((await readFile(join(dataDir, 'postgres.location'), 'utf8')).trim(), place)
  await assert.rejects(query(server.url(), 'select answer from kept'), /does not exist/)
})

test('a relocated server is adopted after kill -9 like any other', async (t) => {
  if (!isRoot) return t.skip(needsRoot)
  const { folder, dataDir, relocationDir } = await makePrivateHome(t)
  const child = await startChild(folder, { dataDir, relocationDir })
  assert.equal(child.said.outcome, 'created')
  await child.kill('SIGKILL')
  const server = makeServer(folder, { dataDir, relocationDir })
  assert.equal(await server.start(), 'adopted')
})

test('a copy of the data folder does not take the relocated cluster, and a renamed data folder keeps it', async (t) => {
  if (!isRoot) return t.skip(needsRoot)
  const { folder, dataDir, relocationDir } = await makePrivateHome(t)
  const original = makeServer(folder, { dataDir, relocationDir })
  await original.start()
  await query(original.url(), 'create table kept as select 42 as answer')
  const belongsTo = join(await clusterFolder(dataDir), '..', 'BELONGS-TO')
  const copyDir = `${dataDir}-copy`
  await cp(dataDir, copyDir, { recursive: true })
  const copy = makeServer(folder, { dataDir: copyDir, relocationDir })
  const message = `The data folder ${copyDir} is a copy of ${dataDir}, and the database stays with that one: use "muster backup" and "muster restore" to copy it.`
  await assert.rejects(copy.start(), { message })
  assert.deepEqual(await query(original.url(), 'select answer from kept'), [{ answer: 42 }])
  await original.stop()
  await assert.rejects(copy.start(), { message })

  const renamedDir = `${dataDir}-renamed`
  await rename(dataDir, renamedDir)
  const renamed = makeServer(folder, { dataDir: renamedDir, relocationDir })
  assert.equal(await renamed.start(), 'started')
  assert.deepEqual(await query(renamed.url(), 'select answer from kept'), [{ answer: 42 }])
  assert.match(await readFile(belongsTo, 'utf8'), new RegExp(`data folder ${renamedDir}\n`))
  await assert.rejects(copy.start(), new RegExp(`is a copy of ${renamedDir},`))
  await renamed.stop()

  // The renamed folder exists, but has another database by now.
  await writeFile(join(renamedDir, 'postgres.location'), `${relocationDir}/cluster-other\n`)
  assert.equal(await copy.start(), 'started')
  assert.match(await readFile(belongsTo, 'utf8'), new RegExp(`data folder ${copyDir}\n`))
})

test('an obstacle to a relocated or private cluster is named in one sentence', async (t) => {
  if (!isRoot) return t.skip(needsRoot)
  const { folder, dataDir, relocationDir } = await makePrivateHome(t)
  await writeFile(join(folder.path, 'file'), '')
  const impossible = makeServer(folder, { dataDir, relocationDir: join(folder.path, 'file', 'muster') })
  await assert.rejects(
    impossible.start(),
    /^Error: PostgreSQL does not run as root and needs .*file\/muster.*DATABASE_URL\.$/,
  )

  await writeFile(join(dataDir, 'postgres.location'), `${relocationDir}/cluster-lost\n`)
  const lost = makeServer(folder, { dataDir, relocationDir })
  await assert.rejects(lost.start(), /cluster-lost, which does not exist: put it back, or remove .*postgres\.location/)
  await rm(join(dataDir, 'postgres.location'))

  await mkdir(join(dataDir, 'postgres'))
  await chown(join(dataDir, 'postgres'), nobody.uid, nobody.gid)
  await assert.rejects(lost.start(), /runs as the user nobody, who cannot pass (.*\/home): run "chmod o\+x \1"/)
})

test('an ordinary user has everything in the data folder, mode 0700, and root can run it for them', async (t) => {
  if (cannotRunAsOthers !== null) return t.skip(cannotRunAsOthers)
  const folder = await makeFolder(t)
  const dataDir = join(folder.path, 'home', 'data')
  await mkdir(join(folder.path, 'home'), { mode: 0o700 })
  await chown(join(folder.path, 'home'), nobody.uid, nobody.gid)

  const first = await startChild(folder, { dataDir }, nobody)
  assert.equal(first.said.error, undefined)
  t.diagnostic(`first start as nobody ${first.said.ms} ms`)
  await query(first.said.url ?? '', 'create table kept as select 42 as answer')
  assert.equal((await stat(dataDir)).mode & 0o777, 0o700)
  for (const name of await readdir(dataDir)) assert.equal((await stat(join(dataDir, name))).uid, nobody.uid, name)
  await first.kill('SIGKILL')
  const second = await startChild(folder, { dataDir }, nobody)
  assert.equal(second.said.outcome, 'adopted')
  await second.kill('SIGTERM')

  const asRoot = makeServer(folder, { dataDir })
  assert.equal(await asRoot.start(), 'started')
  await asRoot.stop()
  const third = await startChild(folder, { dataDir }, nobody)
  assert.equal(third.said.outcome, 'started')
  assert.deepEqual(await query(third.said.url ?? '', 'select answer from kept'), [{ answer: 42 }])
})

test('a cluster that root copied back is given to the user again', async (t) => {
  if (!isRoot) return t.skip(needsRoot)
  const folder = await makeFolder(t)
  const server = makeServer(folder)
  await server.start()
  await server.stop()
  await giveTree(join(folder.path, 'postgres'), { name: 'root', uid: 0, gid: 0 })
  assert.equal(await server.start(), 'started')
})

test('an obstacle is the first folder that cannot be passed, or the file that cannot be read', async (t) => {
  const folder = await makeFolder(t)
  const inner = join(folder.path, 'a', 'b')
  const file = join(inner, 'file')
  await mkdir(inner, { recursive: true })
  await writeFile(file, '')
  const stranger = { name: 'stranger', uid: 54_321, gid: 54_321 }
  const mine = { name: 'me', uid: process.getuid?.() ?? 0, gid: 54_321 }
  const cases: [modes: [number, number, number], user: typeof mine, expected: string | null][] = [
    [[0o711, 0o711, 0o644], stranger, null],
    [[0o700, 0o711, 0o644], stranger, join(folder.path, 'a')],
    [[0o711, 0o766, 0o644], stranger, inner],
    [[0o711, 0o711, 0o640], stranger, file],
    [[0o700, 0o700, 0o600], mine, null],
    [[0o077, 0o700, 0o600], mine, join(folder.path, 'a')],
  ]
  for (const [[a, b, c], user, expected] of cases) {
    await chmod(file, c)
    await chmod(inner, b)
    // Only root can walk a folder that is closed to its owner.
    if (a === 0o077 && !isRoot) continue
    await chmod(join(folder.path, 'a'), a)
    if (b === 0o766 && !isRoot) continue
    assert.equal(await firstObstacle(file, user), expected)
  }
})
