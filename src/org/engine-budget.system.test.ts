// The engine's spec, task 6, the token budget enforcer: every call counts, and an agent that has used up its tokens
// asks for more.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createOrganisation, untilTrue } from '../../test/kit/organisation.ts'
import { recordLog } from '../../test/kit/record-log.ts'
import type { OrgAgent } from '../kernel/org.ts'
import type { Task } from '../kernel/task.ts'

const { log, lines } = recordLog()
const org = await createOrganisation({ poll_interval: 100, stuck_retry_limit: 0 }, { log })
/** A call that costs this many tokens. */
const costs = (inputTokens: number) => ({ usage: { inputTokens, outputTokens: 0, isEstimated: false } })
/** A plan costs this much in this file. */
const PLAN = 15
const silentSenior = () => org.agent({ enabled: false })
const budgetMessages = async (seniorId: string): Promise<string[]> =>
  (await org.messagesOf(seniorId))
    .filter(({ kind }) => kind === 'budget')
    .map(({ body }) => /90 %|95 %|used up/.exec(body)?.[0] ?? body)
    .reverse()
const asksFor = async (agentId: string): Promise<Task[]> =>
  (await org.list<Task>('/tasks')).filter(({ metadata }) => metadata.exhaustedAgentId === agentId).reverse()
const add = (agentId: string, tokens: unknown) => org.post(`/agents/${agentId}/budget`, { add: tokens })

test('Check token budget before each operation: also inside a task, between the decision and the work', async () => {
  const agent = await org.agent({ token_allocation: PLAN })
  const given = await org.give({ title: 'Two calls', assigned_to: agent.id })
  await org.untilAgent(agent.id, 'paused')
  const waiting = await org.until(given.id, 'pending')
  await org.rounds()
  assert.deepEqual(
    agent.requests.map((request) => request.answerSchema?.name),
    ['task_plan'],
  )
  assert.match(waiting.progress.note ?? '', /tokens/)
  await add(agent.id, 100_000)
  await org.until(given.id, 'completed')
  assert.deepEqual(
    agent.requests.map((request) => request.answerSchema?.name),
    ['task_plan', undefined],
    'the decision is not made twice',
  )
})

test('Calculate remaining tokens: used and allocated are in the agent, the tree and the question to its senior', async () => {
  const boss = await org.agent({})
  const agent = await org.agent(
    { name: 'counted', senior_id: boss.id, token_allocation: 5_000 },
    { work: { text: 'Done.', usage: { inputTokens: 200, outputTokens: 50, isEstimated: false } } },
  )
  await org.until((await org.give({ title: 'Work', assigned_to: agent.id })).id, 'completed')
  const used = 250 + PLAN
  assert.equal((await org.agentNow(agent.id)).token_used, used)
  const [run] = await org.runsOf(agent.id)
  assert.equal(run?.usage.total_tokens, used)
  const { items } = await org.read<{ items: OrgAgent[] }>('/org')
  const inTree = items.find(({ id }) => id === boss.id)?.subordinates[0]
  assert.deepEqual([inTree?.token_used, inTree?.token_allocation], [used, 5_000])
  await org.until((await org.give({ title: 'Ask', assigned_to: boss.id })).id, 'completed')
  assert.match(JSON.stringify(boss.requests[0]?.prompt), new RegExp(`counted: [^"]*; ${5_000 - used} tokens left`))
})

test('Enforce spending limits (stop if exhausted): the agent is paused, its task is handed back without an attempt, and no call follows', async () => {
  const agent = await org.agent({ token_allocation: 100 }, { work: { text: 'Done.', ...costs(200) } })
  const first = await org.give({ title: 'First', assigned_to: agent.id })
  // The last call may exceed the allocation: it was admitted while there were tokens.
  await org.until(first.id, 'completed')
  await org.untilAgent(agent.id, 'paused')
  const second = await org.give({ title: 'Second', assigned_to: agent.id })
  const calls = agent.requests.length
  await org.rounds()
  assert.deepEqual([(await org.task(second.id)).status, agent.requests.length], ['pending', calls])
  for (const verb of ['start', 'restart']) {
    const refused = await org.post(`/agents/${agent.id}/${verb}`)
    assert.deepEqual([refused.status, (await org.agentNow(agent.id)).status], [409, 'paused'], verb)
  }
  const triggered = await org.post(`/agents/${agent.id}/trigger`, { input: 'Now!' })
  assert.deepEqual([triggered.body.status, triggered.body.error_code], ['failed', 'BUDGET_EXHAUSTED'])
  await add(agent.id, 100_000)
  await org.until(second.id, 'completed')
})

