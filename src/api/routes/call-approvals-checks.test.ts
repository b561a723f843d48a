// The checks of an approval that need more than the run: objects, their types and authors, tools of other processes.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import { createTestApp } from '../../../test/kit/app.ts'
import { testTool } from '../../../test/kit/run-worker.ts'
import { insertWorker } from '../../../test/kit/runs.ts'
import { createScriptedModel, type ScriptedAnswer, type ScriptedCall } from '../../../test/kit/scripted-model.ts'
import { until } from '../../../test/kit/until.ts'
import type { Agent, AgentInput } from '../../kernel/agent.ts'
import type { Model } from '../../kernel/model-call.ts'
import type { GraphObject, ObjectVersion } from '../../kernel/object.ts'
import { systemActor } from '../../kernel/principal.ts'
import type { Run, Step } from '../../kernel/run.ts'
import type { Task } from '../../kernel/task.ts'
import { createObjectWriter } from '../../objects/write-objects.ts'
import { publishNames } from '../../queue/process-names.ts'
import { approveSuggestion } from '../../tasks/suggestions.ts'
import { zodArguments } from '../../tools/arguments.ts'
import { createToolRegistry } from '../../tools/registry.ts'
import { reactions } from '../../triggers/reactions.ts'

const models = new Map<string, Model>()
const made: unknown[] = []
const refund = testTool('refund', async (args) => ({ n: made.push(args) }), { effect: 'unsafe' })
const strict = {
  ...testTool('strict', refund.execute, { effect: 'unsafe' }),
  ...zodArguments(z.strictObject({ amount: z.int() })),
}
const kit = await createTestApp({ models, tools: [refund, strict], waits: { waitMs: 20_000 } })
const project = await kit.createProject('Desk')
const member = await kit.createKey(project.id, 'member')
const base = `/api/projects/${project.id}`

let count = 0
async function waiting(name: string, args: object, input: Partial<AgentInput> = {}) {
  const rights = { tools: [name], require_approval: [name], ...input }
  return waitingOf(await agentOf([{ text: 'I do it.', calls: [{ name, args }] }, { text: 'Done.' }], rights))
}
async function agentOf(answers: ScriptedAnswer[], input: Partial<AgentInput>): Promise<Agent> {
  const label = `agent ${++count}`
  models.set(label, createScriptedModel(answers))
  return kit.createAgent(project.id, { name: label, model: { provider: 'test', name: label }, ...input })
}
async function trigger(agentId: string): Promise<Run> {
  return (await kit.call<Run>(`POST ${base}/agents/${agentId}/trigger`, { body: { input: 'Go.' } })).body
}
async function waitingOf(agent: Agent): Promise<{ agent: Agent; run: Run; task: Task }> {
  const run = await trigger(agent.id)
  assert.deepEqual([run.status, run.waiting_for], ['paused', 'approval'])
  const { items } = (await kit.call<{ items: Task[] }>(`GET ${base}/tasks?kind=suggestion&limit=200`)).body
  const task = items.find((each) => each.run_id === run.id) ?? assert.fail('nothing was suggested')
  return { agent, run, task }
}
const readRun = async (id: string): Promise<Run> => (await kit.call<Run>(`GET ${base}/runs/${id}`)).body
const ended = async (id: string): Promise<void> =>
  until(async () => (await readRun(id)).completed_at !== null, 'the run has ended')
const approve = (id: string) =>
  kit.call<{ error: { message: string } }>(`POST ${base}/tasks/${id}/approve`, { token: member.key })
async function object(type: string): Promise<string> {
  const { body } = await kit.call<GraphObject>(`POST ${base}/objects`, { body: { type, properties: { n: 1 } } })
  return body.id
}

const changes: Record<string, (ids: [string, string]) => object> = {
  object_update: ([id]) => ({ id, properties: { n: 2 } }),
  object_delete: ([id]) => ({ id }),
  relationship_create: ([from_id, to_id]) => ({ type: 'knows', from_id, to_id }),
}
for (const [name, argsOf] of Object.entries(changes)) {
  test(`an approved ${name} is stale when its agent has lost the right to the type of an object`, async () => {
    const ids: [string, string] = [await object('Note'), await object('Person')]
    const allow = (allowedObjectTypes: string[]) => ({
      canCreateObjects: true,
      canUpdateObjects: true,
      canDeleteObjects: true,
      allowedObjectTypes,
    })
    const { agent, run, task } = await waiting(name, argsOf(ids), { capabilities: allow(['Note', 'Person']) })
    const patch = (capabilities: object) => kit.call(`PATCH ${base}/agents/${agent.id}`, { body: { capabilities } })
    await patch(allow([name === 'relationship_create' ? 'Note' : 'Person']))
    const refused = await approve(task.id)
    assert.equal(refused.status, 409, refused.text)
    assert.match(refused.body.error.message, /may not change objects of the type/)
    await patch(allow(['Note', 'Person']))
    assert.equal((await approve(task.id)).status, 200)
    await ended(run.id)
    const { items } = (await kit.call<{ items: Step[] }>(`GET ${base}/runs/${run.id}/steps`)).body
    assert.deepEqual(
      items.flatMap((step) => (step.kind === 'tool' ? [step.is_error] : [])),
      [false],
    )
  })
}

