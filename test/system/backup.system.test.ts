// `muster backup` and `muster restore` as people call them: with the server running and without, into folders and
// databases, interrupted and killed.
import assert from 'node:assert/strict'
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { before, test } from 'node:test'
import { runningUrl } from '../../src/db/embedded/running-url.ts'
import { openBackup } from '../../src/db/open-backup.ts'
import { atEnd } from '../kit/at-end.ts'
import { run } from '../kit/backups.ts'
import { createEmptyDatabase } from '../kit/database.ts'
import { isLong } from '../kit/how-many.ts'
import { type Muster, makeFolder, repository, runMuster, spawnMuster, startMuster } from '../kit/process.ts'
import { until } from '../kit/until.ts'

const wholeFile = { after: atEnd }
const OTHER_KEY = 'quite another key than the one of the backup'

let folder = ''
let source: Muster
let secretKey = ''
/** The backups that were made while the server ran, and after it had stopped. */
let running = ''
let stopped = ''

before(async () => {
  folder = await makeFolder(wholeFile)
  running = join(folder, 'running.tar.gz')
  stopped = join(folder, 'stopped.tar.gz')
  source = await startMuster(wholeFile, { dataDir: join(folder, 'source') })
  secretKey = (await readFile(join(source.dataDir, 'secret.key'), 'utf8')).trim()
  const provider = { name: 'vault', kind: 'openai', api_key: 'sealed-until-restored' }
  assert.equal((await source.call('POST /api/providers', { body: provider })).status, 201)
  assert.equal((await source.call('POST /api/projects', { body: { name: 'Kept' } })).status, 201)
  const url = (await runningUrl(source.dataDir)) ?? assert.fail()
  await run(
    url,
    `insert into audit_log (id, action, actor_type, details)
     select gen_random_uuid(), 'project.create', 'system', to_jsonb(repeat(md5(n::text), 30)) from generate_series(1, 30000) n`,
  )
  const whileRunning = await runMuster(wholeFile, ['backup', running], { dataDir: source.dataDir })
  assert.equal(whileRunning.code, 0, whileRunning.stderr)
  assert.match(whileRunning.stdout, /Wrote .*running\.tar\.gz: 30,\d+ rows of \d+ tables, [\d.]+ MB, in [\d.]+ s\./)
  assert.match(whileRunning.stdout, /contains the secret key: keep it as safe as the data folder/)
  assert.equal((await source.call('GET /readyz')).status, 200)
  await source.stop()
  const afterwards = await runMuster(wholeFile, ['backup', stopped], { dataDir: source.dataDir })
  assert.equal(afterwards.code, 0, afterwards.stderr)
})

/** Each test starts and stops servers and databases, which takes a quarter of a minute. */
const inLong = isLong ? test : (): void => {}

test('a backup restored into an empty data folder is the same instance with the same secrets', async (t) => {
  const dataDir = join(await makeFolder(t), 'restored')
  const restored = await runMuster(t, ['restore', stopped], { dataDir })
  assert.equal(restored.code, 0, restored.stderr)
  assert.match(restored.stdout, /Restored 30,\d+ rows of \d+ tables from .*stopped\.tar\.gz \(Muster \d.*\), in/)
  assert.match(restored.stdout, new RegExp(`Next: npm start -- --data-dir ${dataDir}`))
  assert.deepEqual(await restored.muster.processes(), [])
  for (const name of ['secret.key', 'admin.token']) {
    const path = join(dataDir, name)
    assert.equal(await readFile(path, 'utf8'), await readFile(join(source.dataDir, name), 'utf8'))
    assert.equal((await stat(path)).mode & 0o777, 0o600)
  }
  const again = join(folder, 'again.tar.gz')
  assert.equal((await runMuster(t, ['backup', again], { dataDir })).code, 0)
  assert.deepEqual(await contentsOf(again), await contentsOf(stopped))

  const server = await startMuster(t, { dataDir })
  const { body } = await server.call<{ items: { name: string }[] }>('GET /api/projects', { token: source.adminToken() })
  assert.deepEqual(body.items.map(({ name }) => name).sort(), ['Demo', 'Kept'])
  const refused = await runMuster(t, ['restore', stopped], { dataDir })
  assert.equal(refused.code, 1)
  assert.match(refused.stderr, /Another Muster server \(pid \d+\) is using the data folder/)
})

