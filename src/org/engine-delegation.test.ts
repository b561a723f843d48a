// The engine's spec, task 4, the delegation engine: the model is asked for the assignee of a task, code checks the
// answer, and the choice is explained.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createOrganisation, untilTrue } from '../../test/kit/organisation.ts'
import { createScriptedModel } from '../../test/kit/scripted-model.ts'
import type { ModelRequest } from '../kernel/model-call.ts'
import type { Task } from '../kernel/task.ts'

const org = await createOrganisation({ poll_interval: 100, stuck_retry_limit: 0 })
const CHOOSE = { delegate: true, subordinate: null, reasoning: 'Somebody else.' }
const breaks = { fail: { message: 'It is broken.', isRetryable: false } }
const asked = (requests: readonly ModelRequest[], name: string): string[] =>
  requests.filter((request) => request.answerSchema?.name === name).map(({ prompt }) => JSON.stringify(prompt))
let teams = 0

/** A boss and its subordinates, by key. The agents have names that do not influence the choice. */
async function team<Name extends string>(decision: unknown, subordinates: Record<Name, Record<string, unknown>>) {
  const prefix = `team ${++teams}`
  const boss = await org.agent({ name: `${prefix} boss` }, { delegation_decision: decision, work: 'I did it myself.' })
  const made = {} as Record<Name, Awaited<ReturnType<typeof org.agent>>>
  for (const [name, fields] of Object.entries(subordinates) as [Name, Record<string, unknown>][]) {
    made[name] = await org.agent({ name: `${prefix} ${name}`, senior_id: boss.id, ...fields })
  }
  return { boss, ...made }
}

async function delegated(bossId: string, fields: Record<string, unknown>): Promise<Task | undefined> {
  const given = await org.give({ title: 'Do it', ...fields, assigned_to: bossId })
  await org.until(given.id, 'completed')
  return (await org.subtasksOf(given.id))[0]
}

