// A run that failed or was cancelled is resumed after its last finished step: calls that took effect are not repeated.
import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { createTestRuns, testTool } from '../../test/kit/run-worker.ts'
import { createScriptedModel, type Script, type ScriptedAnswer } from '../../test/kit/scripted-model.ts'
import type { ModelRequest } from '../kernel/model-call.ts'
import { cancelRuns } from './cancel.ts'
import { lostTools } from './continue-run.ts'
import { listEffects } from './effects.ts'
import { forkRun, mayRepeat } from './fork.ts'
import { resumeRun } from './resume.ts'
import { startRun } from './start.ts'

const ledger: { tool: string; args: unknown; key: string }[] = []
let hold: Promise<void> | null = null
const noted = (name: string, effect: 'readonly' | 'keyed' | 'unsafe') =>
  testTool(
    name,
    async (args, { key }) => {
      ledger.push({ tool: name, args, key })
      await hold
      return { receipt: ledger.length }
    },
    { effect },
  )
const runs = await createTestRuns({
  tools: [
    noted('look', 'readonly'),
    noted('notify', 'keyed'),
    noted('refund', 'unsafe'),
    noted('mcp_bank_refund', 'keyed'),
    noted('task_list', 'keyed'),
  ],
})
const { pool, projectId } = runs

beforeEach(() => {
  ledger.length = 0
  hold = null
})

const script = (answers: readonly ScriptedAnswer[] | Script, name = 'script') => {
  const model = createScriptedModel(answers)
  runs.models.set(name, model)
  return model
}
const results = ({ prompt }: ModelRequest): number => prompt.filter(({ role }) => role === 'tool').length
const failing = { fail: { message: 'The provider is broken.', isRetryable: false } }
const call = (name: string, args: unknown = {}) => ({ calls: [{ name, args }] })
const resume = async (runId: string, input = {}) => {
  const { id } = await resumeRun(pool, projectId, runId, input)
  runs.worker.onReady()
  return runs.finished(id)
}

test('a failed run is resumed after its last finished step', async () => {
  script((request) => (results(request) === 0 ? call('refund', { order: 1 }) : failing))
  const failed = await runs.run(await runs.createAgent({ tools: ['refund'] }), { input: 'Refund.' })
  assert.deepEqual([failed.status, failed.step_count], ['failed', 1])
  const model = script([{ text: 'Refunded.' }])
  const resumed = await resume(failed.id)
  assert.deepEqual([resumed.status, resumed.resumed_from, resumed.step_count], ['completed', failed.id, 2])
  assert.match(JSON.stringify(model.requests[0]?.prompt), /Refund\..*"receipt":1/)
  assert.equal(ledger.length, 1)
  assert.equal((await runs.get(failed.id)).resumed_as, resumed.id)
})

test('a chain has one end: a second resume is refused and names the newest run', async () => {
  script([failing])
  const failed = await runs.run(await runs.createAgent())
  script([failing])
  const second = await resume(failed.id)
  script([{ text: 'Done.' }])
  const third = await resume(second.id)
  for (const id of [failed.id, second.id]) {
    await assert.rejects(resumeRun(pool, projectId, id, {}), { code: 'CONFLICT', details: { run_id: third.id } })
  }
})

test('a call that a cancel cut off keeps its key if it is keyed, and is asked about if it is unsafe', async () => {
  const gate = Promise.withResolvers<void>()
  hold = gate.promise
  script((request) =>
    results(request) === 0
      ? {
          calls: [
            { name: 'notify', args: {} },
            { name: 'refund', args: {} },
          ],
        }
      : { text: 'Done.' },
  )
  const { id } = await runs.start(await runs.createAgent({ tools: ['notify', 'refund'] }))
  while (ledger.length < 2) await new Promise(setImmediate)
  // The process dies with the calls, and the run is cancelled before another one takes it.
  await pool.query(`update agent_runs set owner = null, fence = fence + 1, ready_at = null where id = $1`, [id])
  await cancelRuns(runs, projectId, [id])
  gate.resolve()
  const cancelled = await runs.finished(id)
  assert.equal(cancelled.status, 'cancelled')
  const resumed = await resume(id)
  assert.deepEqual([resumed.status, resumed.pause_reason], ['paused', 'outcome_unknown'])
  const notified = ledger.filter(({ tool }) => tool === 'notify')
  assert.deepEqual([notified.length, notified[0]?.key === notified[1]?.key], [2, true])
  assert.equal(ledger.filter(({ tool }) => tool === 'refund').length, 1)
  const settled = await resume(resumed.id, { outcome: 'done' })
  assert.equal(settled.status, 'completed')
})

