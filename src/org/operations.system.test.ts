// The organisation writes one line into the log for each operation, with the ids of its agent, task and project.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createOrganisation, untilTrue } from '../../test/kit/organisation.ts'
import type { Log, LogFields } from '../kernel/log.ts'
import type { Operation } from '../kernel/operation.ts'
import type { Task } from '../kernel/task.ts'

const lines: LogFields[] = []
const keep = (fields: LogFields): void => {
  if (typeof fields.operation === 'string') lines.push(fields)
}
const log: Log = { debug: keep, info: keep, warn: keep, error: keep }
const org = await createOrganisation({ poll_interval: 100, stuck_retry_limit: 0 }, { log })
const project_id = org.project.id

/** The first log line of the operation with these fields. */
const line = (operation: Operation, fields: LogFields): Promise<LogFields> =>
  untilTrue(
    async () =>
      lines.find(
        (each) => each.operation === operation && Object.entries(fields).every(([name, value]) => each[name] === value),
      ),
    `${operation} ${JSON.stringify(fields)} is told`,
  )
const without = (fields: LogFields, ...names: string[]): LogFields =>
  Object.fromEntries(Object.entries(fields).filter(([name]) => !names.includes(name)))
const rootOf = async (taskId: string): Promise<string> => {
  const { rows } = await org.pool.query('select coalesce(root_task_id, id) as id from tasks where id = $1', [taskId])
  return rows[0].id
}

test('a task that gets stuck deep in a tree is logged with the first task as its correlation id', async () => {
  const delegate = (name: string) => ({ delegation_decision: { delegate: true, subordinate: name, reasoning: '' } })
  let isBroken = true
  const top = await org.agent({ name: 'top' }, delegate('middle'))
  const middle = await org.agent({ name: 'middle', senior_id: top.id }, delegate('low'))
  const low = await org.agent(
    { name: 'low', senior_id: middle.id },
    { work: () => (isBroken ? { fail: { message: 'It is broken.', isRetryable: false } } : { text: 'Done.' }) },
  )
  await org.post(`/agents/${low.id}/stop`)
  await org.post(`/agents/${low.id}/start`)
  const given = await org.give({ title: 'The goal', assigned_to: top.id })
  const blocked = await line('task.blocked', { agent_id: low.id })
  const task_id = String(blocked.task_id)
  const ids = { project_id, agent_id: low.id, task_id, correlation_id: given.id }
  const [run] = await org.runsOf(low.id)
  assert.deepEqual(blocked, { operation: 'task.blocked', ...ids, run_id: run?.id, times_stuck: 1 })
  const changed = await line('agent.status_changed', { agent_id: low.id, event: 'blocked' })
  assert.deepEqual(without(changed, 'operation'), { ...ids, from: 'active', to: 'stuck', event: 'blocked' })
  const escalated = await line('task.escalated', { agent_id: low.id })
  assert.deepEqual([escalated.correlation_id, escalated.to_agent_id], [given.id, middle.id])
  assert.equal(await rootOf(String(escalated.task_id)), given.id)
  const message = await line('message.sent', { agent_id: low.id, kind: 'escalation' })
  assert.deepEqual(without(message, 'operation'), { ...ids, to_agent_id: middle.id, kind: 'escalation' })
  isBroken = false
  await org.patch(`/tasks/${escalated.task_id}`, { status: 'completed', result: 'Try again.' })
  await line('agent.status_changed', { agent_id: low.id, event: 'freed', to: 'active' })
  await org.until(given.id, 'completed')
})

test('tasks, sub-runs and questions that the run of a task makes have the task’s correlation id', async () => {
  await org.agent({ name: 'helper', tools: ['task_create'] }, create('Made below'))
  const maker = await org.agent(
    { name: 'maker', tools: ['task_create', 'spawn_agent', 'ask_human'] },
    {
      work: (request) => {
        const calls = [
          { name: 'task_create', args: { title: 'Made by the run' } },
          { name: 'spawn_agent', args: { agent: 'helper', input: 'Make one.' } },
          { name: 'ask_human', args: { question: 'May I?' } },
        ]
        const call = calls[request.prompt.filter((message) => message.role === 'tool').length]
        return call ? { calls: [call] } : { text: 'Done.' }
      },
    },
  )
  const given = await org.give({ title: 'Make some', assigned_to: maker.id })
  const made = await untilTrue(async () => {
    const tasks = await org.list<Task>('/tasks')
    const found = tasks.filter(({ title }) => /^(Made by the run|Made below|May I\?)$/.test(title))
    return found.length === 3 ? found : null
  }, 'all three are made')
  for (const { id, title } of made) assert.equal(await rootOf(id), given.id, title)
  const alone = await org.give({ title: 'By people', parent_task_id: made[0]?.id })
  assert.equal(await rootOf(alone.id), given.id)
  assert.equal(await rootOf((await org.give({ title: 'Apart' })).id).then((id) => id === given.id), false)
})

function create(title: string) {
  return {
    work: (request: { prompt: readonly { role: string }[] }) =>
      request.prompt.some((message) => message.role === 'tool')
        ? { text: 'Made.' }
        : { calls: [{ name: 'task_create', args: { title } }] },
  }
}

