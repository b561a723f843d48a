// Supervisor runs that go on: after an answer, after an outage, and after a crash between two commits.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createScriptedModel } from '../../../test/kit/scripted-model.ts'
import { createSupervisor, delegate, finish } from '../../../test/kit/supervisor.ts'
import { until } from '../../../test/kit/until.ts'
import { inTransaction } from '../../db/transaction.ts'
import { wakeWaiting } from '../../journal/wake.ts'
import { newId } from '../../kernel/id.ts'
import { createAskHuman } from '../../tasks/ask-human.ts'

const escalate = { plan: [], action: 'escalate' }
const down = { fail: { message: 'Down.', isRetryable: true } }

type Kit = Awaited<ReturnType<typeof createSupervisor>>
const questions = async (kit: Kit) =>
  (await kit.get<{ items: { id: string; title: string; status: string }[] }>('/tasks?kind=escalation')).items

test('after a crash behind the commit of an answer the graph starts again and asks nothing twice', async () => {
  const kit = await createSupervisor({ supervisor: [escalate, finish()], escalation: 'May I?' })
  const { body } = await kit.run('Something delicate.')
  const runId = body.metadata.run_id
  const [question] = await questions(kit)
  // The state is as an owner leaves it that dies between the answer and the next checkpoint.
  await inTransaction(kit.pool, async (tx) => {
    await tx.query(
      `update tasks set status = 'completed', result = '"Yes."', completed_at = muster.now() where id = $1`,
      [question?.id],
    )
    const data = { task_id: question?.id, answer: 'Yes.', summaries: 0 }
    const event = { kind: 'supervisor.answered', data }
    await kit.services.journal.appendIn(tx, { runId, fence: null, events: [event], change: {}, ancestors: [] })
    await wakeWaiting(tx, runId, 'human')
  })
  kit.services.onReady()
  await until(async () => (await kit.read(runId)).body.result.status === 'DONE', 'the run has completed')
  assert.deepEqual(
    (await questions(kit)).map(({ title }) => title),
    ['May I?'],
  )
  assert.match(JSON.stringify(kit.asked('supervisor')[1]?.prompt), /A person was asked meanwhile, and answered:.*Yes\./)
})

test('a run that goes on after an outage keeps the rounds that an answer gave it', async () => {
  let isAway = false
  const decisions = [delegate('research_agent'), delegate('research_agent'), escalate]
  const kit = await createSupervisor(
    {
      supervisor: (_: unknown, call: number) => {
        if (isAway) return down
        return decisions[call] ?? (kit.asked('research_agent').length < 3 ? delegate('research_agent') : finish())
      },
    },
    { firstBackoffMs: 1 },
  )
  await kit.call(`PATCH ${kit.base}/settings`, { body: { supervisor_max_rounds: 2 } })
  const runId = (await kit.run('Long work.')).body.metadata.run_id
  isAway = true
  const away = await kit.run('Go on.', { options: { run_id: runId } })
  assert.equal(away.body.error?.code, 'UNAVAILABLE')
  isAway = false
  const { body } = await kit.run('Long work.', { options: { run_id: runId } })
  assert.deepEqual([body.result.status, body.result.supervisor_state.history.length], ['DONE', 3])
})

test('an unavailable run is continued once; a repeated task is no answer of a person', async () => {
  let isAway = true
  const kit = await createSupervisor({ supervisor: () => (isAway ? down : finish()) }, { firstBackoffMs: 1 })
  const { body } = await kit.run('Wait for it.')
  const runId = String(body.error?.details.run_id)
  await kit.call(`POST ${kit.base}/halt`)
  const say = (task: string) =>
    kit.call<{ error?: { code: string } }>('POST /v1/agent/run', {
      headers: kit.headers,
      body: { input: { task }, options: { run_id: runId } },
    })
  isAway = false
  const both = Promise.all([say('Wait for it.'), say('Wait for it.')])
  await until(async () => (await kit.read(runId)).body.result.status === 'RUNNING', 'the run goes on')
  await kit.call(`POST ${kit.base}/unhalt`)
  const statuses = (await both).map(({ status }) => status).sort()
  assert.equal(statuses[1], 409, String(statuses))
  await until(async () => (await kit.read(runId)).body.result.status === 'DONE', 'the run is done')
  assert.doesNotMatch(JSON.stringify(kit.requests.at(-1)?.request.prompt), /A person/)
})

