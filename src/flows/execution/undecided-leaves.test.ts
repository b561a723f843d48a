// Leaves whose runs wait for a person, because the outcome of a call is unknown: another run continues with the decision.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestFlows } from '../../../test/kit/flows.ts'
import { testTool } from '../../../test/kit/run-worker.ts'
import { createScriptedModel } from '../../../test/kit/scripted-model.ts'
import { until } from '../../../test/kit/until.ts'
import { inTransaction } from '../../db/transaction.ts'
import { systemActor } from '../../kernel/principal.ts'
import { resumeRun } from '../../runs/resume.ts'
import { decideOutcome, lockUndecided } from '../../runs/undecided.ts'
import type { OutcomeTask } from '../../tasks/outcome-tasks.ts'
import { type BuiltInNode, builtInPatterns } from '../machine/built-in-patterns.ts'
import { cancelFlow } from './cancel.ts'
import { flowToResume } from './resume-flow.ts'
import { startFlow } from './start.ts'

const flows = await createTestFlows({
  tools: [testTool('refund', () => new Promise(() => {}), { effect: 'unsafe', timeoutMs: 20 })],
  drainMs: 0,
})
const { pool, projectId, clock } = flows
/** A run calls the tool, whose outcome is unknown; the run that continues it is held at its model call. */
let held = Promise.withResolvers<void>()
flows.models.set(
  'script',
  createScriptedModel(({ prompt }) =>
    prompt.some(({ role }) => role === 'tool')
      ? { text: 'Refunded.', waitFor: held.promise }
      : { calls: [{ name: 'refund', args: {} }] },
  ),
)
await flows.createAgent({ name: 'payer', tools: ['refund'] })
const pay = { type: 'task', id: 'pay', agent: 'payer', input: 'Pay.' } as const

interface LeafRun {
  id: string
  status: string
  pause_reason: string | null
  resumed_from: string | null
}
const runsOf = async (flowRunId: string): Promise<LeafRun[]> =>
  (
    await pool.query<LeafRun>(
      'select id, status, pause_reason, resumed_from from agent_runs where flow_run_id = $1 order by created_at, id',
      [flowRunId],
    )
  ).rows
const stateOf = async (flowRunId: string): Promise<string[]> =>
  (await runsOf(flowRunId)).map(({ status, pause_reason: reason }) => reason ?? status)

/** Starts the flow, and waits until a call of its leaf is undecided. */
async function startUndecided(root: BuiltInNode, options = {}): Promise<{ id: string; runId: string }> {
  held = Promise.withResolvers()
  const id = await flows.startFlow(root, options)
  await until(async () => (await stateOf(id)).includes('outcome_unknown'), 'the outcome of the call is unknown')
  return { id, runId: (await runsOf(id))[0]?.id ?? assert.fail() }
}

/** A person completes the task of the call. Returns the run that continues, if there is one. */
async function decide(runId: string): Promise<string | null> {
  const run = await inTransaction(pool, async (tx) => {
    await lockUndecided(tx, runId)
    const { rows } = await tx.query<OutcomeTask>('select * from tasks where run_id = $1', [runId])
    return decideOutcome(tx, projectId, rows[0] ?? assert.fail(), 'done')
  })
  flows.worker.onReady()
  return run?.id ?? null
}

const isRunning = (runId: string) => async () => (await flows.get(runId)).status === 'running'

/** The time of a part stands still while all of its leaves wait, so one of them works until it is stopped. */
flows.functions.set(
  'busy',
  (_input: unknown, { signal }: { signal: AbortSignal }) =>
    new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true })),
)
const timedPart = (timeout: number): BuiltInNode => ({
  type: 'parallel',
  timeout,
  branches: [pay, { type: 'task', function: 'busy' }],
})
const timed = (timeout: number): BuiltInNode => ({ type: 'parallel', branches: [timedPart(timeout)] })

test('a cancelled flow takes down the run that continues a leaf with the decision', async () => {
  const { id, runId } = await startUndecided(pay)
  const continued = (await decide(runId)) ?? assert.fail()
  await until(isRunning(continued), 'the run continues')
  assert.equal(await cancelFlow(pool, projectId, id, systemActor), true)
  flows.flowWorker.poke()
  assert.equal((await flows.ended(id)).status, 'cancelled')
  await until(async () => (await flows.get(continued)).status === 'cancelled', 'the run is cancelled')
})

test('a leaf that is dropped takes down the run that continues it', async () => {
  const { id, runId } = await startUndecided(timed(1_500))
  const continued = (await decide(runId)) ?? assert.fail()
  await until(isRunning(continued), 'the run continues')
  assert.equal((await flows.ended(id)).status, 'failed')
  await until(async () => (await flows.get(continued)).status === 'cancelled', 'the run is cancelled')
})

