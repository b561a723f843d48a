// Tasks that people change while agents work on them: the effect of each change on the run, the agent, the parent and
// the subtasks.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createOrganisation, untilTrue } from '../../test/kit/organisation.ts'
import type { ModelRequest } from '../kernel/model-call.ts'
import { settableStatuses, type Task, type TaskStatus, taskStatuses } from '../kernel/task.ts'

const org = await createOrganisation({ poll_interval: 100, stuck_retry_limit: 0, task_batch_size: 5 })
const textOf = (request: ModelRequest): string => JSON.stringify(request.prompt)
const part = (title: string, fields: object = {}) => ({ title, description: '', competencies: [], ...fields })
const change = async (taskId: string, body: object): Promise<number> =>
  (await org.patch(`/tasks/${taskId}`, body)).status
const isOpen = (status: TaskStatus): boolean => !['completed', 'failed', 'rejected', 'cancelled'].includes(status)

/** An agent that hangs in its work while `isHanging`, and the task it works on. */
async function atWork() {
  const state = { isHanging: true }
  const agent = await org.agent(
    {},
    {
      work: () => (state.isHanging ? { text: 'so far', waitFor: 'abort' } : { text: 'Done anew.' }),
    },
  )
  const task = await org.give({ title: 'Work', assigned_to: agent.id })
  await untilTrue(async () => agent.requests.length === 2, 'the work is under way')
  const [run] = await org.runsOf(agent.id)
  const untilRun = (status: string) =>
    untilTrue(async () => (await org.read<{ status: string }>(`/runs/${run?.id}`)).status === status, `it is ${status}`)
  return { agent, task, state, runId: run?.id ?? '', untilRun }
}

/** A task in this status, of a stopped agent, unless the agent must work to bring the status about. */
async function taskIn(status: TaskStatus): Promise<Task> {
  const agent = await org.agent({})
  await org.post(`/agents/${agent.id}/stop`)
  const task = await org.give({ title: `A ${status} task`, assigned_to: agent.id })
  await org.pool.query(
    `update tasks set status = $2, completed_at = case when $3 then null else muster.now() end where id = $1`,
    [task.id, status, isOpen(status)],
  )
  return task
}

for (const from of taskStatuses) {
  for (const to of settableStatuses) {
    const isAllowed = isOpen(from) || (from === 'failed' && to === 'pending')
    test(`PATCH of a task from ${from} to ${to} is ${isAllowed ? 'accepted' : 'refused, and changes nothing'}`, async () => {
      const { id } = await taskIn(from)
      const before = await org.task(id)
      assert.equal(await change(id, { status: to }), isAllowed ? 200 : 409)
      const after = await org.task(id)
      assert.equal(after.status, isAllowed ? to : from)
      if (!isAllowed) assert.deepEqual(after, before)
      assert.equal(after.completed_at === null, isOpen(after.status))
    })
  }
}

test('no other status can be set, and a result only while the task is open', async () => {
  const { id } = await taskIn('pending')
  for (const status of ['in-progress', 'failed', 'blocked', 'rejected', 'done', null]) {
    assert.equal(await change(id, { status }), 400)
  }
  assert.equal(await change(id, { result: { half: true } }), 200)
  assert.equal(await change(id, { status: 'completed', result: [1, 2] }), 200)
  assert.equal(await change(id, { result: 'Another.' }), 409)
  assert.deepEqual((await org.task(id)).result, [1, 2])
})

test('PATCH of a task under way to pending: its run is cancelled and the task begins anew', async () => {
  const { agent, task, state, untilRun } = await atWork()
  state.isHanging = false
  assert.equal(await change(task.id, { status: 'pending' }), 200)
  await untilRun('cancelled')
  assert.equal((await org.until(task.id, 'completed')).result, 'Done anew.')
  assert.equal((await org.runsOf(agent.id)).length, 2)
})

for (const [what, status] of [
  ['set to pending is taken up again', 'pending'],
  ['cancelled makes room for the next task', 'cancelled'],
] as const) {
  test(`a task under way that is ${what} only when its run has ended`, async () => {
    await org.patchSettings({ task_batch_size: 1 })
    const gate = Promise.withResolvers<void>()
    const agent = await org.agent(
      {},
      {
        work: async () => {
          await gate.promise
          return { text: 'Done.' }
        },
      },
    )
    const first = await org.give({ title: 'First', assigned_to: agent.id })
    await untilTrue(async () => agent.requests.length === 2, 'the work is under way')
    const next = status === 'pending' ? first : await org.give({ title: 'Next', assigned_to: agent.id })
    assert.equal(await change(first.id, { status }), 200)
    await org.rounds()
    gate.resolve()
    await untilTrue(async () => (await org.runsOf(agent.id)).at(-1)?.status === 'cancelled', 'the run has ended')
    await org.rounds(4)
    const after = await org.task(next.id)
    await org.patchSettings({ task_batch_size: 5 })
    assert.notEqual(after.status, 'pending')
  })
}

