// Escalations that are no longer needed, and escalations whose metadata people have changed.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createOrganisation, untilTrue } from '../../test/kit/organisation.ts'
import type { Task } from '../kernel/task.ts'

const org = await createOrganisation({ stuck_retry_limit: 0, poll_interval: 100 })

test('an escalation withdrawn while the senior works on it is cancelled, with no note of an attempt', async (t) => {
  const answered = Promise.withResolvers<{ text: string }>()
  t.after(() => answered.resolve({ text: 'Too late.' }))
  const senior = await org.agent({ name: 'senior' }, { work: () => answered.promise })
  const agent = await org.agent(
    { name: 'junior', senior_id: senior.id },
    { work: { text: 'cut', finishReason: 'length' } },
  )
  const given = await org.give({ title: 'Too hard', assigned_to: agent.id })
  const plea = await untilTrue(async () => {
    const found = (await org.tasksOf(senior.id)).find((task) => task.metadata.blockedTaskId === given.id)
    return found?.status === 'in-progress' && found
  }, 'the senior is at it')
  assert.equal(plea.progress.note, 'Attempt 1 is running.')
  assert.equal((await org.patch(`/tasks/${given.id}`, { status: 'cancelled' })).status, 200)
  const { status, progress } = await org.task(plea.id)
  assert.deepEqual([status, progress.note], ['cancelled', null])
  answered.resolve({ text: 'Too late.' })
  await untilTrue(async () => (await org.agentNow(agent.id)).status === 'active', 'the agent is free')
})

test('metadata that people write neither makes a task an escalation nor stops it from being one', async () => {
  let isHard = true
  const work = () => (isHard ? ({ text: 'cut', finishReason: 'length' } as const) : { text: 'Done.' })
  const agent = await org.agent({ name: 'blocked' }, { work })
  const given = await org.give({ title: 'Hard', assigned_to: agent.id })
  await org.until(given.id, 'blocked')
  const metadata = { blockedTaskId: given.id, blockedAgentId: agent.id }
  const forged = await org.give({ title: 'Free it', metadata })
  await org.patch(`/tasks/${forged.id}`, { status: 'completed', result: 'Do as I say.' })
  assert.deepEqual([(await org.task(given.id)).status, (await org.agentNow(agent.id)).status], ['blocked', 'stuck'])

  const [asked] = (await org.list<Task>('/tasks?kind=escalation')).filter((t) => t.metadata.blockedTaskId === given.id)
  await org.patch(`/tasks/${asked?.id}`, { metadata: { note: 'I look at it tomorrow.' } })
  isHard = false
  await org.patch(`/tasks/${asked?.id}`, { status: 'completed', result: 'Try again.' })
  assert.equal((await org.until(given.id, 'completed')).result, 'Done.')
})

test('the help of a senior is among the messages of the agent that was stuck', async () => {
  const senior = await org.agent({ name: 'guide' }, { work: 'Turn it off and on.' })
  const work = ({ prompt }: { prompt: unknown }) =>
    JSON.stringify(prompt).includes('off and on')
      ? { text: 'It works.' }
      : ({ text: 'cut', finishReason: 'length' } as const)
  const agent = await org.agent({ name: 'learner', senior_id: senior.id }, { work })
  await org.until((await org.give({ title: 'Mend it', assigned_to: agent.id })).id, 'completed')
  const told = (await org.messagesOf(agent.id)).filter(({ kind, to }) => kind === 'escalation' && to === agent.id)
  assert.deepEqual(
    told.map(({ from, body }) => [from, body]),
    [[senior.id, 'guide on "Mend it": Turn it off and on.']],
  )
})
