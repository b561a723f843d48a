// A hostile or careless member of a project may try all of this. No task is lost, no agent hangs, no answer is a 500.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createOrganisation, untilTrue } from '../../test/kit/organisation.ts'
import type { Task } from '../kernel/task.ts'

const org = await createOrganisation({ poll_interval: 100, stuck_retry_limit: 0 })
const breaks = { fail: { message: 'It is broken.', isRetryable: false } }
const costs = (inputTokens: number) => ({ usage: { inputTokens, outputTokens: 0, isEstimated: false } })
const EMOJI = '\u{1F600}'
/** A text whose 20,000th character is the first half of a surrogate pair. */
const cutInHalf = `${'a'.repeat(19_999)}${EMOJI}${'b'.repeat(10)}`

const escalationOf = (taskId: string): Promise<Task> =>
  untilTrue(
    async () =>
      (await org.list<Task>('/tasks?kind=escalation&status=pending')).find((t) => t.metadata.blockedTaskId === taskId),
    'people are asked',
  )

for (const by of ['a person', 'its senior'] as const) {
  test(`a subtask that waits for another does not start when ${by} gives it to somebody else`, async () => {
    const opened = Promise.withResolvers<{ text: string }>()
    const names = { a: `first of ${by}`, b: `second of ${by}` }
    const plan = [
      { id: 'a', title: names.a, description: '', competencies: [`${by} one`] },
      { id: 'b', title: names.b, description: '', competencies: [`${by} two`], depends_on: ['a'] },
    ]
    let target = ''
    const boss = await org.agent(
      { name: `boss of ${by}` },
      {
        task_plan: (request: unknown) => ({ subtasks: JSON.stringify(request).includes('Big goal') ? plan : [] }),
        work: ({ prompt }) =>
          prompt.some((message) => message.role === 'tool')
            ? { text: 'Given.' }
            : { calls: [{ name: 'task_update', args: { id: target, assigned_to: `other of ${by}` } }] },
      },
    )
    const below = { senior_id: boss.id }
    await org.agent({ ...below, name: `one of ${by}`, competencies: [`${by} one`] }, { work: () => opened.promise })
    await org.agent({ ...below, name: `two of ${by}`, competencies: [`${by} two`] })
    let seen = ''
    const other = await org.agent(
      { ...below, name: `other of ${by}` },
      {
        work: ({ prompt }) => {
          seen = JSON.stringify(prompt)
          return { text: 'Done by the other.' }
        },
      },
    )
    const goal = await org.give({ title: 'Big goal', assigned_to: boss.id })
    const parts = await untilTrue(async () => {
      const found = await org.subtasksOf(goal.id)
      return found.length === 2 && found
    }, 'the goal is split')
    target = parts.find(({ title }) => title === names.b)?.id ?? assert.fail()
    if (by === 'a person') await org.patch(`/tasks/${target}`, { assigned_to: other.id })
    else await org.until((await org.give({ title: 'Give it away', assigned_to: boss.id })).id, 'completed')
    assert.equal((await org.task(target)).assigned_to, other.id)
    // A later task of the same agent has completed, so the subtask would have started by now if it could.
    await org.until((await org.give({ title: 'In between', assigned_to: other.id })).id, 'completed')
    assert.equal((await org.task(target)).status, 'pending')
    seen = ''
    opened.resolve({ text: 'The result before it.' })
    await org.until(goal.id, 'completed')
    assert.match(seen, /The result before it/)
  })
}

test('an answer that is cut in the middle of a character helps all the same', async () => {
  const senior = await org.agent({ name: 'wordy' }, { work: cutInHalf })
  for (const seniorId of [null, senior.id]) {
    let tries = 0
    const work = () => (tries++ === 0 ? breaks : { text: 'Done.' })
    const agent = await org.agent({ name: `helped ${seniorId}`, senior_id: seniorId }, { work })
    const given = await org.give({ title: 'Fails once', assigned_to: agent.id })
    if (seniorId === null) {
      const asked = await escalationOf(given.id)
      const answer = await org.patch(`/tasks/${asked.id}`, { status: 'completed', result: cutInHalf })
      assert.equal(answer.status, 200)
    }
    await org.until(given.id, 'completed')
  }
})

