// The acceptance criteria of the engine's spec, each in its own words. That a graceful shutdown orphans no task is shown with
// real processes, in test/system/organisation-restart.system.test.ts.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createOrganisation, untilTrue } from '../../test/kit/organisation.ts'
import { recordLog } from '../../test/kit/record-log.ts'
import type { AgentMessage } from '../kernel/agent-message.ts'
import type { Model } from '../kernel/model-call.ts'
import type { AgentHealth } from '../kernel/org.ts'
import type { Settings } from '../kernel/project.ts'
import type { Task } from '../kernel/task.ts'

const { log, lines } = recordLog()
const org = await createOrganisation({ poll_interval: 100 }, { log })
const breaks = (message: string) => ({ fail: { message, isRetryable: false } })
const CHOOSE = { delegate: true, subordinate: null, reasoning: 'They know more.' }
const silentSenior = () => org.agent({ enabled: false })
const linesOf = (agentId: string, message: string) =>
  lines.filter((line) => line.message === message && line.fields.agent_id === agentId)

test('Agent manager can start/stop all agents', async () => {
  const top = await org.agent({})
  const middle = await org.agent({ senior_id: top.id })
  const low = await org.agent({ senior_id: middle.id })
  const statuses = async (): Promise<string[]> => {
    const found = []
    for (const { id } of [top, middle, low]) found.push((await org.agentNow(id)).status)
    return found
  }
  assert.equal((await org.post('/org/stop')).status, 200)
  assert.deepEqual(await statuses(), ['paused', 'paused', 'paused'])
  assert.ok((await org.list<AgentHealth>('/org/health')).every(({ running }) => !running))
  const given = await org.give({ title: 'Later', assigned_to: low.id })
  await org.rounds()
  assert.equal((await org.task(given.id)).status, 'pending')
  assert.equal((await org.post('/org/start')).status, 200)
  assert.deepEqual(await statuses(), ['active', 'active', 'active'])
  await org.until(given.id, 'completed')
})

test('Each agent polls its task queue independently', async () => {
  const gate = Promise.withResolvers<void>()
  const slow = await org.agent({}, { work: { text: 'At last.', waitFor: gate.promise } })
  const quick = await org.agent({}, { work: 'At once.' })
  const first = await org.give({ title: 'Slow', assigned_to: slow.id })
  await untilTrue(async () => slow.requests.length === 2, 'the slow agent is at work')
  for (const title of ['one', 'two', 'three']) {
    await org.until((await org.give({ title, assigned_to: quick.id })).id, 'completed')
  }
  assert.equal((await org.task(first.id)).status, 'in-progress')
  gate.resolve()
  await org.until(first.id, 'completed')
  for (const { id, requests } of [slow, quick]) {
    for (const run of await org.runsOf(id)) assert.equal((await org.task(String(run.trigger.task_id))).assigned_to, id)
    assert.equal(requests.length, id === slow.id ? 2 : 6)
  }
})

