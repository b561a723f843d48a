import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase } from '../../test/kit/database.ts'
import { insertProject } from '../../test/kit/runs.ts'
import { inTransaction } from '../db/transaction.ts'
import { systemActor } from '../kernel/principal.ts'
import { createEval } from './create-eval.ts'
import { pruneEvals } from './prune-evals.ts'

const DAY_MS = 86_400_000
const { pool, clock } = await createTestDatabase()

const make = async (projectId: string): Promise<string> => {
  const input = { name: 'An eval', variants: ['blue', 'green'], cases: [{ task: 'A task', expect: {} }] }
  return (await inTransaction(pool, (tx) => createEval(tx, projectId, input, systemActor))).id
}
const end = (id: string, { isOpen = false, total = 2 } = {}) =>
  pool.query(
    `update evals set status = 'completed', completed_at = muster.now(), is_open = $2, total = $3 where id = $1`,
    [id, isOpen, total],
  )
const left = async (table: string, key: string, ids: readonly string[]): Promise<number> =>
  (await pool.query(`select from ${table} where ${key} = any($1)`, [ids])).rowCount ?? 0

test('an eval that ended longer ago than runs are kept is removed with its cases and results', async () => {
  const [projectId, other] = [await insertProject(pool), await insertProject(pool)]
  const [old, open, running, late, ofOther] = [
    await make(projectId),
    await make(projectId),
    await make(projectId),
    await make(projectId),
    await make(other),
  ]
  for (const id of [old, ofOther]) await end(id)
  await end(open, { isOpen: true })
  await clock.advance(11 * DAY_MS)
  await end(late)
  assert.equal(await pruneEvals(pool, { projectId, days: 12 }), 0, 'they are too young')
  assert.equal(await pruneEvals(pool, { projectId, days: 10 }), 1)
  assert.equal(await left('evals', 'id', [old]), 0)
  assert.equal(await left('eval_cases', 'eval_id', [old]), 0)
  assert.equal(await left('eval_results', 'eval_id', [old]), 0)
  assert.equal(await left('evals', 'id', [open, running, late, ofOther]), 4)
})

test('evals with many results are removed batch by batch, and a stop ends the work after a batch', async () => {
  const projectId = await insertProject(pool)
  const ids: string[] = []
  for (let count = 0; count < 5; count++) ids.push(await make(projectId))
  for (const id of ids) await end(id, { total: 10_000 })
  await clock.advance(11 * DAY_MS)
  const stopping = new AbortController()
  const watched = new Proxy(pool, {
    get: (target, name) => {
      if (name === 'connect') queueMicrotask(() => stopping.abort())
      const value = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  assert.equal(await pruneEvals(watched, { projectId, days: 10 }, stopping.signal), 2, 'one batch')
  assert.equal(await pruneEvals(pool, { projectId, days: 10 }), 3)
  assert.equal(await left('eval_results', 'eval_id', ids), 0)
})
