// A retry of a task continues: calls that took effect are not made again, whoever asks for the retry.
import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { createOrganisation, untilTrue } from '../../test/kit/organisation.ts'
import { testTool } from '../../test/kit/run-worker.ts'
import type { ModelRequest } from '../kernel/model-call.ts'
import type { Task } from '../kernel/task.ts'

/** The effects outside, as a bank would record them. */
const ledger: { tool: string; args: unknown; key: string }[] = []
const noted = (name: string, effect: 'keyed' | 'unsafe') =>
  testTool(
    name,
    async (args, { key }) => {
      ledger.push({ tool: name, args, key })
      return { receipt: ledger.length }
    },
    { effect },
  )

const org = await createOrganisation(
  { stuck_retry_limit: 1, poll_interval: 100 },
  { tools: [noted('refund', 'unsafe'), noted('notify', 'keyed')] },
)

beforeEach(() => void ledger.splice(0))

const results = ({ prompt }: ModelRequest): number => prompt.filter(({ role }) => role === 'tool').length
const failing = { fail: { message: 'The provider is broken.', isRetryable: false } }
const refund = { calls: [{ name: 'refund', args: { order: 'A-1' } }] }

const questionsAbout = async (taskId: string): Promise<Task[]> =>
  (await org.list<Task>('/tasks?kind=escalation')).filter((task) => task.metadata.task_id === taskId)

test('the next attempt continues the run before it, and a finished call is not made again', async () => {
  let broken = 0
  const agent = await org.agent(
    { tools: ['refund'] },
    { work: (request) => (results(request) === 0 ? refund : ++broken === 1 ? failing : { text: 'Refunded.' }) },
  )
  const given = await org.give({ title: 'Refund A-1', assigned_to: agent.id })
  assert.equal((await org.until(given.id, 'completed')).result, 'Refunded.')
  const [second, first] = await org.runsOf(agent.id)
  assert.deepEqual([first?.status, second?.resumed_from], ['failed', first?.id])
  assert.deepEqual([second?.trigger.type, second?.trigger.task_id], ['task', given.id])
  assert.ok((second?.step_count ?? 0) > (first?.step_count ?? 0))
  assert.equal(ledger.length, 1)
})

test('the question about a stuck agent names the calls, and its answer repeats none', async () => {
  let isBroken = true
  const agent = await org.agent(
    { tools: ['refund'] },
    { work: (request) => (results(request) === 0 ? refund : isBroken ? failing : { text: 'Done.' }) },
  )
  const given = await org.give({ title: 'Refund and get stuck', assigned_to: agent.id })
  await org.until(given.id, 'blocked')
  const [plea] = (await org.list<Task>('/tasks?kind=escalation')).filter(
    ({ metadata }) => metadata.blockedTaskId === given.id,
  )
  assert.match(
    plea?.description ?? '',
    /refund {"order":"A-1"} → {"receipt":1} \(\d{4}-.*Z, idempotency key [0-9a-f-]{36}\)/,
  )
  assert.ok(plea?.description.includes(ledger[0]?.key ?? 'no key'))
  isBroken = false
  await org.patch(`/tasks/${plea?.id}`, { status: 'completed', result: 'Try once more.' })
  await org.until(given.id, 'completed')
  assert.match(JSON.stringify(agent.requests.at(-1)?.prompt), /The people in charge: Try once more\./)
  assert.equal(ledger.length, 1)
})

test('a person who sets a blocked task to pending continues it, also after a doom loop', async () => {
  await org.patchSettings({ stuck_retry_limit: 0 })
  let isLooping = true
  const agent = await org.agent(
    { tools: ['refund', 'notify'] },
    {
      work: (request) => {
        if (results(request) === 0) return refund
        return isLooping ? { calls: [{ name: 'notify', args: {} }] } : { text: 'Done.' }
      },
    },
  )
  const given = await org.give({ title: 'Loop', assigned_to: agent.id })
  assert.match((await org.until(given.id, 'blocked')).error_message ?? '', /doom loop/)
  const [first] = await org.runsOf(agent.id)
  assert.equal((await org.post(`/runs/${first?.id}/resume`, {})).status, 409)
  isLooping = false
  await org.patch(`/tasks/${given.id}`, { status: 'pending' })
  await org.until(given.id, 'completed')
  const [second] = await org.runsOf(agent.id)
  assert.equal(second?.resumed_from, first?.id)
  assert.equal(ledger.filter(({ tool }) => tool === 'refund').length, 1)
  await org.patchSettings({ stuck_retry_limit: 1 })
})

