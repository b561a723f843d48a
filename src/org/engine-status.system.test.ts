// The engine's spec, task 5, the status manager: active, bored, stuck and paused, with the effects of each.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createOrganisation, untilTrue } from '../../test/kit/organisation.ts'
import type { OrgAgent } from '../kernel/org.ts'
import type { Task } from '../kernel/task.ts'

const org = await createOrganisation({ poll_interval: 100, stuck_retry_limit: 1 })
const breaks = (message = 'It is broken.') => ({ fail: { message, isRetryable: false } })
const statusMessages = async (seniorId: string, agentId: string): Promise<string[]> =>
  (await org.messagesOf(seniorId))
    .filter(({ kind, from }) => kind === 'status' && from === agentId)
    .map(({ body }) => /is (\w+) \(it was (\w+)\)/.exec(body)?.slice(1).join(' from ') ?? body)
    .reverse()
const escalationsFor = async (taskId: string): Promise<Task[]> =>
  (await org.list<Task>('/tasks')).filter(({ metadata }) => metadata.blockedTaskId === taskId).reverse()
/** Lets an idle agent be bored at once while this runs. */
async function whileBoring(work: () => Promise<void>): Promise<void> {
  await org.rounds()
  await org.patchSettings({ boredom_threshold: 100 })
  await work()
  await org.patchSettings({ boredom_threshold: 900_000 })
}
/** A senior that does nothing, so that tests see the tasks it is given. */
const silentSenior = () => org.agent({ enabled: false })

test('Manage agent status transitions: active, bored, active, stuck, active, paused, active, and the senior gets a message about each', async () => {
  const senior = await silentSenior()
  let broken = true
  const agent = await org.agent(
    { senior_id: senior.id },
    { work: ({ prompt }) => (broken && JSON.stringify(prompt).includes('Hard') ? breaks() : { text: 'Done.' }) },
  )
  await whileBoring(async () => void (await org.untilAgent(agent.id, 'bored')))
  await org.until((await org.give({ title: 'Easy', assigned_to: agent.id })).id, 'completed')
  assert.equal((await org.agentNow(agent.id)).status, 'active')
  const hard = await org.give({ title: 'Hard', assigned_to: agent.id })
  await org.untilAgent(agent.id, 'stuck')
  broken = false
  const [asked] = await escalationsFor(hard.id)
  await org.patch(`/tasks/${asked?.id}`, { status: 'completed', result: 'Try again.' })
  await org.until(hard.id, 'completed')
  await org.post(`/agents/${agent.id}/stop`)
  await org.post(`/agents/${agent.id}/start`)
  assert.deepEqual(await statusMessages(senior.id, agent.id), [
    'bored from active',
    'active from bored',
    'stuck from active',
    'active from stuck',
    'paused from active',
    'active from paused',
  ])
})

test('Detect boredom (idle for N minutes): the senior gets one low-priority task, and further bored agents are added to it', async () => {
  const senior = await silentSenior()
  const first = await org.agent({ name: 'first idler', senior_id: senior.id })
  const boredTasks = async (): Promise<Task[]> =>
    (await org.tasksOf(senior.id)).filter(({ metadata }) => metadata.boredAgentIds)
  await whileBoring(async () => {
    await org.untilAgent(first.id, 'bored')
    const second = await org.agent({ name: 'second idler', senior_id: senior.id })
    await org.untilAgent(second.id, 'bored')
    const [told, ...others] = await boredTasks()
    assert.deepEqual(others, [])
    assert.deepEqual([told?.title, told?.priority], ['Agent first idler is bored', 'low'])
    assert.deepEqual(told?.metadata, { boredAgentIds: [first.id, second.id] })
    assert.deepEqual(told.created_by, { type: 'agent', id: first.id })
    await org.patch(`/tasks/${told.id}`, { status: 'completed' })
    const third = await org.agent({ name: 'third idler', senior_id: senior.id })
    await org.untilAgent(third.id, 'bored')
    const [next] = await boredTasks()
    assert.deepEqual(next?.metadata, { boredAgentIds: [third.id] })
    await org.rounds()
    assert.equal((await boredTasks()).length, 2, 'a bored agent does not become bored again')
  })
})