test('Warn when approaching limit (90%, 95%): each warning goes once to the senior, the log and the audit, and not before', async () => {
  const senior = await silentSenior()
  const spends = [890, 10, 20, 30, 20, 30]
  const agent = await org.agent(
    { name: 'careful', senior_id: senior.id, token_allocation: 1_000 },
    { work: () => ({ text: 'Done.', ...costs(spends.shift() ?? 0) }) },
  )
  while (spends.length > 0) await org.post(`/agents/${agent.id}/trigger`, { input: 'Spend.' })
  await org.untilAgent(agent.id, 'paused')
  const bodies = (await org.messagesOf(senior.id)).filter(({ kind }) => kind === 'budget').map(({ body }) => body)
  assert.deepEqual(bodies.reverse(), [
    'careful has used 90 % (900 of 1000 tokens).',
    'careful has used 95 % (950 of 1000 tokens).',
    'careful has used up its tokens (1000 of 1000 tokens).',
  ])
  const marks = lines.filter(({ fields }) => fields.agent_id === agent.id && fields.mark !== undefined)
  assert.deepEqual(
    marks.map(({ level, fields }) => [level, fields.mark, fields.used]),
    [
      ['warn', 90, 900],
      ['warn', 95, 950],
      ['warn', 100, 1_000],
    ],
  )
  const { rows } = await org.pool.query<{ mark: number }>(
    `select (details->>'mark')::int as mark from audit_log where action = 'agent.budget' and target_id = $1 order by at, id`,
    [agent.id],
  )
  assert.deepEqual(
    rows.map(({ mark }) => mark),
    [90, 95, 100],
  )
})

test('a call that crosses both marks sends both messages, and does so again after a raised allocation', async () => {
  const senior = await silentSenior()
  const spends = [960, 910]
  const agent = await org.agent(
    { senior_id: senior.id, token_allocation: 1_000 },
    { work: () => ({ text: 'Done.', ...costs(spends.shift() ?? 0) }) },
  )
  await org.post(`/agents/${agent.id}/trigger`, { input: 'Spend.' })
  await untilTrue(async () => (await budgetMessages(senior.id)).length === 2, 'both were sent')
  assert.deepEqual((await budgetMessages(senior.id)).sort(), ['90 %', '95 %'])
  await add(agent.id, 1_000)
  await org.post(`/agents/${agent.id}/trigger`, { input: 'Spend.' })
  await untilTrue(async () => (await budgetMessages(senior.id)).length === 3, 'the next was sent')
  assert.equal((await budgetMessages(senior.id)).at(-1), '90 %')
})

test('Report to senior when budget exhausted: one message and one open task, even if many runs hit the limit', async () => {
  await org.patchSettings({ task_batch_size: 3 })
  const senior = await silentSenior()
  const agent = await org.agent({ name: 'spent', senior_id: senior.id, token_allocation: 3 * PLAN })
  const given = []
  for (const title of ['A', 'B', 'C', 'D']) given.push(await org.give({ title, assigned_to: agent.id }))
  await org.untilAgent(agent.id, 'paused')
  await org.rounds()
  assert.deepEqual((await budgetMessages(senior.id)).filter((text) => text === 'used up').length, 1)
  const [asked, ...others] = await asksFor(agent.id)
  assert.deepEqual(others, [])
  assert.deepEqual(
    [asked?.assigned_to, asked?.priority, asked?.status, asked?.metadata],
    [senior.id, 'high', 'pending', { exhaustedAgentId: agent.id }],
  )
  assert.match(asked?.description ?? '', /budget_add \{"agent":"spent","tokens":45\}/)
  for (const { id } of given) assert.notEqual((await org.task(id)).status, 'blocked')
  await add(agent.id, 100_000)
  for (const { id } of given) await org.until(id, 'completed')
  const answered = await org.task(asked?.id ?? '')
  assert.deepEqual([answered.status, answered.result], ['completed', 'Tokens were added.'])
  await org.patchSettings({ task_batch_size: 1 })
})