test('a decision about a leaf that was dropped starts no run, while its flow continues', async () => {
  const gate = Promise.withResolvers<void>()
  flows.functions.set('hold', () => gate.promise)
  const branches: BuiltInNode[] = [timedPart(300), { type: 'task', function: 'hold' }]
  const { id, runId } = await startUndecided({ type: 'parallel', branches })
  await until(async () => (await flows.flowKinds(id)).includes('node.expired'), 'the leaf is dropped')
  await until(async () => {
    const sql = 'select from agent_runs where id = $1 and cancel_requested_at is not null'
    return (await pool.query(sql, [runId])).rowCount === 1
  }, 'the leaf is given up')
  assert.equal(await decide(runId), null)
  await assert.rejects(resumeRun(pool, projectId, runId, { outcome: 'done' }), {
    code: 'CONFLICT',
    details: { flow_run_id: id },
  })
  gate.resolve()
  assert.equal((await flows.ended(id)).status, 'partial')
  assert.deepEqual(await stateOf(id), ['outcome_unknown'])
})

test('a decision at the run of a leaf whose flow has ended starts no run', async () => {
  const { id, runId } = await startUndecided(timed(100))
  assert.equal((await flows.ended(id)).status, 'failed')
  await assert.rejects(resumeRun(pool, projectId, runId, { outcome: 'done' }), { code: 'CONFLICT' })
  assert.deepEqual(await stateOf(id), ['outcome_unknown'])
})

test('a decision in the midst of the stop of a leaf leaves no run behind', async () => {
  const { id, runId } = await startUndecided(pay)
  const decider = await pool.connect()
  await decider.query('begin')
  await decider.query('select from agent_runs where id = $1 for update', [runId])
  await cancelFlow(pool, projectId, id, systemActor)
  flows.flowWorker.poke()
  await until(async () => {
    const sql = `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`
    return (await pool.query(sql)).rowCount !== 0
  }, 'the stop waits for the decision')
  const { id: continued } = await resumeRun(decider, projectId, runId, { outcome: 'done' })
  await decider.query('commit')
  decider.release()
  assert.equal((await flows.ended(id)).status, 'cancelled')
  assert.equal((await flows.finished(continued)).status, 'cancelled')
})

const isStill = (id: string) => async (): Promise<boolean> =>
  (await pool.query('select from flow_runs where id = $1 and all_wait_since is not null', [id])).rowCount === 1
const waitingLeaves = async (id: string) =>
  (await pool.query('select from flow_leaf_waits where flow_run_id = $1', [id])).rowCount

test('a leaf that waits for a decision uses up no time of its flow, and the run that continues does', async () => {
  const { id, runId } = await startUndecided(pay, { timeout: 60_000 })
  await until(isStill(id), 'the flow stands still')
  await clock.advance(600_000)
  flows.flowWorker.poke()
  assert.equal((await flows.read(id)).status, 'running')
  await decide(runId)
  assert.deepEqual([await isStill(id)(), await waitingLeaves(id)], [false, 0])
  held.resolve()
  const { status, error } = await flows.ended(id)
  assert.deepEqual([status, error], ['completed', null])
  assert.deepEqual(
    (await flows.flowKinds(id)).filter((kind) => kind === 'task.waiting' || kind === 'task.continued'),
    ['task.waiting', 'task.continued'],
  )
})

test('a leaf that was dropped does not wait any more, and the time of its flow continues', async () => {
  const gate = Promise.withResolvers<void>()
  flows.functions.set('hold', () => gate.promise)
  const branches: BuiltInNode[] = [timedPart(300), { type: 'task', function: 'hold' }]
  const { id } = await startUndecided({ type: 'parallel', branches })
  await until(async () => (await waitingLeaves(id)) === 1, 'the leaf waits')
  assert.equal(await isStill(id)(), false, 'the function works')
  await until(async () => (await waitingLeaves(id)) === 0, 'the leaf is given up')
  gate.resolve()
  assert.equal((await flows.ended(id)).status, 'partial')
})

test('a resumed flow run asks anew, and the flow run before it counts no wait twice', async () => {
  const { id } = await startUndecided(timed(1_000))
  assert.equal((await flows.ended(id)).status, 'failed')
  const resumed = await inTransaction(pool, async (tx) => {
    const run = await flowToResume(tx, projectId, id)
    return startFlow(tx, run, systemActor, builtInPatterns)
  })
  flows.flowWorker.poke()
  await until(async () => (await stateOf(resumed)).includes('outcome_unknown'), 'the question is asked anew')
  assert.deepEqual([await waitingLeaves(id), await waitingLeaves(resumed)], [0, 1])
  assert.equal((await flows.ended(resumed)).status, 'failed')
  assert.equal(await waitingLeaves(resumed), 0)
})
