// Work that begins anew: a person decides first if, and only if, an unsafe call of the work was made or may have been.
import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { createOrganisation, untilTrue } from '../../test/kit/organisation.ts'
import { testTool } from '../../test/kit/run-worker.ts'
import type { ModelRequest } from '../kernel/model-call.ts'
import type { Run, RunEffects } from '../kernel/run.ts'
import { suggestedCall, type Task } from '../kernel/task.ts'

const ledger: string[] = []
const noted = (name: string, effect: 'keyed' | 'unsafe') =>
  testTool(name, async () => ({ receipt: ledger.push(name) }), { effect })
/** Takes effect and never answers. */
const deaf = testTool('deaf', () => new Promise(() => void ledger.push('deaf')), { effect: 'unsafe', timeoutMs: 50 })
const org = await createOrganisation(
  { stuck_retry_limit: 0, poll_interval: 100 },
  { tools: [noted('refund', 'unsafe'), noted('notify', 'keyed'), deaf] },
)

beforeEach(() => void ledger.splice(0))

const results = ({ prompt }: ModelRequest): number =>
  prompt.reduce((sum, { role, content }) => sum + (role === 'tool' ? content.length : 0), 0)
const call = (name: string, args: object = { order: 'A-1' }) => ({ calls: [{ name, args }] })
const failing = { fail: { message: 'The provider is broken.', isRetryable: false } }
const questionAbout = async (taskId: string): Promise<Task | undefined> =>
  (await org.list<Task>('/tasks?kind=escalation&status=pending')).find(({ metadata }) => metadata.task_id === taskId)
const suggestionOf = (run: Run | undefined) =>
  untilTrue(
    async () => (await org.list<Task>('/tasks?kind=suggestion&status=pending')).find((task) => task.run_id === run?.id),
    'the call waits for approval',
  )
const undecidedRun = (agentId: string, nth = 1): Promise<Run> =>
  untilTrue(async () => {
    const undecided = (await org.runsOf(agentId)).filter((run) => run.pause_reason === 'outcome_unknown')
    return undecided.length === nth && undecided[0]
  }, 'the outcome of a call is unknown')
const outcomeTasks = async (runId: string): Promise<Task[]> =>
  (await org.list<Task>('/tasks?kind=escalation')).filter(({ metadata }) => metadata.run_id === runId)

test('a call that waits for approval was not made: the task passes on at once', async () => {
  const first = await org.agent({ tools: ['refund'], require_approval: ['refund'] }, { work: call('refund') })
  const second = await org.agent({}, { work: 'Done.' })
  const given = await org.give({ title: 'Held', assigned_to: first.id })
  const run = await untilTrue(async () => (await org.runsOf(first.id))[0], 'the attempt began')
  await suggestionOf(run)
  assert.deepEqual(await org.read(`/runs/${run.id}/effects`), { items: [], next_cursor: null, truncated: false })
  await org.patch(`/tasks/${given.id}`, { assigned_to: second.id })
  await org.until(given.id, 'completed')
  assert.doesNotMatch(JSON.stringify(second.requests.at(-1)?.prompt), /These calls have been made/)
})

test('a call that people rejected was not made: the task passes on at once', async () => {
  const first = await org.agent(
    { tools: ['refund'], require_approval: ['refund'] },
    { work: (request) => (results(request) === 0 ? call('refund') : failing) },
  )
  const second = await org.agent({}, { work: 'Done.' })
  const given = await org.give({ title: 'Rejected', assigned_to: first.id })
  const run = await untilTrue(async () => (await org.runsOf(first.id))[0], 'the attempt began')
  await org.post(`/tasks/${(await suggestionOf(run)).id}/reject`, { reason: 'No.' })
  await org.until(given.id, 'blocked')
  await org.patch(`/tasks/${given.id}`, { assigned_to: second.id })
  await org.until(given.id, 'completed')
})

