// Agents at work in a project whose tokens of the month are used up.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createOrganisation, untilTrue } from '../../test/kit/organisation.ts'
import { readMonth } from '../journal/month.ts'
import type { Run } from '../kernel/run.ts'

const org = await createOrganisation({ poll_interval: 100, stuck_retry_limit: 0 })
const costs = (inputTokens: number) => ({ usage: { inputTokens, outputTokens: 0, isEstimated: false } })
const used = async (): Promise<number> => (await readMonth(org.pool, org.project.id)).used
const limitTo = (limit: number | null) => org.patchSettings({ monthly_token_limit: limit })
const waits = (agentId: string): Promise<Run> =>
  untilTrue(async () => {
    const [run] = await org.runsOf(agentId)
    return run?.status === 'paused' && run.pause_reason === 'budget' ? run : null
  }, 'the run waits for tokens')
const attemptsOf = async (taskId: string): Promise<number> =>
  (await org.pool.query('select attempts from tasks where id = $1', [taskId])).rows[0].attempts

test('the decisions and the work of a task count, and the limit stops it between them', async () => {
  const boss = await org.agent({ name: 'decider' }, { work: { text: 'Done myself.', ...costs(30) } })
  await org.agent({ name: 'helper', senior_id: boss.id })
  const before = await used()
  // The decision about the delegation takes 15 tokens, the decision about a plan another 15.
  await limitTo(before + 16)
  const given = await org.give({ title: 'Decide first', assigned_to: boss.id })
  const run = await waits(boss.id)
  assert.deepEqual(
    boss.requests.map((request) => request.answerSchema?.name),
    ['delegation_decision', 'task_plan'],
  )
  assert.equal(await used(), before + 30)
  await limitTo(null)
  const task = await org.until(given.id, 'completed')
  assert.equal(task.result, 'Done myself.')
  assert.equal(await used(), before + 60)
  assert.equal(boss.requests.length, 3, 'no decision is paid twice')
  assert.deepEqual(
    (await org.runsOf(boss.id)).map(({ id }) => id),
    [run.id],
  )
})

test('a task that waits for the month uses up no attempt, and its agent stays as it is', async () => {
  const agent = await org.agent({ name: 'patient' }, { work: 'Done.' })
  await limitTo(0)
  const given = await org.give({ title: 'Wait', assigned_to: agent.id })
  await waits(agent.id)
  assert.equal((await org.task(given.id)).status, 'in-progress')
  assert.equal(await attemptsOf(given.id), 0)
  assert.equal((await org.agentNow(agent.id)).status, 'active')
  const told = await org.list<{ metadata: { exhaustedAgentId?: string } }>('/tasks?status=pending')
  assert.deepEqual(
    told.filter(({ metadata }) => metadata.exhaustedAgentId === agent.id),
    [],
  )
  await limitTo(null)
  await org.until(given.id, 'completed')
  assert.equal((await org.runsOf(agent.id)).length, 1)
})

test('the agent of a task that waits for the month can be stopped and started like any other', async () => {
  const agent = await org.agent({ name: 'stopped in between' }, { work: 'Done.' })
  await limitTo(0)
  const given = await org.give({ title: 'Stop me', assigned_to: agent.id })
  const run = await waits(agent.id)
  assert.equal((await org.post(`/agents/${agent.id}/stop`)).status, 200)
  await org.until(given.id, 'pending')
  const stopped = await org.read<Run>(`/runs/${run.id}`)
  assert.deepEqual([stopped.status, stopped.pause_reason], ['paused', 'stopped'])
  await limitTo(null)
  await org.post(`/agents/${agent.id}/start`)
  await org.until(given.id, 'completed')
})

test('a run that waits for the month is not resumed by hand, and can be cancelled', async () => {
  const agent = await org.agent({ name: 'by hand' }, { work: 'Done.' })
  await limitTo(0)
  const trigger = await org.post(`/agents/${agent.id}/trigger`, { input: 'Go.' })
  assert.equal(trigger.status, 200)
  assert.deepEqual([trigger.body.status, trigger.body.pause_reason], ['paused', 'budget'])
  const resumed = await org.post(`/runs/${trigger.body.id}/resume`, {})
  assert.equal(resumed.status, 409)
  assert.match(JSON.stringify(resumed.body), /waits for tokens/)
  assert.equal((await org.post(`/runs/${trigger.body.id}/cancel`)).status, 200)
  assert.equal((await org.read<Run>(`/runs/${trigger.body.id}`)).status, 'cancelled')
  await limitTo(null)
  assert.equal(agent.requests.length, 0)
})

test('an agent’s own allocation holds beside the limit of the month', async () => {
  const agent = await org.agent({ name: 'both', token_allocation: 1 }, { work: { text: 'Done.', ...costs(5) } })
  await limitTo(10_000_000)
  const given = await org.give({ title: 'Both', assigned_to: agent.id })
  await untilTrue(async () => (await org.agentNow(agent.id)).status === 'paused', 'the agent has used up its own')
  await org.until(given.id, 'pending')
  await limitTo(await used())
  await org.post(`/agents/${agent.id}/budget`, { add: 10_000 })
  await waits(agent.id)
  assert.equal((await org.agentNow(agent.id)).status, 'active')
  await limitTo(null)
  await org.until(given.id, 'completed')
})

test('in a project whose month is used up no further task is begun', async () => {
  const agent = await org.agent({ name: 'of a long queue' }, { work: 'Done.' })
  await limitTo(0)
  const tasks = []
  for (const title of ['First', 'Second', 'Third']) tasks.push(await org.give({ title, assigned_to: agent.id }))
  await waits(agent.id)
  await org.rounds(4)
  assert.deepEqual(await Promise.all(tasks.map(async ({ id }) => (await org.task(id)).status)), [
    'in-progress',
    'pending',
    'pending',
  ])
  await limitTo(null)
  for (const { id } of tasks) await org.until(id, 'completed')
})