for (const status of ['completed', 'cancelled'] as const) {
  test(`PATCH of a task under way to ${status}: its run is cancelled, and the agent takes up the next task`, async () => {
    const { agent, task, state, untilRun } = await atWork()
    state.isHanging = false
    const result = status === 'completed' ? { by: 'a person' } : undefined
    assert.equal(await change(task.id, { status, result }), 200)
    await untilRun('cancelled')
    await org.until((await org.give({ title: 'Next', assigned_to: agent.id })).id, 'completed')
    const after = await org.task(task.id)
    assert.deepEqual([after.status, after.result], [status, result ?? null])
    assert.equal((await org.agentNow(agent.id)).status, 'active')
  })
}

test('PATCH of a task under way to another agent: the run is cancelled, and the other agent does the task', async () => {
  const { agent, task, untilRun } = await atWork()
  const other = await org.agent({}, { work: 'Done by the other.' })
  assert.equal(await change(task.id, { assigned_to: other.id }), 200)
  await untilRun('cancelled')
  assert.equal((await org.until(task.id, 'completed')).result, 'Done by the other.')
  assert.equal((await org.runsOf(agent.id)).length, 1)
})

test('PATCH of a task under way to people: the run is cancelled and the task waits for them', async () => {
  const { task, untilRun } = await atWork()
  assert.equal(await change(task.id, { assigned_to: null }), 200)
  await untilRun('cancelled')
  await org.rounds()
  const after = await org.task(task.id)
  assert.deepEqual([after.status, after.assigned_to], ['pending', null])
  assert.equal(await change(task.id, { status: 'completed', result: 'By hand.' }), 200)
})

test('PATCH of any other field leaves a task under way alone', async () => {
  const { task, agent, runId } = await atWork()
  const fields = {
    title: 'Renamed',
    description: 'More.',
    priority: 'urgent',
    metadata: { a: 1 },
    assigned_to: agent.id,
  }
  assert.equal(await change(task.id, fields), 200)
  await org.rounds()
  const after = await org.task(task.id)
  assert.deepEqual([after.status, after.title, after.priority], ['in-progress', 'Renamed', 'urgent'])
  assert.equal((await org.read<{ status: string }>(`/runs/${runId}`)).status, 'running')
  await change(task.id, { status: 'cancelled' })
})

test('PATCH of a failed task to pending: the task is tried again from the start', async () => {
  const agent = await org.agent({}, { work: 'Now it works.' })
  await org.post(`/agents/${agent.id}/stop`)
  const { id } = await org.give({ title: 'Failed once', assigned_to: agent.id })
  await org.pool.query(
    `update tasks set status = 'failed', error_message = 'No.', completed_at = muster.now() where id = $1`,
    [id],
  )
  await org.post(`/agents/${agent.id}/start`)
  await org.rounds()
  assert.equal((await org.task(id)).status, 'failed')
  assert.equal(await change(id, { status: 'pending' }), 200)
  const done = await org.until(id, 'completed')
  assert.deepEqual([done.result, done.error_message], ['Now it works.', null])
})

/** A boss whose task was split into subtasks. The first of them is under way and hangs until the test releases it. */
async function split() {
  const gate = Promise.withResolvers<void>()
  const boss = await org.agent(
    {},
    {
      task_plan: (request: ModelRequest) => ({
        subtasks: textOf(request).includes('Task: Whole')
          ? [part('One', { id: '1' }), part('Two', { depends_on: ['1'] })]
          : [],
      }),
      work: (request) => ({
        text: 'Done.',
        ...(textOf(request).includes('Task: One') ? { waitFor: gate.promise } : {}),
      }),
    },
  )
  const whole = await org.give({ title: 'Whole', assigned_to: boss.id })
  await untilTrue(async () => boss.requests.length === 3, 'the first subtask is under way')
  const [one, two] = await org.subtasksOf(whole.id)
  return { boss, whole, one: one ?? assert.fail(), two: two ?? assert.fail(), gate }
}

test('a subtask that a person completes counts: its dependents get its result, and the parent completes', async () => {
  const { boss, whole, one, two } = await split()
  assert.equal(await change(one.id, { status: 'completed', result: 'By a person.' }), 200)
  const done = await org.until(whole.id, 'completed')
  assert.deepEqual(
    (done.result as Task[]).map(({ title, result }) => [title, result]), // as the contract says
    [
      ['One', 'By a person.'],
      ['Two', 'Done.'],
    ],
  )
  assert.match(textOf(boss.requests.at(-1) ?? assert.fail()), /One \(completed\): By a person\./)
  assert.equal((await org.task(two.id)).status, 'completed')
})

