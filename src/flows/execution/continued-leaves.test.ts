// Retries of leaves and patterns, and resumed flow runs, continue: calls that took effect are not made again.
import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { createTestFlows } from '../../../test/kit/flows.ts'
import { testTool } from '../../../test/kit/run-worker.ts'
import { createScriptedModel, type Script } from '../../../test/kit/scripted-model.ts'
import { until } from '../../../test/kit/until.ts'
import type { Db } from '../../db/pool.ts'
import { inTransaction } from '../../db/transaction.ts'
import { restartTimers, wakeWaiting } from '../../journal/wake.ts'
import type { ModelRequest } from '../../kernel/model-call.ts'
import { systemActor } from '../../kernel/principal.ts'
import type { Task } from '../../kernel/task.ts'
import { endHeld } from '../../runs/held-run.ts'
import { listTasks } from '../../tasks/tasks.ts'
import { updateTask } from '../../tasks/update-task.ts'
import { type BuiltInNode, builtInPatterns } from '../machine/built-in-patterns.ts'
import { cancelFlow } from './cancel.ts'
import { flowToResume } from './resume-flow.ts'
import { startFlow } from './start.ts'

const ledger: { tool: string; args: unknown; key: string }[] = []
const calls: { name: string; key: string; attempt: number }[] = []
const broken = new Set<string>()
const noted = (name: string, effect: 'keyed' | 'unsafe') =>
  testTool(
    name,
    async (args, { key }) => {
      ledger.push({ tool: name, args, key })
      return { receipt: ledger.length }
    },
    { effect },
  )
const counted =
  (name: string) =>
  (_input: unknown, { key, attempt }: { key: string; attempt: number }) => {
    calls.push({ name, key, attempt })
    if (broken.has(name)) throw new Error(`${name} is broken`)
    return `${name} done`
  }
const flows = await createTestFlows({
  tools: [noted('refund', 'unsafe'), noted('notify', 'keyed')],
  functions: { one: counted('one'), two: counted('two'), three: counted('three') },
})
const { pool, projectId } = flows

beforeEach(() => {
  ledger.length = 0
  calls.length = 0
  broken.clear()
})

let named = 0
const results = ({ prompt }: ModelRequest): number => prompt.filter(({ role }) => role === 'tool').length
const failing = { fail: { message: 'The provider is broken.', isRetryable: false } }
const call = (name: string, args: unknown = {}) => ({ calls: [{ name, args }] })
const agentWith = async (script: Script) => {
  const name = `worker ${++named}`
  flows.models.set(name, createScriptedModel(script))
  await flows.createAgent({ name, tools: ['refund', 'notify'], model: { provider: 'test', name } })
  return name
}
const resume = async (flowRunId: string, options = {}) => {
  const id = await inTransaction(pool, async (tx) => {
    const run = await flowToResume(tx, projectId, flowRunId, options)
    return startFlow(tx, run, systemActor, builtInPatterns)
  })
  flows.flowWorker.poke()
  return flows.ended(id)
}
const questions = async (): Promise<Task[]> =>
  (await listTasks(pool, projectId, { kind: 'escalation', status: 'pending' }, { limit: 50 })).items
const f = (name: string, more = {}) => ({ type: 'task', id: name, function: name, ...more }) as const
const runsOf = async (flowRunId: string) =>
  (
    await pool.query<{ id: string; resumed_from: string | null; step_count: number; trigger: { type: string } }>(
      'select id, resumed_from, step_count, trigger from agent_runs where flow_run_id = $1 order by created_at, id',
      [flowRunId],
    )
  ).rows

test('a retried agent leaf continues its run: the refund is made once, under one key', async () => {
  let failures = 0
  const agent = await agentWith((request) =>
    results(request) === 0 ? call('refund', { order: 1 }) : ++failures === 1 ? failing : { text: 'Refunded.' },
  )
  const flow = await flows.play({ type: 'task', agent, input: 'Go.', retry: { max_retries: 1, backoff: 0 } })
  assert.deepEqual([flow.status, flow.output], ['completed', 'Refunded.'])
  const [first, second] = await runsOf(flow.id)
  assert.deepEqual([second?.resumed_from, second?.step_count, second?.trigger.type], [first?.id, 2, 'flow'])
  assert.equal(ledger.length, 1)
})

