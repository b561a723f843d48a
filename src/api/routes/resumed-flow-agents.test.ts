// Runs of agents that are flows: the next attempt at a task, and Resume, continue the flow run of the run before.
import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { createOrganisation, untilTrue } from '../../../test/kit/organisation.ts'
import { testTool } from '../../../test/kit/run-worker.ts'
import type { Agent } from '../../kernel/agent.ts'
import type { FlowRun } from '../../kernel/flow-run.ts'
import type { ModelRequest } from '../../kernel/model-call.ts'
import type { ForkedRun, Run, RunEffect } from '../../kernel/run.ts'
import type { Task } from '../../kernel/task.ts'

const ledger: string[] = []
const paid: string[] = []
let isFailing = true
let gate: Promise<unknown> | null = null
const noted = (name: string, effect: 'keyed' | 'unsafe') =>
  testTool(
    name,
    async () => {
      ledger.push(name)
      await gate
      return { receipt: ledger.length }
    },
    { effect },
  )
const org = await createOrganisation(
  { stuck_retry_limit: 1, poll_interval: 100 },
  {
    tools: [noted('refund', 'unsafe'), noted('notify', 'keyed')],
    functions: {
      pay_back: (_: unknown, { key }) => {
        paid.push(key)
        return { receipt: paid.length }
      },
      sum: ({ key, values }: { key: string; values: unknown[] }) => [key, values.length],
      fail: () => {
        if (isFailing) throw new Error('The bank is closed.')
        return 'ok'
      },
    },
  },
)

beforeEach(() => {
  ledger.length = 0
  paid.length = 0
  isFailing = true
  gate = null
})

const results = ({ prompt }: ModelRequest): number => prompt.filter(({ role }) => role === 'tool').length
const call = (name: string) => ({ calls: [{ name, args: {} }] })
const refunds = (): number => ledger.filter((name) => name === 'refund').length

let made = 0
async function flowAgent(work: (request: ModelRequest) => object): Promise<Agent> {
  const name = `payer-${++made}`
  await org.agent({ name, tools: ['refund', 'notify'] }, { work })
  const root = { type: 'task', id: 'pay', agent: name, input: 'Pay.' }
  assert.equal((await org.post('/flows', { name: `flow ${made}`, root })).status, 201)
  return org.createAgent(org.project.id, {
    name: `desk ${made}`,
    flow_type: 'flow',
    flow: `flow ${made}`,
    model: null,
  })
}
const ended = (runId: string): Promise<Run> =>
  untilTrue(async () => {
    const run = await org.read<Run>(`/runs/${runId}`)
    return run.completed_at === null ? null : run
  }, 'the run has ended')
async function asked<Body>(path: string, body: object): Promise<Body> {
  const answer = await org.call<Body>(`POST ${org.base}${path}`, { body, headers: { prefer: 'respond-async' } })
  assert.equal(answer.status, 202, answer.text)
  return answer.body
}

test('the next attempt of a flow agent asks before a leaf begins anew after a refund', async () => {
  let isLooping = true
  const agent = await flowAgent((request) =>
    results(request) === 0 && isLooping ? call('refund') : isLooping ? call('notify') : { text: 'Done.' },
  )
  const task = await org.give({ title: 'Refund A-1', assigned_to: agent.id })
  const question = await untilTrue(
    async () =>
      (await org.list<Task>('/tasks?kind=escalation&status=pending')).find(
        ({ metadata, title }) => metadata.kind === 'begin_anew' && title.includes('"pay"'),
      ),
    'people are asked',
  )
  assert.deepEqual(
    (question.metadata.calls as { tool: string }[]).map(({ tool }) => tool),
    ['refund', ...ledger.slice(1)],
  )
  isLooping = false
  await org.patch(`/tasks/${question.id}`, { status: 'completed', result: 'again' })
  await org.until(task.id, 'completed')
  assert.equal(refunds(), 1)
})

