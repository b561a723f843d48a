// The engine's spec, task 3, the task processor: a task is read, planned, split, worked on with tools, and answered.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startMcpHttp } from '../../test/kit/mcp-http.ts'
import { createOrganisation, untilTrue, words } from '../../test/kit/organisation.ts'
import type { ModelRequest } from '../kernel/model-call.ts'
import type { Task } from '../kernel/task.ts'

const org = await createOrganisation({ poll_interval: 100, stuck_retry_limit: 0 })
const textOf = (request: ModelRequest | undefined): string => JSON.stringify(request?.prompt)
const asked = (requests: readonly ModelRequest[], name: string): ModelRequest[] =>
  requests.filter((request) => request.answerSchema?.name === name)
const part = (title: string, fields: object = {}) => ({ title, description: '', competencies: [], ...fields })
const breaks = { fail: { message: 'It is broken.', isRetryable: false } }

test('Read task description and context: the model sees title, description and the results that the task builds on', async () => {
  const agent = await org.agent(
    {},
    {
      task_plan: (request: ModelRequest) => ({
        subtasks: textOf(request).includes('The whole')
          ? [part('Count', { id: 'c' }), part('Tell', { depends_on: ['c'] })]
          : [],
      }),
      work: (request) => ({ text: textOf(request).includes('Task: Count') ? 'Forty-two.' : 'Told.' }),
    },
  )
  const given = await org.give({ title: 'The whole', description: 'All of it, please.', assigned_to: agent.id })
  await org.until(given.id, 'completed')
  const [plan] = asked(agent.requests, 'task_plan')
  assert.match(textOf(plan), /The whole[^"]*All of it, please\./)
  const last = textOf(agent.requests.at(-1))
  assert.match(last, /Task: Tell/)
  assert.match(last, /Results that this task builds on:[^"]*Count \(completed\): Forty-two\./)
})

test('Generate execution plan using LLM: task_plan is the first step of the run, in its journal and in its cost', async () => {
  const agent = await org.agent({}, { work: 'Done at once.' })
  const given = await org.give({ title: 'Small', assigned_to: agent.id })
  const task = await org.until(given.id, 'completed')
  assert.equal(task.result, 'Done at once.')
  assert.equal(asked(agent.requests, 'task_plan').length, 1)
  assert.deepEqual(asked(agent.requests, 'delegation_decision'), [], 'there is no subordinate to delegate to')
  const [run] = await org.runsOf(agent.id)
  const steps = await org.stepsOf(run?.id ?? '')
  assert.deepEqual(
    steps.map((step) => step.kind === 'model' && step.text),
    ['{"subtasks":[]}', 'Done at once.'],
  )
  assert.deepEqual([run?.step_count, run?.usage.total_tokens], [2, 30])
  assert.deepEqual(await org.subtasksOf(given.id), [])
})

const misfits: [string, unknown][] = [
  ['is no JSON', words('First this, then that.')],
  ['names a subtask that is not there', { subtasks: [part('A', { id: 'a', depends_on: ['z'] })] }],
  [
    'goes in a circle',
    { subtasks: [part('A', { id: 'a', depends_on: ['b'] }), part('B', { id: 'b', depends_on: ['a'] })] },
  ],
  ['depends on itself', { subtasks: [part('A', { id: 'a', depends_on: ['a'] })] }],
  ['has two subtasks with the same name', { subtasks: [part('A', { id: 'a' }), part('B', { id: 'a' })] }],
  ['has a blank title', { subtasks: [part('  ')] }],
  ['has an unknown field', { subtasks: [], confidence: 1 }],
]
for (const [name, plan] of misfits) {
  test(`a plan that ${name} is asked for once more with the reason; then the agent does the task itself`, async () => {
    const agent = await org.agent({}, { task_plan: plan, work: 'Done myself.' })
    const given = await org.give({ title: 'Plan', assigned_to: agent.id })
    assert.equal((await org.until(given.id, 'completed')).result, 'Done myself.')
    const plans = asked(agent.requests, 'task_plan')
    assert.equal(plans.length, 2)
    assert.match(textOf(plans[1]), /could not be used/)
    assert.deepEqual(await org.subtasksOf(given.id), [])
  })
}

test('Break complex tasks into subtasks: each begins once its dependencies are completed, and progress is counted', async () => {
  const gates = new Map(['A', 'B', 'C'].map((title) => [title, Promise.withResolvers<void>()]))
  const begun: string[] = []
  const agent = await org.agent(
    {},
    {
      task_plan: (request: ModelRequest) => ({
        subtasks: textOf(request).includes('Task: Big')
          ? [part('A', { id: 'a' }), part('B', { id: 'b', depends_on: ['a'] }), part('C', { depends_on: ['a', 'b'] })]
          : [],
      }),
      work: async (request) => {
        const title = /Task: (\w)/.exec(textOf(request))?.[1] ?? ''
        begun.push(title)
        await gates.get(title)?.promise
        return { text: `${title} is done.` }
      },
    },
  )
  await org.patchSettings({ task_batch_size: 5 })
  const given = await org.give({ title: 'Big', priority: 'high', assigned_to: agent.id })
  await untilTrue(async () => begun.length === 1, 'the first subtask is under way')
  await org.rounds()
  assert.deepEqual(begun, ['A'])
  const waiting = await org.task(given.id)
  assert.equal(waiting.status, 'in-progress')
  assert.deepEqual(waiting.progress, { done: 0, total: 3, note: 'Waits for 3 subtasks.' })
  const parts = await org.subtasksOf(given.id)
  assert.deepEqual(
    parts.map(({ title, status, priority, parent_task_id }) => [title, status, priority, parent_task_id]),
    [
      ['A', 'in-progress', 'high', given.id],
      ['B', 'pending', 'high', given.id],
      ['C', 'pending', 'high', given.id],
    ],
  )
  gates.get('A')?.resolve()
  await untilTrue(async () => begun.length === 2, 'the second subtask is under way')
  assert.equal((await org.task(given.id)).progress.done, 1)
  gates.get('B')?.resolve()
  gates.get('C')?.resolve()
  const task = await org.until(given.id, 'completed')
  assert.deepEqual(begun, ['A', 'B', 'C'])
  assert.deepEqual(task.progress, { done: 3, total: 3, note: null })
  await org.patchSettings({ task_batch_size: 1 })
})

test('subtasks below depth 3 are not planned again', async () => {
  const agent = await org.agent({}, { task_plan: { subtasks: [part('Deeper')] } })
  const given = await org.give({ title: 'Deep', assigned_to: agent.id })
  await org.until(given.id, 'completed')
  let depth = 0
  for (let [below] = await org.subtasksOf(given.id); below; [below] = await org.subtasksOf(below.id)) depth++
  assert.equal(depth, 3)
  assert.equal(asked(agent.requests, 'task_plan').length, 3)
})

test('Invoke tools via MCP client (when needed): the run of a task has its agent’s tools, and a failing tool does not end it', async () => {
  const { url } = await startMcpHttp()
  const made = await org.post('/mcp-servers', { name: 'fixture', url })
  assert.equal(made.status, 201, made.text)
  await org.post('/mcp-servers/fixture/approve')
  const agent = await org.agent(
    { tools: ['mcp:fixture/echo', 'mcp:fixture/fail'] },
    {
      work: ({ prompt, tools }) => {
        const results = prompt.filter(({ role }) => role === 'tool').length
        const called = ['echo', 'fail'][results]
        const name = tools.find((tool) => called !== undefined && tool.name.endsWith(called))?.name
        return name ? { calls: [{ name, args: { text: 'Hello.' } }] } : { text: 'It said hello.' }
      },
    },
  )
  const given = await org.give({ title: 'Say hello', assigned_to: agent.id })
  assert.equal((await org.until(given.id, 'completed')).result, 'It said hello.')
  const [run] = await org.runsOf(agent.id)
  const steps = (await org.stepsOf(run?.id ?? '')).filter((step) => step.kind === 'tool')
  assert.deepEqual(
    steps.map((step) => step.is_error),
    [false, true],
  )
  assert.match(JSON.stringify(steps[0]?.result), /Hello\./)
  for (const decision of asked(agent.requests, 'task_plan')) assert.deepEqual(decision.tools, [])
})

test('Update task status (in-progress → completed): each status has the run, the note and the time', async () => {
  const gate = Promise.withResolvers<void>()
  const agent = await org.agent({}, { work: { text: 'Done.', waitFor: gate.promise } })
  const given = await org.give({ title: 'Work', assigned_to: agent.id })
  assert.deepEqual([given.status, given.progress], ['pending', { done: 0, total: 1, note: null }])
  const working = await org.until(given.id, 'in-progress')
  assert.deepEqual([working.result, working.completed_at], [null, null])
  assert.deepEqual(working.progress, { done: 0, total: 1, note: 'Attempt 1 is running.' })
  gate.resolve()
  const done = await org.until(given.id, 'completed')
  assert.deepEqual(done.progress, { done: 1, total: 1, note: null })
  assert.ok((done.completed_at ?? '') >= given.created_at)
  const [run] = await org.runsOf(agent.id)
  assert.deepEqual([run?.status, run?.trigger], ['completed', { type: 'task', task_id: given.id }])
})

test('Handle task failure (mark as failed, report to senior): the task has the error, and the senior has one message and one task', async () => {
  const senior = await org.agent({ enabled: false })
  const agent = await org.agent({ senior_id: senior.id }, { work: breaks })
  const given = await org.give({ title: 'Fails', assigned_to: agent.id })
  const blocked = await org.until(given.id, 'blocked')
  assert.match(blocked.error_message ?? '', /It is broken\./)
  assert.deepEqual([blocked.result, blocked.completed_at], [null, null])
  const told = (await org.messagesOf(senior.id)).filter(({ kind }) => kind === 'escalation')
  assert.deepEqual(
    told.map(({ from, to, task_id }) => [from, to, task_id]),
    [[agent.id, senior.id, given.id]],
  )
  assert.match(told[0]?.body ?? '', /stuck on "Fails": It is broken\./)
  assert.equal((await org.tasksOf(senior.id)).length, 1)
})

for (const [name, fields, error] of [
  ['step_limit', { max_steps: 2, tools: ['task_list'] }, /step_limit/],
  ['timeout', { default_timeout: 300 }, /timeout/],
] as const) {
  test(`an attempt that ends with ${name} is a failed attempt, and the next one continues it`, async () => {
    await org.patchSettings({ grace_period: 0, stuck_retry_limit: 1 })
    const agent = await org.agent(fields, {
      work: () => (name === 'timeout' ? { text: 'so', waitFor: 'abort' } : { calls: [{ name: 'task_list' }] }),
    })
    const given = await org.give({ title: 'Limited', assigned_to: agent.id })
    assert.match((await org.until(given.id, 'blocked')).error_message ?? '', error)
    assert.equal((await org.agentNow(agent.id)).status, 'stuck')
    const [second, first] = await org.runsOf(agent.id)
    assert.deepEqual([first?.pause_reason, first?.resumed_from], [name, null])
    assert.deepEqual([second?.pause_reason, second?.resumed_from], [name, first?.id])
    assert.ok((second?.step_count ?? 0) >= (first?.step_count ?? 0), 'steps are counted on')
    await org.patchSettings({ stuck_retry_limit: 0 })
  })
}

test('a run of a task that is cancelled cancels its task', async () => {
  const agent = await org.agent({}, { work: { text: 'so far', waitFor: 'abort' } })
  const given = await org.give({ title: 'Cancelled', assigned_to: agent.id })
  await untilTrue(async () => agent.requests.length === 2, 'the work is under way')
  const [run] = await org.runsOf(agent.id)
  await org.post(`/runs/${run?.id}/cancel`)
  const task = await org.until(given.id, 'cancelled')
  assert.notEqual(task.completed_at, null)
  assert.equal((await org.agentNow(agent.id)).status, 'active')
})

test('Return structured results: the result is the summary unchanged, or the outcome of each subtask', async () => {
  const words = '{"looks": "like JSON", "and": "stays text"}'
  const alone = await org.agent({}, { work: words })
  const single = await org.give({ title: 'One', assigned_to: alone.id })
  assert.equal((await org.until(single.id, 'completed')).result, words)
  const agent = await org.agent(
    {},
    {
      task_plan: (request: ModelRequest) => ({
        subtasks: textOf(request).includes('Task: Two') ? [part('Left'), part('Right')] : [],
      }),
      work: (request) => ({ text: textOf(request).includes('Left') ? 'L' : 'R' }),
    },
  )
  const given = await org.give({ title: 'Two', assigned_to: agent.id })
  const { result } = await org.until(given.id, 'completed')
  const [left, right] = await org.subtasksOf(given.id)
  assert.deepEqual(result, [
    { task_id: left?.id, title: 'Left', status: 'completed', result: 'L' },
    { task_id: right?.id, title: 'Right', status: 'completed', result: 'R' },
  ])
})

test('a cancelled subtask cancels the subtasks that need it, and the parent has one attempt that sees this', async () => {
  const lifting = part('Lift', { id: 'l', competencies: ['lifting'] })
  const boss = await org.agent(
    {},
    { task_plan: { subtasks: [lifting, part('Pack', { depends_on: ['l'] })] }, work: 'Half of it.' },
  )
  const worker = await org.agent(
    { senior_id: boss.id, competencies: ['lifting'] },
    { work: { text: 'so far', waitFor: 'abort' } },
  )
  const given = await org.give({ title: 'Move', assigned_to: boss.id })
  await untilTrue(async () => worker.requests.length === 2, 'the worker is at work')
  const [lift] = await org.subtasksOf(given.id)
  assert.equal((await org.patch(`/tasks/${lift?.id}`, { status: 'cancelled' })).status, 200)
  const task = await org.until(given.id, 'completed')
  assert.equal(task.result, 'Half of it.')
  const [, pack] = await org.subtasksOf(given.id)
  assert.equal(pack?.status, 'cancelled')
  assert.match(pack.error_message ?? '', /depends on was not completed/)
  assert.match(textOf(boss.requests.at(-1)), /Lift \(cancelled\)[\s\S]*Pack \(cancelled\)/)
  assert.equal(asked(boss.requests, 'task_plan').length, 1, 'it is not planned again')
  await untilTrue(async () => (await org.runsOf(worker.id))[0]?.status === 'cancelled', 'its run is cancelled')
})

test('a very long title and description are cut in the decisions, and whole in the work', async () => {
  const title = 'T'.repeat(500)
  const description = `${'word '.repeat(39_990)}the very end`
  const boss = await org.agent(
    {},
    { delegation_decision: { delegate: true, subordinate: null, reasoning: 'x'.repeat(9_000) } },
  )
  const worker = await org.agent({ senior_id: boss.id })
  const given = await org.give({ title, description, assigned_to: boss.id })
  await org.until(given.id, 'completed')
  const [subtask] = await org.subtasksOf(given.id)
  assert.deepEqual([subtask?.title, subtask?.description], [title, description])
  for (const request of [...asked(boss.requests, 'delegation_decision'), ...asked(worker.requests, 'task_plan')]) {
    assert.ok(textOf(request).length < 25_000)
    assert.match(textOf(request), /\[cut\]/)
  }
  assert.match(textOf(worker.requests.at(-1)), /the very end/)
  assert.equal((await org.call(`POST ${org.base}/tasks`, { body: { title: `${title}T` } })).status, 400)
})

test('a very long result is whole in its task, and cut in the messages about it', async () => {
  const long = 'x'.repeat(30_000)
  const agent = await org.agent(
    {},
    {
      task_plan: (request: ModelRequest) => ({
        subtasks: textOf(request).includes('Task: All')
          ? [part('Long', { id: 'l' }), part('Short', { depends_on: ['l'] })]
          : [],
      }),
      work: (request) => ({ text: textOf(request).includes('Task: Long') ? long : 'Short.' }),
    },
  )
  const given = await org.give({ title: 'All', assigned_to: agent.id })
  const { result } = await org.until(given.id, 'completed')
  assert.equal((result as Task[])[0]?.result, long) // as the contract says
  assert.match(textOf(agent.requests.at(-1)), /x{20000} \[cut\]/)
})

test('a model that answers with an empty text has not done the task: it is tried again and then blocked', async () => {
  const agent = await org.agent({}, { work: { text: '' } })
  const given = await org.give({ title: 'Silence', assigned_to: agent.id })
  const blocked = await org.until(given.id, 'blocked')
  assert.match(blocked.error_message ?? '', /without saying anything/)
  assert.equal(blocked.result, null)
})

test('after empty answers to a decision the agent does the task itself', async () => {
  const agent = await org.agent({}, { task_plan: words(''), work: 'Done myself.' })
  const given = await org.give({ title: 'Silent plan', assigned_to: agent.id })
  const task = await untilTrue(async () => {
    const found = await org.task(given.id)
    return found.status === 'completed' || found.status === 'blocked' ? found : null
  }, 'it is done')
  assert.equal(task.result, 'Done myself.')
})

test('a result with characters that a database refuses is stored without them', async () => {
  const agent = await org.agent({}, { work: 'before\u0000after \ud800 end' })
  const given = await org.give({ title: 'Odd', assigned_to: agent.id })
  const task: Task = await org.until(given.id, 'completed')
  assert.match(String(task.result), /^before.?after .? end$/u)
})
