// MCP servers that are child processes, their ends, and those of their children.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { createMcpKit, errorText, stdioFixture } from '../../test/kit/mcp.ts'

let nowMs = 1_000_000
const kit = await createMcpKit({ now: () => nowMs })
await kit.register({ name: 'fixture', ...stdioFixture('; touch /tmp/x', '$(id)', '*') })
await kit.register({ name: 'neighbour', ...stdioFixture() })

const script = (source: string) => ({ command: process.execPath, args: ['-e', source] })
const SILENT = 'setInterval(() => {}, 1000)'

/** A process that has ended may still wait to be reaped by its new parent; such a process is not alive. */
async function isGone(pid: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => null)
  if (stat !== null) return /\) Z /.test(stat)
  try {
    process.kill(pid, 0)
    return false
  } catch {
    return true
  }
}

async function untilGone(pids: readonly number[]): Promise<void> {
  for (const pid of pids) while (!(await isGone(pid))) await new Promise((resolve) => setImmediate(resolve))
}

async function spawnedPids(server: string): Promise<number[]> {
  const pids = String((await kit.call(server, 'spawn')).result)
    .split(',')
    .map(Number)
  for (const pid of pids) assert.equal(await isGone(pid), false)
  return pids
}

test('a command gets its arguments unchanged, and only PATH and a home as its environment', async () => {
  assert.deepEqual(JSON.parse(String((await kit.call('fixture', 'arguments')).result)), [
    '; touch /tmp/x',
    '$(id)',
    '*',
  ])
  assert.equal((await kit.call('fixture', 'environment')).result, 'HOME,PATH')
})

test('a server that hangs is killed with its children once its call is given up, and the next call starts it again', async () => {
  const pids = await spawnedPids('fixture')
  const neighbour = kit.call('neighbour', 'hang', { name: 'x' }, { timeoutMs: 60_000, signal: AbortSignal.timeout(50) })
  assert.equal((await kit.call('fixture', 'block', {}, { timeoutMs: 50 })).cause, 'timeout')
  await untilGone(pids)
  assert.equal((await kit.call('fixture', 'echo', { text: 'back' })).result, 'back')
  assert.equal((await neighbour).cause, 'aborted')
  assert.equal((await kit.call('neighbour', 'echo', { text: 'unharmed' })).result, 'unharmed')
})

test('the children of a server that crashes are ended', async () => {
  const pids = await spawnedPids('fixture')
  const crashed = await kit.call('fixture', 'crash')
  assert.match(errorText(crashed), /"fixture" failed during the call: it ended with code 3\.$/)
  assert.equal(crashed.cause, 'lost', 'nobody knows whether the call took effect')
  await untilGone(pids)
})

test('a stray line of text is ignored, a torn message ends the server', async () => {
  const noise = await kit.call('fixture', 'print', { line: 'listening on stdio' })
  assert.equal(noise.result, 'printed')
  const log = await kit.call('fixture', 'print', { line: '{"level":30,"msg":"hello"}' })
  assert.equal(log.result, 'printed')
  const torn = await kit.call('fixture', 'print', { line: '{"jsonrpc":"2.0","id":' })
  assert.match(errorText(torn), /it wrote something else than MCP to its output/)
})

test('a server that keeps failing is tried later and later, while its neighbours work', async () => {
  const crash = async (): Promise<string> => errorText(await kit.call('fixture', 'crash'))
  await kit.call('fixture', 'echo', { text: 'well' })
  assert.match(await crash(), /code 3/)
  assert.match(await crash(), /code 3/, 'the first failure is forgiven')
  assert.match(await crash(), /"fixture" cannot be used: it ended with code 3; it is tried again in 1 s/)
  nowMs += 1_000
  assert.match(await crash(), /failed during the call: it ended with code 3/)
  assert.match(await crash(), /it is tried again in 2 s/)
  assert.equal((await kit.call('neighbour', 'echo', { text: 'unharmed' })).result, 'unharmed')
  nowMs += 2_000
  assert.equal((await kit.call('fixture', 'echo', { text: 'well' })).result, 'well')
  assert.match(await crash(), /code 3/)
  assert.equal((await kit.call('fixture', 'echo', { text: 'a successful call resets the failures' })).isError, false)
})

test('each call of a server that no longer starts fails with the reason', async () => {
  const { id } = await kit.register({ name: 'broken', ...stdioFixture() })
  await kit.pool.query(`update mcp_servers set args = '["-e", "process.exit(5)"]' where id = $1`, [id])
  assert.match(
    errorText(await kit.call('broken', 'echo', { text: 'x' })),
    /"broken" cannot be used: it ended with code 5/,
  )
  assert.match(
    errorText(await kit.call('broken', 'echo', { text: 'x' })),
    /"broken" cannot be used: it ended with code 5/,
  )
  assert.match(errorText(await kit.call('broken', 'echo', { text: 'x' })), /it is tried again in 1 s/)
  assert.equal((await kit.call('neighbour', 'echo', { text: 'unharmed' })).result, 'unharmed')
})

test('a command that does not speak MCP is not registered, and the answer says what happened', async () => {
  const bad: [string, ReturnType<typeof script>, RegExp][] = [
    ['exits', script('console.error("no licence"); process.exit(4)'), /cannot be reached: it ended with code 4\./],
    ['garbage', script('setInterval(() => console.log("#".repeat(2000)))'), /it wrote something else than MCP/],
    ['nothing', { command: '/no/such/program', args: [] }, /it could not be started \(ENOENT\)/],
  ]
  for (const [name, place, message] of bad) {
    await assert.rejects(kit.register({ name, ...place }), (error: Error & { code?: string }) => {
      assert.equal(error.code, 'INVALID_REQUEST')
      assert.match(error.message, message)
      return true
    })
    assert.equal(await kit.mcp.toolsOf(kit.projectId, name), null)
  }
})

test('the error output of a command is shown to the person who registers it', async () => {
  await assert.rejects(
    kit.register({ name: 'exits', ...script('console.error("no licence"); process.exit(4)') }),
    (error: Error & { details?: { output?: string } }) => error.details?.output === 'no licence\n',
  )
})

test('a command that says nothing is given up in time and ended', async () => {
  const hasty = await createMcpKit({ connectTimeoutMs: 100 })
  await assert.rejects(hasty.register({ name: 'silent', ...script(SILENT) }), /it did not answer within 100 ms/)
  await hasty.mcp.stop()
})

test('stopping ends every server with its children', async () => {
  const other = await createMcpKit()
  await other.register({ name: 'fixture', ...stdioFixture() })
  const pids = String((await other.call('fixture', 'spawn')).result)
    .split(',')
    .map(Number)
  await other.mcp.stop()
  await untilGone(pids)
  assert.match(errorText(await other.call('fixture', 'echo', { text: 'x' })), /Muster is stopping/)
})

test('a connection that is not used is closed, and opened again when it is needed', async () => {
  const brief = await createMcpKit({ idleMs: 1 })
  await brief.register({ name: 'fixture', ...stdioFixture() })
  const [pid = 0] = String((await brief.call('fixture', 'spawn')).result)
    .split(',')
    .map(Number)
  await untilGone([pid])
  assert.equal((await brief.call('fixture', 'echo', { text: 'again' })).result, 'again')
})
