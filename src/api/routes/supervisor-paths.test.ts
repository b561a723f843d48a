// Integration tests of the supervisor system: the DONE path, the ESCALATE path, and failures.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSupervisor, delegate, finish, summary } from '../../../test/kit/supervisor.ts'

const shared = await createSupervisor()

/** Polls until there is an answer. */
async function until<Value>(look: () => Promise<Value | null>): Promise<Value> {
  for (;;) {
    const found = await look()
    if (found !== null) return found
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

const toDo = (status: string) => ({ id: 't1', description: 'Look it up', status, owner_agent: 'research_agent' })

test('DONE path: a plan, a specialist, its summary, the final answer', async () => {
  const kit = await createSupervisor({
    supervisor: [delegate('research_agent', [toDo('IN_PROGRESS')], 'Find the capital.'), finish([toDo('DONE')])],
    work: { research_agent: 'It is Paris.' },
    summary: { research_agent: summary('COMPLETED', 'The capital is Paris.') },
    finalizer: 'Paris is the capital of France.',
  })
  const { status, body } = await kit.run('What is the capital of France?', {
    context: { context_id: 'c1', metadata: { a: 1 } },
  })
  assert.equal(status, 200)
  assert.equal(body.result.status, 'DONE', JSON.stringify(body))
  assert.deepEqual(body.result.output, { type: 'text', content: 'Paris is the capital of France.' })
  const { task_id, ...state } = body.result.supervisor_state
  assert.equal(task_id, body.metadata.run_id)
  const [told] = state.history
  assert.deepEqual(state, {
    context_id: 'c1',
    status: 'DONE',
    plan: [toDo('DONE')],
    history: [
      { ...summary('COMPLETED', 'The capital is Paris.'), agent_name: 'research_agent', step_id: told?.step_id },
    ],
  })
  assert.equal(body.metadata.system_variant, 'blue')
  assert.deepEqual((await kit.read(body.metadata.run_id)).body, body)
})

test('the supervisor has no tools, even if its specialists have some, and is asked with the schema of its decision', async () => {
  const kit = await createSupervisor()
  await kit.run('Say hello.')
  const [asked] = kit.asked('supervisor')
  assert.deepEqual([asked?.tools, asked?.answerSchema?.name], [[], 'supervisor_decision'])
  const [finalizer] = kit.asked('finalizer')
  assert.deepEqual([finalizer?.tools, finalizer?.answerSchema], [[], undefined])
})

test('the prompts come from the library with their variables filled in', async () => {
  const kit = await createSupervisor({
    supervisor: [delegate('transform_agent', [], 'Turn {{USER_INPUT}} around.'), finish()],
  })
  const messages = (label: string) => [
    { role: 'system', content: `${label} rules` },
    { role: 'user', content: `${label}: {{USER_INPUT}} | {{PLAN_JSON}} | {{HISTORY_JSON}} | {{CONTEXT_METADATA}}` },
  ]
  for (const id of ['supervisor_planner', 'transform_agent', 'finalizer_agent']) {
    await kit.call(`PUT ${kit.base}/prompts/${id}/variants/blue`, { body: { messages: messages(id) } })
  }
  await kit.run('the {{PLAN_JSON}} task', { context: { metadata: { tone: 'dry' } } })
  const text = (node: string) => JSON.stringify(kit.asked(node)[0]?.prompt)
  assert.match(
    text('supervisor'),
    /supervisor_planner: the \{\{PLAN_JSON\}\} task \| \[\] \| \[\] \| .*dry.*research_agent/,
  )
  assert.match(text('transform_agent'), /transform_agent: Turn \{\{USER_INPUT\}\} around\. \| \[\] \| \[\] \| .*dry/)
  assert.match(text('finalizer'), /finalizer_agent: the \{\{PLAN_JSON\}\} task .*It is done\./)
})

test('ESCALATE path: the run ends with a question to people; the answer in the inbox continues it', async () => {
  const kit = await createSupervisor({
    supervisor: [{ plan: [], action: 'escalate', notes: 'I do not know.' }, finish()],
    escalation: 'Which colour?\nRed or blue.',
    finalizer: 'It is red.',
  })
  const { status, body } = await kit.run('Paint it.')
  assert.equal(status, 200)
  assert.deepEqual(
    [body.result.status, body.result.output, body.result.supervisor_state.status],
    ['ESCALATE', { type: 'text', content: 'Which colour?\nRed or blue.' }, 'ESCALATE'],
  )
  const run = await kit.get<{ status: string; pause_reason: string; agent_id: null }>(`/runs/${body.metadata.run_id}`)
  assert.deepEqual([run.status, run.pause_reason, run.agent_id], ['paused', 'human', null])
  const { items } = await kit.get<{ items: { id: string; title: string; run_id: string }[] }>('/tasks?kind=escalation')
  assert.deepEqual(
    items.map(({ title, run_id }) => [title, run_id]),
    [['Which colour?', body.metadata.run_id]],
  )
  await kit.call(`PATCH ${kit.base}/tasks/${items[0]?.id}`, { body: { status: 'completed', result: 'Red, please.' } })
  const done = await until(async () => {
    const now = (await kit.read(body.metadata.run_id)).body
    return now.result.status === 'DONE' ? now : null
  })
  assert.equal(done.result.output?.content, 'It is red.')
  assert.match(JSON.stringify(kit.asked('supervisor')[1]?.prompt), /Paint it\..*Red, please\./)
  assert.equal(kit.asked('supervisor').length, 2)
  assert.equal(kit.asked('escalation').length, 1)
})

test('options.run_id continues an escalated run with the answer and resolves its task; the original task stays', async () => {
  const kit = await createSupervisor({
    supervisor: [{ plan: [], action: 'escalate' }, { plan: [], action: 'escalate' }, finish()],
    escalation: ['First?', 'Second?'],
  })
  const first = await kit.run('A hard one.')
  const runId = first.body.metadata.run_id
  const second = await kit.run('Answer one.', { options: { run_id: runId } })
  assert.deepEqual([second.body.result.status, second.body.result.output?.content], ['ESCALATE', 'Second?'])
  const third = await kit.run('Answer two.', { options: { run_id: runId } })
  assert.equal(third.body.result.status, 'DONE')
  assert.equal(third.body.metadata.run_id, runId)
  assert.match(JSON.stringify(kit.asked('supervisor')[2]?.prompt), /A hard one\..*Answer one\..*Answer two\./)
  const { items } = await kit.get<{ items: { status: string; result: string }[] }>('/tasks?kind=escalation')
  assert.deepEqual(items.map(({ status, result }) => [status, result]).sort(), [
    ['completed', 'Answer one.'],
    ['completed', 'Answer two.'],
  ])
  const again = await kit.run('Once more.', { options: { run_id: runId } })
  assert.deepEqual([again.status, again.body.error?.code], [409, 'CONFLICT'])
})

test('an unknown run, or a run of another project or of an agent, cannot be continued: RUN_NOT_FOUND', async () => {
  const kit = await createSupervisor()
  const other = await kit.createProject('Another')
  const { body } = await kit.run('Mine.')
  const asked = { input: { task: 'x' }, options: { run_id: body.metadata.run_id } }
  const foreign = await kit.call<{ error: { code: string } }>('POST /v1/agent/run', {
    headers: { 'x-project-id': other.id },
    body: asked,
  })
  assert.deepEqual([foreign.status, foreign.body.error.code], [404, 'RUN_NOT_FOUND'])
  for (const path of ['', '/events']) {
    const read = await kit.call(`GET /v1/agent/runs/${body.metadata.run_id}${path}`, {
      headers: { 'x-project-id': other.id },
    })
    assert.equal(read.status, 404)
  }
})

for (const [what, answers] of [
  ['names an unknown specialist', delegate('coder_agent')],
  ['is no JSON', 'I think research_agent should do it.'],
  ['has two todos with one id', delegate('research_agent', [{ ...toDo('DONE') }, { ...toDo('DONE') }])],
] as const) {
  test(`a decision that ${what} twice escalates, and is never followed`, async () => {
    const kit = await createSupervisor({ supervisor: [answers, answers] })
    const { body } = await kit.run('Try it.')
    assert.equal(body.result.status, 'ESCALATE')
    assert.match(body.result.supervisor_state.notes ?? '', /did not fit, twice/)
    assert.match(JSON.stringify(kit.asked('supervisor')[1]?.prompt), /Your last answer could not be used/)
    assert.deepEqual([kit.asked('supervisor').length, kit.asked('research_agent').length], [2, 0])
  })
}

test('a decision that does not fit is asked for once more, and the second answer counts', async () => {
  const kit = await createSupervisor({ supervisor: [delegate('coder_agent'), delegate('research_agent'), finish()] })
  const { body } = await kit.run('Try it.')
  assert.deepEqual([body.result.status, body.result.supervisor_state.history.length], ['DONE', 1])
})

test('a summary that does not fit twice is a FAILED summary; the supervisor goes on', async () => {
  const kit = await createSupervisor({
    supervisor: [delegate('research_agent'), finish()],
    summary: { research_agent: 'All is well.' },
  })
  const { body } = await kit.run('Try it.')
  const [told] = body.result.supervisor_state.history
  assert.deepEqual(
    [body.result.status, told?.result, kit.asked('research_agent summary').length],
    ['DONE', 'FAILED', 2],
  )
})

test('a specialist whose run fails gives a FAILED summary that says why', async () => {
  const kit = await createSupervisor({
    supervisor: [delegate('research_agent'), finish()],
    work: { research_agent: { fail: { message: 'No such model.', isRetryable: false } } },
  })
  const { body } = await kit.run('Try it.')
  const [told] = body.result.supervisor_state.history
  assert.equal(told?.result, 'FAILED')
  assert.match(told?.short_summary ?? '', /No such model/)
})

test('after supervisor_max_rounds rounds the run escalates; the answer of a person allows as many again', async () => {
  const kit = await createSupervisor({ supervisor: delegate('research_agent') })
  await kit.call(`PATCH ${kit.base}/settings`, { body: { supervisor_max_rounds: 2 } })
  const { body } = await kit.run('Never ends.')
  assert.deepEqual([body.result.status, body.result.supervisor_state.history.length], ['ESCALATE', 2])
  assert.equal(kit.asked('supervisor').length, 2)
  const again = await kit.run('Go on.', { options: { run_id: body.metadata.run_id } })
  assert.deepEqual([again.body.result.status, again.body.result.supervisor_state.history.length], ['ESCALATE', 4])
})

test('silent failures on missing prompts are prohibited: PROMPT_MISSING, 422, naming prompt and variant', async () => {
  const kit = await createSupervisor()
  await kit.call(`DELETE ${kit.base}/prompts/finalizer_agent/variants/blue`)
  const { status, body } = await kit.run('Say hello.')
  assert.deepEqual([status, body.error?.code], [422, 'PROMPT_MISSING'])
  assert.match(body.error?.message ?? '', /finalizer_agent.*blue/)
  const read = await kit.read(String(body.error?.details.run_id))
  assert.deepEqual([read.body.result.status, read.body.result.error?.code], ['FAILED', 'PROMPT_MISSING'])
})

test('an unavailable model gives 503 UNAVAILABLE with the run’s id; the continued run repeats nothing', async () => {
  let isAway = true
  const kit = await createSupervisor(
    {
      supervisor: [delegate('research_agent'), finish()],
      finalizer: () => (isAway ? { fail: { message: 'Down.', isRetryable: true } } : 'At last.'),
    },
    { firstBackoffMs: 1 },
  )
  const { status, body } = await kit.run('Wait for it.')
  assert.deepEqual([status, body.error?.code], [503, 'UNAVAILABLE'])
  const runId = String(body.error?.details.run_id)
  const paused = await kit.get<{ status: string; pause_reason: string; completed_at: null }>(`/runs/${runId}`)
  assert.deepEqual([paused.status, paused.pause_reason, paused.completed_at], ['paused', 'unavailable', null])
  assert.equal((await kit.read(runId)).body.result.status, 'FAILED')
  isAway = false
  const again = await kit.run('Please go on.', { options: { run_id: runId } })
  assert.deepEqual([again.body.result.status, again.body.result.output?.content], ['DONE', 'At last.'])
  assert.deepEqual([kit.asked('supervisor').length, kit.asked('research_agent').length], [2, 1])
  const run = await kit.get<{ error_code: string | null }>(`/runs/${runId}`)
  assert.equal(run.error_code, null)
})

test('a specialist with an unavailable model pauses the run; the continued run asks the specialist anew', async () => {
  let isAway = true
  const kit = await createSupervisor(
    {
      supervisor: [delegate('research_agent'), finish()],
      work: { research_agent: () => (isAway ? { fail: { message: 'Down.', isRetryable: true } } : 'Found.') },
    },
    { firstBackoffMs: 1 },
  )
  const { status, body } = await kit.run('Wait for it.')
  assert.deepEqual([status, body.error?.code], [503, 'UNAVAILABLE'])
  isAway = false
  const again = await kit.run('Please go on.', { options: { run_id: String(body.error?.details.run_id) } })
  assert.equal(again.body.result.status, 'DONE')
  assert.equal(kit.asked('supervisor').length, 2)
})

test('runs of the supervisor and its specialists are listed among the runs, without an agent', async () => {
  const kit = await createSupervisor({ supervisor: [delegate('research_agent'), finish()] })
  const { body } = await kit.run('Say hello.')
  const { run_id: runId } = body.metadata
  type Listed = {
    items: { id: string; agent_id: null; trigger: object; parent_run_id: string | null; status: string }[]
  }
  const { items } = await kit.get<Listed>('/runs')
  const [child, parent] = items.map(({ agent_id, trigger, parent_run_id, status }) => ({
    agent_id,
    trigger,
    parent_run_id,
    status,
  }))
  const common = { agent_id: null, status: 'completed' }
  assert.deepEqual(parent, {
    ...common,
    parent_run_id: null,
    trigger: { type: 'supervisor', system_variant: 'blue', node: 'supervisor' },
  })
  assert.deepEqual(child, {
    ...common,
    parent_run_id: runId,
    trigger: { type: 'supervisor', system_variant: 'blue', node: 'research_agent', parent_run_id: runId },
  })
})

test('a long text of a specialist is cut between two characters', async () => {
  const long = `x${'😀'.repeat(20_000)}`
  const kit = await createSupervisor({
    supervisor: [delegate('research_agent'), finish()],
    summary: { research_agent: summary('COMPLETED', long) },
  })
  const { body } = await kit.run('Say hello.')
  assert.equal(body.result.status, 'DONE')
  const { short_summary: said = '' } = body.result.supervisor_state.history[0] ?? {}
  assert.match(said, / \[cut\]$/)
  assert.ok(said.isWellFormed() && long.startsWith(said.slice(0, -' [cut]'.length)))
})

test('a cancelled run is FAILED with the code CANCELLED', async () => {
  const begun = Promise.withResolvers<void>()
  const kit = await createSupervisor({
    supervisor: () => {
      begun.resolve()
      return { text: '', waitFor: 'abort' }
    },
  })
  const asked = kit.run('Wait.')
  await begun.promise
  const { items } = await kit.get<{ items: { id: string }[] }>('/runs')
  await kit.call(`POST ${kit.base}/runs/${items[0]?.id}/cancel`)
  const { status, body } = await asked
  assert.deepEqual([status, body.result.status, body.result.error?.code], [200, 'FAILED', 'CANCELLED'])
})

for (const [what, body] of [
  ['no input', {}],
  ['a blank task', { input: { task: ' ' } }],
  ['an unknown field', { input: { task: 'x' }, stream: true }],
  ['a malformed variant', { input: { task: 'x' }, options: { system_variant: 'mauve' } }],
] as const) {
  test(`INVALID_REQUEST: ${what}`, async () => {
    const kit = shared
    const answer = await kit.call<{ error: { code: string } }>('POST /v1/agent/run', { headers: kit.headers, body })
    assert.deepEqual([answer.status, answer.body.error.code], [400, 'INVALID_REQUEST'])
  })
}
