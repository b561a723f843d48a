// The engine's spec, task 1, the agent manager: agents are started, watched, stopped and started again.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createOrganisation, untilTrue } from '../../test/kit/organisation.ts'
import { newId } from '../kernel/id.ts'
import type { AgentHealth, OrgAgent } from '../kernel/org.ts'
import type { Task } from '../kernel/task.ts'

const org = await createOrganisation({ poll_interval: 100, stuck_retry_limit: 0 })
const health = async (agentId: string): Promise<AgentHealth | undefined> =>
  (await org.list<AgentHealth>('/org/health')).find((each) => each.agent_id === agentId)
const hangs = { text: 'so far', waitFor: 'abort' } as const

test('Start agent execution loops for all active agents: each agent works from its creation; a stopped or disabled agent does not', async () => {
  const agents = [await org.agent({}), await org.agent({}), await org.agent({})]
  const stopped = await org.agent({})
  await org.post(`/agents/${stopped.id}/stop`)
  const disabled = await org.agent({ enabled: false })
  const idle = []
  for (const { id } of [stopped, disabled]) idle.push(await org.give({ title: 'Waits', assigned_to: id }))
  const given = []
  for (const { id } of agents) given.push(await org.give({ title: 'Work', assigned_to: id }))
  for (const { id } of given) await org.until(id, 'completed')
  await org.rounds()
  for (const { id } of idle) assert.equal((await org.task(id)).status, 'pending')
  for (const { id } of [stopped, disabled]) assert.deepEqual(await org.runsOf(id), [])
})

test('Track running agent processes: health says of every agent whether its loop runs', async () => {
  const running = await org.agent({})
  const stopped = await org.agent({})
  await org.post(`/agents/${stopped.id}/stop`)
  const disabled = await org.agent({ enabled: false })
  assert.equal((await health(running.id))?.running, true)
  assert.equal((await health(stopped.id))?.running, false)
  assert.equal((await health(disabled.id))?.running, false)
  await org.post(`/agents/${stopped.id}/start`)
  assert.equal((await health(stopped.id))?.running, true)
  await org.call(`DELETE ${org.base}/agents/${running.id}`)
  assert.equal(await health(running.id), undefined)

  const page = await org.read<{ items: AgentHealth[]; next_cursor: string | null }>('/org/health?limit=2')
  assert.equal(page.items.length, 2)
  assert.notEqual(page.next_cursor, null)
})

test('Monitor agent health (heartbeat): the heartbeat moves with every round, and a round writes nothing to idle agents', async () => {
  const { id } = await org.agent({})
  await org.until((await org.give({ title: 'Before', assigned_to: id })).id, 'completed')
  const written = async (): Promise<unknown> => {
    const { rows } = await org.pool.query(
      `select (select xmin::text from agents where id = $1) as agent,
         (select xmin::text from agent_tokens where agent_id = $1) as tokens,
         (select xmin::text from task_queues where agent_id = $1) as queue`,
      [id],
    )
    return rows[0]
  }
  await org.rounds()
  const before = await written()
  const first = (await health(id))?.heartbeat_at ?? ''
  await org.rounds()
  const second = (await health(id))?.heartbeat_at ?? ''
  assert.ok(second > first, `${second} is not after ${first}`)
  assert.ok(((await org.agentNow(id)).last_polled_at ?? '') >= second)
  assert.deepEqual(await written(), before)
})

