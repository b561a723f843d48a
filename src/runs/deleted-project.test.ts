// Runs of a project that is deleted while they are under way, and two processes that work on runs.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestRuns } from '../../test/kit/run-worker.ts'
import { insertProject } from '../../test/kit/runs.ts'
import { createScriptedModel } from '../../test/kit/scripted-model.ts'
import { removeProjects } from '../bin/remove-projects.ts'
import { deleteProject } from '../identity/projects.ts'
import { systemActor } from '../kernel/principal.ts'
import type { CallTool } from '../kernel/tool.ts'

/** Lasts until it is cut off, and answers nevertheless. `begun` is called with each call's signal. */
const createHang = (begun: (signal: AbortSignal) => void): CallTool => ({
  kind: 'call',
  name: 'hang',
  description: 'Hangs.',
  inputSchema: { type: 'object' },
  parse: (args) => ({ ok: true, args }),
  effect: 'unsafe',
  isPoller: false,
  timeoutMs: 600_000,
  execute: (_args, { signal }) =>
    new Promise((resolve) => {
      signal.addEventListener('abort', () => resolve('late'), { once: true })
      begun(signal)
    }),
})

const cutOff = (signal: AbortSignal): Promise<unknown> =>
  signal.aborted
    ? Promise.resolve()
    : new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))

const here = Promise.withResolvers<AbortSignal>()
const there = Promise.withResolvers<AbortSignal>()
const doomed = await createTestRuns({ tools: [createHang(here.resolve)], slots: 5 })
const { pool } = doomed
doomed.models.set(
  'script',
  createScriptedModel(({ tools }) => (tools.length > 0 ? { calls: [{ name: 'hang', args: {} }] } : { text: 'Done.' })),
)
const other = await createTestRuns({
  database: { ...doomed, projectId: await insertProject(pool) },
  tools: [createHang(there.resolve)],
  slots: 5,
})

test('runs under way stop at once in every process, queued ones never begin, and late writes harm nothing', {
  timeout: 120_000,
}, async () => {
  const agent = await doomed.createAgent({ tools: ['hang'] })
  const plain = await doomed.createAgent()
  const ids: string[] = []
  // One process does not have enough slots for all of them.
  for (let count = 0; count < 10; count++) ids.push((await doomed.start(agent)).id)
  other.worker.onReady()
  const signals = await Promise.all([here.promise, there.promise])

  await deleteProject(pool, doomed.projectId, systemActor)
  await Promise.all(signals.map(cutOff))
  const late = (await doomed.start(plain)).id
  // Both processes have looked for ready runs since.
  const neighbour = await other.createAgent()
  for (let count = 0; count < 10; count++) assert.equal((await other.run(neighbour)).status, 'completed')
  const { rows } = await pool.query('select status, owner from agent_runs where id = $1', [late])
  assert.deepEqual(rows, [{ status: 'queued', owner: null }])

  await pool.query(`update projects set deleted_at = deleted_at - interval '1 minute' where id = $1`, [
    doomed.projectId,
  ])
  while ((await pool.query('select from projects where id = $1', [doomed.projectId])).rowCount === 1) {
    await removeProjects(pool)
  }
  const left = await pool.query('select from run_events where run_id = any($1::uuid[])', [[...ids, late]])
  assert.equal(left.rowCount, 0)
  assert.equal((await other.run(neighbour)).status, 'completed')
})
