// Two owners begin one leaf again: an owner that has lost the flow run comes second, and changes nothing.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestFlows } from '../../../test/kit/flows.ts'
import { testTool } from '../../../test/kit/run-worker.ts'
import { createScriptedModel } from '../../../test/kit/scripted-model.ts'
import { until } from '../../../test/kit/until.ts'
import { inTransaction } from '../../db/transaction.ts'
import { insertRun } from '../../journal/insert-run.ts'
import { newId } from '../../kernel/id.ts'
import { beginLeafAgain, type RetriedLeaf } from './continue-leaf.ts'

const flows = await createTestFlows({ tools: [testTool('refund', async () => 'refunded', { effect: 'unsafe' })] })
const { pool, projectId } = flows
let held: Promise<void> | null = null
flows.models.set(
  'script',
  createScriptedModel(({ prompt }) => {
    if (!prompt.some(({ role }) => role === 'tool')) return { calls: [{ name: 'refund', args: {} }] }
    if (held) return { text: 'Refunded.', waitFor: held }
    return { fail: { message: 'The provider is broken.', isRetryable: false } }
  }),
)
const agent = await flows.createAgent({ name: 'payer', tools: ['refund'] })

/** The next attempt at a leaf whose run has failed after a refund, in a tree that counts its runs. */
async function failedLeaf(): Promise<{ leaf: RetriedLeaf; earlierId: string; tree: string }> {
  held = null
  const { id: flowRunId } = await flows.play({ type: 'task', id: 'pay', agent: 'payer', input: 'Pay.' })
  const { rows } = await pool.query<{ id: string; key_scope: string }>(
    'select id, key_scope from agent_runs where flow_run_id = $1',
    [flowRunId],
  )
  const [{ id: earlierId, key_scope: keyScope }] = rows as [{ id: string; key_scope: string }] // a leaf has a run
  const trigger = { type: 'flow', flow_run_id: flowRunId, task_id: 'pay' }
  const fresh = { id: newId(), projectId, agentId: agent.id, trigger, input: 'Pay.', flowRunId, keyScope }
  return {
    leaf: {
      fresh: { ...fresh, maxSteps: null, timeoutMs: null },
      agent,
      name: 'pay',
      flowRunIds: [flowRunId],
      replaces: [],
      isResumedByPerson: false,
      tree: flowRunId,
    },
    earlierId,
    tree: flowRunId,
  }
}

const stateOf = async (runId: string) =>
  (await pool.query('select status, pause_reason, waits_for from agent_runs where id = $1', [runId])).rows[0]
const runsBelow = async (tree: string) =>
  (await pool.query('select runs_below from flow_runs where id = $1', [tree])).rows[0]?.runs_below

/** Waits until a statement waits for a lock. */
const untilLocked = () =>
  until(async () => {
    const sql = `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`
    return (await pool.query(sql)).rowCount !== 0
  }, 'the second owner waits for the first')

test('a continuation that works is not held when an owner that came second begins it', async () => {
  const { leaf, earlierId, tree } = await failedLeaf()
  const hold = Promise.withResolvers<void>()
  held = hold.promise
  const first = await pool.connect()
  await first.query('begin')
  await first.query('select from agent_runs where id = $1 for update', [earlierId])
  const second = beginLeafAgain(pool, leaf)
  await untilLocked()
  // The first owner has the lock, and is quicker.
  const { rows } = await first.query('select last_seq, step_count from agent_runs where id = $1', [earlierId])
  const base = { runId: earlierId, seq: rows[0].last_seq, steps: rows[0].step_count }
  await insertRun(first, { ...leaf.fresh, input: null, resumedFrom: earlierId, base })
  await first.query('commit')
  first.release()
  assert.deepEqual(await second, { is: 'begun', runId: leaf.fresh.id })
  assert.equal((await stateOf(leaf.fresh.id))?.pause_reason, null)
  assert.equal(await runsBelow(tree), 0, 'the first owner counts the run')
  hold.resolve()
  flows.worker.onReady()
  assert.equal((await flows.finished(leaf.fresh.id)).status, 'completed')
  const asked = await pool.query(`select from tasks where metadata->>'kind' = 'begin_anew'`)
  assert.equal(asked.rowCount, 0)
})

test('of two owners that begin a first run at once, one counts it, and it is not held', async () => {
  const { leaf, tree } = await failedLeaf()
  const { fresh } = leaf
  const alone: RetriedLeaf = { ...leaf, fresh: { ...fresh, keyScope: `${fresh.keyScope}:new` } }
  const first = Promise.withResolvers<void>()
  const hasBegun = Promise.withResolvers<void>()
  const beginning = inTransaction(pool, async (tx) => {
    await insertRun(tx, alone.fresh)
    hasBegun.resolve()
    await first.promise
  })
  await hasBegun.promise
  const second = beginLeafAgain(pool, alone)
  await untilLocked()
  first.resolve()
  await beginning
  assert.deepEqual(await second, { is: 'begun', runId: fresh.id })
  assert.equal(await runsBelow(tree), 0)
})

test('an owner begins a leaf once, and it is counted once', async () => {
  const { leaf, tree } = await failedLeaf()
  const begun = await Promise.all([beginLeafAgain(pool, leaf), beginLeafAgain(pool, leaf)])
  assert.deepEqual(begun, [
    { is: 'begun', runId: leaf.fresh.id },
    { is: 'begun', runId: leaf.fresh.id },
  ])
  assert.equal(await runsBelow(tree), 1)
})