test('Handle graceful shutdown (stop all agents): every task under way is handed back, and start goes on with each', async () => {
  let hanging = true
  const work = () => (hanging ? hangs : { text: 'Finished.' })
  const agents = [await org.agent({}, { work }), await org.agent({}, { work })]
  const given = []
  for (const { id } of agents) given.push(await org.give({ title: 'Long work', assigned_to: id }))
  for (const { requests } of agents) await untilTrue(async () => requests.length === 2, 'the work is under way')
  const answer = await org.post('/org/stop')
  assert.equal(answer.status, 200)
  const all = (items: OrgAgent[]): OrgAgent[] => items.flatMap((item) => [item, ...all(item.subordinates)])
  const statuses = new Set(all(answer.body.items as OrgAgent[]).map(({ status }) => status)) // as the schema says
  assert.deepEqual([...statuses], ['paused'])
  for (const { id } of given) await org.until(id, 'pending')
  assert.deepEqual(await org.list<Task>('/tasks?status=in-progress'), [])
  for (const { id } of agents) {
    const [run] = await org.runsOf(id)
    assert.deepEqual([run?.status, run?.pause_reason], ['paused', 'stopped'])
  }
  hanging = false
  assert.equal((await org.post('/org/start')).status, 200)
  for (const { id } of given) assert.equal((await org.until(id, 'completed')).result, 'Finished.')
})

test('a stop and a start of all agents leave an agent without tokens paused, and start every other agent', async () => {
  const broke = await org.agent({ token_allocation: 0 })
  const other = await org.agent({})
  await org.post('/org/stop')
  const answer = await org.post('/org/start')
  assert.equal(answer.status, 200)
  assert.equal((await org.agentNow(other.id)).status, 'active')
  assert.equal((await org.agentNow(broke.id)).status, 'paused')
})

test('Restart failed agents: a failed loop goes on by itself, and a stuck agent works again after a restart', async () => {
  const worker = await org.agent({})
  // A sequence keeps its count even if the transaction is rolled back.
  await org.pool.query(
    `create sequence failures;
     create function fail() returns trigger language plpgsql as $$
       begin perform nextval('failures'); raise exception 'no round today'; end $$;
     create trigger fail before insert on agent_runs for each row execute function fail()`,
  )
  const failures = async (): Promise<number> =>
    (await org.pool.query('select case when is_called then last_value else 0 end::int as n from failures')).rows[0].n
  const given = await org.give({ title: 'Given while the loop fails', assigned_to: worker.id })
  await untilTrue(async () => (await failures()) > 0, 'the loop has failed')
  await untilTrue(async () => (await failures()) > 1, 'the loop tries again')
  assert.equal((await org.task(given.id)).status, 'pending')
  await org.pool.query('drop trigger fail on agent_runs')
  await org.until(given.id, 'completed')

  let broken = true
  const agent = await org.agent(
    {},
    { work: () => (broken ? { fail: { message: 'It is broken.', isRetryable: false } } : { text: 'It works.' }) },
  )
  const blocked = await org.give({ title: 'Fails', assigned_to: agent.id })
  await org.until(blocked.id, 'blocked')
  const asked = (await org.list<Task>('/tasks?kind=escalation')).find((t) => t.metadata.blockedTaskId === blocked.id)
  assert.equal(asked?.status, 'pending')
  broken = false
  const restarted = await org.post(`/agents/${agent.id}/restart`)
  assert.deepEqual([restarted.status, restarted.body.status], [200, 'active'])
  await org.until(blocked.id, 'completed')
  assert.equal((await org.task(asked.id)).status, 'cancelled')
})

test('after a restart the agent runs, from any status: active, in mid-task, bored or stopped', async () => {
  let hanging = true
  const agent = await org.agent({}, { work: () => (hanging ? { ...hangs, waitFor: gate.promise } : { text: 'x' }) })
  const gate = Promise.withResolvers<void>()
  const restart = async (): Promise<unknown> => (await org.post(`/agents/${agent.id}/restart`)).body.status
  assert.equal(await restart(), 'active')
  const given = await org.give({ title: 'Long', assigned_to: agent.id })
  await untilTrue(async () => agent.requests.length === 2, 'the work is under way')
  assert.equal(await restart(), 'active')
  hanging = false
  gate.resolve()
  await org.until(given.id, 'completed')
  await org.pool.query(`update agents set status = 'bored' where id = $1`, [agent.id])
  assert.equal(await restart(), 'active')
  await org.post(`/agents/${agent.id}/stop`)
  assert.equal(await restart(), 'active')
  await org.until((await org.give({ title: 'After', assigned_to: agent.id })).id, 'completed')
})