test('a run that was cancelled before it began is resumed with its input', async () => {
  const model = script([{ text: 'Done.' }])
  const agent = await runs.createAgent()
  const { id } = await startRun(pool, projectId, agent.id, { input: 'The task.', trigger: { type: 'manual' } })
  await cancelRuns(runs, projectId, [id])
  await runs.finished(id)
  const before = model.requests.length
  const resumed = await resume(id)
  assert.equal(resumed.status, 'completed')
  assert.match(JSON.stringify(model.requests.at(before)?.prompt), /The task\./)
})

test('the same call has the same key in every run of a chain; a call after it has another', async () => {
  script((request) => (results(request) === 0 ? call('notify', { b: 1, a: 2 }) : failing))
  const agent = await runs.createAgent({ tools: ['notify'] })
  const failed = await runs.run(agent)
  script((request) => (results(request) === 1 ? call('notify', { a: 2, b: 1 }) : { text: 'Done.' }))
  await resume(failed.id)
  assert.equal(ledger.length, 2)
  assert.notEqual(ledger[0]?.key, ledger[1]?.key, 'it is the second such call of the history')
})

test('effects list finished calls with their keys, those of sub-runs too', async () => {
  script((request) => (results(request) === 0 ? call('refund', { order: 7 }) : { text: 'Paid.' }), 'payer')
  await runs.createAgent({ name: 'payer', tools: ['refund'], model: { provider: 'test', name: 'payer' } })
  script((request) =>
    results(request) === 0
      ? {
          calls: [
            { name: 'notify', args: {} },
            { name: 'spawn_agent', args: { agent: 'payer', input: 'Pay.' } },
          ],
        }
      : failing,
  )
  const failed = await runs.run(await runs.createAgent({ tools: ['notify', 'spawn_agent', 'look'] }))
  assert.equal(failed.status, 'failed')
  const { items: effects } = await listEffects(pool, failed.id)
  assert.deepEqual(effects.map(({ tool, outcome }) => [tool, outcome]).sort(), [
    ['notify', 'finished'],
    ['refund', 'finished'],
  ])
  const keys = new Set(ledger.map(({ key }) => key))
  assert.ok(effects.every(({ key }) => keys.has(key)))
  const script2 = script([{ text: 'Done.' }])
  assert.equal((await resume(failed.id)).status, 'completed')
  assert.match(JSON.stringify(script2.requests[0]?.prompt), /Paid\./)
  assert.equal(ledger.length, 2)
})

test('a fork names the finished calls that it may repeat', async () => {
  script([call('notify', { nr: 1 }), call('look'), call('refund', { nr: 2 }), { text: 'Done.' }])
  const original = await runs.run(await runs.createAgent({ tools: ['notify', 'look', 'refund'] }))
  const named = async (afterStep: number) =>
    (await mayRepeat(pool, projectId, original.id, afterStep)).map(({ tool, args }) => [tool, args])
  assert.deepEqual(await named(0), [
    ['notify', { nr: 1 }],
    ['refund', { nr: 2 }],
  ])
  assert.deepEqual(await named(1), [['refund', { nr: 2 }]])
  assert.deepEqual(await named(3), [])
  script([call('refund', { nr: 2 }), { text: 'Done.' }])
  const fork = await forkRun(pool, projectId, original.id, { after_step: 2 })
  runs.worker.onReady()
  await runs.finished(fork.id)
  assert.equal(new Set(ledger.map(({ key }) => key)).size, ledger.length, 'a fork has keys of its own')
  const again = await mayRepeat(pool, projectId, fork.id, 0)
  assert.deepEqual(
    again.map(({ tool, args }) => [tool, args]),
    [
      ['notify', { nr: 1 }],
      ['refund', { nr: 2 }],
    ],
    'the history of a fork begins before the fork',
  )
})