test('a retried pattern keeps its finished leaves and begins the others', async () => {
  let tries = 0
  flows.functions.set('fragile', () => {
    if (++tries === 1) throw new Error('not yet')
    return 'now'
  })
  const agent = await agentWith((request) => (results(request) === 0 ? call('refund') : { text: 'Paid.' }))
  const root: BuiltInNode = {
    type: 'sequential',
    retry: { max_retries: 1, backoff: 0 },
    steps: [
      f('one'),
      { type: 'task', id: 'pay', agent, input: 'Pay.' },
      { type: 'task', id: 'last', function: 'fragile' },
    ],
  }
  const flow = await flows.play(root)
  assert.deepEqual([flow.status, flow.output], ['completed', 'now'])
  assert.equal(calls.length, 1)
  assert.equal(ledger.length, 1)
  assert.equal(flow.progress.completed, 5, 'two leaves are told twice, in both lives')
})

test('a resumed flow run takes over finished leaves, and functions keep their keys', async () => {
  broken.add('two')
  const root: BuiltInNode = { type: 'sequential', steps: [f('one'), f('two'), f('three')] }
  const failed = await flows.play(root)
  assert.equal(failed.status, 'failed')
  broken.clear()
  const resumed = await resume(failed.id)
  assert.deepEqual([resumed.status, resumed.output], ['completed', 'three done'])
  assert.deepEqual(
    calls.map(({ name }) => name),
    ['one', 'two', 'two', 'three'],
  )
  const [, first, second] = calls
  assert.equal(first?.key, second?.key)
  await assert.rejects(resume(failed.id), {
    code: 'CONFLICT',
    details: { flow_run_id: resumed.id, run_id: resumed.id },
  })
  await assert.rejects(resume(resumed.id), { code: 'CONFLICT' })
})

test('a task that passes to another flow has other keys for other functions and arguments', async () => {
  const keyScope = 'task:1:flow'
  const keysOf = async (root: BuiltInNode): Promise<string[]> => {
    calls.length = 0
    const run = { projectId, flowId: null, root, input: null, timeoutMs: 60_000, workers: null, keyScope }
    const id = await inTransaction(pool, async (tx) => startFlow(tx, run, systemActor, builtInPatterns))
    flows.flowWorker.poke()
    await flows.ended(id)
    return calls.map(({ key }) => key)
  }
  const leaf = (name: string, args: unknown): BuiltInNode => ({ type: 'task', function: name, args })
  const [first] = await keysOf(leaf('one', { amount: '40' }))
  assert.deepEqual(await keysOf(leaf('one', { amount: '40' })), [first], 'the same call has the same key')
  const [other] = await keysOf(leaf('two', { amount: '40' }))
  const [more] = await keysOf(leaf('one', { amount: '41' }))
  assert.equal(new Set([first, other, more]).size, 3)
  const mapped = await keysOf({ type: 'map_reduce', items: ['a', 'a'], workers: 2, map: 'one', reduce: 'two' })
  assert.equal(new Set(mapped).size, 3, 'equal items are two calls')
  const stages: BuiltInNode = {
    type: 'pipeline',
    source: ['a', 'a'],
    stages: [{ type: 'task', function: 'one' }],
    on_error: 'stop',
  }
  assert.equal(new Set(await keysOf(stages)).size, 2)
})

test('a flow run that was cancelled before it took a leaf over hands on the leaves of the one before', async () => {
  broken.add('two')
  const failed = await flows.play({ type: 'sequential', steps: [f('one'), f('two')] })
  broken.clear()
  const second = await inTransaction(pool, async (tx) => {
    const id = await startFlow(tx, await flowToResume(tx, projectId, failed.id), systemActor, builtInPatterns)
    assert.equal(await cancelFlow(tx, projectId, id, systemActor), true)
    return id
  })
  flows.flowWorker.poke()
  assert.equal((await flows.ended(second)).status, 'cancelled')
  assert.equal((await resume(second)).status, 'completed')
  assert.deepEqual(
    calls.map(({ name }) => name),
    ['one', 'two', 'two'],
  )
})

test('a resumed flow run continues the runs of its agents', async () => {
  let isBroken = true
  const agent = await agentWith((request) =>
    results(request) === 0 ? call('refund', { order: 9 }) : isBroken ? failing : { text: 'Refunded.' },
  )
  const root: BuiltInNode = {
    type: 'parallel',
    branches: [f('one'), { type: 'task', id: 'pay', agent, input: 'Pay.' }],
  }
  const first = await flows.play(root)
  assert.equal(first.status, 'partial')
  isBroken = false
  const resumed = await resume(first.id)
  assert.deepEqual([resumed.status, resumed.output], ['completed', ['one done', 'Refunded.']])
  assert.equal(calls.length, 1)
  assert.equal(ledger.length, 1)
  const [before] = await runsOf(first.id)
  const [after] = await runsOf(resumed.id)
  assert.equal(after?.resumed_from, before?.id)
})