test('Assess if agent should delegate (vs execute directly): the agent is asked first, with the available subordinates', async () => {
  const { boss, worker, stopped } = await team(undefined, {
    worker: { role: 'plumber', competencies: ['pipes', 'taps'], token_allocation: 5_000 },
    stopped: {},
  })
  await org.post(`/agents/${stopped.id}/stop`)
  const given = await org.give({ title: 'Mend the tap', description: 'It drips.', assigned_to: boss.id })
  assert.equal((await org.until(given.id, 'completed')).result, 'I did it myself.')
  assert.deepEqual(await org.subtasksOf(given.id), [])
  assert.deepEqual(
    boss.requests.map((request) => request.answerSchema?.name ?? 'work'),
    ['delegation_decision', 'task_plan', 'work'],
  )
  const [question = ''] = asked(boss.requests, 'delegation_decision')
  assert.match(question, /Mend the tap[^"]*It drips\./)
  assert.match(question, new RegExp(`${worker.name} \\(plumber\\): knows pipes, taps; 0 open tasks; 5000 tokens left`))
  assert.ok(!question.includes(stopped.name))
})

test('an agent whose subordinates are all unavailable is not asked, and does the task itself', async () => {
  const { boss, one, two } = await team(CHOOSE, { one: { enabled: false }, two: { token_allocation: 0 } })
  const given = await org.give({ title: 'Do it', assigned_to: boss.id })
  assert.equal((await org.until(given.id, 'completed')).result, 'I did it myself.')
  assert.deepEqual(asked(boss.requests, 'delegation_decision'), [])
  for (const { requests } of [one, two]) assert.deepEqual(requests, [])
})

test('Evaluate subordinate competencies: the subordinate with most of the needed competencies is chosen, not the first', async () => {
  const { boss, c } = await team(CHOOSE, {
    a: {},
    b: { competencies: ['German'] },
    c: { competencies: ['LAW', 'german'] },
    d: { competencies: ['law'] },
  })
  const task = await delegated(boss.id, { metadata: { competencies: ['german', 'law'] } })
  assert.equal(task?.assigned_to, c.id)
  assert.match(
    String(task.metadata.reasoning),
    /Somebody else\. It knows LAW, german; 0 open tasks and no token limit\./,
  )
  assert.deepEqual(task.metadata.competencies, ['german', 'law'])
})

test('Match task requirements to subordinate skills: whole words of title and description count', async () => {
  const { boss, b, c } = await team(CHOOSE, {
    a: { competencies: ['art'] },
    b: { competencies: ['Machine Learning'] },
    c: { competencies: ['writing'] },
  })
  const learned = await delegated(boss.id, { title: 'Start with machine-learning, please' })
  assert.equal(learned?.assigned_to, b.id, '"art" is in "start", which is another word')
  const written = await delegated(boss.id, { title: 'A letter', description: 'It needs (good) WRITING.' })
  assert.equal(written?.assigned_to, c.id)
})

test('among equally competent subordinates fewer open tasks decide, then more tokens left', async () => {
  const { boss, a, b, c, d } = await team(CHOOSE, {
    a: { competencies: ['x-rays'] },
    b: { competencies: ['x-rays'], token_allocation: 10_000 },
    c: { competencies: ['x-rays'], token_allocation: 20_000 },
    d: {},
  })
  const hold = Promise.withResolvers<void>()
  org.models.set(
    `of ${a.name}`,
    createScriptedModel((request) => {
      return request.answerSchema ? { text: '{"subtasks":[]}' } : { text: 'Done.', waitFor: hold.promise }
    }),
  )
  const busy = await org.give({ title: 'Busy', assigned_to: a.id })
  await org.until(busy.id, 'in-progress')
  assert.equal((await delegated(boss.id, { title: 'Read x-rays' }))?.assigned_to, c.id)
  hold.resolve()
  await org.until(busy.id, 'completed')
  assert.equal(
    (await delegated(boss.id, { title: 'Read x-rays' }))?.assigned_to,
    a.id,
    'an agent without a limit has the most tokens',
  )
  for (const { id } of [a, c]) await org.post(`/agents/${id}/stop`)
  assert.equal((await delegated(boss.id, { title: 'Read x-rays' }))?.assigned_to, b.id)
  assert.deepEqual(d.requests, [])
})

test('a task that needs no competency goes to the subordinate with the fewest tasks', async () => {
  const { boss, b } = await team(CHOOSE, { a: { competencies: ['cooking'] }, b: {} })
  const hold = Promise.withResolvers<void>()
  org.models.set(
    `of team ${teams} a`,
    createScriptedModel(() => ({ text: '{"subtasks":[]}', waitFor: hold.promise })),
  )
  const first = await org.give({ title: 'Anything', assigned_to: boss.id })
  const [busy] = await untilTrue(async () => {
    const found = await org.subtasksOf(first.id)
    return found.length > 0 ? found : null
  }, 'it is delegated')
  assert.notEqual(busy?.assigned_to, b.id)
  assert.equal((await delegated(boss.id, { title: 'Anything' }))?.assigned_to, b.id)
  hold.resolve()
  await org.until(first.id, 'completed')
})

test('Create delegation task in subordinate’s queue: the task has its parent, its delegator and the reason, and there is a message', async () => {
  let name = ''
  const { boss, worker } = await team(() => ({ delegate: true, subordinate: name, reasoning: 'It is good.' }), {
    worker: {},
  })
  name = worker.name
  const given = await org.give({
    title: 'Dig',
    description: 'A hole.',
    priority: 'urgent',
    assigned_to: boss.id,
    metadata: { depth: 2, competencies: ['digging'] },
  })
  const { result } = await org.until(given.id, 'completed')
  const [task] = await org.subtasksOf(given.id)
  const { title, description, priority, assigned_to, created_by, parent_task_id, metadata, kind, run_id } =
    task ?? given
  assert.deepEqual(
    { title, description, priority, assigned_to, created_by, parent_task_id, kind },
    {
      title: 'Dig',
      description: 'A hole.',
      priority: 'urgent',
      kind: 'work',
      assigned_to: worker.id,
      created_by: { type: 'agent', id: boss.id },
      parent_task_id: given.id,
    },
  )
  assert.equal(metadata.delegated_by, boss.id)
  assert.match(String(metadata.reasoning), /^It is good\. /)
  const [run] = await org.runsOf(boss.id)
  assert.deepEqual([run?.status, run?.id], ['completed', run_id])
  const told = (await org.messagesOf(worker.id)).filter(({ kind }) => kind === 'delegation')
  assert.deepEqual(
    told.map(({ from, to, task_id }) => [from, to, task_id]),
    [[boss.id, worker.id, task?.id]],
  )
  assert.deepEqual(result, [{ task_id: task?.id, title: 'Dig', status: 'completed', result: 'Done.' }])
})

test('Monitor delegated task progress: the parent task waits for it, and its agent works on other tasks meanwhile', async () => {
  const gate = Promise.withResolvers<void>()
  const { boss } = await team((request: ModelRequest) => {
    const isFirst = JSON.stringify(request.prompt).includes('Task: Long')
    return isFirst ? CHOOSE : { delegate: false, subordinate: null, reasoning: '' }
  }, {})
  const worker = await org.agent({ senior_id: boss.id }, { work: { text: 'Done.', waitFor: gate.promise } })
  const given = await org.give({ title: 'Long', assigned_to: boss.id })
  await untilTrue(async () => worker.requests.length === 2, 'the worker is at work')
  const waiting = await org.task(given.id)
  assert.equal(waiting.status, 'in-progress')
  assert.deepEqual([waiting.progress.done, waiting.progress.total], [0, 1])
  await org.until((await org.give({ title: 'Other', assigned_to: boss.id })).id, 'completed')
  gate.resolve()
  const done = await org.until(given.id, 'completed')
  assert.deepEqual(done.progress, { done: 1, total: 1, note: null })
  assert.equal(
    boss.requests.filter(({ answerSchema }) => !answerSchema).length,
    1,
    'the boss itself did only the other task',
  )
})

const interruptions: [what: string, happen: (agentId: string) => Promise<unknown>][] = [
  ['stopped', (id) => org.post(`/agents/${id}/stop`)],
  ['disabled', (id) => org.patch(`/agents/${id}`, { enabled: false })],
  ['deleted', (id) => org.call(`DELETE ${org.base}/agents/${id}`)],
  ['exhausted', (id) => org.pool.query('update agents set token_allocation = 1 where id = $1', [id])],
  ['stuck', async () => {}],
]
for (const [what, happen] of interruptions) {
  test(`Monitor delegated task progress: when its assignee is ${what}, the delegator gets one message`, async () => {
    const { boss } = await team(CHOOSE, {})
    const gate = Promise.withResolvers<void>()
    const worker = await org.agent(
      { senior_id: boss.id, tools: ['task_create'], token_allocation: 100_000 },
      {
        work: async () => {
          await gate.promise
          if (what === 'stuck') return breaks
          return { calls: [{ name: 'task_create', args: { title: 'Goes on' } }] }
        },
      },
    )
    const given = await org.give({ title: 'Delegated', assigned_to: boss.id })
    await untilTrue(async () => worker.requests.length === 2, 'the worker is at work')
    const [task] = await org.subtasksOf(given.id)
    await happen(worker.id)
    gate.resolve()
    if (what === 'exhausted') await org.untilAgent(worker.id, 'paused')
    if (what === 'stuck') await org.untilAgent(worker.id, 'stuck')
    const told = (await org.messagesOf(boss.id)).filter((message) => {
      return message.kind === 'delegation' && message.from === worker.id && message.task_id === task?.id
    })
    assert.equal(told.length, 1)
    assert.match(told[0]?.body ?? '', /"Delegated" waits/)
    await org.patch(`/tasks/${given.id}`, { status: 'cancelled' })
  })
}

test('Escalate to senior if no suitable subordinate: the agent does the task itself, and asks its senior if it gets stuck', async () => {
  const top = await org.agent({ enabled: false })
  const boss = await org.agent({ senior_id: top.id }, { delegation_decision: CHOOSE, work: breaks })
  const worker = await org.agent({ senior_id: boss.id, competencies: ['cooking'] })
  const given = await org.give({ title: 'Fly', metadata: { competencies: ['flying'] }, assigned_to: boss.id })
  await org.until(given.id, 'blocked')
  assert.deepEqual(await org.subtasksOf(given.id), [])
  assert.deepEqual(worker.requests, [])
  const [escalation] = await org.tasksOf(top.id)
  assert.deepEqual(escalation?.metadata, { blockedTaskId: given.id, blockedAgentId: boss.id })
})

test('delegated tasks keep their parent’s depth, and a task that an agent makes is one deeper, up to the limit', async () => {
  await org.patchSettings({ reaction_chain_limit: 2 })
  const made: unknown[] = []
  const { boss } = await team(CHOOSE, {})
  const worker = await org.agent(
    { senior_id: boss.id, tools: ['task_create'] },
    {
      work: ({ prompt }) => {
        if (prompt.some(({ role }) => role === 'tool')) return { text: 'Done.' }
        return { calls: [{ name: 'task_create', args: { title: `Made ${made.push(0)}`, assigned_to: worker.name } }] }
      },
    },
  )
  await org.until((await org.give({ title: 'Begin', assigned_to: boss.id })).id, 'completed')
  const inbox = await untilTrue(async () => {
    const found = await org.list<Task>('/tasks?kind=escalation&status=pending')
    return found.find(({ metadata }) => metadata.chainPair === `${worker.id} ${worker.id}`)
  }, 'people are told')
  assert.match(inbox.description, /"Made 2" was not made/)
  assert.deepEqual(
    (await org.tasksOf(worker.id)).map(({ title }) => title),
    ['Made 1', 'Begin'],
  )
  await org.patchSettings({ reaction_chain_limit: 8 })
})

test('a named subordinate is taken even if another knows more', async () => {
  let name = ''
  const { boss, a, b } = await team(() => ({ delegate: true, subordinate: name, reasoning: '' }), {
    a: { competencies: ['maps'] },
    b: {},
  })
  name = b.name
  assert.equal((await delegated(boss.id, { title: 'Draw maps' }))?.assigned_to, b.id)
  assert.deepEqual(a.requests, [])
})
