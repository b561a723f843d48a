// Work that begins anew: a person decides first if, and only if, an unsafe call of the work was made or may have been.
import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { createOrganisation, untilTrue } from '../../test/kit/organisation.ts'
import { testTool } from '../../test/kit/run-worker.ts'
import type { ModelRequest } from '../kernel/model-call.ts'
import type { Run } from '../kernel/run.ts'
import type { Task } from '../kernel/task.ts'

const ledger: string[] = []
const noted = (name: string, effect: 'keyed' | 'unsafe') =>
  testTool(name, async () => ({ receipt: ledger.push(name) }), { effect })
const org = await createOrganisation(
  { stuck_retry_limit: 0, poll_interval: 100 },
  { tools: [noted('refund', 'unsafe'), noted('notify', 'keyed')] },
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

test('a call that waits for approval was not made: the task passes on at once', async () => {
  const first = await org.agent({ tools: ['refund'], require_approval: ['refund'] }, { work: call('refund') })
  const second = await org.agent({}, { work: 'Done.' })
  const given = await org.give({ title: 'Held', assigned_to: first.id })
  const run = await untilTrue(async () => (await org.runsOf(first.id))[0], 'the attempt began')
  await suggestionOf(run)
  assert.deepEqual(await org.read(`/runs/${run.id}/effects`), { items: [], next_cursor: null })
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

test('the attempt after a failed subtask is told the calls of the subtasks, and asks nobody', async () => {
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
  await org.until(given.id, 'completed')
  assert.match(JSON.stringify(lead.requests.at(-1)?.prompt), /These calls have been made and stand:.*refund/)
})