test('a resumed pipeline works on the items that are left', async () => {
  const seen: number[] = []
  flows.functions.set('stage', (item) => {
    if (item === 3 && broken.has('stage')) throw new Error('broken at 3')
    seen.push(Number(item))
    return Number(item) * 10
  })
  broken.add('stage')
  const root: BuiltInNode = {
    type: 'pipeline',
    source: [1, 2, 3, 4],
    stages: [{ type: 'task', function: 'stage' }],
    on_error: 'stop',
  }
  const failed = await flows.play(root)
  assert.equal(failed.status, 'failed')
  broken.clear()
  const resumed = await resume(failed.id)
  assert.deepEqual([resumed.status, resumed.output], ['completed', [10, 20, 30, 40]])
  assert.deepEqual(seen, [1, 2, 3, 4])
})

test('a pipeline of agents continues the run of the item that failed', async () => {
  let isBroken = true
  const agent = await agentWith((request) => {
    if (results(request) === 0) return call('refund', { item: JSON.stringify(request.prompt.at(1)) })
    return isBroken && JSON.stringify(request.prompt).includes('second') ? failing : { text: 'ok' }
  })
  const root: BuiltInNode = {
    type: 'pipeline',
    source: ['first', 'second', 'third'],
    stages: [{ type: 'task', agent, input: '{{item}}' }],
    on_error: 'stop',
  }
  const failed = await flows.play(root)
  assert.equal(failed.status, 'failed')
  isBroken = false
  const resumed = await resume(failed.id)
  assert.deepEqual([resumed.status, resumed.output], ['completed', ['ok', 'ok', 'ok']])
  assert.equal(ledger.length, 3)
})

const looping =
  (isLooping: () => boolean): Script =>
  (request) => {
    if (!isLooping()) return { text: 'Done.' }
    return results(request) === 0 ? call('refund') : call('notify')
  }

/** A person answers whether the leaf may begin anew. */
async function answer(asked: Task, decision: 'again' | 'stop'): Promise<void> {
  const onChanged = async (tx: Db): Promise<void> => {
    if (decision === 'stop') await endHeld(tx, flows.journal, asked.run_id ?? '')
    else await wakeWaiting(tx, asked.run_id ?? '', 'human')
  }
  const given = { actor: systemActor, lockRun: async () => {}, onChanged }
  await updateTask(pool, projectId, asked.id, { status: 'completed', result: decision }, given)
  flows.worker.onReady()
}

for (const decision of ['again', 'stop'] as const) {
  test(`a leaf that must begin anew after a refund asks first: ${decision}`, async () => {
    let isLooping = true
    const agent = await agentWith(looping(() => isLooping))
    const root: BuiltInNode = { type: 'task', id: 'pay', agent, input: 'Pay.', retry: { max_retries: 1, backoff: 0 } }
    const id = await flows.startFlow(root)
    let question: Task | undefined
    await until(async () => {
      question = (await questions()).find(({ metadata }) => metadata.flow_run_id === id)
      return question !== undefined
    }, 'people are asked')
    const asked = question ?? assert.fail()
    assert.equal(asked.metadata.kind, 'begin_anew')
    assert.equal((asked.metadata.calls as { tool: string }[])[0]?.tool, 'refund')
    // A changed limit of waits wakes runs that sleep, but not the one that is held.
    assert.equal(await restartTimers(pool, projectId), 0)
    isLooping = false
    await answer(asked, decision)
    const flow = await flows.ended(id)
    assert.equal(flow.status, decision === 'again' ? 'completed' : 'failed')
    assert.equal(ledger.filter(({ tool }) => tool === 'refund').length, 1)
    if (decision === 'again') {
      const model = flows.models.get(agent) as ReturnType<typeof createScriptedModel>
      assert.match(JSON.stringify(model.requests.at(-1)?.prompt), /These calls have been made and stand:.*refund/)
    } else assert.match(flow.error ?? '', /does not begin anew/)
  })
}

