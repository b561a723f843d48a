import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import {
  familyOf,
  isAnythingLeft,
  isRoot,
  makeFolder,
  makeServer,
  pidOfServer,
  query,
  serversIn,
  startChild,
} from '../../../test/kit/embedded-kit.ts'
import { until } from '../../../test/kit/until.ts'
import { isPidTaken } from './process-table.ts'

test('after kill -9 of our process the server lives on, and the next start takes it over with its sessions', async (t) => {
  const folder = await makeFolder(t)
  const child = await startChild(folder)
  assert.equal(child.said.outcome, 'created')
  const url = child.said.url ?? ''
  await query(url, 'create table kept as select 42 as answer')
  const pid = await pidOfServer(folder.path)
  await child.kill('SIGKILL')

  const server = makeServer(folder)
  const at = performance.now()
  assert.equal(await server.start(), 'adopted')
  const ms = Math.round(performance.now() - at)
  t.diagnostic(`adoption ${ms} ms`)
  assert.ok(ms < 5_000)
  assert.equal(server.url(), url)
  assert.equal(await pidOfServer(folder.path), pid)
  assert.deepEqual(await query(server.url(), 'select answer from kept'), [{ answer: 42 }])
  const family = await familyOf(pid)
  await server.stop()
  assert.equal(await isAnythingLeft(family), false)
})

test('an adopted server that dies is noticed and started again', async (t) => {
  const folder = await makeFolder(t)
  const child = await startChild(folder)
  await query(child.said.url ?? '', 'create table kept as select 42 as answer')
  await child.kill('SIGKILL')
  const server = makeServer(folder)
  assert.equal(await server.start(), 'adopted')
  const pid = await pidOfServer(folder.path)
  process.kill(pid, 'SIGKILL')
  await until(() => server.state() === 'down', 'the death is noticed')
  await until(() => server.state() === 'running', 'the server runs again')
  assert.notEqual(await pidOfServer(folder.path), pid)
  assert.deepEqual(await query(server.url(), 'select answer from kept'), [{ answer: 42 }])
})

test('kill -9 of our process and of the server together loses no committed row', async (t) => {
  const folder = await makeFolder(t)
  const child = await startChild(folder)
  await query(child.said.url ?? '', 'create table kept as select 42 as answer')
  const pid = await pidOfServer(folder.path)
  process.kill(child.process.pid ?? 0, 'SIGKILL')
  process.kill(pid, 'SIGKILL')
  await child.kill('SIGKILL')
  const server = makeServer(folder)
  assert.equal(await server.start(), 'started')
  assert.deepEqual(await query(server.url(), 'select answer from kept'), [{ answer: 42 }])
})

test('a server left running that does not answer is ended and started anew', async (t) => {
  const folder = await makeFolder(t)
  const child = await startChild(folder)
  await query(child.said.url ?? '', 'create table kept as select 42 as answer')
  await child.kill('SIGKILL')
  const pid = await pidOfServer(folder.path)
  process.kill(pid, 'SIGSTOP')
  const sentences: string[] = []
  const server = makeServer(folder, { onProgress: (sentence) => sentences.push(sentence) })
  assert.equal(await server.start(), 'started')
  assert.deepEqual(sentences, [`Ending the database server left running (pid ${pid}).`])
  assert.notEqual(await pidOfServer(folder.path), pid)
  assert.deepEqual(await query(server.url(), 'select answer from kept'), [{ answer: 42 }])
  assert.equal((await serversIn(folder.path)).length, 1)
})

test('a left-over pid file that names an innocent process harms neither the process nor the start', async (t) => {
  const folder = await makeFolder(t)
  const server = makeServer(folder)
  await server.start()
  const pidFile = join(folder.path, 'postgres', 'postmaster.pid')
  const text = await readFile(pidFile, 'utf8')
  await server.stop()
  // The process belongs to the server's own user: PostgreSQL itself never takes another user's process for its server.
  const { uid, gid } = await stat(join(folder.path, 'postgres'))
  const innocent = spawn('sleep', ['600'], { stdio: 'ignore', ...(isRoot ? { uid, gid } : {}) })
  await once(innocent, 'spawn')
  try {
    for (const pid of [innocent.pid, process.pid, 999_999_999, -1]) {
      await writeFile(pidFile, text.replace(/^\d+/, String(pid)))
      assert.equal(await server.start(), 'started', String(pid))
      await server.stop()
    }
    assert.ok(isPidTaken(innocent.pid ?? 0))
    assert.equal(innocent.exitCode ?? innocent.signalCode, null)
  } finally {
    innocent.kill('SIGKILL')
  }
})

test('a server on a copy of the folder is not mistaken for ours', async (t) => {
  const folder = await makeFolder(t)
  const [first, second] = [join(folder.path, 'a'), join(folder.path, 'b')]
  const one = await startChild(folder, { dataDir: first })
  const two = await startChild(folder, { dataDir: second })
  await two.kill('SIGTERM')
  const theirs = await readFile(join(first, 'postgres', 'postmaster.pid'), 'utf8')
  await writeFile(join(second, 'postgres', 'postmaster.pid'), theirs)
  const server = makeServer(folder, { dataDir: second })
  assert.equal(await server.start(), 'started')
  assert.notEqual(server.url(), one.said.url)
  assert.deepEqual(await query(one.said.url ?? '', 'select 1 as one'), [{ one: 1 }])
})
