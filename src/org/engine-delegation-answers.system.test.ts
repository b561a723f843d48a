// Answers to "who shall do it?" that never delegate, and the subordinates that can be named at all.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createOrganisation, untilTrue, words } from '../../test/kit/organisation.ts'
import { createScriptedModel } from '../../test/kit/scripted-model.ts'
import type { Agent } from '../kernel/agent.ts'
import { newId } from '../kernel/id.ts'
import type { Task } from '../kernel/task.ts'

const org = await createOrganisation({ poll_interval: 100, stuck_retry_limit: 0 })
const naming = (subordinate: unknown) => ({ delegate: true, subordinate, reasoning: 'It seems right.' })
const top = await org.agent({ name: 'top', enabled: false })
let answer: unknown = null
const boss = await org.agent(
  { name: 'boss', senior_id: top.id },
  { delegation_decision: () => answer, work: 'I did it myself.' },
)
const worker = await org.agent({ name: 'worker', senior_id: boss.id })
const below = await org.agent({ name: 'below', senior_id: worker.id })

await org.agent({ name: 'stranger' })
const paused = await org.agent({ name: 'paused', senior_id: boss.id })
await org.post(`/agents/${paused.id}/stop`)
await org.agent({ name: 'disabled', senior_id: boss.id, enabled: false })
await org.agent({ name: 'unfunded', senior_id: boss.id, token_allocation: 0 })
const stuck = await org.agent(
  { name: 'stuck', senior_id: boss.id },
  { work: { fail: { message: 'No.', isRetryable: false } } },
)
await org.post(`/agents/${boss.id}/stop`)
await org.until((await org.give({ title: 'Fails', assigned_to: stuck.id })).id, 'blocked')
for (const task of await org.tasksOf(boss.id)) await org.patch(`/tasks/${task.id}`, { assigned_to: null })
const deleted = await org.agent({ name: 'deleted', senior_id: boss.id })
await org.call(`DELETE ${org.base}/agents/${deleted.id}`)
const other = await org.createProject('Another')
const foreign = await org.createAgent(other.id, { name: 'foreign' })
const foreignWorker = await org.createAgent(other.id, { name: 'namesake' })
await org.post(`/agents/${boss.id}/start`)

const misfits: [name: string, answer: unknown][] = [
  ['names a stranger', naming('stranger')],
  ['names a paused agent', naming('paused')],
  ['names a disabled agent', naming('disabled')],
  ['names a stuck agent', naming('stuck')],
  ['names an unfunded agent', naming('unfunded')],
  ['names a deleted agent', naming('deleted')],
  ['names an agent that does not exist', naming('Nobody')],
  ['names a subordinate of somebody else', naming('below')],
  ['names the agent itself', naming('boss')],
  ['names its senior', naming('top')],
  ['names an agent of another project', naming('foreign')],
  ['names an agent of another project by its id', naming(foreign.id)],
  ['names a subordinate in other letters', naming('WORKER')],
  ['names nothing', naming('')],
  ['names two at once', naming(['worker'])],
  ['is "YESTERDAY"', words('YESTERDAY')],
  ['is "YES"', words('YES')],
  ['says yes in words and names a worker', words('YES, worker should do this. Delegate it.')],
  ['is the JSON string "yes"', words('"yes"')],
  ['is true', words('true')],
  ['is a list', words('[true, "worker"]')],
  ['is cut off', words('{"delegate": true, "subordinate": "worker", "reas')],
  ['says "YES" where a boolean belongs', { ...naming('worker'), delegate: 'YES' }],
  ['says "true" where a boolean belongs', { ...naming('worker'), delegate: 'true' }],
  ['says 1 where a boolean belongs', { ...naming('worker'), delegate: 1 }],
  ['gives no reason', { delegate: true, subordinate: 'worker' }],
  ['does not say whether to delegate', { subordinate: 'worker', reasoning: '' }],
  ['has an unknown field', { ...naming('worker'), tasks: ['all of them'] }],
]
for (const [name, given] of misfits) {
  test(`a delegation answer that ${name} never delegates: the model is asked again, then the agent does the task itself`, async () => {
    answer = given
    const before = boss.requests.length
    const task = await org.give({ title: 'Do it', assigned_to: boss.id })
    assert.equal((await org.until(task.id, 'completed')).result, 'I did it myself.')
    assert.deepEqual(await org.subtasksOf(task.id), [])
    const asked = boss.requests.slice(before).map((request) => request.answerSchema?.name ?? 'work')
    assert.deepEqual(asked, ['delegation_decision', 'delegation_decision', 'task_plan', 'work'])
    assert.match(JSON.stringify(boss.requests[before + 1]?.prompt), /Your last answer could not be used: /)
  })
}

test('a second answer that fits delegates', async () => {
  let asked = 0
  const senior = await org.agent(
    { name: 'second thoughts' },
    { delegation_decision: () => (++asked === 1 ? words('YESTERDAY') : naming('helper')) },
  )
  const helper = await org.agent({ name: 'helper', senior_id: senior.id })
  const task = await org.give({ title: 'Do it', assigned_to: senior.id })
  await org.until(task.id, 'completed')
  assert.equal((await org.subtasksOf(task.id))[0]?.assigned_to, helper.id)
})