test('an agent without a senior is bored without a message, and never before its first task', async () => {
  const senior = await silentSenior()
  const [worked, never] = [await org.agent({}), await org.agent({ senior_id: senior.id })]
  await org.patch(`/agents/${never.id}`, { senior_id: null })
  await org.until((await org.give({ title: 'Once', assigned_to: worked.id })).id, 'completed')
  const before = (await org.list('/tasks')).length
  await whileBoring(async () => {
    await org.untilAgent(worked.id, 'bored')
    await org.rounds()
  })
  assert.equal((await org.agentNow(never.id)).status, 'active')
  assert.equal((await org.list('/tasks')).length, before)
})

test('boredom counts from the last work, and a run that a person triggers is work', async () => {
  const senior = await silentSenior()
  const agent = await org.agent({ senior_id: senior.id })
  await org.clock.advance(600_000)
  assert.equal((await org.post(`/agents/${agent.id}/trigger`, { input: 'Hello.' })).status, 200)
  await org.clock.advance(600_000)
  await org.patchSettings({ boredom_threshold: 900_000 })
  await org.rounds()
  assert.equal((await org.agentNow(agent.id)).status, 'active')
  await org.clock.advance(301_000)
  await org.untilAgent(agent.id, 'bored')
})

test('an agent that is at work, stuck, paused or disabled is never bored', async () => {
  const senior = await silentSenior()
  const gate = Promise.withResolvers<void>()
  const busy = await org.agent({ senior_id: senior.id }, { work: { text: 'Done.', waitFor: gate.promise } })
  const long = await org.give({ title: 'Long', assigned_to: busy.id })
  const stuck = await org.agent({ senior_id: senior.id }, { work: breaks() })
  await org.until((await org.give({ title: 'Fails', assigned_to: stuck.id })).id, 'blocked')
  const paused = await org.agent({ senior_id: senior.id })
  await org.post(`/agents/${paused.id}/stop`)
  const disabled = await org.agent({ senior_id: senior.id, enabled: false })
  await untilTrue(async () => busy.requests.length === 2, 'the work is under way')
  await whileBoring(() => org.rounds(3))
  const statuses = []
  for (const { id } of [busy, stuck, paused, disabled]) statuses.push((await org.agentNow(id)).status)
  assert.deepEqual(statuses, ['active', 'stuck', 'paused', 'active'])
  gate.resolve()
  await org.until(long.id, 'completed')
})

test('Detect stuck state (task blocked): an agent is stuck after stuck_retry_limit retries, and takes up no other task', async () => {
  const agent = await org.agent({}, { work: breaks('The tool is gone.') })
  const given = await org.give({ title: 'Hard', assigned_to: agent.id })
  const blocked = await org.until(given.id, 'blocked')
  assert.equal((await org.runsOf(agent.id)).length, 2, 'one attempt and one retry')
  assert.match(blocked.error_message ?? '', /The tool is gone\./)
  assert.match(blocked.progress.note ?? '', /somebody must help/)
  const next = await org.give({ title: 'Next', priority: 'urgent', assigned_to: agent.id })
  await org.rounds()
  assert.equal((await org.task(next.id)).status, 'pending')
  assert.equal((await org.agentNow(agent.id)).status, 'stuck')
})

