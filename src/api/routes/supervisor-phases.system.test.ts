// The phases of the specification, with the deliverables of each, over HTTP.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSupervisor, delegate, finish, summary } from '../../../test/kit/supervisor.ts'

const toDo = (id: string, owner: string, status: string) => ({
  id,
  description: `Part ${id}`,
  status,
  owner_agent: owner,
})

test('Phase 0: skeleton, 1 agent, no streaming, checkpointer', async () => {
  const kit = await createSupervisor({ supervisor: [delegate('only_agent'), finish()], finalizer: 'Done.' })
  const system = { ...kit.config, specialists: [{ ...kit.specialist('only_agent'), prompt_id: 'research_agent' }] }
  assert.equal((await kit.put('blue', system)).status, 200)
  const { status, body } = await kit.run('One thing.')
  assert.deepEqual([status, body.result.status, body.result.output?.content], [200, 'DONE', 'Done.'])
  const { rows } = await kit.pool.query<{ count: number }>(
    'select count(*)::int as count from supervisor_checkpoints where thread_id = $1',
    [body.metadata.run_id],
  )
  // There is one checkpoint for the input, and one for each node.
  assert.equal(rows[0]?.count, 6, 'input, start, supervisor, only_agent, supervisor, finalizer')
})

test('Phase 1: multi-agent, ToDo planning', async () => {
  const [research, transform] = ['research_agent', 'transform_agent']
  const plan = (first: string, second: string) => [toDo('1', research, first), toDo('2', transform, second)]
  const kit = await createSupervisor({
    supervisor: [
      delegate(research, plan('IN_PROGRESS', 'PENDING')),
      delegate(transform, plan('DONE', 'IN_PROGRESS')),
      finish(plan('DONE', 'DONE')),
    ],
    summary: { [research]: summary('COMPLETED', 'Found.'), [transform]: summary('COMPLETED', 'Written.') },
  })
  const { body } = await kit.run('Two things.')
  const { plan: planned, history } = body.result.supervisor_state
  assert.deepEqual(planned, plan('DONE', 'DONE'))
  assert.deepEqual(
    history.map(({ agent_name, short_summary }) => [agent_name, short_summary]),
    [
      [research, 'Found.'],
      [transform, 'Written.'],
    ],
  )
})

test('Phase 2: HITL: the run ends with a question, and the answer continues the run', async () => {
  const kit = await createSupervisor({
    supervisor: [delegate('research_agent'), { plan: [], action: 'escalate' }, finish()],
    escalation: 'May I?',
  })
  const asked = await kit.run('Something delicate.')
  assert.deepEqual([asked.body.result.status, asked.body.result.output?.content], ['ESCALATE', 'May I?'])
  const runId = asked.body.metadata.run_id
  const { body } = await kit.run('You may.', { options: { run_id: runId } })
  assert.deepEqual([body.result.status, body.metadata.run_id], ['DONE', runId])
  assert.deepEqual([kit.asked('research_agent').length, kit.asked('supervisor').length], [1, 3], 'nothing runs twice')
})

test('Phase 3: streaming, genUI and the prompt library', async () => {
  const kit = await createSupervisor({ finalizer: 'Streamed.' })
  const { text } = await kit.call('POST /v1/agent/run', {
    headers: kit.headers,
    body: { input: { task: 'Stream it.' }, options: { stream: true } },
  })
  const events = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  const tokens = events.filter(({ event_type: type }) => type === 'token').map(({ data }) => data.text)
  const { event_type: last, data } = events.at(-1)
  assert.equal(tokens.join(''), 'Streamed.')
  assert.deepEqual([last, data.status, data.output], ['final', 'DONE', { type: 'text', content: 'Streamed.' }])
  const layout = await kit.call<{ components: { type: string }[] }>('POST /v1/genui/layout', {
    headers: kit.headers,
    body: { context: { scenario: 'generic' } },
  })
  assert.deepEqual(
    layout.body.components.slice(0, 2).map(({ type }) => type),
    ['text', 'input'],
  )
  for (const id of [
    'supervisor_planner',
    'research_agent',
    'transform_agent',
    'finalizer_agent',
    'hitl_escalation_handler',
  ]) {
    const { status, body } = await kit.call<{ prompt: { id: string; variant: { id: string; messages: unknown[] } } }>(
      'POST /v1/prompts/get',
      { headers: kit.headers, body: { prompt_id: id, variant_id: 'blue' } },
    )
    assert.deepEqual([status, body.prompt.id, body.prompt.variant.id], [200, id, 'blue'])
    assert.ok(body.prompt.variant.messages.length > 0)
  }
})

test('Phase 4: blue–green variant execution and eval comparison', async () => {
  const kit = await createSupervisor({ finalizer: 'Blue said it.' })
  const green = await createSupervisor({ finalizer: 'x' })
  assert.equal((await kit.put('green', { ...kit.config, traffic: 0, escalation: green.config.escalation })).status, 200)
  for (const variant of ['blue', 'green']) {
    const { body } = await kit.run('Which are you?', { options: { system_variant: variant } })
    assert.deepEqual([body.result.status, body.metadata.system_variant], ['DONE', variant])
  }
  const made = await kit.call<{ id: string }>(`POST ${kit.base}/evals`, {
    body: {
      name: 'both',
      variants: ['blue', 'green'],
      cases: [{ task: 'Say it.', expect: { status: 'DONE', contains: 'said it', route: [] } }],
    },
  })
  assert.equal(made.status, 201, made.text)
  type Read = { status: string; variants: Record<string, { pass_rate: number }>; deltas: { pass_rate: number } }
  let read = await kit.get<Read>(`/evals/${made.body.id}`)
  while (read.status === 'running') read = await kit.get<Read>(`/evals/${made.body.id}`)
  assert.deepEqual(
    [read.status, read.variants.blue?.pass_rate, read.variants.green?.pass_rate, read.deltas.pass_rate],
    ['completed', 1, 1, 0],
  )
})

test('a task that is longer than the model can read fails with a plain reason', async () => {
  const kit = await createSupervisor()
  const { status, body } = await kit.run('word '.repeat(199_999))
  assert.deepEqual([status, body.result.status, body.result.error?.code], [200, 'FAILED', 'MODEL_ERROR'])
  assert.match(body.result.error?.message ?? '', /longer than the model can read/)
})

test('INTERNAL_ERROR: a fault of the server is answered with the run’s id', async () => {
  const kit = await createSupervisor({
    supervisor: [
      async () => {
        await kit.pool.query(
          `update agent_runs set part = jsonb_set(part, '{config,finalizer}', 'null') where parent_run_id is null`,
        )
        return delegate('research_agent')
      },
      finish(),
    ],
  })
  const { status, body } = await kit.run('Break.')
  assert.deepEqual([status, body.error?.code], [500, 'INTERNAL_ERROR'])
  assert.ok(body.error?.details.run_id)
})
