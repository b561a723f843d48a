import assert from 'node:assert/strict'
import { access, readlink } from 'node:fs/promises'
import { test } from 'node:test'
import { createMcpKit, errorText, stdioFixture } from '../../test/kit/mcp.ts'
import { newId } from '../kernel/id.ts'

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
  const call = kit.call('fixture', 'hang', { name: 'x' }, { timeoutMs: 600_000 })
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