inLong('a backup made while the server ran can be restored into an external database, and back', async (t) => {
  const databaseUrl = await createEmptyDatabase()
  const there = join(await makeFolder(t), 'external')
  const restored = await runMuster(t, ['restore', running], { dataDir: there, databaseUrl })
  assert.equal(restored.code, 0, restored.stderr)
  assert.match(restored.stdout, /with the same DATABASE_URL/)
  const twice = await runMuster(t, ['restore', running], { dataDir: there, databaseUrl })
  assert.equal(twice.code, 1)
  assert.match(twice.stderr, /The database is not empty \(Muster has run on it\)/)

  const file = join(folder, 'external.tar.gz')
  assert.equal((await runMuster(t, ['backup', file], { dataDir: there, databaseUrl })).code, 0)
  assert.deepEqual(await contentsOf(file), await contentsOf(running))
  const back = await runMuster(t, ['restore', file], { dataDir: join(await makeFolder(t), 'back') })
  assert.equal(back.code, 0, back.stderr)
})

inLong('without its secrets a backup needs the key that it was made with', async (t) => {
  const file = join(folder, 'without.tar.gz')
  const written = await runMuster(t, ['backup', file, '--without-secrets'], { dataDir: source.dataDir })
  assert.match(written.stdout, /contains no secrets: to restore it, set MUSTER_SECRET_KEY/)
  const dataDir = join(await makeFolder(t), 'data')
  const none = await runMuster(t, ['restore', file], { dataDir })
  assert.match(none.stderr, /does not hold its secret key: set MUSTER_SECRET_KEY to the key that it was made with/)
  const wrong = await runMuster(t, ['restore', file], { dataDir, env: { MUSTER_SECRET_KEY: OTHER_KEY } })
  assert.match(wrong.stderr, /MUSTER_SECRET_KEY is not the key that the backup was made with/)
  const wrongAlthoughHeld = await runMuster(t, ['restore', stopped], { dataDir, env: { MUSTER_SECRET_KEY: OTHER_KEY } })
  assert.match(wrongAlthoughHeld.stderr, /or leave it unset: the backup holds the key/)
  assert.deepEqual([none.code, wrong.code, wrongAlthoughHeld.code], [1, 1, 1])
  await assert.rejects(stat(dataDir), /ENOENT/)

  const right = await runMuster(t, ['restore', file], { dataDir, env: { MUSTER_SECRET_KEY: secretKey } })
  assert.equal(right.code, 0, right.stderr)
  assert.match(right.stdout, /admin token is not in the backup[\s\S]*with the same MUSTER_SECRET_KEY/)
  const names = await readdir(dataDir)
  assert.ok(!names.includes('secret.key') && !names.includes('admin.token'))
})

test('a folder that is not empty and a file that is no backup are refused, and nothing changes', async (t) => {
  const inUse = await runMuster(t, ['restore', stopped], { dataDir: source.dataDir })
  assert.match(inUse.stderr, /The database is not empty \(Muster has run on it\)/)
  const mine = join(await makeFolder(t), 'mine')
  await mkdir(mine)
  await writeFile(join(mine, 'notes.txt'), 'mine')
  const notEmpty = await runMuster(t, ['restore', stopped], { dataDir: mine })
  assert.match(notEmpty.stderr, /The data folder \S+ is not empty \(it has notes\.txt\): restore into an empty one/)
  await writeFile(join(mine, 'admin.token'), 'another token\n', { mode: 0o600 })
  const other = await runMuster(t, ['restore', stopped], { dataDir: mine, databaseUrl: await createEmptyDatabase() })
  assert.match(other.stderr, /is not empty \(it has another admin\.token\)/)
  assert.deepEqual((await readdir(mine)).sort(), ['admin.token', 'notes.txt'])

  const nowhere = join(mine, 'nowhere')
  const foreign = await runMuster(t, ['restore', join(mine, 'notes.txt')], { dataDir: nowhere })
  assert.match(foreign.stderr, /notes\.txt is not a backup that Muster made/)
  await writeFile(join(mine, 'cut.tar.gz'), (await readFile(stopped)).subarray(0, 100_000))
  const cut = await runMuster(t, ['restore', join(mine, 'cut.tar.gz')], { dataDir: nowhere })
  assert.match(cut.stderr, /cut\.tar\.gz is damaged: it was cut short or altered/)
  const nothing = await runMuster(t, ['backup', join(mine, 'x.tar.gz')], { dataDir: nowhere })
  assert.match(nothing.stderr, /There is no database in \S+nowhere/)
  assert.deepEqual(
    [inUse, notEmpty, other, foreign, cut, nothing].map(({ code }) => code),
    [1, 1, 1, 1, 1, 1],
  )
  await assert.rejects(stat(nowhere), /ENOENT/)
})