test('a held call of a fresh start tells that an earlier run of the work made the same call', async () => {
  const first = await org.agent(
    { tools: ['refund'] },
    { work: (request) => (results(request) === 0 ? call('refund') : failing) },
  )
  const second = await org.agent(
    { tools: ['refund'], require_approval: ['refund'] },
    { work: { calls: [...call('refund').calls, ...call('refund', { order: 'A-2' }).calls] } },
  )
  const given = await org.give({ title: 'Twice', assigned_to: first.id })
  await org.until(given.id, 'blocked')
  await org.patch(`/tasks/${given.id}`, { assigned_to: second.id })
  const question = await untilTrue(() => questionAbout(given.id), 'people are asked')
  await org.patch(`/tasks/${question.id}`, { status: 'completed', result: 'again' })
  const run = await untilTrue(async () => (await org.runsOf(second.id))[0], 'the work starts over')
  const held = await untilTrue(async () => {
    const all = await org.list<Task>('/tasks?kind=suggestion&status=pending')
    const ofRun = all.filter((task) => task.run_id === run.id)
    return ofRun.length === 2 && ofRun
  }, 'both calls wait for approval')
  const orderOf = (task: Task): unknown => (suggestedCall(task)?.args as { order?: string } | undefined)?.order
  for (const task of held) {
    const callId = encodeURIComponent(String(task.metadata.call_id))
    const same = await org.read<RunEffects>(`/runs/${run.id}/effects?same_as=${callId}`)
    const expected = orderOf(task) === 'A-1' ? [['refund', { receipt: 1 }, false]] : []
    assert.deepEqual(
      same.items.map(({ tool, result, run_id }) => [tool, result, run_id === run.id]),
      expected,
    )
  }
  assert.deepEqual((await org.read<RunEffects>(`/runs/${run.id}/effects`)).items, [])
})

test('an unsafe call is asked about however many calls followed it', async () => {
  const many = { calls: Array.from({ length: 1_001 }, (_, nr) => ({ name: 'notify', args: { nr } })) }
  const first = await org.agent(
    { tools: ['refund', 'notify'] },
    { work: (request) => (results(request) === 0 ? call('refund') : results(request) === 1 ? many : failing) },
  )
  const second = await org.agent({}, { work: 'Done.' })
  const given = await org.give({ title: 'Many', assigned_to: first.id })
  await org.until(given.id, 'blocked')
  await org.patch(`/tasks/${given.id}`, { assigned_to: second.id })
  const question = await untilTrue(() => questionAbout(given.id), 'people are asked')
  assert.ok((question.metadata.calls as { tool: string }[]).some(({ tool }) => tool === 'refund'))
  const [run] = await org.runsOf(first.id)
  const { items, truncated } = await org.read<RunEffects>(`/runs/${run?.id}/effects`)
  assert.deepEqual([items.length, truncated], [1_000, true])
})

test('the unsafe call of a subtask is asked about when the task above it passes on', async () => {
  const slow = Promise.withResolvers<void>()
  const lead = await org.agent(
    { name: 'Lead' },
    { delegation_decision: { delegate: true, subordinate: 'Payer', reasoning: 'It pays.' } },
  )
  await org.agent(
    { name: 'Payer', tools: ['refund'], senior_id: lead.id },
    { work: (request) => (results(request) === 0 ? call('refund') : { text: 'slow', waitFor: slow.promise }) },
  )
  const other = await org.agent({}, { work: 'Done.' })
  const given = await org.give({ title: 'Delegated', assigned_to: lead.id })
  await untilTrue(async () => ledger.length === 1, 'the refund was made')
  await org.patch(`/tasks/${given.id}`, { assigned_to: other.id })
  slow.resolve()
  const question = await untilTrue(() => questionAbout(given.id), 'people are asked')
  assert.deepEqual(
    (question.metadata.calls as { tool: string }[]).map(({ tool }) => tool),
    ['refund'],
  )
  await org.patch(`/tasks/${question.id}`, { status: 'completed', result: 'again' })
  await org.until(given.id, 'completed')
  assert.match(JSON.stringify(other.requests.at(-1)?.prompt), /These calls have been made and stand:.*refund/)
})