test('a history that cannot be continued begins anew only when a person says so', async () => {
  let isLooping = true
  const agent = await org.agent(
    { tools: ['refund', 'notify'] },
    {
      work: (request) => {
        if (!isLooping) return { text: 'Done.' }
        return results(request) === 0 ? refund : { calls: [{ name: 'notify', args: {} }] }
      },
    },
  )
  const given = await org.give({ title: 'Loop and ask', assigned_to: agent.id })
  const question = await untilTrue(async () => (await questionsAbout(given.id))[0], 'people are asked')
  const [run] = await org.runsOf(agent.id)
  assert.deepEqual([question.metadata.kind, question.metadata.run_id], ['begin_anew', run?.id])
  const [call] = question.metadata.calls as Record<string, unknown>[]
  const { at, ...facts } = call ?? {}
  const told = {
    tool: 'refund',
    args: { order: 'A-1' },
    result: { receipt: 1 },
    key: ledger[0]?.key,
    is_finished: true,
  }
  assert.deepEqual(facts, told)
  assert.ok(Date.parse(String(at)) > 0)
  assert.equal((await org.task(given.id)).status, 'pending')
  assert.equal((await org.patch(`/tasks/${question.id}`, { status: 'completed', result: 'maybe' })).status, 400)
  assert.equal((await org.patch(`/tasks/${question.id}`, { status: 'cancelled' })).status, 409)
  assert.equal(ledger.filter(({ tool }) => tool === 'refund').length, 1)
  isLooping = false
  assert.equal((await org.patch(`/tasks/${question.id}`, { status: 'completed', result: 'again' })).status, 200)
  await org.until(given.id, 'completed')
  const [second] = await org.runsOf(agent.id)
  assert.equal(second?.resumed_from, null)
  const prompt = JSON.stringify(agent.requests.at(-1)?.prompt)
  assert.match(prompt, /These calls have been made and stand:.*refund.*A-1.*receipt/)
})

test('a task that passes to another agent asks first, and stop blocks it', async () => {
  const slow = Promise.withResolvers<void>()
  const payer = await org.agent(
    { tools: ['refund'] },
    { work: (request) => (results(request) === 0 ? refund : { text: 'slow', waitFor: slow.promise }) },
  )
  const other = await org.agent({ tools: ['refund'] }, { work: refund })
  const given = await org.give({ title: 'Pass it on', assigned_to: payer.id })
  await untilTrue(async () => payer.requests.length === 3, 'the refund was made')
  await org.patch(`/tasks/${given.id}`, { assigned_to: other.id })
  slow.resolve()
  const question = await untilTrue(async () => (await questionsAbout(given.id))[0], 'people are asked')
  assert.equal(other.requests.length, 0)
  await org.patch(`/tasks/${question.id}`, { status: 'completed', result: 'stop' })
  const blocked = await org.until(given.id, 'blocked')
  assert.match(blocked.error_message ?? '', /does not begin anew/)
  assert.equal((await org.agentNow(other.id)).status, 'active')
  assert.equal(ledger.length, 1)
})

test('a task that passes on after keyed calls alone begins anew at once, and repeats them under their keys', async () => {
  const slow = Promise.withResolvers<void>()
  const notify = { calls: [{ name: 'notify', args: { to: 'you' } }] }
  const first = await org.agent(
    { tools: ['notify'] },
    { work: (request) => (results(request) === 0 ? notify : { text: 'slow', waitFor: slow.promise }) },
  )
  const second = await org.agent(
    { tools: ['notify'] },
    { work: (request) => (results(request) === 0 ? notify : { text: 'Done.' }) },
  )
  const given = await org.give({ title: 'Tell them', assigned_to: first.id })
  await untilTrue(async () => first.requests.length === 3, 'they were told')
  await org.patch(`/tasks/${given.id}`, { assigned_to: second.id })
  slow.resolve()
  await org.until(given.id, 'completed')
  assert.equal(ledger.length, 2)
  assert.equal(ledger[0]?.key, ledger[1]?.key)
})

test('a question about beginning anew is withdrawn when its task is cancelled', async () => {
  const agent = await org.agent(
    { tools: ['refund', 'notify'] },
    { work: (request) => (results(request) === 0 ? refund : { calls: [{ name: 'notify', args: {} }] }) },
  )
  const given = await org.give({ title: 'Given up', assigned_to: agent.id })
  const question = await untilTrue(async () => (await questionsAbout(given.id))[0], 'people are asked')
  await org.patch(`/tasks/${given.id}`, { status: 'cancelled' })
  assert.equal((await org.task(question.id)).status, 'cancelled')
})

test('a task that passes on again while people are asked, or after a stop, is asked about again', async () => {
  const slow = Promise.withResolvers<void>()
  const payer = await org.agent(
    { tools: ['refund'] },
    { work: (request) => (results(request) === 0 ? refund : { text: 'slow', waitFor: slow.promise }) },
  )
  const second = await org.agent({ tools: ['refund'] }, { work: refund })
  const third = await org.agent({ tools: ['refund'] }, { work: 'Done.' })
  const given = await org.give({ title: 'Pass it on and on', assigned_to: payer.id })
  await untilTrue(async () => payer.requests.length === 3, 'the refund was made')
  await org.patch(`/tasks/${given.id}`, { assigned_to: second.id })
  slow.resolve()
  const open = async () => (await questionsAbout(given.id)).find(({ status }) => status === 'pending')
  await untilTrue(open, 'people are asked')
  await org.patch(`/tasks/${given.id}`, { assigned_to: third.id })
  const again = await untilTrue(open, 'people are asked about the third agent')
  await org.patch(`/tasks/${again.id}`, { status: 'completed', result: 'stop' })
  await org.until(given.id, 'blocked')
  await org.patch(`/tasks/${given.id}`, { assigned_to: second.id })
  await untilTrue(open, 'people are asked after a stop')
  await org.patch(`/tasks/${given.id}`, { assigned_to: third.id })
  const last = await untilTrue(open, 'people are asked for the last time')
  await org.patch(`/tasks/${last.id}`, { status: 'completed', result: 'again' })
  await org.until(given.id, 'completed')
  assert.equal(ledger.length, 1)
})
