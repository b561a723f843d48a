import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { randomToken, readOrCreateSecretFile } from './key-file.ts'

let folder = ''
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'muster-secrets-'))
})
after(() => rm(folder, { recursive: true }))

const modeOf = async (path: string): Promise<number> => (await stat(path)).mode & 0o777

test('the first call makes the file readable by its owner alone, the second reads it', async () => {
  const path = join(folder, 'first')
  const made = await readOrCreateSecretFile(path, () => 'value-1')
  assert.deepEqual(made, { value: 'value-1', created: true, tightened: false })
  assert.equal(await modeOf(path), 0o600)
  const read = await readOrCreateSecretFile(path, () => assert.fail('made twice'))
  assert.deepEqual(read, { value: 'value-1', created: false, tightened: false })
  assert.deepEqual(
    (await readdir(folder)).filter((name) => name.startsWith('first')),
    ['first'],
  )
})

test('a file that others may read or write is closed again, and this is reported', async () => {
  for (const mode of [0o640, 0o604, 0o666, 0o620, 0o755]) {
    const path = join(folder, `open-${mode.toString(8)}`)
    await writeFile(path, 'kept\n')
    await chmod(path, mode)
    const read = await readOrCreateSecretFile(path, () => 'new')
    assert.deepEqual(read, { value: 'kept', created: false, tightened: true })
    assert.equal(await modeOf(path), 0o600)
  }
  const strict = join(folder, 'strict')
  await writeFile(strict, 'kept', { mode: 0o400 })
  assert.equal((await readOrCreateSecretFile(strict, () => 'new')).tightened, false)
})

test('an empty file and a folder are refused, and nothing is overwritten', async () => {
  const empty = join(folder, 'empty')
  await writeFile(empty, '\n', { mode: 0o600 })
  await assert.rejects(
    readOrCreateSecretFile(empty, () => 'new'),
    /empty/,
  )
  assert.equal(await readFile(empty, 'utf8'), '\n')
  const directory = join(folder, 'directory')
  await mkdir(directory)
  await assert.rejects(
    readOrCreateSecretFile(directory, () => 'new'),
    /plain file/,
  )
  await assert.rejects(
    readOrCreateSecretFile(join(folder, 'none', 'key'), () => 'new'),
    /ENOENT/,
  )
})

test('processes that start at once get one value, made by one of them', async () => {
  const path = join(folder, 'raced')
  const program = `
    import { randomToken, readOrCreateSecretFile } from '${new URL('./key-file.ts', import.meta.url)}'
    // The making is slow, so that every process finds no file before the first one publishes its own.
    const make = () => { Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1000); return randomToken() }
    process.stdout.write(JSON.stringify(await readOrCreateSecretFile(process.argv[1], make)))`
  const run = async (): Promise<unknown> => {
    const args = ['--input-type=module', '--eval', program, path]
    return JSON.parse((await promisify(execFile)(process.execPath, args)).stdout)
  }
  const results = await Promise.all([run(), run(), run()])
  const value = (await readFile(path, 'utf8')).trim()
  assert.equal(value.length, 43)
  const expected = (created: boolean) => ({ value, created, tightened: false })
  results.sort((a, b) => JSON.stringify(a).localeCompare(JSON.stringify(b)))
  assert.deepEqual(results, [expected(false), expected(false), expected(true)])
  assert.deepEqual(
    (await readdir(folder)).filter((name) => name.startsWith('raced')),
    ['raced'],
  )
})

test('tokens are random, and safe in a URL and a header', () => {
  const tokens = new Set(Array.from({ length: 1000 }, () => randomToken()))
  assert.equal(tokens.size, 1000)
  for (const token of tokens) assert.match(token, /^[A-Za-z0-9_-]{43}$/)
  assert.match(randomToken(6), /^[A-Za-z0-9_-]{8}$/)
})
