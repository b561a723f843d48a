// Tokens of agents: warnings, the pause when an agent has none left, and its return to work.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createOrganisation, untilTrue } from '../../test/kit/organisation.ts'
import type { Task } from '../kernel/task.ts'

const org = await createOrganisation({ poll_interval: 100 })
/** Returns a model call that costs this many tokens. */
const costs = (inputTokens: number) => ({ usage: { inputTokens, outputTokens: 0, isEstimated: false } })

test('Token budget is enforced inside a task: it pauses, asks the senior once, and a top-up goes on where it stood', async () => {
  const senior = await org.agent({ name: 'treasurer' })
  await org.post(`/agents/${senior.id}/stop`)
  let calls = 0
  const agent = await org.agent(
    { name: 'spender', senior_id: senior.id, token_allocation: 1_000, tools: ['task_create'] },
    {
      work: () => {
        calls++
        if (calls === 1) return { calls: [{ name: 'task_create', args: { title: 'Made once' } }], ...costs(990) }
        return { text: 'Finished.', ...costs(10) }
      },
    },
  )
  const given = await org.give({ title: 'Costly', assigned_to: agent.id })
  await untilTrue(async () => (await org.agentNow(agent.id)).status === 'paused', 'the agent is paused')
  const waiting = await org.until(given.id, 'pending')
  assert.equal(waiting.result, null)
  const [run] = await org.runsOf(agent.id)
  assert.equal(run?.status, 'paused')
  assert.equal(run.pause_reason, 'budget')
  assert.equal(run.completed_at, null)
  const budget = (await org.messagesOf(senior.id)).filter(({ kind }) => kind === 'budget')
  assert.deepEqual(budget.map(({ body }) => /90 %|95 %|used up/.exec(body)?.[0]).sort(), ['90 %', '95 %', 'used up'])
  const asked = (await org.tasksOf(senior.id)).filter((task) => task.metadata.exhaustedAgentId === agent.id)
  assert.equal(asked.length, 1)

  assert.equal((await org.post(`/agents/${agent.id}/start`)).status, 409)
  const topUp = await org.post(`/agents/${agent.id}/budget`, { add: 100_000 })
  assert.equal(topUp.status, 200)
  assert.equal(topUp.body.status, 'active')
  const done = await org.until(given.id, 'completed')
  assert.equal(done.result, 'Finished.')
  assert.equal((await org.runsOf(agent.id)).length, 1, 'the same run goes on')
  assert.equal((await org.task(asked[0]?.id ?? '')).status, 'completed')
  const made = (await org.list<Task>('/tasks')).filter(({ title }) => title === 'Made once')
  assert.equal(made.length, 1)
})

test('a task whose agent has no tokens before the first call waits, and the wait counts as no attempt', async () => {
  const agent = await org.agent({ name: 'poor', token_allocation: 0 })
  const given = await org.give({ title: 'Waits', assigned_to: agent.id })
  await untilTrue(async () => (await org.runsOf(agent.id))[0]?.status === 'paused', 'the run is paused')
  await org.until(given.id, 'pending')
  await org.patch(`/agents/${agent.id}`, { token_allocation: 100_000 })
  await org.until(given.id, 'completed')
  const runs = await org.runsOf(agent.id)
  assert.deepEqual(
    runs.map((run) => run.status),
    ['completed'],
  )
})