test('the attempt after a cancelled subtask with an unsafe call waits for a person, and is told the calls', async () => {
  const lead = await org.agent(
    { name: 'Second lead' },
    { delegation_decision: { delegate: true, subordinate: 'Second payer', reasoning: 'It pays.' }, work: 'I saw it.' },
  )
  await org.agent(
    { name: 'Second payer', tools: ['refund'], senior_id: lead.id },
    { work: (request) => (results(request) === 0 ? call('refund') : failing) },
  )
  const given = await org.give({ title: 'Delegated and failed', assigned_to: lead.id })
  const [part] = await untilTrue(async () => {
    const parts = await org.subtasksOf(given.id)
    return parts[0]?.status === 'blocked' && parts
  }, 'the subtask is blocked')
  await org.patch(`/tasks/${part?.id}`, { status: 'cancelled' })
  const question = await untilTrue(() => questionAbout(given.id), 'people are asked')
  await org.patch(`/tasks/${question.id}`, { status: 'completed', result: 'again' })
  await org.until(given.id, 'completed')
  assert.match(JSON.stringify(lead.requests.at(-1)?.prompt), /These calls have been made and stand:.*refund/)
})

test('an agent that was given the work after "again" is asked about anew if the work passes on once more', async () => {
  const first = await org.agent(
    { tools: ['refund'] },
    { work: (request) => (results(request) === 0 ? call('refund') : failing) },
  )
  const idle = await org.agent({})
  const third = await org.agent({}, { work: 'Done.' })
  const given = await org.give({ title: 'Passed on twice', assigned_to: first.id })
  await org.until(given.id, 'blocked')
  await org.post(`/agents/${idle.id}/stop`)
  await org.patch(`/tasks/${given.id}`, { assigned_to: third.id })
  const question = await untilTrue(() => questionAbout(given.id), 'people are asked')
  await org.post(`/agents/${third.id}/stop`)
  await org.patch(`/tasks/${question.id}`, { status: 'completed', result: 'again' })
  await org.patch(`/tasks/${given.id}`, { assigned_to: idle.id })
  await org.post(`/agents/${idle.id}/start`)
  assert.ok(await untilTrue(() => questionAbout(given.id), 'people are asked once more'))
  assert.equal(ledger.length, 1)
})

test('an agent that is no longer a flow starts the task over with its prompt', async () => {
  const agent = await org.agent({ flow_type: 'flow', flow: 'swarm_test' }, { work: 'Done.' })
  const given = await org.give({ title: 'Once a flow', assigned_to: agent.id })
  await org.until(given.id, 'blocked')
  const changed = await org.patch(`/agents/${agent.id}`, { flow_type: 'single', flow: null })
  assert.equal(changed.status, 200, changed.text)
  await org.patch(`/tasks/${given.id}`, { status: 'pending' })
  await org.until(given.id, 'completed')
})

test('a task that passes on while a call is undecided leaves no run behind that would continue', async () => {
  const first = await org.agent({ tools: ['deaf'] }, { work: call('deaf') })
  const second = await org.agent({}, { work: 'Done.' })
  const given = await org.give({ title: 'Undecided', assigned_to: first.id })
  const run = await undecidedRun(first.id)
  await org.patch(`/tasks/${given.id}`, { assigned_to: second.id })
  const question = await untilTrue(() => questionAbout(given.id), 'people are asked whether the work begins anew')
  assert.partialDeepStrictEqual((question.metadata.calls as object[])[0], { tool: 'deaf', result: null })
  assert.deepEqual(
    (await outcomeTasks(run.id)).flatMap(({ metadata, status }) => (metadata.call_id ? [status] : [])),
    ['cancelled'],
  )
  const refused = await org.post(`/runs/${run.id}/resume`, { outcome: 'done' })
  assert.equal(refused.status, 409)
  await org.patch(`/tasks/${question.id}`, { status: 'completed', result: 'again' })
  await org.until(given.id, 'completed')
  assert.equal((await org.runsOf(first.id)).length, 1)
})