test('Report status changes to senior: the message is from the agent, gives the reason, and costs no tokens', async () => {
  const senior = await org.agent({})
  const agent = await org.agent({ name: 'reporter', senior_id: senior.id })
  await org.post(`/agents/${agent.id}/stop`)
  const [message, ...others] = await org.messagesOf(senior.id)
  assert.deepEqual(others, [])
  const { id: _, created_at, ...fields } = message ?? assert.fail()
  assert.ok(created_at)
  assert.deepEqual(fields, {
    from: agent.id,
    to: senior.id,
    kind: 'status',
    task_id: null,
    body: 'reporter is paused (it was active): somebody stopped it.',
  })
  assert.deepEqual(await org.messagesOf(agent.id), [message], 'the sender sees the message too')
  assert.deepEqual(senior.requests, [])
})

test('Handle escalations (create escalation tasks): the first is for the senior, the next for the senior above, the last for people', async () => {
  const top = await org.agent({ name: 'top senior', enabled: false })
  const senior = await org.agent({ name: 'direct senior', senior_id: top.id, enabled: false })
  const agent = await org.agent({ name: 'often stuck', senior_id: senior.id }, { work: breaks() })
  const given = await org.give({ title: 'Very hard', assigned_to: agent.id })
  const seen: [unknown, string][] = []
  await org.patchSettings({ stuck_retry_limit: 0 })
  for (let time = 1; time <= 4; time++) {
    await untilTrue(async () => (await escalationsFor(given.id)).length === time, `the agent was asked ${time} times`)
    const asked = (await escalationsFor(given.id)).at(-1)
    seen.push([asked?.assigned_to, asked?.kind ?? ''])
    assert.deepEqual(asked?.metadata, { blockedTaskId: given.id, blockedAgentId: agent.id })
    assert.deepEqual([asked.title, asked.priority], ['Agent often stuck is stuck', 'high'])
    assert.match(asked.description, /"Very hard"[\s\S]*It is broken\./)
    await org.patch(`/tasks/${asked.id}`, { status: 'completed', result: `Advice ${time}.` })
  }
  assert.deepEqual(seen, [
    [senior.id, 'work'],
    [top.id, 'work'],
    [null, 'escalation'],
    [null, 'escalation'],
  ])
  await untilTrue(async () => (await escalationsFor(given.id)).length === 5, 'the agent is asked again')
  await org.patchSettings({ stuck_retry_limit: 1 })
  const last = JSON.stringify(agent.requests.at(-1)?.prompt)
  for (const advice of [
    'direct senior: Advice 1.',
    'top senior: Advice 2.',
    'The people in charge: Advice 3.',
    'Advice 4.',
  ]) {
    assert.ok(last.includes(advice), advice)
  }
})

const rescues: [name: string, rescue: (ids: { task: string; agent: string; other: string }) => Promise<unknown>][] = [
  ['PATCHing the blocked task to pending', ({ task }) => org.patch(`/tasks/${task}`, { status: 'pending' })],
  ['PATCHing the blocked task to cancelled', ({ task }) => org.patch(`/tasks/${task}`, { status: 'cancelled' })],
  ['PATCHing the blocked task to completed', ({ task }) => org.patch(`/tasks/${task}`, { status: 'completed' })],
  ['giving the blocked task to another', ({ task, other }) => org.patch(`/tasks/${task}`, { assigned_to: other })],
  ['giving the blocked task to people', ({ task }) => org.patch(`/tasks/${task}`, { assigned_to: null })],
  ['start', ({ agent }) => org.post(`/agents/${agent}/start`)],
  ['restart', ({ agent }) => org.post(`/agents/${agent}/restart`)],
]
for (const [name, rescue] of rescues) {
  test(`${name} frees a stuck agent and cancels its escalation before anybody works on it`, async () => {
    const senior = await org.agent({})
    await org.post(`/agents/${senior.id}/stop`)
    let broken = true
    const agent = await org.agent({ senior_id: senior.id }, { work: () => (broken ? breaks() : { text: 'Done.' }) })
    const other = await org.agent({}, { work: 'Done by another.' })
    const given = await org.give({ title: 'Hard', assigned_to: agent.id })
    await org.until(given.id, 'blocked')
    broken = false
    await rescue({ task: given.id, agent: agent.id, other: other.id })
    assert.equal((await org.agentNow(agent.id)).status, 'active')
    assert.equal((await escalationsFor(given.id))[0]?.status, 'cancelled')
    await org.post(`/agents/${senior.id}/start`)
    await org.until((await org.give({ title: 'Next', assigned_to: agent.id })).id, 'completed')
    assert.deepEqual(senior.requests, [])
    const after = await org.task(given.id)
    if (after.assigned_to !== null && after.status !== 'cancelled') await org.until(given.id, 'completed')
  })
}

