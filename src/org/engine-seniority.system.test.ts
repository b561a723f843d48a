// Seniors and subordinates: the rules for seniors, the work of deleted agents, and the tools of seniors.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createOrganisation, untilTrue } from '../../test/kit/organisation.ts'
import { newId } from '../kernel/id.ts'
import type { ModelRequest } from '../kernel/model-call.ts'
import type { OrgAgent } from '../kernel/org.ts'
import type { Task } from '../kernel/task.ts'

const org = await createOrganisation({ poll_interval: 100, stuck_retry_limit: 0 })
const breaks = { fail: { message: 'It is broken.', isRetryable: false } }
const setSenior = (agentId: string, senior_id: string | null) => org.patch(`/agents/${agentId}`, { senior_id })
const remove = async (agentId: string): Promise<number> =>
  (await org.call(`DELETE ${org.base}/agents/${agentId}`)).status
const seniorOf = async (agentId: string): Promise<string | null> => (await org.agentNow(agentId)).senior_id

test('a cycle of seniors of any length is refused, and so is the agent as its own senior', async () => {
  const a = await org.agent({})
  const b = await org.agent({ senior_id: a.id })
  const c = await org.agent({ senior_id: b.id })
  for (const senior of [a, b, c]) assert.equal((await setSenior(a.id, senior.id)).status, 400)
  assert.equal(await seniorOf(a.id), null)
  assert.equal((await setSenior(c.id, a.id)).status, 200, 'another place without a cycle is fine')
  assert.equal((await setSenior(b.id, c.id)).status, 200)
  assert.equal((await setSenior(c.id, b.id)).status, 400)
})

/** Makes two changes at once that are fine alone and a cycle together. Returns the time they took. */
async function race(): Promise<number> {
  const [a, b] = [await org.agent({}), await org.agent({})]
  const began = performance.now()
  const answers = await Promise.all([setSenior(a.id, b.id), setSenior(b.id, a.id)])
  const tookMs = performance.now() - began
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 400])
  return tookMs
}

test('of two requests that are a cycle together one is refused, every time', async () => {
  await race()
  const [a, b, c] = [await org.agent({}), await org.agent({}), await org.agent({})]
  const answers = await Promise.all([setSenior(a.id, b.id), setSenior(b.id, c.id), setSenior(c.id, a.id)])
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 200, 400])
})

test('two requests that race for a cycle do not wait until the database finds their deadlock', async () => {
  const DEADLOCK_TIMEOUT_MS = 1_000
  const tookMs = await race()
  assert.ok(tookMs < DEADLOCK_TIMEOUT_MS * 0.9, `${tookMs} ms`)
})

test('a senior must be an existing agent of the project', async () => {
  const agent = await org.agent({})
  const gone = await org.agent({})
  assert.equal(await remove(gone.id), 204)
  for (const senior of [gone.id, newId(), 'nobody', 7]) {
    assert.equal((await org.patch(`/agents/${agent.id}`, { senior_id: senior })).status, 400)
    assert.equal((await org.post('/agents', { name: newId(), senior_id: senior })).status, 400)
  }
})

test('GET /org is the tree by name, with the load of each', async () => {
  const top = await org.agent({ name: 'tree top', role: 'the boss' })
  const b = await org.agent({ name: 'tree b', senior_id: top.id })
  const a = await org.agent({ name: 'tree a', senior_id: top.id, token_allocation: 500, competencies: ['law'] })
  const leaf = await org.agent({ name: 'tree leaf', senior_id: b.id })
  await org.post(`/agents/${leaf.id}/stop`)
  for (const title of ['x', 'y']) await org.give({ title, assigned_to: leaf.id })
  const { items } = await org.read<{ items: OrgAgent[] }>('/org')
  const working = { role: '', status: 'active', paused_for: null, competencies: [] }
  const node = { ...working, load: 0, token_allocation: null, token_used: 0, subordinates: [] }
  const stopped = { status: 'paused', paused_for: 'stopped' }
  const { id, name } = leaf
  assert.deepEqual(
    items.find((item) => item.id === top.id),
    {
      ...node,
      id: top.id,
      name: 'tree top',
      role: 'the boss',
      subordinates: [
        { ...node, id: a.id, name: 'tree a', token_allocation: 500, competencies: ['law'] },
        { ...node, id: b.id, name: 'tree b', subordinates: [{ ...node, id, name, ...stopped, load: 2 }] },
      ],
    },
  )
})

