// The built-in tools in the hands of a specialist, whose run has no agent.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createScriptedModel } from '../../../test/kit/scripted-model.ts'
import { createSupervisor, delegate, finish } from '../../../test/kit/supervisor.ts'
import { until } from '../../../test/kit/until.ts'
import type { GraphObject, ObjectVersion } from '../../kernel/object.ts'
import type { Run, Step } from '../../kernel/run.ts'
import type { Task } from '../../kernel/task.ts'

const calls = [
  { name: 'object_create', args: { type: 'Note', properties: { text: 'x' }, reasoning: 'It is needed.' } },
  { name: 'task_create', args: { title: 'For people' } },
  { name: 'task_create', args: { title: 'For an agent', assigned_to: 'helper' } },
  { name: 'spawn_agent', args: { agent: 'helper', input: 'Help.' } },
  { name: 'ask_human', args: { question: 'Which one?' } },
]
const kit = await createSupervisor(
  { supervisor: [delegate('research_agent'), finish()], work: { research_agent: [{ calls }, 'Done.'] } },
  { models: new Map([['script', createScriptedModel(() => ({ text: 'I helped.' }))]]) },
)
const { base, config, project } = kit
const helper = await kit.createAgent(project.id, { name: 'helper' })
const [research, transform] = config.specialists
const tools = [...new Set(calls.map(({ name }) => name))]
const put = await kit.put('blue', { ...config, specialists: [{ ...research, tools }, transform] })
assert.equal(put.status, 200, put.text)

test('a specialist changes the graph, makes tasks, starts agents and asks people, and all changes can be read', async () => {
  const asked = kit.run('Do all of it.')
  const questions = async () => (await kit.get<{ items: Task[] }>('/tasks?kind=escalation&status=pending')).items
  await until(async () => (await questions()).length === 1, 'people are asked')
  const [question] = await questions()
  assert.equal(question?.title, 'Which one?')
  const body = { status: 'completed', result: 'The first.' }
  assert.equal((await kit.call(`PATCH ${base}/tasks/${question?.id}`, { body })).status, 200)
  const answer = await asked
  assert.equal(answer.body.result.status, 'DONE', JSON.stringify(answer.body))

  const { items: subRuns } = await kit.get<{ items: Run[] }>(`/runs?parent_run_id=${answer.body.metadata.run_id}`)
  const specialist = subRuns[0]?.id ?? assert.fail()
  const { items: steps } = await kit.get<{ items: Step[] }>(`/runs/${specialist}/steps`)
  const failed = steps.filter((step) => step.kind === 'tool' && step.is_error)
  assert.deepEqual(failed, [])

  const { items: objects } = await kit.get<{ items: GraphObject[] }>('/objects')
  const { items: versions } = await kit.get<{ items: ObjectVersion[] }>(`/objects/${objects[0]?.id}/history`)
  assert.deepEqual([versions[0]?.actor_type, versions[0]?.run_id], ['agent', specialist])
  const { items: tasks } = await kit.get<{ items: Task[] }>('/tasks?kind=work')
  assert.deepEqual(tasks.map(({ title, assigned_to: to }) => [title, to]).toSorted(), [
    ['For an agent', helper.id],
    ['For people', null],
  ])
  for (const path of [`/agents/${helper.id}/messages`, '/org', '/org/health', `/runs?agent_id=${helper.id}`]) {
    const { status, text } = await kit.call(`GET ${base}${path}`)
    assert.equal(status, 200, `${path}: ${text}`)
  }
  const forHelper = tasks.find(({ assigned_to: to }) => to !== null)
  const isDone = async () => (await kit.get<Task>(`/tasks/${forHelper?.id}`)).status === 'completed'
  await until(isDone, 'the agent takes up its task by itself')
})