for (const status of ['completed', 'cancelled'] as const) {
  test(`a parent that a person sets to ${status} cancels its subtasks, also under way`, async () => {
    const { boss, whole, one, two } = await split()
    const run = (await org.runsOf(boss.id)).find(({ trigger }) => trigger.task_id === one.id)
    assert.equal(await change(whole.id, { status }), 200)
    for (const { id } of [one, two]) assert.equal((await org.task(id)).status, 'cancelled')
    await untilTrue(
      async () => (await org.runsOf(boss.id)).find(({ id }) => id === run?.id)?.status === 'cancelled',
      'the run of the subtask is cancelled',
    )
    await org.until((await org.give({ title: 'Next', assigned_to: boss.id })).id, 'completed')
    assert.equal((await org.task(whole.id)).status, status)
  })
}

test('a parent that a person sets to pending is planned anew, and its old subtasks are cancelled', async () => {
  const { boss, whole, gate } = await split()
  assert.equal(await change(whole.id, { status: 'pending' }), 200)
  gate.resolve()
  await org.until(whole.id, 'completed')
  assert.deepEqual(
    (await org.subtasksOf(whole.id)).map(({ title, status }) => [title, status]),
    [
      ['One', 'cancelled'],
      ['Two', 'cancelled'],
      ['One', 'completed'],
      ['Two', 'completed'],
    ],
  )
  const plans = boss.requests.filter((request) => request.answerSchema && textOf(request).includes('Task: Whole'))
  assert.equal(plans.length, 2)
})

test('a parent that was planned anew completes with the results of its new subtasks alone', async () => {
  const { boss, whole, gate } = await split()
  await change(whole.id, { status: 'pending' })
  gate.resolve()
  const { result } = await org.until(whole.id, 'completed')
  const asked = boss.requests.filter((request) => !request.answerSchema && textOf(request).includes('Task: Whole'))
  assert.deepEqual(asked, [], 'the agent has no attempt with the old results')
  assert.deepEqual(
    (result as Task[]).map(({ title, status }) => [title, status]), // as the contract says
    [
      ['One', 'completed'],
      ['Two', 'completed'],
    ],
  )
})

/** A task whose run waits for a person, and the question in the inbox. */
async function asking(question: string) {
  const agent = await org.agent(
    { tools: ['ask_human'] },
    {
      work: (request) =>
        request.prompt.some(({ role }) => role === 'tool')
          ? { text: `I was told ${textOf(request).includes('Blue') ? 'blue' : 'nothing'}.` }
          : { calls: [{ name: 'ask_human', args: { question } }] },
    },
  )
  const task = await org.give({ title: 'Asks', assigned_to: agent.id })
  await untilTrue(async () => (await org.runsOf(agent.id))[0]?.pause_reason === 'human', 'the run waits')
  const asked = (await org.list<Task>('/tasks?kind=escalation')).find(({ title }) => title === question)
  return { agent, task, asked: asked ?? assert.fail('nobody was asked') }
}

test('a task whose run waits for a person is in progress, and goes on with the answer', async () => {
  const { task, asked } = await asking('Which paint?')
  assert.equal((await org.task(task.id)).status, 'in-progress')
  await change(asked.id, { status: 'completed', result: 'Blue.' })
  assert.equal((await org.until(task.id, 'completed')).result, 'I was told blue.')
})

test('the cancel of a task whose run waits for a person ends the run', async () => {
  const { agent, task } = await asking('Shall I wait?')
  assert.equal(await change(task.id, { status: 'cancelled' }), 200)
  await untilTrue(async () => (await org.runsOf(agent.id))[0]?.status === 'cancelled', 'the run is cancelled')
})

test('the cancel of a task whose run waits for a person removes the question from the inbox', async () => {
  const { agent, task, asked } = await asking('Really?')
  await change(task.id, { status: 'cancelled' })
  await untilTrue(async () => (await org.runsOf(agent.id))[0]?.status === 'cancelled', 'the run is cancelled')
  assert.ok(!isOpen((await org.task(asked.id)).status))
})

test('an agent that is stopped and started while its run waits for a person keeps the answer and goes on', async () => {
  const { agent, task, asked } = await asking('Which colour?')
  await org.post(`/agents/${agent.id}/stop`)
  await change(asked.id, { status: 'completed', result: 'Blue.' })
  const calls = agent.requests.length
  await org.rounds(3)
  assert.equal(agent.requests.length, calls, 'a stopped agent calls no model')
  await org.post(`/agents/${agent.id}/start`)
  assert.equal((await org.until(task.id, 'completed')).result, 'I was told blue.')
})