test('Tasks are processed with LLM integration', async () => {
  const agent = await org.agent(
    { prompt: 'You are a poet.', model: undefined, tools: ['task_create'] },
    { work: 'Roses are red.' },
  )
  const given = await org.give({ title: 'A poem', description: 'About roses.', assigned_to: agent.id })
  assert.equal((await org.until(given.id, 'completed')).result, 'Roses are red.')
  const [plan, work] = agent.requests
  assert.deepEqual(plan?.prompt[0], { role: 'system', content: 'You are a poet.' })
  assert.deepEqual(work?.prompt[0], { role: 'system', content: 'You are a poet.' })
  assert.match(JSON.stringify(work?.prompt[1]), /Task: A poem[^"]*About roses\./)
  assert.deepEqual(
    work?.tools.map(({ name }) => name),
    ['task_create'],
  )
})

test('Token budget is enforced (stop when exhausted)', async () => {
  const agent = await org.agent({ token_allocation: 40 })
  const given = []
  for (const title of ['one', 'two', 'three']) given.push(await org.give({ title, assigned_to: agent.id }))
  await org.untilAgent(agent.id, 'paused')
  await org.rounds(3)
  // There are two calls for the first task, and one more that was admitted with ten tokens left.
  assert.equal(agent.requests.length, 3)
  assert.equal((await org.agentNow(agent.id)).token_used, 45)
  assert.deepEqual(await Promise.all(given.map(async ({ id }) => (await org.task(id)).status)), [
    'completed',
    'pending',
    'pending',
  ])
})

test('Delegation logic works (managers delegate to subordinates)', async () => {
  const top = await org.agent({ name: 'chief' }, { delegation_decision: CHOOSE })
  const middle = await org.agent(
    { name: 'head of writing', senior_id: top.id, competencies: ['writing'] },
    { delegation_decision: CHOOSE },
  )
  await org.agent({ name: 'accountant', senior_id: top.id, competencies: ['numbers'] })
  const writer = await org.agent(
    { name: 'novelist', senior_id: middle.id, competencies: ['writing'] },
    { work: 'Once upon a time.' },
  )
  const given = await org.give({ title: 'Needs writing', assigned_to: top.id })
  const { result } = await org.until(given.id, 'completed')
  const [second] = await org.subtasksOf(given.id)
  const [third] = await org.subtasksOf(second?.id ?? '')
  assert.deepEqual([second?.assigned_to, third?.assigned_to], [middle.id, writer.id])
  assert.equal(third?.result, 'Once upon a time.')
  assert.deepEqual(result, [
    { task_id: second?.id, title: 'Needs writing', status: 'completed', result: second?.result },
  ])
  for (const { requests } of [top, middle]) assert.equal(requests.length, 1, 'a decision and nothing else')
})

test('Boredom detection triggers after idle period', async () => {
  const senior = await silentSenior()
  await org.patchSettings({ boredom_threshold: 400 })
  const agent = await org.agent({ senior_id: senior.id })
  await org.rounds(2)
  const created = Date.parse(agent.created_at)
  await org.untilAgent(agent.id, 'bored')
  await org.patchSettings({ boredom_threshold: 900_000 })
  const [told] = (await org.messagesOf(senior.id)).filter(({ kind }) => kind === 'status')
  assert.ok(Date.parse(told?.created_at ?? '') - created >= 400)
  assert.match(told?.body ?? '', /no task for 0\.4 seconds/)
  assert.equal((await org.tasksOf(senior.id)).length, 1)
})

test('Stuck detection triggers on task failure', async () => {
  const senior = await silentSenior()
  const agent = await org.agent({ senior_id: senior.id }, { work: breaks('No ink.') })
  const given = await org.give({ title: 'Print', assigned_to: agent.id })
  const blocked = await org.until(given.id, 'blocked')
  assert.equal((await org.runsOf(agent.id)).length, 4, 'one attempt and three retries, as the default says')
  assert.match(blocked.error_message ?? '', /No ink\./)
  assert.equal((await org.agentNow(agent.id)).status, 'stuck')
})

test('Status transitions are logged correctly', async () => {
  const agent = await org.agent({})
  await org.post(`/agents/${agent.id}/stop`)
  await org.post(`/agents/${agent.id}/stop`)
  await org.post(`/agents/${agent.id}/start`)
  const changes = linesOf(agent.id, 'the status of an agent changed')
  assert.deepEqual(
    changes.map(({ level, fields: { from, to, event, project_id } }) => ({ level, from, to, event, project_id })),
    [
      { level: 'info', from: 'active', to: 'paused', event: 'stop', project_id: org.project.id },
      { level: 'info', from: 'paused', to: 'active', event: 'start', project_id: org.project.id },
    ],
  )
})

test('Senior agents receive reports from subordinates', async () => {
  await org.patchSettings({ stuck_retry_limit: 0 })
  const senior = await silentSenior()
  const agent = await org.agent(
    { name: 'subordinate', senior_id: senior.id, token_allocation: 1_000 },
    {
      work: ({ prompt }) =>
        JSON.stringify(prompt).includes('Hard')
          ? breaks('No.')
          : { text: 'Done.', usage: { inputTokens: 900, outputTokens: 0, isEstimated: false } },
    },
  )
  await org.until((await org.give({ title: 'Easy', assigned_to: agent.id })).id, 'completed')
  await org.until((await org.give({ title: 'Hard', assigned_to: agent.id })).id, 'blocked')
  const kinds = async (): Promise<string[]> =>
    (await org.messagesOf(senior.id)).map(({ kind }: AgentMessage) => kind).sort()
  await untilTrue(async () => (await kinds()).length >= 4, 'all reports are there')
  assert.deepEqual(await kinds(), ['budget', 'completion', 'escalation', 'status'])
  for (const { from, to } of await org.messagesOf(senior.id)) assert.deepEqual([from, to], [agent.id, senior.id])
  await org.patchSettings({ stuck_retry_limit: 3 })
})

test('Agents update lastActiveAt on each operation', async () => {
  const seen: string[] = []
  const look = async (): Promise<void> => void seen.push((await org.agentNow(agent.id)).last_active_at ?? '')
  const agent = await org.agent(
    { tools: ['task_create'] },
    {
      task_plan: () => ({ subtasks: [] }),
      work: async ({ prompt }) => {
        await look()
        const results = prompt.filter(({ role }) => role === 'tool').length
        return results < 2 ? { calls: [{ name: 'task_create', args: { title: `${results}` } }] } : { text: 'Done.' }
      },
    },
  )
  await org.until((await org.give({ title: 'Steps', assigned_to: agent.id })).id, 'completed')
  await look()
  assert.equal(new Set(seen).size, 4)
  assert.deepEqual(seen, [...seen].sort())
})

test('Failed tasks are marked appropriately', async () => {
  await org.patchSettings({ stuck_retry_limit: 1 })
  const agent = await org.agent({}, { work: breaks('The disk is full.') })
  const given = await org.give({ title: 'Save', assigned_to: agent.id })
  const blocked = await org.until(given.id, 'blocked')
  assert.deepEqual([blocked.result, blocked.completed_at, blocked.progress.done], [null, null, 0])
  assert.match(blocked.error_message ?? '', /The disk is full\./)
  const runs = await org.runsOf(agent.id)
  assert.deepEqual(
    runs.map(({ status, error_code }) => [status, error_code]),
    [
      ['failed', 'MODEL_ERROR'],
      ['failed', 'MODEL_ERROR'],
    ],
  )
  const listed = await org.list<Task>('/tasks?status=blocked')
  assert.ok(listed.some(({ id }) => id === given.id))
})

test('Errors are logged with full context', async () => {
  const agent = await org.agent({}, { work: breaks('The line is dead.') })
  const given = await org.give({ title: 'Call', assigned_to: agent.id })
  await org.until(given.id, 'blocked')
  const failures = linesOf(agent.id, 'an attempt at a task failed')
  const runs = (await org.runsOf(agent.id)).reverse()
  assert.deepEqual(
    failures.map(({ level, fields }) => ({ level, ...fields })),
    runs.map(({ id }) => ({
      level: 'warn',
      operation: 'attempt.failed',
      agent_id: agent.id,
      task_id: given.id,
      run_id: id,
      project_id: org.project.id,
      correlation_id: given.id,
      error_code: 'MODEL_ERROR',
    })),
  )
  assert.equal(linesOf(agent.id, 'an agent is stuck and asks for help')[0]?.fields.task_id, given.id)
})

test('Stuck agents escalate to seniors', async () => {
  const senior = await silentSenior()
  const agent = await org.agent({ name: 'lost', senior_id: senior.id }, { work: breaks('Where am I?') })
  const given = await org.give({ title: 'Go', assigned_to: agent.id })
  await org.until(given.id, 'blocked')
  const [asked, ...others] = await org.tasksOf(senior.id)
  assert.deepEqual(others, [])
  const { title, priority, status, metadata, created_by } = asked ?? assert.fail()
  assert.deepEqual(
    { title, priority, status, metadata, created_by },
    {
      title: 'Agent lost is stuck',
      priority: 'high',
      status: 'pending',
      metadata: { blockedTaskId: given.id, blockedAgentId: agent.id },
      created_by: { type: 'agent', id: agent.id },
    },
  )
  assert.match(asked?.description ?? '', /lost is blocked on the task "Go"[\s\S]*Where am I\?/)
  await org.patchSettings({ stuck_retry_limit: 3 })
})

test('Agent loops recover from errors (retry)', async () => {
  const agent = await org.agent({})
  await org.pool.query(
    `select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`,
  )
  const given = await untilTrue(async () => {
    const answer = await org.post('/tasks', { title: 'After the cut', assigned_to: agent.id })
    return answer.status === 201 ? answer.body.id : null
  }, 'the task is taken')
  await org.until(String(given), 'completed')
  await org.rounds()
})

test('Poll interval is configurable (default 30s)', async () => {
  const fresh = await org.createProject('Fresh')
  const { body } = await org.call<Settings>(`GET /api/projects/${fresh.id}/settings`)
  assert.equal(body.poll_interval, 30_000)
  for (const poll_interval of [99, 0, -1, 100.5, '100', null]) {
    assert.equal((await org.patch('/settings', { poll_interval })).status, 400)
  }
  const heartbeats = async (count: number): Promise<number> => {
    const began = performance.now()
    await org.rounds(count)
    return (performance.now() - began) / count
  }
  assert.ok((await heartbeats(5)) < 300)
  await org.patchSettings({ poll_interval: 700 })
  await org.rounds(1)
  assert.ok((await heartbeats(1)) > 300)
  await org.patchSettings({ poll_interval: 100 })
})

test('Multiple agents run concurrently (no blocking)', async () => {
  const gate = Promise.withResolvers<void>()
  let atWork = 0
  const given = []
  for (let number = 0; number < 10; number++) {
    const agent = await org.agent(
      {},
      {
        work: async () => {
          atWork++
          await gate.promise
          return { text: 'Done.' }
        },
      },
    )
    given.push(await org.give({ title: 'At once', assigned_to: agent.id }))
  }
  await untilTrue(async () => atWork === 10, 'all ten agents are at work at once')
  gate.resolve()
  for (const { id } of given) await org.until(id, 'completed')
})

test('Token tracking is accurate', async () => {
  const usages = [
    { inputTokens: 100, outputTokens: 7 },
    { inputTokens: 200, outputTokens: 11 },
    { inputTokens: 300, outputTokens: 13 },
  ]
  const boss = await org.agent({ token_allocation: 1_000_000 }, { delegation_decision: CHOOSE })
  const agent = await org.agent(
    { senior_id: boss.id, token_allocation: 1_000_000, tools: ['task_create'] },
    {
      work: ({ prompt }) => {
        const usage = { ...usages.shift(), isEstimated: false }
        // The first call fails, the second calls a tool, the third answers.
        if (usages.length === 2) return { ...breaks('Once.'), usage }
        const isLast = prompt.some(({ role }) => role === 'tool')
        return isLast ? { text: 'Done.', usage } : { calls: [{ name: 'task_create', args: { title: 'x' } }], usage }
      },
    },
  )
  await org.until((await org.give({ title: 'Count', assigned_to: boss.id })).id, 'completed')
  const runs = await org.runsOf(agent.id)
  const used = (await org.agentNow(agent.id)).token_used
  // The second attempt continues the first, so the plan of 15 tokens is made once.
  assert.equal(used, 107 + 211 + 313 + 15)
  assert.equal(
    runs.reduce((sum, { usage }) => sum + usage.total_tokens, 0),
    used,
  )
  assert.equal((await org.agentNow(boss.id)).token_used, 15)
})

test('No memory leaks (long-running processes)', async (t) => {
  setFlagsFromString('--expose-gc')
  const collect: () => void = runInNewContext('gc')
  // This model keeps no requests; the other models of this file keep theirs.
  const model: Model = {
    contextTokens: 128_000,
    price: null,
    call: async ({ answerSchema }) => ({
      kind: 'answered',
      text: answerSchema ? '{"subtasks":[]}' : 'Done.',
      reasoning: [],
      calls: [],
      finishReason: 'stop',
      usage: { inputTokens: 1, outputTokens: 1, isEstimated: false },
    }),
  }
  const agents: string[] = []
  for (let number = 0; number < 10; number++) {
    const { id, name } = await org.agent({})
    org.models.set(`of ${name}`, model)
    agents.push(id)
  }
  const heapAfter = async (count: number): Promise<number> => {
    const given = await Promise.all(
      Array.from({ length: count }, (_, index) => org.give({ title: 'Many', assigned_to: agents[index % 10] })),
    )
    for (const { id } of given) await org.until(id, 'completed')
    lines.length = 0
    await org.rounds()
    collect()
    return process.memoryUsage().heapUsed
  }
  const timers = (): number => process.getActiveResourcesInfo().filter((type) => type === 'Timeout').length
  const before = await heapAfter(50)
  const timersBefore = timers()
  const grownBytes = (await heapAfter(50)) - before
  t.diagnostic(`50 tasks left ${grownBytes} bytes`)
  assert.ok(grownBytes < 500_000, `${grownBytes} bytes`)
  assert.ok(timers() <= timersBefore + 3, `${timers()} timers after ${timersBefore}`)
})
