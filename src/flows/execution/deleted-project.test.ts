import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestFlows } from '../../../test/kit/flows.ts'
import { removeProjects } from '../../bin/remove-projects.ts'
import { createKey } from '../../identity/api-keys.ts'
import { createKeyCache } from '../../identity/key-cache.ts'
import { deleteProject } from '../../identity/projects.ts'
import { systemActor } from '../../kernel/principal.ts'

test('a flow run of a deleted project is cut off, begins nothing and is removed', { timeout: 60_000 }, async () => {
  const begun = Promise.withResolvers<AbortSignal>()
  let calls = 0
  const flows = await createTestFlows({
    functions: {
      hang: (_: unknown, { signal }) => {
        calls++
        begun.resolve(signal)
        return new Promise((resolve) => signal.addEventListener('abort', () => resolve('late'), { once: true }))
      },
      next: () => assert.fail('nothing new is begun'),
    },
  })
  const { pool, projectId } = flows
  const keys = createKeyCache(pool, () => 0)
  flows.worker.hearDeleted(keys.forgetProjects)
  const heard = Promise.withResolvers<void>()
  flows.worker.hearDeleted((ids) => ids.has(projectId) && heard.resolve())
  const { key } = await createKey(pool, projectId, { name: 'known', role: 'admin' }, systemActor)
  assert.ok(await keys.find(key))
  const steps = ['hang', 'next'].map((name) => ({ type: 'task', function: name }) as const)
  const id = await flows.startFlow({ type: 'sequential', steps })
  const signal = await begun.promise

  await deleteProject(pool, projectId, systemActor)
  await heard.promise
  assert.equal(await keys.find(key), null, 'the clock of the test stands still, so the key must have been forgotten')
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
  await pool.query(`update projects set deleted_at = deleted_at - interval '1 minute' where id = $1`, [projectId])
  while ((await pool.query('select from projects where id = $1', [projectId])).rowCount === 1)
    await removeProjects(pool)
  const { rowCount } = await pool.query('select from flow_events where run_id = $1', [id])
  assert.equal(rowCount, 0)
  assert.equal(calls, 1)
})
