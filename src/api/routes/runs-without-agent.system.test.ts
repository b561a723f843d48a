// Runs of a supervisor system have no agent: every route that shows or continues runs answers for them too.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testTool } from '../../../test/kit/run-worker.ts'
import { createScriptedModel } from '../../../test/kit/scripted-model.ts'
import { createSupervisor, delegate, finish } from '../../../test/kit/supervisor.ts'
import type { Run, Step } from '../../kernel/run.ts'
import type { Task } from '../../kernel/task.ts'

/** The run is lost while its call is under way, as if its process had died: the result of the call is never stored. */
const send = testTool(
  'send',
  async (_, { run_id: runId }) => {
    const { rows } = await kit.pool.query<{ fence: number }>(
      'update agent_runs set fence = fence + 1 where id = $1 returning fence',
      [runId],
    )
    const recovered = { kind: 'run.recovered', data: { crashes: 1, charged: true } }
    const change = { set: { release: true, ready_in_ms: 0 } } as const
    await kit.services.journal.append({ runId, fence: rows[0]?.fence ?? 0, events: [recovered], change })
    kit.services.onReady()
    return 'sent'
  },
  { effect: 'unsafe' },
)
const kit = await createSupervisor(
  {
    supervisor: [delegate('research_agent'), finish()],
    work: { research_agent: [{ calls: [{ name: 'send', args: {} }] }, 'Sent.'] },
  },
  { tools: [send], models: new Map([['script', createScriptedModel(() => ({ text: 'I am an agent.' }))]]) },
)
const { base, config } = kit
const readRun = (runId: string): Promise<Run> => kit.get<Run>(`/runs/${runId}`)
const agent = await kit.createAgent(kit.project.id, { name: 'an agent' })

const [research, transform] = config.specialists
await kit.put('blue', { ...config, specialists: [{ ...research, tools: ['send'] }, transform] })
const answer = await kit.run('Send it.')
assert.equal(answer.body.result.status, 'DONE', JSON.stringify(answer.body))
const runId = answer.body.metadata.run_id
const { items: subRuns } = await kit.get<{ items: Run[] }>(`/runs?parent_run_id=${runId}`)
const specialistId = subRuns[0]?.id ?? assert.fail()

interface Failure {
  error: { code: string; message: string }
}

test('a specialist whose call has an unknown outcome pauses; the supervisor learns of it and goes on', async () => {
  const { status, pause_reason: reason } = await readRun(specialistId)
  assert.deepEqual([status, reason], ['paused', 'outcome_unknown'])
  const [summary] = answer.body.result.supervisor_state.history
  assert.equal(summary?.result, 'FAILED')
  assert.match(summary?.short_summary ?? '', /Nobody knows whether these calls took effect: send\./)
  assert.match(summary?.next_instructions_for_supervisor ?? '', /do not have them made again/i)
})

test('the question about the call can be answered, and the answer continues no run', async () => {
  const { items } = await kit.get<{ items: Task[] }>('/tasks?kind=escalation&status=pending')
  const task = items.find((each) => each.run_id === specialistId) ?? assert.fail()
  assert.doesNotMatch(task.description, /goes on with your word/)
  const answered = await kit.call<Task>(`PATCH ${base}/tasks/${task.id}`, {
    body: { status: 'completed', result: 'done' },
  })
  assert.deepEqual([answered.status, answered.body.status], [200, 'completed'], answered.text)
  const { items: runs } = await kit.get<{ items: Run[] }>('/runs')
  assert.deepEqual(runs.map(({ id }) => id).toSorted(), [runId, specialistId].toSorted())
})

test('the runs of a supervisor, their steps, events and audit entries can be read', async () => {
  for (const id of [runId, specialistId]) {
    const run = await readRun(id)
    assert.deepEqual([run.agent_id, run.trigger.type], [null, 'supervisor'])
    assert.ok((await kit.get<{ items: Step[] }>(`/runs/${id}/steps`)).items.length > 0)
    const events = await kit.call(`GET ${base}/runs/${id}/events`)
    assert.deepEqual([events.status, /run\.started/.test(events.text)], [200, true])
  }
  assert.deepEqual((await kit.get<{ items: Run[] }>(`/runs?agent_id=${agent.id}`)).items, [])
  const audit = await kit.get<{ items: { action: string; target: { id: string } }[] }>('/audit')
  assert.ok(audit.items.some(({ action, target }) => action === 'run.start' && target.id === runId))
  assert.equal((await kit.call(`GET ${base}/org/health`)).status, 200)
})

test('runs of a supervisor cannot be resumed or forked, also not for another agent', async () => {
  for (const id of [runId, specialistId]) {
    const refused: [route: string, body: object][] = [
      [`POST ${base}/runs/${id}/resume`, {}],
      [`POST ${base}/runs/${id}/resume`, { outcome: 'done' }],
      [`POST ${base}/runs/${id}/fork`, { after_step: 0 }],
      [`POST ${base}/runs/${id}/fork`, { after_step: 1, agent_id: agent.id }],
    ]
    for (const [route, body] of refused) {
      const { status, body: said } = await kit.call<Failure>(route, { body })
      assert.deepEqual([status, said.error.code], [409, 'CONFLICT'], `${route} ${JSON.stringify(body)}`)
    }
    const resumed = { input: 'x', resume_run_id: id }
    assert.equal((await kit.call(`POST ${base}/agents/${agent.id}/trigger`, { body: resumed })).status, 400)
    const cancelled = await kit.call<Run>(`POST ${base}/runs/${id}/cancel`)
    assert.deepEqual([cancelled.status, cancelled.body.completed_at === null], [200, false])
  }
  assert.equal((await kit.get<{ items: Run[] }>('/runs')).items.length, 2)
})