test('Expose management API (start/stop/restart): each call answers 200 and the agent, also when repeated; other roles are refused', async () => {
  const agent = await org.agent({})
  const verbs = [
    ['start', 'active'],
    ['start', 'active'],
    ['stop', 'paused'],
    ['stop', 'paused'],
    ['restart', 'active'],
    ['stop', 'paused'],
    ['start', 'active'],
  ] as const
  for (const [verb, status] of verbs) {
    const answer = await org.post(`/agents/${agent.id}/${verb}`)
    assert.deepEqual([answer.status, answer.body.id, answer.body.status], [200, agent.id, status], verb)
  }
  const { rows } = await org.pool.query<{ action: string }>(
    `select action from audit_log where target_id = $1 and action in ('agent.start', 'agent.stop', 'agent.restart') order by at, id`,
    [agent.id],
  )
  assert.deepEqual(
    rows.map(({ action }) => action),
    ['agent.stop', 'agent.restart', 'agent.stop', 'agent.start'],
    'a call that changes nothing is not audited',
  )

  const { key: member } = await org.createKey(org.project.id, 'member')
  const other = await org.createProject('Another')
  for (const verb of ['start', 'stop', 'restart']) {
    const path = `agents/${agent.id}/${verb}`
    assert.equal((await org.call(`POST ${org.base}/${path}`, { token: member })).status, 403)
    assert.equal((await org.call(`POST ${org.base}/agents/${newId()}/${verb}`)).status, 404)
    assert.equal((await org.call(`POST ${org.base}/agents/nobody/${verb}`)).status, 404)
    assert.equal((await org.call(`POST /api/projects/${other.id}/${path}`)).status, 404)
    assert.equal((await org.call(`POST ${org.base}/${path}`, { body: { force: true } })).status, 400)
  }
  for (const verb of ['start', 'stop']) {
    assert.equal((await org.call(`POST ${org.base}/org/${verb}`, { token: member })).status, 403)
  }
  assert.equal((await org.agentNow(agent.id)).status, 'active')
})

test('max_concurrent_agents: at most that many agents work at once; an agent whose task waits for a person does not count', async () => {
  await org.patchSettings({ max_concurrent_agents: 2 })
  let atWork = 0
  let most = 0
  const gate = Promise.withResolvers<void>()
  const work = async () => {
    most = Math.max(most, ++atWork)
    await gate.promise
    atWork--
    return { text: 'Done.' }
  }
  const asker = await org.agent(
    { tools: ['ask_human'] },
    {
      work: ({ prompt }) =>
        prompt.some(({ role }) => role === 'tool')
          ? { text: 'Answered.' }
          : { calls: [{ name: 'ask_human', args: { question: 'May I?' } }] },
    },
  )
  const asking = await org.give({ title: 'Ask', assigned_to: asker.id })
  const question = await untilTrue(
    async () => (await org.list<Task>('/tasks?kind=escalation&status=pending')).find(({ title }) => title === 'May I?'),
    'a person is asked',
  )
  const agents = []
  for (let number = 0; number < 5; number++) agents.push(await org.agent({}, { work }))
  const given = []
  for (const { id } of agents) given.push(await org.give({ title: 'Work', assigned_to: id }))
  await untilTrue(async () => atWork === 2, 'two agents are at work')
  await org.rounds()
  assert.equal((await org.list('/tasks?status=in-progress')).length, 3, 'two agents work and one waits')
  gate.resolve()
  for (const { id } of given) await org.until(id, 'completed')
  assert.equal(most, 2)
  await org.patch(`/tasks/${question.id}`, { status: 'completed', result: 'Yes.' })
  assert.equal((await org.until(asking.id, 'completed')).result, 'Answered.')
})