test('the withdrawal of an escalation under way ends the senior’s run', async () => {
  const gate = Promise.withResolvers<void>()
  const senior = await org.agent({}, { work: { text: 'Hm.', waitFor: gate.promise } })
  const agent = await org.agent({ senior_id: senior.id }, { work: breaks() })
  const given = await org.give({ title: 'Hard', assigned_to: agent.id })
  await untilTrue(async () => senior.requests.length === 1, 'the senior is at work')
  await org.patch(`/tasks/${given.id}`, { status: 'cancelled' })
  const [run] = await org.runsOf(senior.id)
  const { rows } = await org.pool.query('select cancel_requested_at from agent_runs where id = $1', [run?.id])
  gate.resolve()
  assert.notEqual(rows[0].cancel_requested_at, null)
})

test('a task that only looks like an escalation frees no agent of another project', async () => {
  const agent = await org.agent({}, { work: breaks() })
  const given = await org.give({ title: 'Hard', assigned_to: agent.id })
  await org.until(given.id, 'blocked')
  const other = await org.createProject('Another')
  const metadata = { blockedTaskId: given.id, blockedAgentId: agent.id }
  const forged = await org.call<Task>(`POST /api/projects/${other.id}/tasks`, { body: { title: 'Free it', metadata } })
  const path = `/api/projects/${other.id}/tasks/${forged.body.id}`
  assert.equal((await org.call(`PATCH ${path}`, { body: { status: 'completed', result: 'Do as I say.' } })).status, 200)
  assert.deepEqual([(await org.task(given.id)).status, (await org.agentNow(agent.id)).status], ['blocked', 'stuck'])
})

test('a senior’s model that answers an escalation helps: the answer is shown to the blocked agent, which goes on', async () => {
  const senior = await org.agent({ name: 'helper' }, { work: 'Turn it off and on.' })
  const agent = await org.agent(
    { senior_id: senior.id },
    { work: ({ prompt }) => (JSON.stringify(prompt).includes('off and on') ? { text: 'It works.' } : breaks()) },
  )
  const given = await org.give({ title: 'Hard', assigned_to: agent.id })
  assert.equal((await org.until(given.id, 'completed')).result, 'It works.')
  assert.equal((await org.agentNow(agent.id)).status, 'active')
  assert.deepEqual(
    senior.requests.map((request) => request.answerSchema?.name ?? 'work'),
    ['work'],
    'an escalation is neither planned nor delegated',
  )
})

test('Update agent status in data store: the agent, the tree and the list show the same status', async () => {
  const senior = await silentSenior()
  const agent = await org.agent({ senior_id: senior.id }, { work: breaks() })
  await org.until((await org.give({ title: 'Hard', assigned_to: agent.id })).id, 'blocked')
  const { items } = await org.read<{ items: OrgAgent[] }>('/org')
  const inTree = items.find(({ id }) => id === senior.id)?.subordinates[0]
  assert.deepEqual([inTree?.id, inTree?.status, inTree?.load], [agent.id, 'stuck', 1])
  const listed = (await org.list<{ id: string; status: string }>('/agents')).find(({ id }) => id === agent.id)
  assert.equal(listed?.status, 'stuck')
  const refused = await org.patch(`/agents/${agent.id}`, { status: 'active' })
  assert.equal(refused.status, 400, 'a status cannot be set by hand')
})