test('after a stop no retry begins anew, and a resumed flow run continues the history', async () => {
  let isLooping = true
  const agent = await agentWith((request) => {
    if (results(request) === 0) return call('refund')
    return isLooping ? call('notify') : { text: 'Done.' }
  })
  const root: BuiltInNode = { type: 'task', id: 'pay', agent, input: 'Pay.', retry: { max_retries: 3, backoff: 0 } }
  const id = await flows.startFlow(root)
  const asking = async () => (await questions()).find(({ metadata }) => metadata.flow_run_id === id)
  await until(async () => (await asking()) !== undefined, 'people are asked')
  await answer((await asking()) ?? assert.fail(), 'stop')
  const stopped = await flows.ended(id)
  assert.equal(stopped.status, 'failed')
  assert.match(stopped.error ?? '', /does not begin anew/)
  isLooping = false
  const resumed = await resume(id)
  assert.deepEqual([resumed.status, resumed.output], ['completed', 'Done.'])
  assert.equal(ledger.filter(({ tool }) => tool === 'refund').length, 1)
  const [looped] = await runsOf(id)
  const [continued] = await runsOf(resumed.id)
  assert.equal(continued?.resumed_from, looped?.id)
})

test('a stop holds in its flow run; a person who resumes it is asked once more', async () => {
  let isBroken = true
  const script: Script = (request) =>
    isBroken && results(request) === 0 ? call('refund') : isBroken ? failing : { text: 'Done.' }
  const agent = await agentWith(script)
  const failed = await flows.play({ type: 'task', id: 'pay', agent, input: 'Pay.' })
  assert.equal(failed.status, 'failed')
  isBroken = false
  // Another agent of the same name does the leaf from now on.
  await pool.query(`update agents set name = $2 || ' before' where project_id = $1 and name = $2`, [projectId, agent])
  await flows.createAgent({ name: agent, tools: ['refund'], model: { provider: 'test', name: agent } })
  const beginResume = async (flowRunId: string): Promise<{ id: string; asked: Task }> => {
    const id = await inTransaction(pool, async (tx) =>
      startFlow(tx, await flowToResume(tx, projectId, flowRunId), systemActor, builtInPatterns),
    )
    flows.flowWorker.poke()
    const asked = await askedOrEnded(id)
    return { id, asked: asked === 'ended' ? assert.fail('nobody was asked') : asked }
  }
  const second = await beginResume(failed.id)
  await answer(second.asked, 'stop')
  assert.match((await flows.ended(second.id)).error ?? '', /does not begin anew/)
  const third = await beginResume(second.id)
  assert.equal(third.asked.id, second.asked.id, 'the question is open again')
  await answer(third.asked, 'again')
  const done = await flows.ended(third.id)
  assert.deepEqual([done.status, done.output], ['completed', 'Done.'])
  assert.equal(ledger.length, 1)
})

/** Waits until people are asked about a flow run, or until it has ended. */
async function askedOrEnded(flowRunId: string): Promise<Task | 'ended'> {
  let found: Task | 'ended' | undefined
  await until(async () => {
    found = (await questions()).find(({ metadata }) => metadata.flow_run_id === flowRunId)
    if (found === undefined && !['queued', 'running'].includes((await flows.read(flowRunId)).status)) found = 'ended'
    return found !== undefined
  }, 'people are asked, or the flow run has ended')
  return found ?? assert.fail()
}

test('a person who resumes a pipeline continues the item that looped, and is asked nothing', async () => {
  let isLooping = true
  const agent = await agentWith((request) => {
    if (results(request) === 0) return call('refund')
    return isLooping ? call('notify') : { text: 'Done.' }
  })
  const root: BuiltInNode = {
    type: 'pipeline',
    source: [1],
    stages: [{ type: 'task', agent, input: 'Pay.' }],
    on_error: 'stop',
  }
  const failed = await flows.play(root)
  assert.equal(failed.status, 'failed')
  isLooping = false
  const resumed = await resume(failed.id)
  assert.deepEqual([resumed.status, resumed.output], ['completed', ['Done.']])
  assert.equal(ledger.filter(({ tool }) => tool === 'refund').length, 1)
})

test('a retry within a resumed flow run is no wish of a person: it asks before it begins anew', async () => {
  const agent = await agentWith((request) => (results(request) === 0 ? call('refund') : call('notify')))
  const pay = { type: 'task', id: 'pay', agent, input: 'Pay.' } as const
  const root: BuiltInNode = { type: 'sequential', steps: [pay], retry: { max_retries: 1, backoff: 0 } }
  const first = await flows.startFlow(root)
  const asked = await askedOrEnded(first)
  assert.ok(asked !== 'ended')
  await answer(asked, 'stop')
  await flows.ended(first)
  const id = await inTransaction(pool, async (tx) =>
    startFlow(tx, await flowToResume(tx, projectId, first), systemActor, builtInPatterns),
  )
  flows.flowWorker.poke()
  const again = await askedOrEnded(id)
  assert.ok(again !== 'ended', 'people are asked once more')
  await answer(again, 'stop')
  await flows.ended(id)
  assert.equal(ledger.filter(({ tool }) => tool === 'refund').length, 1)
})