test('sub-runs are resumed by the run above them, and alone only after it has ended', async () => {
  const gate = Promise.withResolvers<void>()
  script([call('refund'), failing], 'child')
  await runs.createAgent({ name: 'child', tools: ['refund'], model: { provider: 'test', name: 'child' } })
  script((request) =>
    results(request) === 0
      ? call('spawn_agent', { agent: 'child', input: 'Pay.' })
      : { text: 'waiting', waitFor: gate.promise },
  )
  const { id } = await runs.start(await runs.createAgent({ tools: ['spawn_agent'] }))
  const childOf = async () =>
    (await pool.query<{ id: string }>(`select id from agent_runs where parent_run_id = $1 and status = 'failed'`, [id]))
      .rows[0]?.id
  while (!(await childOf())) await new Promise((resolve) => setTimeout(resolve, 10))
  const child = (await childOf()) ?? ''
  await assert.rejects(resumeRun(pool, projectId, child, {}), { code: 'CONFLICT', details: { run_id: id } })
  gate.resolve()
  await runs.finished(id)
  script([{ text: 'Paid.' }], 'child')
  const resumed = await resume(child)
  assert.deepEqual([resumed.status, resumed.parent_run_id], ['completed', id])
  assert.equal(ledger.length, 1)
})

test('a sub-run that was cancelled twice with the run above it continues each time, and is given its input once', async () => {
  const child = script(
    (request) => (results(request) === 0 ? call('refund') : { text: '…', waitFor: 'abort' }),
    'twice',
  )
  await runs.createAgent({ name: 'twice', tools: ['refund'], model: { provider: 'test', name: 'twice' } })
  script((request) =>
    results(request) === 0 ? call('spawn_agent', { agent: 'twice', input: 'Pay once.' }) : { text: 'Done.' },
  )
  const first = await runs.start(await runs.createAgent({ tools: ['spawn_agent'] }))
  const requests = async (count: number) => {
    while (child.requests.length < count) await new Promise(setImmediate)
  }
  await requests(2)
  await cancelRuns(runs, projectId, [first.id])
  await runs.finished(first.id)
  const second = await resumeRun(pool, projectId, first.id, {})
  runs.worker.onReady()
  await requests(3)
  await cancelRuns(runs, projectId, [second.id])
  await runs.finished(second.id)
  const last = script([{ text: 'Paid.' }], 'twice')
  assert.equal((await resume(second.id)).status, 'completed')
  assert.equal(ledger.length, 1)
  assert.equal(JSON.stringify(last.requests[0]?.prompt).split('Pay once.').length - 1, 1)
})

test('a tool of a server is lost if the agent names other tools of the server alone', async () => {
  script([call('mcp_bank_refund'), { text: 'Done.' }])
  const agent = await runs.createAgent({ tools: ['mcp_bank_refund'] })
  const { id } = await runs.run(agent)
  const lost = (tools: string[]) => lostTools(pool, id, { id: agent.id, tools, steps: [], flow_type: 'single' })
  assert.deepEqual(await lost(['mcp:bank/list']), ['mcp_bank_refund'])
  assert.deepEqual(await lost(['mcp:bank/list', 'mcp:bank/refund']), [])
  assert.deepEqual(await lost(['mcp:bank/*']), [])
  assert.deepEqual(await lost(['mcp:ban/*']), ['mcp_bank_refund'])
})

test('the tools of seniors are lost only with the last subordinate', async () => {
  script([call('task_list'), { text: 'Done.' }])
  const agent = await runs.createAgent({ tools: ['task_list'] })
  const { id } = await runs.run(agent)
  const lost = () => lostTools(pool, id, { id: agent.id, tools: [], steps: [], flow_type: 'single' })
  assert.deepEqual(await lost(), ['task_list'])
  await runs.createAgent({ senior_id: agent.id })
  assert.deepEqual(await lost(), [])
})
