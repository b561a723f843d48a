import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createOrganisation, untilTrue } from '../../test/kit/organisation.ts'

const org = await createOrganisation()

test('a restart of an agent whose call hangs ends the call, and the work goes on from the same point', async () => {
  let calls = 0
  const agent = await org.agent(
    { name: 'hanging', tools: ['task_create'] },
    {
      work: () => {
        calls++
        if (calls === 1) return { calls: [{ name: 'task_create', args: { title: 'Made before the restart' } }] }
        return calls === 2 ? { text: 'so far', waitFor: 'abort' } : { text: 'Finished.' }
      },
    },
  )
  const given = await org.give({ title: 'Long work', assigned_to: agent.id })
  await untilTrue(async () => calls === 2, 'the second call is under way')
  assert.equal((await org.post(`/agents/${agent.id}/restart`)).body.status, 'active')
  assert.equal((await org.until(given.id, 'completed')).result, 'Finished.')
  const [second, first] = await org.runsOf(agent.id)
  assert.equal(first?.pause_reason, 'stopped')
  assert.equal(second?.resumed_from, first?.id)
  const made = (await org.list<{ title: string }>('/tasks')).filter(({ title }) => title === 'Made before the restart')
  assert.equal(made.length, 1)
})

test('the run of a stopped agent cannot be resumed without its task', async () => {
  let calls = 0
  const agent = await org.agent(
    { name: 'stopped in a call' },
    { work: () => (++calls === 1 ? { text: 'so far', waitFor: 'abort' } : { text: 'Finished.' }) },
  )
  const given = await org.give({ title: 'Long work', assigned_to: agent.id })
  await untilTrue(async () => calls === 1, 'the call is under way')
  await org.post(`/agents/${agent.id}/stop`)
  await org.until(given.id, 'pending')
  const [run] = await org.runsOf(agent.id)
  const refused = await org.post(`/runs/${run?.id}/resume`, {})
  assert.equal(refused.status, 409)
  assert.match(JSON.stringify(refused.body), /attempt at an open task/)
  await org.post(`/agents/${agent.id}/start`)
  await org.until(given.id, 'completed')
  assert.equal(calls, 2)
})

test('any number of agents can be stopped, started and restarted at once', async () => {
  const senior = await org.agent({ name: 'senior of many' })
  await org.pool.query(
    `insert into agents (id, project_id, name, capabilities, senior_id)
     select gen_random_uuid(), $1, 'one of many ' || n, '{}', $2 from generate_series(1, 1200) n`,
    [org.project.id, senior.id],
  )
  const broke = await org.agent({ name: 'without tokens', token_allocation: 1 })
  await org.pool.query('insert into agent_tokens (agent_id, used) values ($1, 1)', [broke.id])
  const statuses = async (): Promise<Record<string, number>> => {
    const { rows } = await org.pool.query<{ status: string; count: number }>(
      'select status, count(*)::int from agents where project_id = $1 group by status',
      [org.project.id],
    )
    return Object.fromEntries(rows.map(({ status, count }) => [status, count]))
  }
  const all = Object.values(await statuses()).reduce((sum, count) => sum + count, 0)
  assert.equal((await org.post('/org/stop')).status, 200)
  assert.deepEqual(await statuses(), { paused: all })
  assert.equal((await org.post('/org/start')).status, 200)
  assert.deepEqual(await statuses(), { active: all - 1, paused: 1 })
  await org.post(`/agents/${senior.id}/stop`)
  assert.equal((await org.post('/org/restart')).status, 200)
  assert.deepEqual(await statuses(), { active: all - 1, paused: 1 })
})

test('the delegator of a task gets a message when the task’s agent is stuck', async () => {
  await org.patchSettings({ stuck_retry_limit: 0 })
  const senior = await org.agent(
    { name: 'delegator' },
    { delegation_decision: { delegate: true, subordinate: 'helpless', reasoning: 'It knows.' }, work: 'Try harder.' },
  )
  let calls = 0
  await org.agent(
    { name: 'helpless', senior_id: senior.id },
    {
      work: () =>
        ++calls === 1 ? { fail: { message: 'It cannot.', isRetryable: false } } : { text: 'Done after all.' },
    },
  )
  const given = await org.give({ title: 'Something hard', assigned_to: senior.id })
  await org.until(given.id, 'completed')
  const told = (await org.messagesOf(senior.id)).filter(
    ({ kind, body, to }) => kind === 'delegation' && to === senior.id && body.includes('is stuck'),
  )
  assert.equal(told.length, 1)
})

test('an attempt that reached its limit cannot be resumed without its task, and the task names the limit', async () => {
  await org.patchSettings({ stuck_retry_limit: 0 })
  const agent = await org.agent({ name: 'slow', default_timeout: 1 }, { work: 'so far' })
  const given = await org.give({ title: 'Takes long', assigned_to: agent.id })
  const blocked = await org.until(given.id, 'blocked')
  assert.match(blocked.error_message ?? '', /time limit of 1 ms/)
  const { items } = await org.read<{ items: { id: string; pause_reason: string }[] }>(`/runs?task_id=${given.id}`)
  assert.deepEqual(
    items.map((run) => run.pause_reason),
    ['timeout'],
  )
  const resumed = await org.post(`/runs/${items[0]?.id}/resume`, {})
  assert.equal(resumed.status, 409)
})

test('starting all agents lets paused agents work, and leaves a stuck agent stuck until it is helped', async () => {
  await org.patchSettings({ stuck_retry_limit: 0 })
  const stuck = await org.agent({ name: 'stuck' }, { work: { text: 'cut', finishReason: 'length' } })
  const given = await org.give({ title: 'Too hard', assigned_to: stuck.id })
  await org.until(given.id, 'blocked')
  const paused = await org.agent({ name: 'paused' })
  await org.post(`/agents/${paused.id}/stop`)
  await org.post('/org/start')
  assert.equal((await org.agentNow(paused.id)).status, 'active')
  assert.equal((await org.agentNow(stuck.id)).status, 'stuck')
  assert.equal((await org.task(given.id)).status, 'blocked')
})