test('a subordinate that goes away between question and answer is not given the task', async () => {
  const gate = Promise.withResolvers<void>()
  const senior = await org.agent({ name: 'slow thinker' }, { work: 'I did it myself.' })
  const helper = await org.agent({ name: 'leaver', senior_id: senior.id })
  const model = createScriptedModel((request) => {
    const name = request.answerSchema?.name
    if (name === 'delegation_decision') return { text: JSON.stringify(naming('leaver')), waitFor: gate.promise }
    return { text: name === 'task_plan' ? '{"subtasks":[]}' : 'I did it myself.' }
  })
  org.models.set('of slow thinker', model)
  const task = await org.give({ title: 'Do it', assigned_to: senior.id })
  await untilTrue(async () => model.requests.length === 1, 'the question is asked')
  await org.post(`/agents/${helper.id}/stop`)
  gate.resolve()
  assert.equal((await org.until(task.id, 'completed')).result, 'I did it myself.')
  assert.deepEqual(await org.subtasksOf(task.id), [])
})

test('completion reports are messages, not tasks for a model: the senior’s model is not called to read them', async () => {
  const senior = await org.agent({ name: 'reads nothing' })
  const doer = await org.agent({ name: 'doer', senior_id: senior.id }, { work: 'It is done.' })
  const task = await org.give({ title: 'Report this', assigned_to: doer.id })
  await org.until(task.id, 'completed')
  await org.rounds()
  const reports = (await org.messagesOf(senior.id)).filter(({ kind }) => kind === 'completion')
  assert.deepEqual(
    reports.map(({ from, to, body, task_id }) => ({ from, to, body, task_id })),
    [{ from: doer.id, to: senior.id, body: 'doer: "Report this" is completed. It is done.', task_id: task.id }],
  )
  assert.deepEqual([senior.requests, await org.tasksOf(senior.id), await org.runsOf(senior.id)], [[], [], []])
})

test('two tenants: agents of another project cannot be seen, given tasks, made seniors or started', async () => {
  const { key } = await org.createKey(other.id, 'admin')
  const theirs = `/api/projects/${other.id}`
  for (const path of [`/agents/${worker.id}`, `/agents/${worker.id}/messages`]) {
    assert.equal((await org.call(`GET ${theirs}${path}`, { token: key })).status, 404)
    assert.equal((await org.call(`GET ${org.base}${path}`, { token: key })).status, 404)
  }
  for (const path of ['/org', '/org/health']) {
    assert.equal((await org.call(`GET ${org.base}${path}`, { token: key })).status, 404)
    assert.ok(!(await org.call(`GET ${theirs}${path}`, { token: key })).text.includes(worker.id))
  }
  const task = { title: 'Over the fence', assigned_to: worker.id }
  assert.equal((await org.call(`POST ${theirs}/tasks`, { token: key, body: task })).status, 400)
  const made = await org.call<Task>(`POST ${theirs}/tasks`, { token: key, body: { title: 'Here' } })
  const patched = await org.call(`PATCH ${theirs}/tasks/${made.body.id}`, {
    token: key,
    body: { assigned_to: worker.id },
  })
  assert.equal(patched.status, 400)
  const senior = { senior_id: worker.id }
  assert.equal((await org.call(`PATCH ${theirs}/agents/${foreign.id}`, { token: key, body: senior })).status, 400)
  const body = { name: 'spy', ...senior }
  assert.equal((await org.call(`POST ${theirs}/agents`, { token: key, body })).status, 400)
  for (const verb of ['start', 'stop', 'restart', 'budget']) {
    const given = verb === 'budget' ? { body: { add: 1 } } : {}
    const path = `/agents/${foreignWorker.id}/${verb}`
    assert.equal((await org.call(`POST ${org.base}${path}`, given)).status, 404)
  }
})

test('the last of 201 subordinates can be named, and is chosen if it alone suits', async () => {
  let named: string | null = null
  const senior = await org.agent({ name: 'general' }, { delegation_decision: () => naming(named), work: 'Myself.' })
  const template = await org.agent({ name: 'sub 000' })
  await org.pool.query(
    `insert into agents (id, project_id, name, capabilities, model, senior_id, competencies)
     select gen_random_uuid(), project_id, 'sub ' || lpad(n::text, 3, '0'), capabilities, model, $2,
       case when n = 201 then '{rare}'::text[] else '{}' end
     from agents, generate_series(1, 201) n where id = $1`,
    [template.id, senior.id],
  )
  const { rows } = await org.pool.query<Pick<Agent, 'id' | 'name'>>(
    `select id, name from agents where name in ('sub 001', 'sub 201') order by name`,
  )
  const [first, last] = rows
  const chosenFor = async (fields: object): Promise<string | null | undefined> => {
    const task = await org.give({ title: 'Do it', ...fields, assigned_to: senior.id })
    await org.until(task.id, 'completed')
    return (await org.subtasksOf(task.id))[0]?.assigned_to
  }
  named = 'sub 001'
  assert.equal(await chosenFor({}), first?.id)
  named = 'sub 201'
  assert.equal(await chosenFor({}), last?.id)
  named = null
  assert.equal(await chosenFor({ metadata: { competencies: ['rare'] } }), last?.id)
  named = newId()
  assert.equal(await chosenFor({}), undefined)
})

test('no other agent was given a task by these answers', async () => {
  for (const { requests } of [worker, below, paused, top]) assert.deepEqual(requests, [])
  for (const { id } of [foreign, foreignWorker]) {
    const { rows } = await org.pool.query('select from tasks where assigned_to = $1', [id])
    assert.equal(rows.length, 0)
  }
})