test('a killed backup leaves no file of its name; a stopped backup leaves no file at all', async (t) => {
  const databaseUrl = await createEmptyDatabase()
  const target = await makeFolder(t)
  assert.equal((await runMuster(t, ['migrate'], { databaseUrl })).code, 0)
  const holding = run(
    databaseUrl,
    'begin',
    'lock table projects in access exclusive mode',
    'select pg_sleep(60)',
  ).catch(() => {})
  t.after(async () => {
    await run(
      databaseUrl,
      `select pg_terminate_backend(pid) from pg_stat_activity where query like '%pg_sleep(60)%' and pid <> pg_backend_pid()`,
    )
    await holding
  })
  for (const [signal, left] of [
    ['SIGKILL', 1],
    ['SIGTERM', 0],
    ['SIGINT', 0],
  ] as const) {
    const files = (await readdir(target)).length
    const muster = await spawnMuster(t, ['backup', join(target, `${signal}.tar.gz`)], { databaseUrl })
    await until(async () => (await readdir(target)).length > files, 'the backup has begun')
    const exit = await muster.kill(signal)
    assert.equal((await readdir(target)).length - files, left, signal)
    if (signal === 'SIGKILL') continue
    assert.equal(exit.code, 1)
    assert.match(muster.stderr(), new RegExp(`Stopped by ${signal}`))
  }
  assert.ok((await readdir(target)).every((name) => /^\.muster-backup-[0-9a-f]+\.partial$/.test(name)))
})

test('a backup without room on the disk fails with a sentence and leaves no file', async (t) => {
  const databaseUrl = await createEmptyDatabase()
  assert.equal((await runMuster(t, ['migrate'], { databaseUrl })).code, 0)
  await run(
    databaseUrl,
    `insert into audit_log (id, action, actor_type) select gen_random_uuid(), 'project.create', 'system'
     from generate_series(1, 100000)`,
  )
  const target = await makeFolder(t)
  // The largest file this process may write: 512 blocks of 512 bytes.
  const limited = [
    'sh',
    '-c',
    'ulimit -f 512 && exec "$0" "$@"',
    process.execPath,
    join(repository, 'src/bin/muster.ts'),
  ]
  const full = await runMuster(t, ['backup', join(target, 'full.tar.gz')], { databaseUrl, command: limited })
  assert.equal(full.code, 1)
  assert.match(full.stderr, /^muster: \S+full\.tar\.gz cannot be written: EFBIG.*\n$/)
  assert.deepEqual(await readdir(target), [])
})

inLong('a restore that is killed half way can be tried again', async (t) => {
  const dataDir = join(await makeFolder(t), 'data')
  const first = await spawnMuster(t, ['restore', stopped], { dataDir })
  await until(() => first.stdout().includes('Loading'), 'rows are being loaded', 60_000)
  await first.kill('SIGKILL')
  const interrupted = await spawnMuster(t, ['restore', stopped], { dataDir })
  await until(() => interrupted.stdout().includes('Making the tables'), 'the second try has begun', 60_000)
  const exit = await interrupted.kill('SIGINT')
  assert.equal(exit.code, 1, interrupted.stdout())
  assert.deepEqual(await interrupted.processes(), [])
  const last = await runMuster(t, ['restore', stopped], { dataDir })
  assert.equal(last.code, 0, last.stderr)
  const again = join(folder, 'after-a-kill.tar.gz')
  assert.equal((await runMuster(t, ['backup', again], { dataDir })).code, 0)
  assert.deepEqual(await contentsOf(again), await contentsOf(stopped))
})

/** The checksums of every table's rows, and the secrets. They are the same for two backups of the same data. */
async function contentsOf(file: string): Promise<unknown> {
  const backup = await openBackup(file)
  await backup.close()
  const { tables, sequences, migrations, key_fingerprint } = backup.manifest
  return { tables, sequences, migrations, key_fingerprint, secrets: [...backup.secrets] }
}
