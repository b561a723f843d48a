// The evals of a process: each way of waking it, one by one, and the search that replaces all of them.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase } from '../../test/kit/database.ts'
import { recordStatements } from '../../test/kit/query-plans.ts'
import { insertProject } from '../../test/kit/runs.ts'
import { until } from '../../test/kit/until.ts'
import { inTransaction } from '../db/transaction.ts'
import { cancelEval } from '../evals/cancel-eval.ts'
import { createEval } from '../evals/create-eval.ts'
import { getListed } from '../evals/read-evals.ts'
import { createJournal } from '../journal/append.ts'
import { EVAL_CHANNEL, HALT_CHANNEL } from '../journal/wake.ts'
import { silentLog } from '../kernel/log.ts'
import { systemActor } from '../kernel/principal.ts'
import type { Companion } from '../runs/companions.ts'
import { startEvals } from './eval-services.ts'

const { pool } = await createTestDatabase()
const journal = createJournal({ db: pool, log: silentLog, onWritten: () => {} })
const NEVER_MS = 1_000_000

/** A process whose runs are ended by the test, and which gets notices from the test. */
function createProcess(searchEveryMs: number) {
  let companion: Companion = { onNotification: () => {} }
  let ready = 0
  const worker = {
    join: (joined: Companion) => {
      companion = joined
    },
    onReady: () => void ready++,
  }
  const evals = startEvals({ role: 'all', pool, journal, worker, log: silentLog, searchEveryMs })
  return { evals, companion: () => companion, ready: () => ready }
}

const make = (projectId: string, count: number) =>
  inTransaction(pool, (tx) => {
    const cases = Array.from({ length: count }, () => ({ task: 'x', expect: {} }))
    return createEval(tx, projectId, { name: 'x', variants: ['blue', 'green'], cases }, systemActor)
  })

const runsOf = async (projectId: string): Promise<string[]> => {
  const { rows } = await pool.query<{ id: string }>(
    'select id from agent_runs where project_id = $1 and completed_at is null',
    [projectId],
  )
  return rows.map(({ id }) => id)
}

const endAll = (projectId: string) =>
  pool.query(
    `update agent_runs set status = 'completed', completed_at = muster.now(), ready_at = null
     where project_id = $1 and completed_at is null`,
    [projectId],
  )

const isOpen = async (evalId: string): Promise<boolean> =>
  (await pool.query('select from evals where id = $1 and is_open', [evalId])).rowCount === 1

test('an eval begins with its notice, goes on with the end of a run and with the release of the off switch', async () => {
  const projectId = await insertProject(pool)
  const recording = recordStatements(pool)
  const { evals, companion, ready } = createProcess(NEVER_MS)
  // The next search would come too late for this test.
  await until(() => recording.statements.some(({ text }) => text.includes('as has_work')), 'the first search')
  recording.stop()
  const { id } = await make(projectId, 8)
  companion().onNotification(EVAL_CHANNEL, projectId)
  await until(async () => (await runsOf(projectId)).length === 5, 'runs were started')
  await until(() => ready() === 1, 'somebody was told')
  await endAll(projectId)
  companion().onEvalRun?.(projectId)
  await until(async () => (await getListed(pool, projectId, id)).progress.done === 5, 'they were judged')
  await until(async () => (await runsOf(projectId)).length === 5, 'the next ones were started')

  await pool.query('update projects set halted_at = muster.now() where id = $1', [projectId])
  await endAll(projectId)
  companion().onEvalRun?.(projectId)
  await until(async () => (await getListed(pool, projectId, id)).progress.done === 10, 'they were judged')
  assert.deepEqual(await runsOf(projectId), [])
  await pool.query('update projects set halted_at = null where id = $1', [projectId])
  companion().onNotification(HALT_CHANNEL, '')
  await until(async () => (await runsOf(projectId)).length === 5, 'it goes on')
  await endAll(projectId)
  companion().onListening?.()
  await until(async () => (await runsOf(projectId)).length === 1, 'a replaced connection is a reason to search')
  await evals.stop()
})

test('a cancel ends runs without an owner, and the eval is over', async () => {
  const projectId = await insertProject(pool)
  const { evals, companion } = createProcess(NEVER_MS)
  const { id } = await make(projectId, 8)
  companion().onNotification(EVAL_CHANNEL, projectId)
  await until(async () => (await runsOf(projectId)).length === 5, 'runs were started')
  await inTransaction(pool, (tx) => cancelEval(tx, projectId, id, systemActor))
  companion().onNotification(EVAL_CHANNEL, projectId)
  await until(async () => (await runsOf(projectId)).length === 0, 'they were cancelled')
  await until(async () => !(await isOpen(id)), 'the eval is over')
  const { rows } = await pool.query('select distinct status from agent_runs where project_id = $1', [projectId])
  assert.deepEqual(rows, [{ status: 'cancelled' }])
  await evals.stop()
})

test('without any notice the searches of two processes complete an eval', async () => {
  const projectId = await insertProject(pool)
  const { id } = await make(projectId, 8)
  const processes = [createProcess(20), createProcess(20)]
  await until(
    async () => {
      await endAll(projectId)
      return !(await isOpen(id))
    },
    'the eval has ended',
    30_000,
  )
  const ended = await getListed(pool, projectId, id)
  assert.deepEqual([ended.status, ended.progress], ['completed', { done: 16, total: 16 }])
  const { rows } = await pool.query('select count(*)::int as count from agent_runs where project_id = $1', [projectId])
  assert.deepEqual(rows, [{ count: 16 }])
  for (const { evals } of processes) await evals.stop()
})
