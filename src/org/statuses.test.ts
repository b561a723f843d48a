// Failure, boredom, stop and start: the statuses of agents and their consequences.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createOrganisation, untilTrue } from '../../test/kit/organisation.ts'

const org = await createOrganisation({ stuck_retry_limit: 1, poll_interval: 100 })
const fails = { work: { fail: { message: 'The tool is broken.', isRetryable: false } } }
const isStatus = (id: string, status: string) =>
  untilTrue(async () => ((await org.agentNow(id)).status === status ? true : null), `the agent is ${status}`)

test('Stuck detection triggers on task failure: after the retries the task is blocked and the senior is asked once', async () => {
  let helped = ''
  const senior = await org.agent({ name: 'senior' }, { work: 'Use the other tool.' })
  let broken = true
  const agent = await org.agent(
    { name: 'unlucky', senior_id: senior.id },
    {
      work: (request) => {
        helped = JSON.stringify(request.prompt)
        return broken ? fails.work : { text: 'It worked.' }
      },
    },
  )
  // The tool works again when the senior helps, which happens only after the agent is stuck.
  await org.post(`/agents/${senior.id}/stop`)
  const given = await org.give({ title: 'Turn the screw', assigned_to: agent.id })
  const blocked = await org.until(given.id, 'blocked')
  assert.match(blocked.error_message ?? '', /The tool is broken/)
  assert.equal((await org.agentNow(agent.id)).status, 'stuck')
  assert.equal((await org.runsOf(agent.id)).length, 2)
  const asked = (await org.tasksOf(senior.id)).filter((task) => task.metadata.blockedTaskId === given.id)
  assert.equal(asked.length, 1)
  assert.equal(asked[0]?.priority, 'high')
  assert.equal(asked[0].metadata.blockedAgentId, agent.id)

  broken = false
  await org.post(`/agents/${senior.id}/start`)
  await org.until(asked[0].id, 'completed')
  const done = await org.until(given.id, 'completed')
  assert.equal(done.result, 'It worked.')
  assert.match(helped, /senior: Use the other tool\./)
  assert.equal((await org.agentNow(agent.id)).status, 'active')
})

test('an agent without a senior escalates to people, and their answer frees it', async () => {
  let broken = true
  const agent = await org.agent({ name: 'alone' }, { work: () => (broken ? fails.work : { text: 'Now it works.' }) })
  const given = await org.give({ title: 'Alone', assigned_to: agent.id })
  await org.until(given.id, 'blocked')
  const [asked] = (
    await org.list<{ id: string; kind: string; assigned_to: null; metadata: { blockedTaskId?: string } }>(
      '/tasks?kind=escalation&status=pending',
    )
  ).filter((task) => task.metadata.blockedTaskId === given.id)
  assert.equal(asked?.assigned_to, null)
  broken = false
  assert.equal((await org.patch(`/tasks/${asked.id}`, { status: 'completed', result: 'Try again.' })).status, 200)
  await org.until(given.id, 'completed')
})

test('Boredom detection triggers after idle period, once, and a new task ends it', async () => {
  await org.patchSettings({ boredom_threshold: 300 })
  const senior = await org.agent({ name: 'reader of reports' }, { work: 'Noted.' })
  const agent = await org.agent({ name: 'idler', senior_id: senior.id })
  await isStatus(agent.id, 'bored')
  await org.patchSettings({ boredom_threshold: 900_000 })
  const told = (await org.tasksOf(senior.id)).filter((task) => task.title === 'Agent idler is bored')
  assert.equal(told.length, 1)
  assert.equal(told[0]?.priority, 'low')
  const given = await org.give({ title: 'Something', assigned_to: agent.id })
  await org.until(given.id, 'completed')
  assert.equal((await org.agentNow(agent.id)).status, 'active')
  const statuses = (await org.messagesOf(senior.id)).filter(
    (message) => message.kind === 'status' && message.from === agent.id,
  )
  assert.equal(statuses.length, 2)
})

test('an agent whose run waits for a person is not bored, and is when the run has ended', async () => {
  const senior = await org.agent({ name: 'senior of one who asks' }, { work: 'Noted.' })
  const question = { calls: [{ name: 'ask_human', args: { question: 'May I?' } }] }
  const agent = await org.agent({ name: 'asks', senior_id: senior.id, tools: ['ask_human'] }, { work: question })
  const started = await org.post(`/agents/${agent.id}/trigger`, { input: 'Go.' })
  assert.equal(started.status < 300, true, JSON.stringify(started.body))
  await org.patchSettings({ boredom_threshold: 300 })
  // A second idle agent shows that the round has come.
  const idle = await org.agent({ name: 'idler beside', senior_id: senior.id })
  await isStatus(idle.id, 'bored')
  assert.equal((await org.agentNow(agent.id)).status, 'active')
  const [run] = await org.runsOf(agent.id)
  await org.post(`/runs/${run?.id}/cancel`)
  await isStatus(agent.id, 'bored')
  await org.patchSettings({ boredom_threshold: 900_000 })
})

test('a stop hands the running task back as pending, and a start continues it from the same point', async () => {
  let calls = 0
  const agent = await org.agent(
    { name: 'stopped', tools: ['task_create'] },
    {
      work: () => {
        calls++
        if (calls === 1) return { calls: [{ name: 'task_create', args: { title: 'For people' } }] }
        return calls === 2 ? { text: 'so far', waitFor: 'abort' } : { text: 'Finished.' }
      },
    },
  )
  const given = await org.give({ title: 'Long work', assigned_to: agent.id })
  await untilTrue(async () => calls === 2, 'the second call is under way')
  const answer = await org.post(`/agents/${agent.id}/stop`)
  assert.equal(answer.status, 200)
  assert.equal(answer.body.status, 'paused')
  await org.until(given.id, 'pending')
  const [run] = await org.runsOf(agent.id)
  assert.equal(run?.status, 'paused')
  assert.equal(run.pause_reason, 'stopped')
  assert.equal((await org.post(`/agents/${agent.id}/start`)).body.status, 'active')
  const task = await org.until(given.id, 'completed')
  assert.equal(task.result, 'Finished.')
  const runs = await org.runsOf(agent.id)
  assert.equal(runs[0]?.resumed_from, run.id)
  const made = (await org.list<{ title: string }>('/tasks')).filter(({ title }) => title === 'For people')
  assert.equal(made.length, 1, 'the call was made twice')
})

test('a restart leaves the agent running', async () => {
  const agent = await org.agent({ name: 'restarted' })
  await org.post(`/agents/${agent.id}/stop`)
  assert.equal((await org.post(`/agents/${agent.id}/restart`)).body.status, 'active')
  const given = await org.give({ title: 'After', assigned_to: agent.id })
  await org.until(given.id, 'completed')
})
