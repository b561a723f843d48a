// An agent works on its tasks without help: it claims, decides, works, retries and reports.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createOrganisation } from '../../test/kit/organisation.ts'

const org = await createOrganisation()

test('a task that is given to an agent is worked on and completed with the summary of its run', async () => {
  const agent = await org.agent({ name: 'worker' }, { work: 'The report is written.' })
  const given = await org.give({ title: 'Write the report', description: 'Two pages.', assigned_to: agent.id })
  const task = await org.until(given.id, 'completed')
  assert.equal(task.result, 'The report is written.')
  const [run] = await org.runsOf(agent.id)
  assert.equal(run?.status, 'completed')
  assert.deepEqual(run.trigger, { type: 'task', task_id: given.id })
  assert.match(String(run.input), /Write the report[\s\S]*Two pages\./)
})

test('the most urgent task is taken first, then the oldest, one at a time', async () => {
  let release = (): void => {}
  const gate = new Promise<void>((resolve) => {
    release = resolve
  })
  const seen: string[] = []
  const agent = await org.agent(
    { name: 'ordered' },
    {
      work: async (request) => {
        await gate
        seen.push(JSON.stringify(request.prompt).match(/Task: (\w+)/)?.[1] ?? '')
        return { text: 'Done.' }
      },
    },
  )
  const give = (title: string, priority: string) => org.give({ title, priority, assigned_to: agent.id })
  await org.until((await give('first', 'low')).id, 'in-progress')
  const tasks = [
    await give('low', 'low'),
    await give('old', 'high'),
    await give('new', 'high'),
    await give('now', 'urgent'),
  ]
  release()
  for (const { id } of tasks) await org.until(id, 'completed')
  assert.deepEqual(seen, ['first', 'now', 'old', 'new', 'low'])
})

test('completed tasks are never picked again', async () => {
  const agent = await org.agent({ name: 'once' })
  const given = await org.give({ title: 'Once', assigned_to: agent.id })
  await org.until(given.id, 'completed')
  org.services.org.poke(org.project.id)
  const next = await org.give({ title: 'Twice', assigned_to: agent.id })
  await org.until(next.id, 'completed')
  assert.equal((await org.runsOf(agent.id)).length, 2)
})

test('a senior delegates to the subordinate that its decision names, and completes with the result', async () => {
  const boss = await org.agent(
    { name: 'boss' },
    { delegation_decision: { delegate: true, subordinate: 'writer', reasoning: 'It writes well.' } },
  )
  const writer = await org.agent(
    { name: 'writer', senior_id: boss.id, competencies: ['writing'] },
    { work: 'A fine text.' },
  )
  const given = await org.give({ title: 'Write a text', assigned_to: boss.id })
  const task = await org.until(given.id, 'completed')
  const [subtask] = await org.subtasksOf(given.id)
  assert.equal(subtask?.assigned_to, writer.id)
  assert.equal(subtask.metadata.delegated_by, boss.id)
  assert.match(String(subtask.metadata.reasoning), /It writes well\./)
  assert.deepEqual(task.result, [
    { task_id: subtask.id, title: 'Write a text', status: 'completed', result: 'A fine text.' },
  ])
  const [run] = await org.runsOf(boss.id)
  assert.equal(run?.status, 'completed')
})