test('without a senior people are asked; after a task closed without a top-up, the next exhaustion asks them again', async () => {
  const agent = await org.agent({ token_allocation: 2 * PLAN })
  await org.until((await org.give({ title: 'Spends all', assigned_to: agent.id })).id, 'completed')
  await org.untilAgent(agent.id, 'paused')
  const [asked] = await asksFor(agent.id)
  assert.deepEqual([asked?.kind, asked?.assigned_to, asked?.status], ['escalation', null, 'pending'])
  await org.patch(`/tasks/${asked?.id}`, { status: 'completed', result: 'No.' })
  await org.rounds()
  assert.equal((await org.agentNow(agent.id)).status, 'paused')
  assert.equal((await asksFor(agent.id)).length, 1)
  await add(agent.id, PLAN)
  const next = await org.give({ title: 'Spends the rest', assigned_to: agent.id })
  await org.untilAgent(agent.id, 'paused')
  assert.deepEqual(
    (await asksFor(agent.id)).map(({ status }) => status),
    ['completed', 'pending'],
  )
  await org.until(next.id, 'pending')
  await org.rounds()
  await add(agent.id, 100_000)
  await org.until(next.id, 'completed')
  assert.equal((await asksFor(agent.id)).at(-1)?.status, 'completed')
})

test('Support budget top-ups (senior can allocate more): a senior’s model gives tokens, and the work goes on', async () => {
  const senior = await org.agent(
    { token_allocation: 50_000 },
    {
      work: async ({ prompt }) => {
        if (prompt.some(({ role }) => role === 'tool')) return { text: 'Given.' }
        await org.rounds()
        return { calls: [{ name: 'budget_add', args: { agent: 'needy', tokens: 9_000 } }] }
      },
    },
  )
  let calls = 0
  const agent = await org.agent(
    { name: 'needy', senior_id: senior.id, token_allocation: 100, tools: ['task_create'] },
    {
      work: () => {
        if (++calls > 1) return { text: 'Finished.' }
        return { calls: [{ name: 'task_create', args: { title: 'Made once' } }], ...costs(100) }
      },
    },
  )
  const given = await org.give({ title: 'Costly', assigned_to: agent.id })
  assert.equal((await org.until(given.id, 'completed')).result, 'Finished.')
  const [run, ...others] = await org.runsOf(agent.id)
  assert.deepEqual([run?.status, others], ['completed', []], 'the same run goes on')
  assert.equal(calls, 2)
  assert.equal((await org.list<Task>('/tasks')).filter(({ title }) => title === 'Made once').length, 1)
  assert.equal((await org.agentNow(agent.id)).token_allocation, 9_100)
  assert.equal((await org.agentNow(senior.id)).token_allocation, 41_000)
  await untilTrue(async () => (await org.runsOf(senior.id))[0]?.status === 'completed', 'the senior has finished')
  assert.equal((await asksFor(agent.id))[0]?.status, 'completed')
})

test('a top-up by people closes a request on which the senior is stuck, and frees the senior', async () => {
  const senior = await org.agent({}, { work: { fail: { message: 'No idea.', isRetryable: false } } })
  const agent = await org.agent({ senior_id: senior.id, token_allocation: PLAN })
  const given = await org.give({ title: 'Costly', assigned_to: agent.id })
  await org.untilAgent(senior.id, 'stuck')
  const stuckOn = (await asksFor(agent.id))[0] ?? assert.fail()
  assert.equal(stuckOn.status, 'blocked')
  assert.equal((await add(agent.id, 100_000)).status, 200)
  await org.until(given.id, 'completed')
  const { status, result } = await org.task(stuckOn.id)
  assert.deepEqual([status, result], ['completed', 'Tokens were added.'])
  assert.notEqual((await org.agentNow(senior.id)).status, 'stuck')
  const open = (await org.list<Task>('/tasks')).filter(({ metadata }) => metadata.blockedTaskId === stuckOn.id)
  assert.deepEqual(
    open.map((task) => task.status),
    ['cancelled'],
  )
})

test('a top-up by people ends the run of the senior that was asked, so that tokens are given once', async () => {
  const asked = Promise.withResolvers<void>()
  const senior = await org.agent(
    { token_allocation: 50_000 },
    {
      work: () => {
        asked.resolve()
        return { text: 'I think', waitFor: 'abort' }
      },
    },
  )
  const agent = await org.agent({ senior_id: senior.id, token_allocation: PLAN })
  const given = await org.give({ title: 'Costly', assigned_to: agent.id })
  await asked.promise
  await add(agent.id, 100_000)
  await org.until(given.id, 'completed')
  await untilTrue(async () => (await org.runsOf(senior.id))[0]?.status === 'cancelled', 'the run of the senior ends')
  assert.equal((await org.agentNow(agent.id)).token_allocation, PLAN + 100_000)
})

