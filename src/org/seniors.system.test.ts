// Plans with dependencies, the tools of seniors, loops between agents, and deleted agents.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createOrganisation, untilTrue } from '../../test/kit/organisation.ts'
import type { Task } from '../kernel/task.ts'

const org = await createOrganisation({ poll_interval: 100 })

test('suitable agents carry out a plan in the order of its dependencies; its results complete the parent', async () => {
  const boss = await org.agent(
    { name: 'planner' },
    {
      task_plan: {
        subtasks: [
          { id: 'a', title: 'Research', description: 'Find facts.', competencies: ['research'] },
          { id: 'b', title: 'Write', description: 'Write it.', competencies: ['writing'], depends_on: ['a'] },
          { title: 'Check', description: 'Look at it.', competencies: [] },
        ],
      },
    },
  )
  const prompts: string[] = []
  const researcher = await org.agent(
    { name: 'researcher', senior_id: boss.id, competencies: ['Research'] },
    { work: 'Facts.' },
  )
  const writer = await org.agent(
    { name: 'scribe', senior_id: boss.id, competencies: ['writing'] },
    {
      work: (request) => {
        prompts.push(JSON.stringify(request.prompt))
        return { text: 'Text.' }
      },
    },
  )
  const given = await org.give({ title: 'A report', assigned_to: boss.id })
  const task = await org.until(given.id, 'completed')
  const subtasks = await org.subtasksOf(given.id)
  assert.deepEqual(
    subtasks.map(({ title, assigned_to }) => [title, assigned_to]),
    [
      ['Research', researcher.id],
      ['Write', writer.id],
      ['Check', boss.id],
    ],
  )
  assert.match(prompts[0] ?? '', /Results that this task builds on[\s\S]*Facts\./)
  assert.deepEqual(
    (task.result as { status: string }[]).map(({ status }) => status),
    ['completed', 'completed', 'completed'],
  )
  assert.deepEqual(task.progress, { done: 3, total: 3, note: null })
})

for (const [name, answer] of [
  ['names a stranger', { delegate: true, subordinate: 'stranger', reasoning: '' }],
  ['names a paused agent', { delegate: true, subordinate: 'sleeper', reasoning: '' }],
  ['is no JSON', 'YESTERDAY'],
  ['says yes in a text', { delegate: 'YES', subordinate: 'worker', reasoning: '' }],
] as const) {
  test(`a delegation answer that ${name} never delegates`, async () => {
    const boss = await org.agent({ name: `boss ${name}` }, { delegation_decision: answer, work: 'I did it myself.' })
    await org.agent({ name: `worker ${name}`, senior_id: boss.id })
    if (name === 'names a paused agent') {
      const sleeper = await org.agent({ name: 'sleeper', senior_id: boss.id })
      await org.post(`/agents/${sleeper.id}/stop`)
    }
    const given = await org.give({ title: 'Do it', assigned_to: boss.id })
    const task = await org.until(given.id, 'completed')
    assert.equal(task.result, 'I did it myself.')
    assert.deepEqual(await org.subtasksOf(given.id), [])
    const asked = boss.requests.filter((request) => request.answerSchema?.name === 'delegation_decision')
    assert.equal(asked.length, 2)
    assert.match(JSON.stringify(asked[1]?.prompt), /could not be used/)
  })
}

test('two agents that hand each other tasks endlessly stop at the limit, with the reason in the inbox', async () => {
  const handOn = (to: string) => ({
    work: (request: { prompt: readonly { role: string }[] }) =>
      request.prompt.some((message) => message.role === 'tool')
        ? { text: 'Handed on.' }
        : { calls: [{ name: 'task_create', args: { title: 'Your turn', assigned_to: to } }] },
  })
  const ping = await org.agent({ name: 'ping', tools: ['task_create'] }, handOn('pong'))
  const pong = await org.agent({ name: 'pong', tools: ['task_create'] }, handOn('ping'))
  await org.give({ title: 'Your turn', assigned_to: ping.id })
  const inbox = await untilTrue(async () => {
    const found = (await org.list<Task>('/tasks?kind=escalation&status=pending')).filter(
      ({ title }) => title === 'Agents give each other tasks endlessly',
    )
    return found.length > 0 ? found : null
  }, 'people are told')
  assert.equal(inbox.length, 1)
  const made = [...(await org.tasksOf(ping.id)), ...(await org.tasksOf(pong.id))]
  assert.equal(made.length, 8)
  const { rows } = await org.pool.query(`select from audit_log where action = 'task.refused'`)
  assert.equal(rows.length, 1)
})

test('deleting an agent hands its open tasks and its subordinates to its senior', async () => {
  const top = await org.agent({ name: 'top' })
  const middle = await org.agent({ name: 'middle', senior_id: top.id })
  const low = await org.agent({ name: 'low', senior_id: middle.id })
  for (const { id } of [top, middle]) await org.post(`/agents/${id}/stop`)
  const given = await org.give({ title: 'Orphan', assigned_to: middle.id })
  assert.equal((await org.call(`DELETE ${org.base}/agents/${middle.id}`)).status, 204)
  assert.equal((await org.task(given.id)).assigned_to, top.id)
  assert.equal((await org.agentNow(low.id)).senior_id, top.id)
})

test('the tasks of a disabled agent stay pending, and start when the agent is enabled', async () => {
  const agent = await org.agent({ name: 'switched', enabled: false })
  const given = await org.give({ title: 'Later', assigned_to: agent.id })
  assert.equal((await org.task(given.id)).status, 'pending')
  await org.patch(`/agents/${agent.id}`, { enabled: true })
  await org.until(given.id, 'completed')
})

test('a senior sees and changes the tasks of its direct subordinates, and no other tasks', async () => {
  let stranger = ''
  let theirs = ''
  const boss = await org.agent(
    { name: 'hands' },
    {
      work: (request) => {
        const done = request.prompt.filter((message) => message.role === 'tool').length
        const calls = [
          { name: 'task_list', args: { status: 'pending' } },
          { name: 'task_update', args: { id: theirs, status: 'cancelled' } },
          { name: 'task_update', args: { id: stranger, status: 'cancelled' } },
        ]
        const call = calls[done]
        return call ? { calls: [call] } : { text: 'Done.' }
      },
    },
  )
  const sub = await org.agent({ name: 'handled', senior_id: boss.id })
  const other = await org.agent({ name: 'foreign' })
  for (const { id } of [sub, other]) await org.post(`/agents/${id}/stop`)
  theirs = (await org.give({ title: 'Theirs', assigned_to: sub.id })).id
  stranger = (await org.give({ title: 'Strange', assigned_to: other.id })).id
  const given = await org.give({ title: 'Tidy up', assigned_to: boss.id })
  await org.until(given.id, 'completed')
  const steps = (await org.stepsOf((await org.runsOf(boss.id))[0]?.id ?? '')).filter((step) => step.kind === 'tool')
  assert.deepEqual(
    steps.map((step) => step.is_error),
    [false, false, true],
  )
  assert.equal((await org.task(theirs)).status, 'cancelled')
  assert.equal((await org.task(stranger)).status, 'pending')
  assert.match(JSON.stringify(steps[0]?.result), /Theirs/)
  assert.doesNotMatch(JSON.stringify(steps[0]?.result), /Strange/)
})
