import assert from 'node:assert/strict'
import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { cannotRunAsOthers, makeFolder, nobody, startChild } from '../../../test/kit/embedded-kit.ts'
import { until } from '../../../test/kit/until.ts'
import { claimDataFolder } from './data-folder.ts'
import { identifyProcess } from './process-table.ts'

async function folderOf(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'muster-claim-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  return folder
}

const pidFileOf = (dataDir: string): string => join(dataDir, 'muster.pid')
const claimFileOf = (dataDir: string): string => join(dataDir, 'muster.claim')

test('a claim makes the folder, writes our pid and nothing else, and a release removes every trace of the claim', async (t) => {
  const dataDir = join(await folderOf(t), 'new', 'data')
  const claim = await claimDataFolder(dataDir)
  assert.equal((await stat(dataDir)).mode & 0o777, 0o700)
  assert.equal(await readFile(pidFileOf(dataDir), 'utf8'), `${process.pid}\n`)
  const facts = (await readFile(claimFileOf(dataDir), 'utf8')).split('\n')
  assert.deepEqual(facts.slice(0, 2), [String(process.pid), (await identifyProcess(process.pid))?.start])
  for (const name of await readdir(dataDir)) assert.equal((await stat(join(dataDir, name))).mode & 0o777, 0o600, name)
  await claim.release()
  assert.deepEqual(await readdir(dataDir), ['muster.lock'])
  await claim.release()
  await (await claimDataFolder(dataDir)).release()
})

test('other users cannot open the lock file, neither a new one nor one that was open to them before', async (t) => {
  const dataDir = await folderOf(t)
  const umask = process.umask(0)
  try {
    await (await claimDataFolder(dataDir)).release()
  } finally {
    process.umask(umask)
  }
  const modeOfLock = async () => (await stat(join(dataDir, 'muster.lock'))).mode & 0o777
  assert.equal(await modeOfLock(), 0o600)
  await chmod(join(dataDir, 'muster.lock'), 0o644)
  const claim = await claimDataFolder(dataDir)
  assert.equal(await modeOfLock(), 0o600)
  await claim.release()
})

test('a second server is refused with the pid and the folder, and starts once the first is killed', async (t) => {
  const folder = await makeFolder(t)
  const holder = await startChild(folder, { claimOnly: true })
  assert.equal(holder.said.outcome, 'claimed')
  await assert.rejects(claimDataFolder(folder.path), {
    message: `Another Muster server (pid ${holder.process.pid}) is using the data folder ${folder.path}: stop it, or give this one another folder.`,
  })
  await holder.kill('SIGKILL')
  const claim = await claimDataFolder(folder.path)
  assert.equal((await readFile(pidFileOf(folder.path), 'utf8')).split('\n')[0], String(process.pid))
  await claim.release()
})

test('a server in another container, where pids mean nothing, is seen by its lock', async (t) => {
  const folder = await makeFolder(t)
  await startChild(folder, { claimOnly: true })
  // Each of two containers on one volume finds its own pid, 1, in the file.
  await writeFile(pidFileOf(folder.path), `${process.pid}\n`)
  await assert.rejects(claimDataFolder(folder.path), /Another Muster server/)
})

test('of many servers starting at once on a stale file exactly one wins', async (t) => {
  const folder = await makeFolder(t)
  await writeFile(pidFileOf(folder.path), '999999999\n')
  const gate = join(folder.path, 'gate')
  const starting = Array.from({ length: 5 }, () => startChild(folder, { claimOnly: true, gate }))
  const areAtTheGate = async () => (await readdir(folder.path)).filter((name) => name.startsWith('gate.')).length === 5
  await until(areAtTheGate, 'all of them are about to claim')
  await writeFile(gate, '')
  const children = await Promise.all(starting)
  const winners = children.filter(({ said }) => said.outcome === 'claimed')
  assert.equal(winners.length, 1)
  for (const { said } of children)
    if (!said.outcome) assert.match(said.error ?? '', /Another Muster server \(pid \w+\)/)
  assert.equal((await readFile(pidFileOf(folder.path), 'utf8')).split('\n')[0], String(winners[0]?.process.pid))
})

test('a pid file counts while its process lives, and is replaced once the process is dead or the pid is reused', async (t) => {
  const dataDir = await folderOf(t)
  const parent = await identifyProcess(process.ppid)
  const cases: [why: string, pid: string | number, claim: string | null, isFree: boolean][] = [
    ['alive, with its start', process.ppid, `${process.ppid}\n${parent?.start}\n`, false],
    ['alive, start not noted', process.ppid, `${process.ppid}\n`, false],
    ['alive, no claim', process.ppid, null, false],
    ['alive, the claim of another process', process.ppid, '999999999\n1\n', false],
    ['the pid was given to another process', process.ppid, `${process.ppid}\n1\n`, true],
    ['the machine was booted since', process.ppid, `${process.ppid}\n${parent?.start}\nanother boot\n`, true],
    ['dead', 999_999_999, '999999999\n5\n', true],
    ['dead, no claim', 999_999_999, null, true],
    ['our own pid, from an earlier life of the container', process.pid, `${process.pid}\n1\n`, true],
    ['empty', '', null, true],
    ['nonsense', 'hello', 'hello\n', true],
  ]
  for (const [why, pid, claim, isFree] of cases) {
    await writeFile(pidFileOf(dataDir), `${pid}\n`)
    if (claim === null) await rm(claimFileOf(dataDir), { force: true })
    else await writeFile(claimFileOf(dataDir), claim)
    if (isFree) await (await claimDataFolder(dataDir)).release()
    else await assert.rejects(claimDataFolder(dataDir), new RegExp(`pid ${process.ppid}\\)`), why)
  }
})

test('a release leaves the files of another claim alone', async (t) => {
  const dataDir = await folderOf(t)
  const claim = await claimDataFolder(dataDir)
  await writeFile(pidFileOf(dataDir), '4711\n')
  await claim.release()
  assert.equal(await readFile(pidFileOf(dataDir), 'utf8'), '4711\n')

  // Two containers on one volume without locks: both are pid 1, and only the claim tells them apart.
  const second = await claimDataFolder(dataDir)
  const ofAnother = `${process.pid}\n1\nboot\nanother claim\n`
  await writeFile(claimFileOf(dataDir), ofAnother)
  await second.release()
  assert.equal(await readFile(pidFileOf(dataDir), 'utf8'), `${process.pid}\n`)
  assert.equal(await readFile(claimFileOf(dataDir), 'utf8'), ofAnother)
})

test('the error about a folder that cannot be made or written is one sentence', async (t) => {
  const parent = await makeFolder(t)
  await writeFile(join(parent.path, 'file'), '')
  await assert.rejects(claimDataFolder(join(parent.path, 'file')), /cannot be used \(ENOTDIR/)
  await assert.rejects(
    claimDataFolder(join(parent.path, 'file', 'data')),
    /^Error: The data folder .*data cannot be used \(/,
  )
  if (cannotRunAsOthers !== null) return t.diagnostic(`the rest needs a second user: ${cannotRunAsOthers}`)
  const { said } = await startChild(parent, {}, nobody)
  assert.match(said.error ?? '', /^The data folder .* cannot be used \(EACCES/)
})
