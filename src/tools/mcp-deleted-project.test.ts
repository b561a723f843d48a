import assert from 'node:assert/strict'
import { access, readlink } from 'node:fs/promises'
import { test } from 'node:test'
import { createMcpKit, errorText, stdioFixture } from '../../test/kit/mcp.ts'
import { newId } from '../kernel/id.ts'
import { silentLog } from '../kernel/log.ts'

const kit = await createMcpKit()

const isThere = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  )

test('the connections of a deleted project end with their calls, their programs and their files', async () => {
  await kit.register({ name: 'fixture', ...stdioFixture() })
  const pids = String((await kit.call('fixture', 'spawn')).result)
    .split(',')
    .map(Number)
  const begun = Promise.withResolvers<void>()
  const call = kit.call('fixture', 'hang', { name: 'x' }, { timeoutMs: 600_000, emit: () => begun.resolve() })
  await begun.promise
  const [pid = 0] = pids
  const home = await readlink(`/proc/${pid}/cwd`)

  await kit.mcp.leave(new Set([newId()]))
  assert.equal((await kit.call('fixture', 'echo', { text: 'still there' })).result, 'still there')
  assert.ok(await isThere(home))

  await kit.mcp.leave(new Set([kit.projectId]))
  assert.match(errorText(await call), /fixture/)
  assert.ok(pid > 0 && !(await isThere(`/proc/${pid}/exe`)))
  assert.equal(await isThere(home), false)
})

test('a call that had read its server before the project was deleted opens no connection', async ({ mock }) => {
  const name = 'on-its-way'
  await kit.register({ name, ...stdioFixture() })
  const { execute } = await kit.tool(name, 'echo')
  const query = kit.pool.query.bind(kit.pool)
  const goes = mock.method(kit.pool, 'query', async (text: string, values: unknown[]) => {
    const result = await query(text, values)
    goes.mock.restore()
    await query('delete from mcp_servers where name = $1', [name])
    await kit.mcp.leave(new Set([kit.projectId]))
    return result
  })
  const context = {
    signal: AbortSignal.timeout(60_000),
    key: 'the-key',
    attempt: 1,
    run_id: newId(),
    project_id: kit.projectId,
    log: silentLog,
    emit: () => {},
  }
  await assert.rejects(async () => execute({ text: 'x' }, context), /no longer registered/)
})