test('a task that is set to pending while a call is undecided asks about the call once more, in its new attempt', async () => {
  const agent = await org.agent(
    { tools: ['deaf'] },
    { work: (request) => (results(request) === 0 ? call('deaf') : { text: 'Done.' }) },
  )
  const given = await org.give({ title: 'Undecided and pending', assigned_to: agent.id })
  const first = await undecidedRun(agent.id)
  await org.patch(`/tasks/${given.id}`, { status: 'pending' })
  const second = await undecidedRun(agent.id, 2)
  assert.equal(second.resumed_from, first.id)
  assert.deepEqual(
    (await outcomeTasks(first.id)).map(({ status }) => status),
    ['cancelled'],
  )
  const [open] = await outcomeTasks(second.id)
  assert.equal((await org.patch(`/tasks/${open?.id}`, { status: 'completed', result: 'done' })).status, 200)
  await org.until(given.id, 'completed')
  const [third] = await org.runsOf(agent.id)
  assert.deepEqual([third?.resumed_from, third?.trigger.type, third?.trigger.task_id], [second.id, 'task', given.id])
  assert.equal(ledger.length, 1)
})

test('a decision about a call of a stopped agent is kept until its start, and starts nothing before', async () => {
  const agent = await org.agent(
    { tools: ['deaf'] },
    { work: (request) => (results(request) === 0 ? call('deaf') : { text: 'Done.' }) },
  )
  const given = await org.give({ title: 'Stopped', assigned_to: agent.id })
  const run = await undecidedRun(agent.id)
  const question = (await outcomeTasks(run.id))[0] ?? assert.fail('nobody was asked')
  await org.post(`/agents/${agent.id}/stop`)
  await org.until(given.id, 'pending')
  const answer = await org.patch(`/tasks/${question.id}`, { status: 'completed', result: 'done' })
  assert.equal(answer.status, 200, answer.text)
  await org.rounds()
  assert.equal((await org.runsOf(agent.id)).length, 1)
  await org.post(`/agents/${agent.id}/start`)
  await org.until(given.id, 'completed')
  assert.deepEqual(ledger, ['deaf'])
})

test('the question is withdrawn when the work passes to people, because their agent was deleted', async () => {
  const slow = Promise.withResolvers<void>()
  const first = await org.agent(
    { tools: ['refund'] },
    { work: (request) => (results(request) === 0 ? call('refund') : { text: 'slow', waitFor: slow.promise }) },
  )
  const second = await org.agent({}, { work: 'Done.' })
  const given = await org.give({ title: 'To people', assigned_to: first.id })
  await untilTrue(async () => first.requests.length === 3, 'the refund was made')
  await org.patch(`/tasks/${given.id}`, { assigned_to: second.id })
  slow.resolve()
  const question = await untilTrue(() => questionAbout(given.id), 'people are asked')
  assert.equal((await org.call(`DELETE ${org.base}/agents/${second.id}`)).status, 204)
  assert.equal((await org.task(question.id)).status, 'cancelled')
  assert.partialDeepStrictEqual(await org.task(given.id), { status: 'pending', assigned_to: null })
})

test('the work of a deleted agent passes to its senior, and people are asked first', async () => {
  const slow = Promise.withResolvers<void>()
  const senior = await org.agent({}, { work: 'Done by the senior.' })
  const payer = await org.agent(
    { tools: ['refund'], senior_id: senior.id },
    { work: (request) => (results(request) === 0 ? call('refund') : { text: 'slow', waitFor: slow.promise }) },
  )
  const given = await org.give({ title: 'Inherited', assigned_to: payer.id })
  await untilTrue(async () => ledger.length === 1, 'the refund was made')
  assert.equal((await org.call(`DELETE ${org.base}/agents/${payer.id}`)).status, 204)
  slow.resolve()
  const question = await untilTrue(() => questionAbout(given.id), 'people are asked')
  await org.patch(`/tasks/${question.id}`, { status: 'completed', result: 'again' })
  assert.equal((await org.until(given.id, 'completed')).result, 'Done by the senior.')
})
