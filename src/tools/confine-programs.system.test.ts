// A program that stands for the program of an MCP server looks for our environment, our files of secrets, and other
// programs. The same program without confinement finds them, so that each of these tests can fail.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { chown, mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import { cannotRunAsOthers, isRoot, nobody } from '../../test/kit/embedded-kit.ts'
import { createMcpKit, errorText, stdioFixture } from '../../test/kit/mcp.ts'
import type { SpyReport } from '../../test/kit/mcp-spy.ts'
import { systemActor } from '../kernel/principal.ts'
import { createConfinedPrograms, type Way } from './confine-programs.ts'

const SECRET = 'canary-of-the-environment'
const run = promisify(execFile)

async function spy(t: TestContext, way: Way, user: { uid: number; gid: number } | null): Promise<SpyReport> {
  const folder = await mkdtemp(join(tmpdir(), 'muster-spy-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  if (user !== null) await chown(folder, user.uid, user.gid)
  const script = new URL('../../test/kit/mcp-spy.ts', import.meta.url).pathname
  const { stdout } = await run(process.execPath, [script, join(folder, 'data'), way], {
    env: { PATH: process.env.PATH, MUSTER_SECRET_KEY: SECRET },
    ...user,
  })
  return JSON.parse(stdout) as SpyReport // the report that the script prints
}

function requireBlind({ findings, neighbour, ...report }: SpyReport): void {
  for (const found of [findings, neighbour]) {
    assert.deepEqual(found.environments, [])
    for (const [path, content] of Object.entries(found.files)) assert.match(content, /^(EACCES|EPERM|ENOENT)$/, path)
    assert.equal(found.isWritable, true)
    assert.equal(found.cwd, found.home)
  }
  assert.notEqual(findings.home, neighbour.home)
  assert.match(report.variables, /^HOME,MARK,PATH,TOKEN$/)
  assert.ok(report.running.length >= 3, `two programs and a child: ${report.running}`)
  assert.deepEqual(report.left, [])
}

test('as root a program runs under a user of its project alone, and sees neither us nor its neighbour', async (t) => {
  if (cannotRunAsOthers !== null) return t.skip(cannotRunAsOthers)
  const report = await spy(t, 'user', null)
  requireBlind(report)
  const uids = [report.findings.uid, report.neighbour.uid]
  for (const uid of uids) assert.ok(uid >= 40_000 && uid < 60_000, `${uid}`)
  assert.equal(new Set(uids).size, 2)
})

test('as an ordinary user a program runs in namespaces, and sees neither us nor its neighbour', async (t) => {
  if (isRoot && cannotRunAsOthers !== null) return t.skip(cannotRunAsOthers)
  const report = await spy(t, 'namespaces', isRoot ? nobody : null).catch((error: Error) => error)
  if (report instanceof Error) {
    if (/programs of MCP servers are refused/i.test(report.message))
      return t.skip('this machine lets nobody make user namespaces')
    throw report
  }
  requireBlind(report)
  assert.equal(report.findings.uid, report.uid)
})

test('control: the same program as our own user reads everything', async (t) => {
  if (isRoot && cannotRunAsOthers !== null) return t.skip(cannotRunAsOthers)
  const report = await spy(t, 'same_user', isRoot ? nobody : null)
  const [environment, key] = Object.values(report.findings.files)
  assert.match(environment ?? '', /canary/)
  assert.equal(key, SECRET)
  assert.ok(report.findings.environments.includes(`${report.pid}`))
  assert.equal(Object.values(report.neighbour.files).at(-1), 'x')
})

test('if neither way works, a command is refused when it is added and when it is started, unless the setting is on', async () => {
  const path = '/usr/bin:/bin'
  const closed = await createMcpKit({
    programs: createConfinedPrograms({ path, hidden: [], maySameUser: false, ways: [] }),
  })
  const sentence = /neither as root nor where it may make user namespaces.*MUSTER_MCP_SAME_USER=on/
  await assert.rejects(
    closed.register({ name: 'fixture', ...stdioFixture() }),
    (error: Error & { code?: string }) => error.code === 'CONFLICT' && sentence.test(error.message),
  )
  const open = await createMcpKit({
    programs: createConfinedPrograms({ path, hidden: [], maySameUser: true, ways: [] }),
  })
  const { id } = await open.register({ name: 'fixture', ...stdioFixture() })
  assert.equal((await open.call('fixture', 'echo', { text: 'x' })).result, 'x')
  // The command was added while commands were allowed, and is started after that.
  const { rows } = await open.pool.query<{ row: object }>(
    'select to_jsonb(mcp_servers) as row from mcp_servers where id = $1',
    [id],
  )
  await closed.pool.query('insert into mcp_servers select (jsonb_populate_record(null::mcp_servers, $1)).*', [
    JSON.stringify({ ...rows[0]?.row, project_id: closed.projectId }),
  ])
  assert.match(errorText(await closed.call('fixture', 'echo', { text: 'x' })), sentence)
  await assert.rejects(closed.mcp.approve(closed.projectId, 'fixture', null, systemActor), sentence)
})

test('homes that a killed process left are removed by its successor, and nothing else is', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'muster-notes-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const noteFile = join(folder, 'mcp.homes')
  const make = () => createConfinedPrograms({ path: '/bin', hidden: [], maySameUser: true, ways: [], noteFile })
  const program = { projectId: 'p', name: 'n', command: 'x', args: [], env: {} }
  const { cwd: left } = await make().start(program)
  await writeFile(join(left, 'cache'), 'x')
  const successor = make()
  const { cwd } = await successor.start(program)
  await assert.rejects(stat(left), /ENOENT/)
  assert.equal((await stat(cwd)).isDirectory(), true)
  await successor.stop()
  await assert.rejects(stat(cwd), /ENOENT/)
  for (const named of [folder, '/', '../muster-mcp-abcdef', `${folder}/muster-mcp-../x`]) {
    await writeFile(noteFile, named)
    const next = make()
    await next.start(program)
    await next.stop()
    assert.equal((await stat(folder)).isDirectory(), true)
  }
})