test('a deletion hands open tasks and subordinates of the agent to its senior; closed tasks stay', async () => {
  const senior = await org.agent({}, { work: 'Done by the senior.' })
  let isHanging = false
  const agent = await org.agent(
    { senior_id: senior.id },
    {
      work: () => (isHanging ? { text: 'so far', waitFor: 'abort' } : { text: 'Done.' }),
    },
  )
  const low = await org.agent({ senior_id: agent.id })
  const closed = await org.give({ title: 'Closed', assigned_to: agent.id })
  await org.until(closed.id, 'completed')
  isHanging = true
  const calls = agent.requests.length
  const underWay = await org.give({ title: 'Under way', assigned_to: agent.id })
  await untilTrue(async () => agent.requests.length === calls + 3, 'the work is under way')
  const waiting = await org.give({ title: 'Waiting', assigned_to: agent.id })
  assert.equal(await remove(agent.id), 204)
  for (const { id } of [underWay, waiting]) {
    const done = await org.until(id, 'completed')
    assert.deepEqual([done.assigned_to, done.result], [senior.id, 'Done by the senior.'])
  }
  assert.equal((await org.task(closed.id)).assigned_to, agent.id)
  assert.equal(await seniorOf(low.id), senior.id)
  await untilTrue(async () => (await org.runsOf(agent.id))[0]?.status === 'cancelled', 'its run is ended')
})

test('the deletion of an agent without a senior hands its open tasks to people; its subordinates have no senior', async () => {
  const agent = await org.agent({}, { work: breaks })
  const low = await org.agent({ senior_id: agent.id })
  const blocked = await org.give({ title: 'Blocked', assigned_to: agent.id })
  await org.until(blocked.id, 'blocked')
  const waiting = await org.give({ title: 'Waiting', assigned_to: agent.id })
  assert.equal(await remove(agent.id), 204)
  await org.rounds()
  for (const { id } of [blocked, waiting]) {
    const task = await org.task(id)
    assert.deepEqual([task.status, task.assigned_to], ['pending', null])
  }
  assert.equal(await seniorOf(low.id), null)
})

test('the deletion of an agent whose task waits for subtasks hands the task to the senior, where it completes', async () => {
  const senior = await org.agent({})
  const gate = Promise.withResolvers<void>()
  const agent = await org.agent(
    { senior_id: senior.id },
    { delegation_decision: { delegate: true, subordinate: null, reasoning: '' } },
  )
  const worker = await org.agent({ senior_id: agent.id }, { work: { text: 'A part.', waitFor: gate.promise } })
  const given = await org.give({ title: 'Whole', assigned_to: agent.id })
  await untilTrue(async () => worker.requests.length === 2, 'the worker is at work')
  assert.equal(await remove(agent.id), 204)
  assert.deepEqual(
    [(await org.task(given.id)).assigned_to, (await org.task(given.id)).status],
    [senior.id, 'in-progress'],
  )
  gate.resolve()
  const done = await org.until(given.id, 'completed')
  assert.equal((done.result as Task[])[0]?.result, 'A part.') // as the contract says
  assert.deepEqual(senior.requests, [], 'there was nothing left to do')
})

