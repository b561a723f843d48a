import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { commandOf, identifyProcess, isStillRunning, listProcesses } from './process-table.ts'

test('a process is identified by its start, its command and the list, and no longer after its end', async () => {
  const child = spawn('sleep', ['600'], { stdio: 'ignore' })
  await once(child, 'spawn')
  const pid = child.pid ?? 0
  const identity = await identifyProcess(pid)
  assert.ok(identity)
  assert.equal(await isStillRunning(identity), true)
  assert.equal(await isStillRunning({ pid, start: 'another' }), false)
  assert.equal(await commandOf(pid), 'sleep 600')
  assert.equal((await listProcesses()).find((entry) => entry.pid === pid)?.command, 'sleep 600')
  child.kill('SIGKILL')
  await once(child, 'exit')
  assert.equal(await isStillRunning(identity), false)
  assert.equal(await identifyProcess(pid), null)
  assert.equal(await commandOf(pid), null)
})

test('a dead process that nobody has reaped counts as none', async () => {
  // The child ends after exec has replaced the shell by a parent that never reaps it; the shell would have reaped it.
  const parent = spawn('sh', ['-c', 'sleep 1 & echo $!; exec sleep 600'], { stdio: ['ignore', 'pipe', 'ignore'] })
  try {
    const [text] = await once(parent.stdout, 'data')
    const pid = Number(String(text))
    const deadline = performance.now() + 10_000
    while ((await identifyProcess(pid)) !== null)
      assert.ok(performance.now() < deadline, 'the dead process counts as running')
    process.kill(pid, 0)
  } finally {
    parent.kill('SIGKILL')
  }
})

test('an impossible pid names no process', async () => {
  for (const pid of [0, -1, Number.NaN, 1.5, 999_999_999]) assert.equal(await identifyProcess(pid), null)
})

test('ps, which systems other than Linux use, gives the same answers', async (t) => {
  if (process.platform !== 'linux') return t.skip('the tests above have used ps')
  const script = `
    Object.defineProperty(process, 'platform', { value: 'darwin' })
    const table = await import(${JSON.stringify(new URL('process-table.ts', import.meta.url).href)})
    const identity = await table.identifyProcess(process.ppid)
    console.log(JSON.stringify({
      isKnown: identity !== null && (await table.isStillRunning(identity)),
      command: await table.commandOf(process.ppid),
      isListed: (await table.listProcesses()).some(({ pid, command }) => pid === process.ppid && command !== ''),
      isNobody: (await table.identifyProcess(999999)) === null && (await table.commandOf(999999)) === null,
    }))`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script])
  const command = await commandOf(process.pid)
  assert.deepEqual(JSON.parse(stdout), { isKnown: true, command, isListed: true, isNobody: true })
})