test('results that are cut in the middle of a character are rolled up', async () => {
  const long = `${'a'.repeat(899_999)}${EMOJI}${'b'.repeat(90_000)}`
  const goal = await org.give({ title: 'A goal of people' })
  const parts = await Promise.all(
    ['one', 'two'].map((title) => org.give({ title, parent_task_id: goal.id, assigned_to: null })),
  )
  await org.pool.query(`update tasks set status = 'in-progress', waits_for = 'subtasks' where id = $1`, [goal.id])
  for (const part of parts) {
    const answer = await org.patch(`/tasks/${part.id}`, { status: 'completed', result: long })
    assert.equal(answer.status, 200)
  }
  const done = await org.until(goal.id, 'completed')
  assert.ok(JSON.stringify(done.result).length < 1_100_000)
})

test('an allocation too large for an exact number is refused, and the agent stays as it was', async () => {
  const agent = await org.agent({ name: 'rich', token_allocation: Number.MAX_SAFE_INTEGER })
  assert.equal((await org.post(`/agents/${agent.id}/budget`, { add: 1 })).status, 409)
  assert.equal((await org.agentNow(agent.id)).token_allocation, Number.MAX_SAFE_INTEGER)
})

test('a question to people cannot be given to an agent, which would not start it', async () => {
  const agent = await org.agent({ name: 'asks people' }, { work: breaks })
  const helper = await org.agent({ name: 'would help' })
  const given = await org.give({ title: 'Fails', assigned_to: agent.id })
  const asked = await escalationOf(given.id)
  assert.equal((await org.patch(`/tasks/${asked.id}`, { assigned_to: helper.id })).status, 409)
})

test('an agent whose name is the id of another agent gets none of the other’s tasks', async () => {
  const victim = await org.agent({ name: 'victim' })
  await org.agent({ name: victim.id })
  const given = await org.give({ title: 'For the victim' })
  const answer = await org.patch(`/tasks/${given.id}`, { assigned_to: victim.id })
  assert.deepEqual([answer.status, answer.body.assigned_to], [200, victim.id])
})

test('a stuck agent that runs out of tokens and is given some is still stuck', async () => {
  let isBroken = true
  const work = () => (isBroken ? breaks : { text: 'Done.', ...costs(5_000) })
  const agent = await org.agent({ name: 'stuck and broke', token_allocation: 1_000 }, { work })
  const given = await org.give({ title: 'Fails', assigned_to: agent.id })
  const asked = await escalationOf(given.id)
  isBroken = false
  await org.post(`/agents/${agent.id}/trigger`, { input: 'Spend.' })
  await org.untilAgent(agent.id, 'paused')
  await org.post(`/agents/${agent.id}/budget`, { add: 100_000 })
  assert.equal((await org.agentNow(agent.id)).status, 'stuck')
  await org.patch(`/tasks/${asked.id}`, { status: 'completed', result: 'Try again.' })
  await org.until(given.id, 'completed')
  assert.equal((await org.agentNow(agent.id)).status, 'active')
})

test('metadata that people write cannot take the place of the task that tells a senior of bored agents', async () => {
  const senior = await org.agent({ name: 'told' })
  await org.post(`/agents/${senior.id}/stop`)
  await org.give({ title: 'Not what it seems', assigned_to: senior.id, metadata: { boredAgentIds: [] } })
  const idler = await org.agent({ name: 'idler', senior_id: senior.id })
  await org.patchSettings({ boredom_threshold: 100 })
  const told = await untilTrue(
    async () => (await org.tasksOf(senior.id)).find((task) => /bored/.test(task.title)),
    'the senior is told',
  )
  assert.deepEqual(told.metadata.boredAgentIds, [idler.id])
  await org.patchSettings({ boredom_threshold: 900_000 })
})

test('an organisation has a hundred levels at most, whether levels are added above or below', async () => {
  let senior: string | null = null
  const chain: string[] = []
  for (let level = 1; level <= 100; level++) {
    const made: { id: string } = await org.agent({ name: `level ${level}`, senior_id: senior })
    chain.push(made.id)
    senior = made.id
  }
  const tooDeep = await org.post('/agents', { name: 'level 101', senior_id: senior })
  assert.equal(tooDeep.status, 400)
  const pair = [await org.agent({ name: 'upper' })]
  pair.push(await org.agent({ name: 'lower', senior_id: pair[0]?.id }))
  assert.equal((await org.patch(`/agents/${pair[0]?.id}`, { senior_id: chain[98] })).status, 400)
  assert.equal((await org.patch(`/agents/${pair[0]?.id}`, { senior_id: chain[97] })).status, 200)
  assert.equal((await org.call(`GET ${org.base}/org`)).status, 200)
})

test('the total length of an agent’s competencies is bounded', async () => {
  const competencies = Array.from({ length: 100 }, (_, n) => `${n} ${'x'.repeat(150)}`)
  assert.equal((await org.post('/agents', { name: 'knows it all', competencies })).status, 400)
})