test('a stop and a start of an agent by people are logged, and so are the messages about them', async () => {
  const boss = await org.agent(
    { name: 'boss' },
    { delegation_decision: { delegate: true, subordinate: 'sleeper', reasoning: '' } },
  )
  const agent = await org.agent({ name: 'sleeper', senior_id: boss.id }, { work: { text: 'so far', waitFor: 'abort' } })
  const given = await org.give({ title: 'Long', assigned_to: boss.id })
  const [subtask] = await untilTrue(async () => {
    const found = await org.subtasksOf(given.id)
    return found[0]?.status === 'in-progress' ? found : null
  }, 'the subtask is under way')
  await org.post(`/agents/${agent.id}/stop`)
  assert.deepEqual(await line('agent.stopped', { agent_id: agent.id }), {
    operation: 'agent.stopped',
    project_id,
    agent_id: agent.id,
  })
  await line('agent.status_changed', { agent_id: agent.id, event: 'stop', from: 'active', to: 'paused' })
  await line('message.sent', { agent_id: agent.id, to_agent_id: boss.id, kind: 'status' })
  const told = await line('message.sent', { agent_id: agent.id, to_agent_id: boss.id, kind: 'delegation' })
  assert.deepEqual([told.task_id, told.correlation_id], [subtask?.id, given.id])
  await org.patch(`/tasks/${given.id}`, { status: 'cancelled' })
  assert.equal((await line('task.cancelled', { task_id: given.id })).correlation_id, given.id)
  const below = await line('task.cancelled', { task_id: subtask?.id })
  assert.deepEqual([below.agent_id, below.correlation_id], [agent.id, given.id])
  await org.post(`/agents/${agent.id}/start`)
  await line('agent.started', { agent_id: agent.id })
})

test('marks of tokens, their end, a top-up by people and one by a senior are logged', async () => {
  const senior = await org.agent(
    { name: 'senior of spender', token_allocation: 1_000_000 },
    {
      work: (request) =>
        request.prompt.some((message) => message.role === 'tool')
          ? { text: 'Given.' }
          : { calls: [{ name: 'budget_add', args: { agent: 'spender', tokens: 500 } }] },
    },
  )
  const agent = await org.agent({ name: 'spender', senior_id: senior.id, token_allocation: 10 })
  await org.give({ title: 'Spend', assigned_to: agent.id })
  const marked = await line('budget.marked', { agent_id: agent.id, mark: 100 })
  assert.deepEqual(without(marked, 'operation', 'used'), { project_id, agent_id: agent.id, mark: 100, allocation: 10 })
  await line('budget.exhausted', { agent_id: agent.id })
  await line('task.escalated', { agent_id: agent.id, to_agent_id: senior.id })
  await line('message.sent', { agent_id: agent.id, kind: 'budget' })
  const given = await line('budget.added', { agent_id: agent.id, from_agent_id: senior.id })
  const [run] = await org.runsOf(senior.id)
  assert.deepEqual([given.tokens, given.run_id, given.project_id], [500, run?.id, project_id])
  await org.post(`/agents/${agent.id}/budget`, { add: 7 })
  assert.equal((await line('budget.added', { agent_id: agent.id, tokens: 7 })).from_agent_id, undefined)
})

test('refusals are logged with the run and the first task', async () => {
  const agent = await org.agent({ name: 'greedy' }, { work: askFor('budget_add', { agent: 'nobody', tokens: 5 }) })
  await org.agent({ name: 'below greedy', senior_id: agent.id })
  const given = await org.give({ title: 'Ask for too much', assigned_to: agent.id })
  const refused = await line('budget.refused', { agent_id: agent.id })
  const [run] = await org.runsOf(agent.id)
  const ids = { project_id, agent_id: agent.id, task_id: given.id, run_id: run?.id, correlation_id: given.id }
  assert.deepEqual(without(refused, 'operation'), ids)
  await org.patchSettings({ reaction_chain_limit: 1 })
  const chained = await org.agent({ name: 'chained', tools: ['task_create'] }, create('Too many'))
  const last = await org.give({ title: 'Hand on', assigned_to: chained.id })
  assert.equal((await line('task.refused', { agent_id: chained.id })).correlation_id, last.id)
  await org.patchSettings({ reaction_chain_limit: 8 })
})

function askFor(name: string, args: object) {
  return (request: { prompt: readonly { role: string }[] }) =>
    request.prompt.some((message) => message.role === 'tool') ? { text: 'Done.' } : { calls: [{ name, args }] }
}

test('an agent that becomes bored and the deletion of an agent with a task are logged', async () => {
  await org.patchSettings({ boredom_threshold: 300 })
  const senior = await org.agent({ name: 'senior of idler' })
  const agent = await org.agent({ name: 'idler', senior_id: senior.id })
  await line('agent.status_changed', { agent_id: agent.id, event: 'idle', to: 'bored' })
  await line('task.escalated', { agent_id: agent.id, to_agent_id: senior.id, priority: 'low' })
  await org.patchSettings({ boredom_threshold: 900_000 })
  for (const { id } of [senior, agent]) await org.post(`/agents/${id}/stop`)
  const given = await org.give({ title: 'Orphan', assigned_to: agent.id })
  await org.call(`DELETE ${org.base}/agents/${agent.id}`)
  const ids = { project_id, agent_id: agent.id, task_id: given.id, correlation_id: given.id }
  assert.deepEqual(without(await line('task.handed_over', { task_id: given.id }), 'operation'), {
    ...ids,
    to_agent_id: senior.id,
  })
})

test('every line names its project, and holds no words of people or models', () => {
  assert.ok(lines.length > 30, `${lines.length} lines`)
  for (const each of lines) {
    assert.equal(each.project_id, project_id, JSON.stringify(each))
    for (const value of Object.values(each)) {
      assert.ok(
        typeof value === 'number' || value === null || /^[\w.-]{1,36}$/.test(String(value)),
        JSON.stringify(each),
      )
    }
  }
})