test('a raised or removed token_allocation resumes the work as well', async () => {
  for (const token_allocation of [100_000, null]) {
    const agent = await org.agent({ token_allocation: PLAN })
    const given = await org.give({ title: 'Waits', assigned_to: agent.id })
    await org.untilAgent(agent.id, 'paused')
    await org.until(given.id, 'pending')
    await org.rounds()
    const patched = await org.patch(`/agents/${agent.id}`, { token_allocation })
    assert.deepEqual([patched.status, patched.body.token_allocation], [200, token_allocation])
    await org.until(given.id, 'completed')
    assert.equal((await org.agentNow(agent.id)).status, 'active')
    assert.equal((await org.runsOf(agent.id)).length, 1)
  }
})

test('a top-up below the used tokens leaves the agent paused, and a larger top-up wakes it', async () => {
  const agent = await org.agent({ token_allocation: 100 }, { work: { text: 'Done.', ...costs(1_000) } })
  await org.until((await org.give({ title: 'Dear', assigned_to: agent.id })).id, 'completed')
  await org.untilAgent(agent.id, 'paused')
  assert.equal((await add(agent.id, 100)).body.status, 'paused')
  assert.equal((await asksFor(agent.id))[0]?.status, 'pending')
  assert.equal((await add(agent.id, 10_000)).body.status, 'active')
})

test('an allocation that is lowered below the used tokens stops the next call', async () => {
  const agent = await org.agent({ token_allocation: 1_000 })
  await org.until((await org.give({ title: 'Before', assigned_to: agent.id })).id, 'completed')
  assert.equal((await org.patch(`/agents/${agent.id}`, { token_allocation: 10 })).body.status, 'active')
  const calls = agent.requests.length
  const given = await org.give({ title: 'After', assigned_to: agent.id })
  await org.untilAgent(agent.id, 'paused')
  await org.until(given.id, 'pending')
  assert.equal(agent.requests.length, calls)
  assert.equal((await asksFor(agent.id)).length, 1)
})

test('tokens do not start an agent that a person stopped', async () => {
  const agent = await org.agent({ token_allocation: PLAN })
  const given = await org.give({ title: 'Waits', assigned_to: agent.id })
  await org.untilAgent(agent.id, 'paused')
  await org.until(given.id, 'pending')
  await org.post(`/agents/${agent.id}/stop`)
  assert.equal((await add(agent.id, 100_000)).body.status, 'paused')
  await org.rounds()
  assert.equal((await org.task(given.id)).status, 'pending')
  assert.equal((await org.post(`/agents/${agent.id}/start`)).body.status, 'active')
  await org.until(given.id, 'completed')
})

test('an admin may add whole positive numbers to an agent that has a limit; each top-up is in the audit', async () => {
  const limited = await org.agent({ token_allocation: 10 })
  const unlimited = await org.agent({})
  assert.equal((await add(unlimited.id, 5)).status, 409)
  for (const wrong of [0, -1, 1.5, '5', null, 1e15]) assert.equal((await add(limited.id, wrong)).status, 400)
  const { key } = await org.createKey(org.project.id, 'member')
  const path = `${org.base}/agents/${limited.id}/budget`
  assert.equal((await org.call(`POST ${path}`, { token: key, body: { add: 5 } })).status, 403)
  assert.equal((await add(limited.id, 5)).body.token_allocation, 15)
  const { rows } = await org.pool.query(
    `select details from audit_log where action = 'agent.budget' and target_id = $1`,
    [limited.id],
  )
  assert.deepEqual(rows, [{ details: { add: 5 } }])
})

test('a top-up that is sent twice with one Idempotency-Key adds its tokens once', async () => {
  const agent = await org.agent({ token_allocation: 1_000 })
  const send = () =>
    org.call(`POST ${org.base}/agents/${agent.id}/budget`, {
      body: { add: 100 },
      headers: { 'idempotency-key': 'once' },
    })
  assert.deepEqual([(await send()).status, (await send()).status], [200, 200])
  assert.equal((await org.agentNow(agent.id)).token_allocation, 1_100)
})

test('an agent without an allocation is never exhausted', async () => {
  const agent = await org.agent({}, { work: { text: 'Done.', ...costs(10_000_000) } })
  for (const title of ['A', 'B']) await org.until((await org.give({ title, assigned_to: agent.id })).id, 'completed')
  assert.equal((await org.agentNow(agent.id)).status, 'active')
  assert.ok(!lines.some(({ message, fields }) => /allocation/.test(message) && fields.agent_id === agent.id))
})