const asks: [what: string, fields: object, isAbout: (task: Task, id: string) => boolean][] = [
  ['stuck', {}, (task, id) => task.metadata.blockedAgentId === id],
  ['out of tokens', { token_allocation: 15 }, (task, id) => task.metadata.exhaustedAgentId === id],
]
for (const [what, fields, isAbout] of asks) {
  test(`after the deletion of an agent that is ${what} its calls for help are closed`, async () => {
    const senior = await org.agent({})
    await org.post(`/agents/${senior.id}/stop`)
    const agent = await org.agent({ ...fields, senior_id: senior.id }, { work: breaks })
    await org.give({ title: 'Hard', assigned_to: agent.id })
    await untilTrue(async () => (await org.tasksOf(senior.id)).some((task) => isAbout(task, agent.id)), 'it asks')
    assert.equal(await remove(agent.id), 204)
    const open = (await org.tasksOf(senior.id)).filter((task) => isAbout(task, agent.id) && task.status === 'pending')
    assert.deepEqual(open, [])
  })
}

test('a disabled agent ends its work under way; its next task stays pending until the agent is enabled', async () => {
  const gate = Promise.withResolvers<void>()
  const agent = await org.agent({}, { work: { text: 'Done.', waitFor: gate.promise } })
  const first = await org.give({ title: 'First', assigned_to: agent.id })
  await untilTrue(async () => agent.requests.length === 2, 'the work is under way')
  assert.equal((await org.patch(`/agents/${agent.id}`, { enabled: false })).status, 200)
  const second = await org.give({ title: 'Second', assigned_to: agent.id })
  gate.resolve()
  await org.until(first.id, 'completed')
  await org.rounds()
  assert.equal((await org.task(second.id)).status, 'pending')
  assert.equal((await org.post(`/agents/${agent.id}/start`)).status, 200)
  await org.rounds()
  assert.equal((await org.task(second.id)).status, 'pending', 'start does not enable')
  await org.patch(`/agents/${agent.id}`, { enabled: true })
  await org.until(second.id, 'completed')
})

type Call = { name: string; args: object } | ((prompt: string) => { name: string; args: object })

const idIn = (text: string): string => /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/i.exec(text)?.[0] ?? ''

/** Lets an agent make one tool call after the other; `prepare` gets its id before that. */
async function callsOf(fields: object, calls: readonly Call[], prepare?: (id: string) => unknown) {
  const agent = await org.agent(
    { ...fields },
    {
      work: ({ prompt }: ModelRequest) => {
        const call = calls[prompt.filter(({ role }) => role === 'tool').length]
        if (!call) return { text: 'Done.' }
        return { calls: [typeof call === 'function' ? call(JSON.stringify(prompt)) : call] }
      },
    },
  )
  await prepare?.(agent.id)
  await org.until((await org.give({ title: 'Act', assigned_to: agent.id })).id, 'completed')
  const [run] = await org.runsOf(agent.id)
  const steps = (await org.stepsOf(run?.id ?? '')).filter((step) => step.kind === 'tool')
  const { rows } = await org.pool.query<{ action: string }>(
    'select action from audit_log where actor_id = $1 and action like $2 order by at, id',
    [agent.id, '%.refused'],
  )
  return { agent, steps, refusals: rows.map(({ action }) => action) }
}

test('the tools of a senior reach its own tasks and those of direct subordinates; others are refused and audited', async () => {
  const far = await org.agent({})
  await org.post(`/agents/${far.id}/stop`)
  const farTask = await org.give({ title: 'Far', assigned_to: far.id })
  const forPeople = await org.give({ title: 'For people' })
  const calls: Call[] = []
  let subId = ''
  const { steps, refusals, agent } = await callsOf({ name: 'handy' }, calls, async (id) => {
    const sub = await org.agent({ senior_id: id })
    subId = sub.id
    await org.post(`/agents/${sub.id}/stop`)
    const subTask = await org.give({ title: 'Of a subordinate', assigned_to: sub.id })
    calls.push(
      { name: 'task_update', args: { id: subTask.id, priority: 'urgent', assigned_to: sub.name } },
      { name: 'task_update', args: { id: farTask.id, priority: 'urgent' } },
      { name: 'task_update', args: { id: forPeople.id, status: 'completed' } },
      { name: 'task_update', args: { id: newId(), status: 'cancelled' } },
      { name: 'task_update', args: { id: subTask.id, assigned_to: far.name } },
      { name: 'task_list', args: { assigned_to: far.name } },
      { name: 'budget_add', args: { agent: far.name, tokens: 5 } },
      { name: 'budget_add', args: { agent: 'handy', tokens: 5 } },
      { name: 'budget_add', args: { agent: sub.name, tokens: 5 } },
    )
  })
  assert.deepEqual(
    steps.map((step) => step.is_error),
    calls.map((_, index) => index > 0),
  )
  assert.deepEqual(refusals, [...Array(5).fill('task.refused'), ...Array(3).fill('budget.refused')])
  const [changed] = await org.tasksOf(subId)
  assert.deepEqual([changed?.priority, changed?.assigned_to], ['urgent', subId])
  assert.equal((await org.task(farTask.id)).priority, 'medium')
  assert.equal((await org.task(forPeople.id)).status, 'pending')
  assert.ok(
    agent.requests.at(-1)?.tools.some(({ name }) => name === 'budget_add'),
    'the tools are offered without being named',
  )
})

