import assert from 'node:assert/strict'
import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { makeFolder } from '../../../test/kit/embedded-kit.ts'
import { lastComplaint, openServerLog, trimServerLog } from './server-log.ts'

test('a log beyond its limit is put aside while the server goes on writing', async (t) => {
  const path = join((await makeFolder(t)).path, 'postgres.log')
  await trimServerLog(path)
  const held = await openServerLog(path)
  await held.write('x'.repeat(100))
  await trimServerLog(path, 100)
  assert.equal((await stat(path)).size, 100)
  await held.write('y')
  await trimServerLog(path, 100)
  await held.write('after\n')
  assert.equal(await readFile(path, 'utf8'), 'after\n')
  assert.equal((await stat(`${path}.old`)).size, 101)
  assert.equal((await stat(`${path}.old`)).mode & 0o777, 0o600)
  await held.close()
})

test('the last complaint is taken from the text after the given position', async (t) => {
  const path = join((await makeFolder(t)).path, 'postgres.log')
  assert.equal(await lastComplaint(path, 0), null)
  const old = '2026-01-01 UTC [1] FATAL:  an old one\n'
  await writeFile(path, old)
  assert.equal(await lastComplaint(path, old.length), null)
  await writeFile(path, `${old}2026-01-01 UTC [2] FATAL:  lock file exists\n2026-01-01 UTC [2] LOG:  shut down\n`)
  assert.equal(await lastComplaint(path, old.length), 'lock file exists')
})