test('Resume of a cancelled flow agent waits for its flow run to end, and repeats no call', async () => {
  const opened = Promise.withResolvers<void>()
  gate = opened.promise
  const agent = await flowAgent((request) => (results(request) === 0 ? call('refund') : { text: 'Paid.' }))
  const run = await asked<Run>(`/agents/${agent.id}/trigger`, { input: 'x' })
  await untilTrue(async () => refunds() === 1, 'the refund is made')
  const flowRunId = (await org.read<Run>(`/runs/${run.id}`)).flow_run_id
  assert.equal((await org.post(`/runs/${run.id}/cancel`)).body.status, 'cancelled')
  const resumed = await asked<Run>(`/runs/${run.id}/resume`, {})
  const parkedAt = async () => {
    const sql = `select extract(epoch from at) * 1000 as at from run_events where run_id = $1 and kind = 'run.parked' order by seq`
    return (await org.pool.query<{ at: string }>(sql, [resumed.id])).rows.map(({ at }) => Number(at))
  }
  const [first = 0, , third = 0] = await untilTrue(async () => {
    const times = await parkedAt()
    return times.length >= 3 ? times : null
  }, 'the new run looks again')
  assert.ok(third - first >= 900, `it waited twice, ${third - first} ms in all`)
  assert.equal((await org.read<FlowRun>(`/flow-runs/${flowRunId}`)).status, 'running')
  opened.resolve()
  const end = await ended(resumed.id)
  assert.deepEqual([end.status, end.summary], ['completed', 'Paid.'])
  assert.equal((await org.read<FlowRun>(`/flow-runs/${end.flow_run_id}`)).resumed_from, flowRunId)
  assert.equal(refunds(), 1)
})

const leaf = (name: string, args: unknown) => ({ type: 'task', function: name, args })
/** An agent that is a flow of these steps. */
async function flowOf(...steps: object[]): Promise<Agent> {
  const name = `flow ${++made}`
  const stored = await org.post('/flows', { name, root: { type: 'sequential', steps } })
  assert.equal(stored.status, 201, JSON.stringify(stored.body))
  return org.createAgent(org.project.id, { name: `desk ${made}`, flow_type: 'flow', flow: name, model: null })
}

test('finished functions of a flow agent stand in its effects and in what a fork may repeat', async () => {
  const large = 'x'.repeat(20_000)
  const agent = await flowOf(
    leaf('pay_back', { amount: 40 }),
    leaf('pay_back', large),
    leaf('muster.identity', 1),
    {
      type: 'map_reduce',
      items: [
        ['a', 1],
        ['b', 2],
      ],
      workers: 1,
      map: leaf('muster.identity', '{{item.items}}'),
      reduce: 'sum',
    },
    leaf('fail', null),
  )
  const first = await ended((await asked<Run>(`/agents/${agent.id}/trigger`, { input: 'x' })).id)
  assert.equal(first.status, 'failed')
  isFailing = false
  const run = await ended((await asked<Run>(`/runs/${first.id}/resume`, {})).id)
  assert.equal(run.status, 'completed')
  const { items } = await org.read<{ items: RunEffect[] }>(`/runs/${run.id}/effects`)
  assert.deepEqual(
    items.map(({ tool, args, effect, outcome, run_id }) => [tool, args, effect, outcome, run_id]),
    [
      ['pay_back', { amount: 40 }, 'keyed', 'finished', first.id],
      ['pay_back', { truncated: true }, 'keyed', 'finished', first.id],
      ['sum', { key: 'a', values: [1] }, 'keyed', 'finished', first.id],
      ['sum', { key: 'b', values: [2] }, 'keyed', 'finished', first.id],
      ['fail', null, 'keyed', 'finished', run.id],
    ],
  )
  assert.deepEqual(
    items.slice(0, 2).map(({ key, result }) => [key, result]),
    [
      [paid[0], { receipt: 1 }],
      [paid[1], { receipt: 2 }],
    ],
  )
  const fork = await asked<ForkedRun>(`/runs/${run.id}/fork`, { after_step: 0 })
  await ended(fork.id)
  assert.deepEqual(
    fork.may_repeat.map(({ tool }) => tool),
    ['pay_back', 'pay_back', 'sum', 'sum', 'fail'],
  )
})

test('an agent that takes a task over from a flow is told the calls of its functions, and nobody is asked', async () => {
  const agent = await flowOf(leaf('pay_back', { amount: 40 }), leaf('fail', null))
  await org.patch('/settings', { stuck_retry_limit: 0 })
  const task = await org.give({ title: 'Refund A-2', assigned_to: agent.id })
  await org.until(task.id, 'blocked')
  const told: string[] = []
  const work = ({ prompt }: ModelRequest) => {
    told.push(JSON.stringify(prompt))
    return { text: 'Done.' }
  }
  const other = await org.agent({ name: 'other' }, { work })
  const escalations = await org.list<Task>('/tasks?kind=escalation')
  const stuck = escalations.find(({ metadata }) => metadata.blockedTaskId === task.id) ?? assert.fail('nobody was told')
  assert.match(stuck.description ?? '', /pay_back \{"amount":40\}.*idempotency key/)
  await org.patch(`/tasks/${task.id}`, { assigned_to: other.id, status: 'pending' })
  await org.until(task.id, 'completed')
  assert.match(told.at(0) ?? '', /These calls have been made and stand:.*pay_back/)
  assert.equal(paid.length, 1)
})