test('a senior sees the results of its subordinates’ tasks, and names agents by their ids as well', async () => {
  let result: unknown
  const { steps } = await callsOf(
    {},
    [(prompt) => ({ name: 'task_list', args: { assigned_to: idIn(prompt) } })],
    async (id) => {
      const sub = await org.agent({ senior_id: id }, { work: 'The result.' })
      const task = await org.give({ title: `For ${sub.id.toUpperCase()}`, assigned_to: sub.id })
      result = (await org.until(task.id, 'completed')).result
      await org.patch(`/agents/${id}`, { prompt: sub.id.toUpperCase() })
    },
  )
  assert.equal(result, 'The result.')
  assert.equal(steps[0]?.is_error, false)
  assert.match(JSON.stringify(steps[0]?.result), /The result\./)
})

test('a senior may reorder the task it works on, and neither close it nor hand it away: its answer completes it', async () => {
  const calls: Call[] = [{ name: 'task_list', args: { status: 'in-progress' } }]
  const { steps, refusals, agent } = await callsOf({}, calls, async (id) => {
    const sub = await org.agent({ senior_id: id })
    for (const change of [{ status: 'completed' }, { assigned_to: sub.name }, { priority: 'urgent' }]) {
      calls.push((prompt) => ({
        name: 'task_update',
        args: { id: idIn(prompt), ...change },
      }))
    }
  })
  assert.deepEqual(
    steps.map((step) => step.is_error),
    [false, true, true, false],
  )
  assert.deepEqual(refusals, ['task.refused', 'task.refused'])
  const [task] = await org.tasksOf(agent.id)
  assert.deepEqual([task?.result, task?.priority], ['Done.', 'urgent'])
})

test('an agent without subordinates is offered none of the senior’s tools', async () => {
  const { agent } = await callsOf({}, [])
  assert.deepEqual(agent.requests.at(-1)?.tools, [])
})

test('a senior that gives the blocked task to another agent settles the escalation', async () => {
  let taskId = ''
  const senior = await org.agent(
    { name: 'dispatcher' },
    {
      work: ({ prompt }) =>
        prompt.some(({ role }) => role === 'tool')
          ? { text: 'Given to the second.' }
          : { calls: [{ name: 'task_update', args: { id: taskId, assigned_to: 'second' } }] },
    },
  )
  const first = await org.agent({ name: 'first', senior_id: senior.id }, { work: breaks })
  const second = await org.agent({ name: 'second', senior_id: senior.id }, { work: 'I can.' })
  const given = await org.give({ title: 'Hard', assigned_to: first.id })
  taskId = given.id
  const done = await org.until(given.id, 'completed')
  assert.deepEqual([done.assigned_to, done.result], [second.id, 'I can.'])
  assert.equal((await org.agentNow(first.id)).status, 'active')
  await untilTrue(async () => (await org.runsOf(senior.id))[0]?.status === 'completed', 'its run ends as it should')
})
