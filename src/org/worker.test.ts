import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createOrganisation, untilTrue } from '../../test/kit/organisation.ts'
import type { Task } from '../kernel/task.ts'

const org = await createOrganisation()

/** Makes the database refuse to write such rows. */
async function refuse(table: string, operation: string, condition: string): Promise<void> {
  const name = `refuse_${Math.random().toString(36).slice(2)}`
  await org.pool.query(
    `create function ${name}() returns trigger language plpgsql as 'begin raise exception ''refused''; end'`,
  )
  await org.pool.query(
    `create trigger ${name} before ${operation} on ${table} for each row when (${condition}) execute function ${name}()`,
  )
}

test('an attempt whose outcome cannot be stored stops no other attempt', async () => {
  await refuse('tasks', 'update', `new.title = 'poison' and new.status = 'completed'`)
  const agent = await org.agent({ name: 'poisoned' })
  const poison = await org.give({ title: 'poison', assigned_to: agent.id })
  await untilTrue(async () => (await org.runsOf(agent.id))[0]?.status === 'completed', 'the run has ended')
  const others = await Promise.all(
    [1, 2, 3].map(async (n) => org.give({ title: `other ${n}`, assigned_to: (await org.agent({})).id })),
  )
  for (const other of others) await org.until(other.id, 'completed')
  assert.equal((await org.task(poison.id)).status, 'in-progress')
})

test('a project whose tasks cannot start stops no other project', async () => {
  const broken = await org.createProject()
  const answer = await org.call<{ id: string }>(`POST /api/projects/${broken.id}/agents`, { body: { name: 'broken' } })
  await refuse('agent_runs', 'insert', `new.project_id = '${broken.id}'`)
  await org.call(`POST /api/projects/${broken.id}/tasks`, { body: { title: 'x', assigned_to: answer.body.id } })
  const agent = await org.agent({ name: 'sound' })
  for (const title of ['first', 'second']) {
    await org.until((await org.give({ title, assigned_to: agent.id })).id, 'completed')
  }
  await org.call(`POST /api/projects/${broken.id}/halt`)
})

test('many agents that become bored at once make one task for each senior', async () => {
  const seniors = await Promise.all([1, 2].map((n) => org.agent({ name: `senior ${n}` })))
  await org.pool.query(
    `with made as (
       insert into agents (id, project_id, name, capabilities, senior_id)
       select gen_random_uuid(), $1, 'idler ' || n, '{}', ($2::uuid[])[1 + n % 2] from generate_series(1, 1100) n
       returning id, project_id
     ) insert into task_queues (agent_id, project_id) select * from made`,
    [org.project.id, seniors.map((senior) => senior.id)],
  )
  for (const senior of seniors) await org.post(`/agents/${senior.id}/stop`)
  await org.patchSettings({ boredom_threshold: 100 })
  const told = await untilTrue(async () => {
    const tasks = (await Promise.all(seniors.map((senior) => org.tasksOf(senior.id)))).flat()
    const bored = tasks.flatMap((task: Task) => (task.metadata.boredAgentIds as string[] | undefined) ?? [])
    return new Set(bored).size === 1_100 && { tasks, bored }
  }, 'all idlers are bored')
  assert.equal(told.tasks.length, 2)
  assert.equal(told.bored.length, 1_100)
  await org.patchSettings({ boredom_threshold: 900_000 })
})

test('an agent without a task does not take the place of an agent with tasks', async () => {
  await org.patchSettings({ max_concurrent_agents: 1 })
  const [idle, busy] = await Promise.all([org.agent({ name: 'due for nothing' }), org.agent({ name: 'due for work' })])
  await org.post(`/agents/${busy.id}/stop`)
  const given = await org.give({ title: 'Work', assigned_to: busy.id })
  await org.pool.query(
    `insert into task_queues as q (agent_id, project_id, due_at) values ($1, $2, muster.now() - interval '1 hour')
     on conflict (agent_id) do update set due_at = excluded.due_at`,
    [idle.id, org.project.id],
  )
  await org.post(`/agents/${busy.id}/start`)
  await org.until(given.id, 'completed')
  await org.patchSettings({ max_concurrent_agents: 10 })
})
test('an agent whose task waits for a person starts its next pending task', async () => {
  const agent = await org.agent(
    { name: 'asker', tools: ['ask_human'] },
    {
      work: (request) =>
        JSON.stringify(request.prompt).includes('Ask first')
          ? { calls: [{ name: 'ask_human', args: { question: 'May I?' } }] }
          : { text: 'Done.' },
    },
  )
  await org.post(`/agents/${agent.id}/stop`)
  await org.give({ title: 'Ask first', priority: 'urgent', assigned_to: agent.id })
  const next = await org.give({ title: 'Next', assigned_to: agent.id })
  await org.post(`/agents/${agent.id}/start`)
  await org.until(next.id, 'completed')
})