test('the history of an object names the person who approved the call that changed it', async () => {
  const id = await object('Note')
  const { agent, run, task } = await waiting('object_update', { id, properties: { n: 2 } })
  assert.equal((await approve(task.id)).status, 200)
  await ended(run.id)
  const { items } = (await kit.call<{ items: ObjectVersion[] }>(`GET ${base}/objects/${id}/history`)).body
  assert.deepEqual(
    items.map(({ op, actor_id, run_id, approved_by }) => [op, actor_id === agent.id, run_id, approved_by]).at(0),
    ['update', true, run.id, member.id],
  )
})

test('a process without the tool takes the approval while another process has the tool', async () => {
  const { run, task } = await waiting('refund', { amount: 5 })
  const parts = {
    pool: kit.pool,
    writer: createObjectWriter({ pool: kit.pool, setsOff: reactions({ isAnnounced: false }) }),
    tools: createToolRegistry({ builtIns: [], appTools: [], mcp: null }),
  }
  const decision = { projectId: project.id, taskId: task.id, actor: systemActor }
  await assert.rejects(approveSuggestion(parts, decision), /No running process has the tool "refund"/)
  const worker = await insertWorker(kit.pool)
  await kit.pool.query(`update workers set lease_until = muster.now() + interval '1 hour' where id = $1`, [worker])
  await publishNames(kit.pool, worker, 'tools', ['refund'])
  const { task: approved } = await approveSuggestion(parts, decision)
  assert.deepEqual([approved.status, approved.metadata.stale], ['completed', undefined])
  await ended(run.id)
  assert.deepEqual(made.splice(0), [{ amount: 5 }])
})

for (const mode of ['execute', 'suggest', 'hybrid'] as const) {
  for (const name of ['refund', 'strict']) {
    test(`the reason of a call of ${name} in ${mode} mode is its argument, else the text of the step`, async () => {
      for (const [args, reason] of [
        [{ amount: 5, reasoning: 'It broke.' }, 'It broke.'],
        [{ amount: 5 }, 'I do it.'],
      ] as const) {
        const { run, task } = await waiting(name, args, { execution_mode: mode })
        assert.deepEqual([task.reasoning, task.changes], [reason, [{ op: 'call', tool: name, args: { amount: 5 } }]])
        assert.equal((await approve(task.id)).status, 200)
        await ended(run.id)
        assert.deepEqual(made.splice(0), [{ amount: 5 }])
      }
    })
  }
}

test('in suggest mode a call without a reason waits with the text of the step', async () => {
  const { task } = await waiting('strict', { amount: 5 }, { execution_mode: 'suggest', require_approval: [] })
  assert.deepEqual([task.reasoning, task.description], ['I do it.', 'I do it.'])
})

const loopOf = (calls: readonly ScriptedCall[], input: Partial<AgentInput> = {}) =>
  agentOf([{ text: 'I do it.', calls }, { text: 'Done.' }], { flow_type: 'loop', tools: ['strict'], ...input })
const exit = { name: 'finish_loop', args: { result: 'out' } }
const pay = { name: 'strict', args: { amount: 5 } }
const resultsOf = async (runId: string): Promise<unknown[]> => {
  const { items } = (await kit.call<{ items: Step[] }>(`GET ${base}/runs/${runId}/steps`)).body
  return items.flatMap((step) => (step.kind === 'tool' ? [[step.name, step.is_error]] : []))
}

test('calls that stand before finish_loop are made, and then the run ends', async () => {
  const run = await trigger((await loopOf([pay, exit, pay])).id)
  assert.deepEqual([run.status, run.summary, run.step_count], ['completed', 'out', 1])
  assert.deepEqual(made.splice(0), [{ amount: 5 }])
  assert.deepEqual(await resultsOf(run.id), [
    ['strict', true],
    ['strict', false],
    ['finish_loop', false],
  ])
})

test('a call that stands before finish_loop waits for its approval, and the run with it', async () => {
  for (const verb of ['approve', 'reject'] as const) {
    const { run, task } = await waitingOf(await loopOf([pay, exit], { require_approval: ['strict'] }))
    assert.equal((await kit.call(`POST ${base}/tasks/${task.id}/${verb}`)).status, 200)
    await ended(run.id)
    const { status, summary, step_count: steps } = await readRun(run.id)
    assert.deepEqual([status, summary, steps], ['completed', 'out', 1])
    assert.equal(made.splice(0).length, verb === 'approve' ? 1 : 0)
  }
})

test('finish_loop and ask_human wait where they are named', async () => {
  const loop = () => loopOf([exit], { require_approval: ['finish_loop'], max_iterations: 1 })
  for (const [verb, summary] of [
    ['approve', 'out'],
    ['reject', 'Done.'],
  ]) {
    const { run, task } = await waitingOf(await loop())
    assert.deepEqual(task.changes, [{ op: 'call', tool: 'finish_loop', args: { result: 'out' } }])
    const decided = await kit.call(`POST ${base}/tasks/${task.id}/${verb}`)
    assert.equal(decided.status, 200, decided.text)
    await ended(run.id)
    assert.equal((await readRun(run.id)).summary, summary)
  }
  const { run, task } = await waiting('ask_human', { question: 'How much?' })
  assert.equal((await approve(task.id)).status, 200)
  await until(async () => (await readRun(run.id)).waiting_for === 'person', 'the question is asked')
})
