import assert from 'node:assert/strict'
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { isRoot, makeFolder, nobody, startChild, until } from '../../../test/kit/embedded-kit.ts'
import { claimDataFolder } from './data-folder.ts'
import { identifyProcess } from './process-table.ts'

async function folderOf(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'muster-claim-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  return folder
}

const pidFileOf = (dataDir: string): string => join(dataDir, 'muster.pid')

test('a claim makes the folder, names our pid on the first line, and its release removes the file', async (t) => {
  const dataDir = join(await folderOf(t), 'new', 'data')
  const claim = await claimDataFolder(dataDir)
  assert.equal((await stat(dataDir)).mode & 0o777, 0o700)
  const text = await readFile(pidFileOf(dataDir), 'utf8')
  assert.equal(text.split('\n')[0], String(process.pid))
  assert.equal(text.split('\n')[1], (await identifyProcess(process.pid))?.start)
  assert.equal((await stat(pidFileOf(dataDir))).mode & 0o777, 0o600)
  await claim.release()
  await assert.rejects(stat(pidFileOf(dataDir)), /ENOENT/)
  await claim.release()
  await (await claimDataFolder(dataDir)).release()
})

test('a second server is refused with the pid and the folder, and may come once the first is killed', async (t) => {
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
  // What two containers on one volume see of each other: their own pid, 1, in the file.
  await writeFile(pidFileOf(folder.path), `${process.pid}\n1\n\n`)
  await assert.rejects(claimDataFolder(folder.path), /Another Muster server/)
})

test('of many servers starting at once on a stale file exactly one wins', async (t) => {
  const folder = await makeFolder(t)
  await writeFile(pidFileOf(folder.path), '999999999\n1\n\n')
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

test('a pid file counts while its process lives, and is replaced when it is dead or another one', async (t) => {
  const dataDir = await folderOf(t)
  const parent = await identifyProcess(process.ppid)
  const cases: [why: string, text: string, isFree: boolean][] = [
    ['alive, with its start', `${process.ppid}\n${parent?.start}\n`, false],
    ['alive, start not noted', `${process.ppid}\n`, false],
    ['the pid was given to another process', `${process.ppid}\n1\n`, true],
    ['the machine was booted since', `${process.ppid}\n${parent?.start}\nanother boot\n`, true],
    ['dead', '999999999\n5\n', true],
    ['our own pid, from an earlier life of the container', `${process.pid}\n1\n`, true],
    ['empty', '', true],
    ['nonsense', 'hello\n', true],
  ]
  for (const [why, text, isFree] of cases) {
    await writeFile(pidFileOf(dataDir), text)
    if (isFree) await (await claimDataFolder(dataDir)).release()
    else await assert.rejects(claimDataFolder(dataDir), new RegExp(`pid ${process.ppid}\\)`), why)
  }
})

test('a release leaves the file of somebody else alone', async (t) => {
  const dataDir = await folderOf(t)
  const claim = await claimDataFolder(dataDir)
  await writeFile(pidFileOf(dataDir), '4711\n')
  await claim.release()
  assert.equal(await readFile(pidFileOf(dataDir), 'utf8'), '4711\n')
})

test('a folder that cannot be made or written is told in one sentence', async (t) => {
  const parent = await makeFolder(t)
  await writeFile(join(parent.path, 'file'), '')
  await assert.rejects(claimDataFolder(join(parent.path, 'file')), /cannot be used \(ENOTDIR/)
  await assert.rejects(
    claimDataFolder(join(parent.path, 'file', 'data')),
    /^Error: The data folder .*data cannot be used \(/,
  )
  if (!isRoot) return t.diagnostic('the rest needs a second user, and so root')
  const { said } = await startChild(parent, {}, nobody)
  assert.match(said.error ?? '', /^The data folder .* cannot be used \(EACCES/)
})