test('a senior gives a subordinate tokens from its own allocation, and no more than it has', async () => {
  const results: unknown[] = []
  const senior = await org.agent(
    { name: 'giver', token_allocation: 100_000 },
    {
      work: (request) => {
        const results = request.prompt.filter((message) => message.role === 'tool').length
        const sums = [50_000, 1_000_000]
        if (results < sums.length) {
          return { calls: [{ name: 'budget_add', args: { agent: 'taker', tokens: sums[results] } }] }
        }
        return { text: 'Given.' }
      },
    },
  )
  const taker = await org.agent({ name: 'taker', senior_id: senior.id, token_allocation: 10 })
  const given = await org.give({ title: 'Fund them', assigned_to: senior.id })
  await org.until(given.id, 'completed')
  const steps = (await org.stepsOf((await org.runsOf(senior.id))[0]?.id ?? '')).filter((step) => step.kind === 'tool')
  for (const step of steps) results.push(step.is_error)
  assert.deepEqual(results, [false, true])
  assert.equal((await org.agentNow(taker.id)).token_allocation, 50_010)
  assert.equal((await org.agentNow(senior.id)).token_allocation, 50_000)
  const { rows } = await org.pool.query(`select from audit_log where action = 'budget.refused' and actor_id = $1`, [
    senior.id,
  ])
  assert.equal(rows.length, 1)
})

test('monthly_token_limit: every model call of the project counts, and runs go on when the limit is raised', async () => {
  const agent = await org.agent({ name: 'monthly' }, { work: { text: 'Done.', ...costs(100) } })
  const { rows } = await org.pool.query(
    `select coalesce(sum(month_used), 0)::int as used from agent_tokens t join agents a on a.id = t.agent_id
     where a.project_id = $1`,
    [org.project.id],
  )
  await org.patchSettings({ monthly_token_limit: rows[0].used })
  const given = await org.give({ title: 'Waits for the month', assigned_to: agent.id })
  const run = await untilTrue(async () => {
    const [found] = await org.runsOf(agent.id)
    return found?.status === 'paused' ? found : null
  }, 'the run waits')
  assert.equal(run.pause_reason, 'budget')
  assert.equal(run.completed_at, null)
  assert.equal((await org.task(given.id)).status, 'in-progress')
  assert.equal((await org.agentNow(agent.id)).status, 'active')
  await org.patchSettings({ monthly_token_limit: 10_000_000 })
  await org.until(given.id, 'completed')
  assert.deepEqual(
    (await org.runsOf(agent.id)).map(({ id }) => id),
    [run.id],
  )
  await org.patchSettings({ monthly_token_limit: null })
})

test('a request for tokens cannot be completed while the agent still has none', async () => {
  const agent = await org.agent({ name: 'broke', token_allocation: 0 })
  const given = await org.give({ title: 'Waits for tokens', assigned_to: agent.id })
  const asks = (task: Task) => task.metadata.exhaustedAgentId === agent.id && task.status === 'pending'
  const [asked] = await untilTrue(async () => {
    const open = (await org.list<Task>('/tasks?kind=escalation')).filter(asks)
    return open.length === 1 && open
  }, 'people are asked')
  assert.match(asked?.description ?? '', new RegExp(`POST /api/projects/[^ ]+/agents/${agent.id}/budget`))
  const answer = await org.patch(`/tasks/${asked?.id}`, { status: 'completed', result: 'Go on.' })
  assert.equal(answer.status, 409)
  assert.match(JSON.stringify(answer.body), /broke has no tokens yet/)
  await org.post(`/agents/${agent.id}/budget`, { add: 10_000 })
  await org.until(given.id, 'completed')
  assert.equal((await org.task(asked?.id ?? '')).status, 'completed')
})

test('people are asked after a senior that was asked for tokens and gave none', async () => {
  const senior = await org.agent({ name: 'miser' }, { work: 'There is nothing left this year.' })
  const agent = await org.agent({ name: 'beggar', senior_id: senior.id, token_allocation: 0 })
  const given = await org.give({ title: 'Waits for long', assigned_to: agent.id })
  const asked = await untilTrue(
    async () =>
      (await org.list<Task>('/tasks?kind=escalation')).find((task) => task.metadata.exhaustedAgentId === agent.id),
    'people are asked',
  )
  assert.match(asked.description, /nothing left this year/)
  assert.equal((await org.agentNow(agent.id)).paused_for, 'budget')
  await org.post(`/agents/${agent.id}/budget`, { add: 10_000 })
  await org.until(given.id, 'completed')
  assert.equal((await org.task(asked.id)).status, 'completed')
})