test('a person who continues an unavailable run may add a text, which is not shown as an answer to a question', async () => {
  let isAway = true
  const kit = await createSupervisor({ supervisor: () => (isAway ? down : finish()) }, { firstBackoffMs: 1 })
  const { body } = await kit.run('Wait for it.')
  isAway = false
  await kit.run('But be brief.', { options: { run_id: String(body.error?.details.run_id) } })
  const prompt = JSON.stringify(kit.asked('supervisor').at(-1)?.prompt)
  assert.match(prompt, /Wait for it\.\\n\\nA person added:\\n- But be brief\./)
  assert.doesNotMatch(prompt, /was asked/)
})

test('prompts between 80 % and 100 % of the context are sent, at every node', async () => {
  const kit = await createSupervisor()
  const model = (said: object | string) =>
    createScriptedModel(() => ({ text: typeof said === 'string' ? said : JSON.stringify(said) }), {
      contextTokens: 20_000,
    })
  kit.models.set('supervisor', model(finish()))
  kit.models.set('finalizer', model('Read to the end.'))
  const { body } = await kit.run('word '.repeat(13_200))
  assert.deepEqual(
    [body.result.status, body.result.output?.content],
    ['DONE', 'Read to the end.'],
    JSON.stringify(body.result.error),
  )
})

test('the tokens of a final text that was cut off are counted', async () => {
  const kit = await createSupervisor({ finalizer: { text: 'It is', finishReason: 'content-filter' } })
  const { body } = await kit.run('Say it.')
  assert.deepEqual([body.result.status, body.result.error?.code], ['FAILED', 'MODEL_ERROR'])
  const run = await kit.get<{ usage: { total_tokens: number } }>(`/runs/${body.metadata.run_id}`)
  assert.equal(run.usage.total_tokens, 30, 'the decision and the text')
})

test('no model is asked for a cancelled run', async () => {
  const kit = await createSupervisor({ supervisor: escalate })
  const { body } = await kit.run('Ask.')
  const runId = body.metadata.run_id
  await kit.call(`POST ${kit.base}/runs/${runId}/cancel`)
  const asked = { taskId: newId(), projectId: kit.project.id, runId, agentId: newId(), question: 'Late?' }
  await createAskHuman({ pool: kit.pool }).ask(asked)
  assert.deepEqual(
    (await questions(kit)).map(({ status }) => status),
    ['cancelled'],
  )
})

test('a checkpoint of a process whose clock is ahead does not set the run back', async () => {
  const kit = await createSupervisor({
    supervisor: [
      delegate('research_agent'),
      async () => {
        await kit.pool.query(
          `insert into supervisor_checkpoints (project_id, thread_id, checkpoint_ns, checkpoint_id, checkpoint, metadata)
           select project_id, thread_id, checkpoint_ns, 'ffffffff-ffff-6fff-bfff-ffffffffffff', checkpoint, metadata
           from supervisor_checkpoints order by checkpoint_id limit 1`,
        )
        return finish()
      },
    ],
  })
  const { body } = await kit.run('Work.')
  assert.deepEqual([body.result.status, body.result.supervisor_state.status], ['DONE', 'DONE'])
  assert.deepEqual([kit.asked('supervisor').length, kit.asked('finalizer').length], [2, 1])
  const { rows } = await kit.pool.query(`select from run_events where kind = 'supervisor.updated' and run_id = $1`, [
    body.metadata.run_id,
  ])
  assert.equal(rows.length, 3, 'two decisions and the end of the specialist')
})

test('options.run_id alone continues an unavailable run; an escalated run needs an answer', async () => {
  let isAway = true
  const kit = await createSupervisor(
    { supervisor: (_: unknown, call: number) => (isAway ? down : call > 5 ? finish() : escalate) },
    { firstBackoffMs: 1 },
  )
  const runId = String((await kit.run('Wait for it.')).body.error?.details.run_id)
  isAway = false
  const goOn = () =>
    kit.call<{ result?: { status: string }; error?: { code: string } }>('POST /v1/agent/run', {
      headers: kit.headers,
      body: { options: { run_id: runId } },
    })
  const first = await goOn()
  assert.equal(first.body.result?.status, 'ESCALATE')
  assert.doesNotMatch(JSON.stringify(kit.asked('supervisor').at(-1)?.prompt), /A person/)
  const second = await goOn()
  assert.deepEqual([second.status, second.body.error?.code], [400, 'INVALID_REQUEST'])
  const nothing = await kit.call('POST /v1/agent/run', { headers: kit.headers, body: {} })
  assert.equal(nothing.status, 400)
})
