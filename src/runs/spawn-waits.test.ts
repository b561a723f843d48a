// Timeouts of runs whose sub-runs wait, or are cut off in the middle of a call.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestRuns, testTool } from '../../test/kit/run-worker.ts'
import { createScriptedModel, type Script } from '../../test/kit/scripted-model.ts'
import { until } from '../../test/kit/until.ts'
import { inTransaction } from '../db/transaction.ts'
import type { OutcomeTask } from '../tasks/outcome-tasks.ts'
import { cancelRuns } from './cancel.ts'
import { resumeRun } from './resume.ts'
import { decideOutcome } from './undecided.ts'

const gate = Promise.withResolvers<void>()
const ledger: string[] = []
const refunds = { count: 0 }
const down = { message: 'Down for a while.', isRetryable: true }
const runs = await createTestRuns({
  tools: [
    testTool(
      'pay',
      async () => {
        ledger.push('paid')
        await gate.promise
        return { paid: true }
      },
      { effect: 'unsafe' },
    ),
    testTool('refund', async () => ({ refunded: ++refunds.count }), { effect: 'unsafe' }),
    testTool(
      'wait',
      (_args, { signal }) => new Promise((resolve) => signal.addEventListener('abort', () => resolve({}))),
      {
        effect: 'readonly',
      },
    ),
  ],
})
const { pool, clock, projectId } = runs
const settings = { cancel_drain: 50, grace_period: 1_000 }
await pool.query(`update projects set settings = settings || $2 where id = $1`, [projectId, settings])

let named = 0
async function agentWith(answers: Script, fields: object) {
  const name = `model ${++named}`
  runs.models.set(name, createScriptedModel(answers))
  return runs.createAgent({ name, model: { provider: 'test', name }, ...fields })
}
const spawning =
  (child: string): Script =>
  (_request, call) =>
    call === 1 ? { calls: [{ name: 'spawn_agent', args: { agent: child, input: 'Go.' } }] } : { text: 'done' }
const childOf = async (id: string) => {
  const { rows } = await pool.query<{
    id: string
    status: string
    pause_reason: string | null
    completed_at: Date | null
  }>(
    'select id, status, pause_reason, completed_at from agent_runs where parent_run_id = $1 order by created_at desc limit 1',
    [id],
  )
  return rows[0]
}

test('a run stands still while its sub-run waits, and has its time from then on', async () => {
  let isDown = true
  const child = await agentWith(() => (isDown ? { fail: down } : { text: 'child done' }), {})
  const parent = await agentWith(spawning(child.name), { tools: ['spawn_agent'], default_timeout: 30_000 })
  const { id } = await runs.start(parent)
  await until(async () => (await childOf(id))?.pause_reason === 'unavailable', 'the sub-run waits')
  await clock.advance(40_000)
  await until(async () => {
    const { rows } = await pool.query(`select from run_events where run_id = $1 and kind = 'run.stood_still'`, [id])
    return rows.length > 0
  }, 'the standstill is counted')
  assert.deepEqual([(await runs.get(id)).status, (await childOf(id))?.completed_at], ['running', null])
  isDown = false
  // The sub-run has tried once more by now. If it works during this jump of the clock, the jump counts for the timeout.
  for (let jumps = 0; jumps < 2 && (await runs.get(id)).completed_at === null; jumps++) {
    await until(
      async () => (await childOf(id))?.pause_reason === 'unavailable' || (await runs.get(id)).completed_at !== null,
      'it waits',
    )
    await clock.advance(10_000)
  }
  await until(async () => (await runs.get(id)).completed_at !== null, 'the run has ended')
  assert.deepEqual([(await runs.get(id)).status, (await childOf(id))?.status], ['completed', 'completed'])
})

test('an unsafe call of a sub-run that is cut off because the time of the run above is up is asked about', async () => {
  const child = await agentWith(
    (_request, call) => (call === 1 ? { calls: [{ name: 'pay', args: {} }] } : { text: 'x' }),
    {
      tools: ['pay'],
    },
  )
  const parent = await agentWith(spawning(child.name), { tools: ['spawn_agent'], default_timeout: 400 })
  const run = await runs.run(parent)
  assert.equal(run.pause_reason, 'timeout')
  await until(async () => (await childOf(run.id))?.completed_at != null, 'the sub-run has ended')
  const ended = await childOf(run.id)
  assert.equal(ended?.pause_reason, 'outcome_unknown')
  const { rows: tasks } = await pool.query<OutcomeTask>(`select * from tasks where run_id = $1`, [ended?.id])
  assert.equal(tasks.length, 1)
  const [task] = tasks
  assert.ok(task)
  await inTransaction(pool, (tx) => decideOutcome(tx, projectId, task, 'done'))
  runs.worker.onReady()
  await until(async () => (await childOf(run.id))?.status === 'completed', 'the sub-run has continued')
  assert.deepEqual(ledger, ['paid'])
})

test('the same spawn after a timeout continues the sub-run, whose calls stand', async () => {
  const child = await agentWith(
    (request) =>
      request.prompt.some(({ role }) => role === 'tool')
        ? { calls: [{ name: 'wait', args: {} }] }
        : { calls: [{ name: 'refund', args: {} }] },
    { tools: ['refund', 'wait'] },
  )
  const spawn = { calls: [{ name: 'spawn_agent', args: { agent: child.name, input: 'Go.' } }] }
  const parent = await agentWith((request) => (request.toolChoice === 'none' ? { text: 'late' } : spawn), {
    tools: ['spawn_agent'],
    default_timeout: 500,
  })
  const late = await runs.run(parent)
  assert.equal(late.pause_reason, 'timeout')
  const first = await childOf(late.id)
  runs.models.set(child.name, createScriptedModel([{ text: 'child done' }]))
  runs.models.set(
    parent.name,
    createScriptedModel((request) =>
      request.prompt.at(-1)?.role === 'tool' && JSON.stringify(request.prompt.at(-1)).includes('child done')
        ? { text: 'done' }
        : spawn,
    ),
  )
  const resumed = await inTransaction(pool, (tx) => resumeRun(tx, projectId, late.id, {}))
  runs.worker.onReady()
  assert.equal((await runs.finished(resumed.id)).status, 'completed')
  const second = await childOf(resumed.id)
  assert.notEqual(second?.id, first?.id)
  assert.equal((await runs.get(second?.id ?? '')).resumed_from, first?.id)
  assert.equal(refunds.count, 1)
})

test('a sub-run that people cancel with its parent is cancelled, and asked about when it is resumed', async () => {
  const child = await agentWith(
    (_request, call) => (call === 1 ? { calls: [{ name: 'pay', args: {} }] } : { text: 'x' }),
    {
      tools: ['pay'],
    },
  )
  const { id } = await runs.start(await agentWith(spawning(child.name), { tools: ['spawn_agent'] }))
  const before = ledger.length
  await until(() => Promise.resolve(ledger.length > before), 'the call has begun')
  await cancelRuns(runs, projectId, [id])
  await until(async () => (await runs.get(id)).completed_at !== null, 'the run has ended')
  assert.equal((await childOf(id))?.status, 'cancelled')
})
