// Runs over HTTP, executed for real by a worker with a scripted model.
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { test } from 'node:test'
import { ADMIN_TOKEN, createTestApp } from '../../../test/kit/app.ts'
import { createTestRuns, testTool } from '../../../test/kit/run-worker.ts'
import { createScriptedModel, type Script, type ScriptedAnswer } from '../../../test/kit/scripted-model.ts'
import { newId } from '../../kernel/id.ts'
import type { Model } from '../../kernel/model-call.ts'
import type { Run, Step } from '../../kernel/run.ts'
import type { Task } from '../../kernel/task.ts'

const models = new Map<string, Model>()
const look = testTool('look', async (args) => ({ seen: args }))
const kit = await createTestApp({ models, tools: [look] })
const project = await kit.createProject()
const base = `/api/projects/${project.id}`
const member = (await kit.createKey(project.id, 'member')).key
const respondAsync = { prefer: 'respond-async' }
interface List<Item> {
  items: Item[]
  next_cursor: string | null
}
interface Failure {
  error: { code: string; message: string; details: Record<string, unknown> | null }
}

const script = (answers: readonly ScriptedAnswer[] | Script) => {
  const model = createScriptedModel(answers)
  models.set('script', model)
  return model
}
/** A model call that tells the test when it was asked and answers when the test lets it. */
function heldAnswer(answer: ScriptedAnswer = { text: 'done' }) {
  const asked = Promise.withResolvers<void>()
  const go = Promise.withResolvers<void>()
  script(() => {
    asked.resolve()
    return { ...answer, waitFor: go.promise }
  })
  return { asked: asked.promise, go: () => go.resolve() }
}
const trigger = (agentId: string, body: object = { input: 'Do it.' }, headers: Record<string, string> = {}) =>
  kit.call<Run & Failure>(`POST ${base}/agents/${agentId}/trigger`, { token: member, body, headers })
const post = <Body = Run & Failure>(path: string, body?: object, headers: Record<string, string> = {}) =>
  kit.call<Body>(`POST ${base}${path}`, { token: member, headers, ...(body ? { body } : {}) })
const read = async (runId: string): Promise<Run> => (await kit.call<Run>(`GET ${base}/runs/${runId}`)).body
const finished = async (runId: string): Promise<Run> => {
  await kit.call(`GET ${base}/runs/${runId}/events`)
  return read(runId)
}

test('a trigger waits for its run and answers with it', async () => {
  script([{ calls: [{ name: 'look', args: { at: 1 } }] }, { text: 'I saw it.' }])
  const agent = await kit.createAgent(project.id, { tools: ['look'] })
  const answer = await trigger(agent.id, { input: { topic: 'owls' }, max_steps: 9, timeout: 60_000 })
  assert.equal(answer.status, 200)
  const { body: run } = answer
  assert.equal(run.status, 'completed')
  assert.equal(run.summary, 'I saw it.')
  assert.deepEqual(run.trigger, { type: 'manual' })
  assert.deepEqual(run.input, { topic: 'owls' })
  assert.equal(run.max_steps, 9)
  assert.equal(run.agent_id, agent.id)
  assert.equal(run.usage.total_tokens, 30)
  assert.deepEqual(await read(run.id), run)
})

test('with Prefer: respond-async it answers 202 at once, and says so', async () => {
  const held = heldAnswer()
  const agent = await kit.createAgent(project.id)
  const answer = await trigger(agent.id, { input: 'x' }, { prefer: 'wait=5, Respond-Async' })
  assert.equal(answer.status, 202)
  assert.equal(answer.headers['preference-applied'], 'respond-async')
  assert.match(answer.body.status, /^(queued|running)$/)
  await held.asked
  held.go()
  assert.equal((await finished(answer.body.id)).status, 'completed')
})

test('a request whose run takes too long is answered 202 with the run as it stands, and the run goes on', async () => {
  const hurried = await createTestApp({ waits: { waitMs: 1 } })
  const own = await hurried.createProject()
  const agent = await hurried.createAgent(own.id)
  const answer = await hurried.call<Run>(`POST /api/projects/${own.id}/agents/${agent.id}/trigger`, {
    body: { input: 'x' },
  })
  assert.equal(answer.status, 202)
  assert.equal(answer.body.status, 'queued')
  assert.equal(answer.headers['preference-applied'], undefined)
})

test('a server that closes answers waiting requests with the run as it stands', async () => {
  const closing = await createTestApp()
  const own = await closing.createProject()
  const agent = await closing.createAgent(own.id)
  const waiting = closing.call<Run>(`POST /api/projects/${own.id}/agents/${agent.id}/trigger`, { body: { input: 'x' } })
  while (closing.services.hub.watched().length === 0) await new Promise(setImmediate)
  await closing.app.close()
  const answer = await waiting
  assert.equal(answer.status, 202)
  assert.equal(answer.body.status, 'queued')
})

test('a client that leaves does not end its run, and the server stops waiting for it', async () => {
  const held = heldAnswer({ text: 'done all the same' })
  const agent = await kit.createAgent(project.id)
  const { port } = new URL(await kit.app.listen({ port: 0, host: '127.0.0.1' }))
  const socket = connect(Number(port), '127.0.0.1')
  const body = '{"input":"x"}'
  socket.write(
    `POST ${base}/agents/${agent.id}/trigger HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${ADMIN_TOKEN}\r\n` +
      `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  )
  await held.asked
  const { items } = (await kit.call<List<Run>>(`GET ${base}/runs?agent_id=${agent.id}`)).body
  const runId = items[0]?.id ?? ''
  assert.deepEqual(kit.services.hub.watched(), [runId])
  socket.destroy()
  while (kit.services.hub.watched().length > 0) await new Promise(setImmediate)
  assert.equal((await read(runId)).status, 'running')
  held.go()
  assert.equal((await finished(runId)).summary, 'done all the same')
})

test('a trigger waits for a run, and a stream follows it, also if another process executes it', async () => {
  const near = await createTestApp()
  const { id: projectId } = await near.createProject()
  await near.call('POST /api/providers', { body: { name: 'test', kind: 'offline' } })
  const agent = await near.createAgent(projectId, { model: { provider: 'test', name: 'script' } })
  const far = await createTestRuns({
    database: { url: near.url, pool: near.pool, clock: near.clock, projectId, models: new Map(models) },
  })
  const go = Promise.withResolvers<void>()
  far.models.set('script', createScriptedModel([{ text: 'from afar', waitFor: go.promise }]))
  const path = `/api/projects/${projectId}`
  const waiting = near.call<Run>(`POST ${path}/agents/${agent.id}/trigger`, { body: { input: 'x' } })
  while (near.services.hub.watched().length === 0) await new Promise(setImmediate)
  far.worker.onReady()
  const stream = near.call(`GET ${path}/runs/${near.services.hub.watched()[0]}/events`)
  go.resolve()
  const { status, body } = await waiting
  assert.equal(status, 200)
  assert.equal(body.summary, 'from afar')
  const kinds = [...(await stream).text.matchAll(/^event: (.*)$/gm)].map((match) => match[1])
  assert.deepEqual(
    kinds.filter((kind) => kind !== 'token'),
    ['run.started', 'step.completed', 'run.completed'],
  )
})

test('an unknown agent and a disabled one start nothing', async () => {
  const disabled = await kit.createAgent(project.id, { enabled: false })
  const refused = await trigger(disabled.id)
  assert.equal(refused.status, 409)
  assert.equal(refused.body.error.code, 'CONFLICT')
  assert.equal((await trigger(newId())).status, 404)
  assert.equal((await kit.call<List<Run>>(`GET ${base}/runs?agent_id=${disabled.id}`)).body.items.length, 0)
})

test('the same Idempotency-Key and body give the same run, also while it is under way', async () => {
  const held = heldAnswer({ text: 'once' })
  const agent = await kit.createAgent(project.id)
  const headers = { 'idempotency-key': 'once' }
  const first = trigger(agent.id, { input: 'x' }, headers)
  await held.asked
  const second = trigger(agent.id, { input: 'x' }, headers)
  const now = await trigger(agent.id, { input: 'x' }, { ...headers, ...respondAsync })
  assert.equal(now.status, 202)
  assert.equal(now.headers['idempotency-replayed'], 'true')
  held.go()
  const answers = await Promise.all([first, second])
  assert.deepEqual(
    answers.map(({ status, body }) => [status, body.id, body.summary]),
    [
      [200, now.body.id, 'once'],
      [200, now.body.id, 'once'],
    ],
  )
  const later = await trigger(agent.id, { input: 'x' }, headers)
  assert.equal(later.body.id, now.body.id)
  const other = await trigger(agent.id, { input: 'y' }, headers)
  assert.equal(other.status, 409)
  assert.equal(other.body.error.code, 'IDEMPOTENCY_MISMATCH')
})

test('the same Idempotency-Key for another agent is another request', async () => {
  script(() => ({ text: 'done' }))
  const [one, two] = [await kit.createAgent(project.id), await kit.createAgent(project.id)]
  const headers = { 'idempotency-key': 'two agents' }
  const first = await trigger(one.id, { input: 'x' }, headers)
  const second = await trigger(two.id, { input: 'x' }, headers)
  assert.equal(second.status, 200)
  assert.equal(second.body.agent_id, two.id)
  assert.notEqual(second.body.id, first.body.id)
})

test('twenty triggers under one key are one run', async () => {
  script(() => ({ text: 'done' }))
  const agent = await kit.createAgent(project.id)
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => trigger(agent.id, { input: 'x' }, { 'idempotency-key': 'twenty' })),
  )
  assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200])
  assert.equal(new Set(answers.map(({ body }) => body.id)).size, 1)
  assert.equal((await kit.call<List<Run>>(`GET ${base}/runs?agent_id=${agent.id}`)).body.items.length, 1)
})

test('runs are listed newest first, by agent, status and parent', async () => {
  script((request) => {
    const isParent = JSON.stringify(request.prompt).includes('delegate this')
    const isDone = request.prompt.some((message) => message.role === 'tool')
    return isParent && !isDone
      ? { calls: [{ name: 'spawn_agent', args: { agent: child.id, input: 'help' } }] }
      : { text: 'done' }
  })
  const child = await kit.createAgent(project.id)
  const agent = await kit.createAgent(project.id, { tools: ['spawn_agent'] })
  const parent = (await trigger(agent.id, { input: 'delegate this' })).body
  const plain = (await trigger(agent.id)).body
  const ids = async (query: string): Promise<string[]> =>
    (await kit.call<List<Run>>(`GET ${base}/runs?${query}`)).body.items.map((run) => run.id)
  assert.deepEqual(await ids(`agent_id=${agent.id}`), [plain.id, parent.id])
  assert.deepEqual(await ids(`agent_id=${agent.id}&status=failed`), [])
  assert.deepEqual(await ids(`agent_id=${agent.id}&status=completed&limit=1`), [plain.id])
  const children = (await kit.call<List<Run>>(`GET ${base}/runs?parent_run_id=${parent.id}`)).body.items
  assert.deepEqual(
    children.map((run) => [run.agent_id, run.parent_run_id, run.trigger.type]),
    [[child.id, parent.id, 'spawn']],
  )
  const page = (await kit.call<List<Run>>(`GET ${base}/runs?agent_id=${agent.id}&limit=1`)).body
  assert.deepEqual(await ids(`agent_id=${agent.id}&cursor=${page.next_cursor}`), [parent.id])
})

test('steps are listed oldest first, a page at a time', async () => {
  script([
    {
      text: 'hm',
      calls: [
        { name: 'look', args: { at: 1 } },
        { name: 'look', args: { at: 2 } },
      ],
    },
    { text: 'ok' },
  ])
  const agent = await kit.createAgent(project.id, { tools: ['look'] })
  const run = (await trigger(agent.id)).body
  const all = (await kit.call<List<Step>>(`GET ${base}/runs/${run.id}/steps`)).body
  assert.deepEqual(
    all.items.map((step) =>
      step.kind === 'flow' ? [] : [step.step, step.kind, step.kind === 'tool' ? step.args : step.text],
    ),
    [
      [1, 'model', 'hm'],
      [1, 'tool', { at: 1 }],
      [1, 'tool', { at: 2 }],
      [2, 'model', 'ok'],
    ],
  )
  assert.equal(all.next_cursor, null)
  const paged: Step[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const query: string = cursor === '' ? '' : `&cursor=${cursor}`
    const page: List<Step> = (await kit.call<List<Step>>(`GET ${base}/runs/${run.id}/steps?limit=3${query}`)).body
    paged.push(...page.items)
    cursor = page.next_cursor
  }
  assert.deepEqual(paged, all.items)
})

test('a cancelled run stops, keeps its output, and stays as it is', async () => {
  const asked = Promise.withResolvers<void>()
  script(() => {
    asked.resolve()
    return { textParts: ['half a '], waitFor: 'abort' }
  })
  const agent = await kit.createAgent(project.id)
  const { id } = (await trigger(agent.id, { input: 'x' }, respondAsync)).body
  await asked.promise
  const answer = await post(`/runs/${id}/cancel`)
  assert.equal(answer.status, 200)
  assert.equal(answer.body.status, 'cancelled')
  assert.equal(answer.body.summary, 'half a ')
  const again = await post(`/runs/${id}/cancel`)
  assert.equal(again.status, 200)
  assert.deepEqual(again.body, answer.body)
  const { rows } = await kit.pool.query(`select count(*) as count from audit_log where action = 'run.cancel'`)
  assert.equal(rows[0].count, 1)
})

test('a paused run is resumed in a new run, by its own route and by a trigger', async () => {
  script((request, call) =>
    request.toolChoice === 'none' ? { text: 'so far' } : { calls: [{ name: 'look', args: { call } }] },
  )
  const agent = await kit.createAgent(project.id, { tools: ['look'] })
  const paused = (await trigger(agent.id, { input: 'x', max_steps: 1 })).body
  assert.equal(paused.status, 'paused')
  assert.equal(paused.pause_reason, 'step_limit')
  script([{ text: 'finished' }])
  const answer = await post(`/runs/${paused.id}/resume`)
  assert.equal(answer.status, 200)
  assert.equal(answer.body.status, 'completed')
  assert.equal(answer.body.resumed_from, paused.id)
  assert.equal((await read(paused.id)).resumed_as, answer.body.id)
  assert.equal((await post(`/runs/${paused.id}/resume`)).status, 409)
  assert.equal((await post(`/runs/${answer.body.id}/resume`, {})).status, 409)

  script((request) => (request.toolChoice === 'none' ? { text: 'so far' } : { calls: [{ name: 'look' }] }))
  const second = (await trigger(agent.id, { input: 'x', max_steps: 1 })).body
  const other = await kit.createAgent(project.id)
  assert.equal((await trigger(other.id, { input: 'go on', resume_run_id: second.id })).status, 400)
  assert.equal((await trigger(agent.id, { input: 'go on', resume_run_id: newId() })).status, 404)
  script([{ text: 'went on' }])
  const resumed = await trigger(agent.id, { input: 'go on', resume_run_id: second.id }, { 'idempotency-key': 'resume' })
  assert.equal(resumed.body.summary, 'went on')
  assert.equal(resumed.body.resumed_from, second.id)
  assert.deepEqual(resumed.body.input, 'go on')
  const again = await trigger(agent.id, { input: 'go on', resume_run_id: second.id }, { 'idempotency-key': 'resume' })
  assert.equal(again.body.id, resumed.body.id)
})

test('a fork starts from a point of the journal and leaves the original alone', async () => {
  script([{ calls: [{ name: 'look', args: { at: 1 } }] }, { text: 'first' }])
  const agent = await kit.createAgent(project.id, { tools: ['look'] })
  const original = (await trigger(agent.id)).body
  script([{ text: 'another way' }])
  const fork = await post(`/runs/${original.id}/fork`, { after_step: 1 })
  assert.equal(fork.status, 200)
  assert.equal(fork.body.forked_from, original.id)
  assert.equal(fork.body.summary, 'another way')
  assert.deepEqual(await read(original.id), original)
  assert.equal((await post(`/runs/${original.id}/fork`, { after_step: 7 })).status, 400)
  script([{ text: 'later' }])
  const later = await post(`/runs/${original.id}/fork`, { after_step: 0 }, respondAsync)
  assert.equal(later.status, 202)
  assert.equal((await finished(later.body.id)).status, 'completed')
})

test('a run that asks people waits until its task is answered, and goes on as the same run', async () => {
  script([{ calls: [{ name: 'ask_human', args: { question: 'Blue or green?\nI would take blue.' } }] }, { text: 'ok' }])
  const agent = await kit.createAgent(project.id, { tools: ['ask_human'] })
  const waiting = await trigger(agent.id)
  assert.equal(waiting.status, 200)
  assert.equal(waiting.body.status, 'paused')
  assert.equal(waiting.body.pause_reason, 'human')
  const { items } = (await kit.call<List<Task>>(`GET ${base}/tasks?kind=escalation&status=pending`)).body
  const task = items.find((each) => each.run_id === waiting.body.id) ?? assert.fail('no task')
  assert.equal(task.title, 'Blue or green?')
  assert.deepEqual(task.created_by, { type: 'agent', id: agent.id })
  assert.equal(task.priority, 'high')
  const answered = await kit.call<Task>(`PATCH ${base}/tasks/${task.id}`, {
    token: member,
    body: { status: 'completed', result: { colour: 'green' } },
  })
  assert.equal(answered.body.status, 'completed')
  const run = await finished(waiting.body.id)
  assert.equal(run.id, waiting.body.id)
  assert.equal(run.status, 'completed')
  const steps = (await kit.call<List<Step>>(`GET ${base}/runs/${run.id}/steps`)).body.items
  const asked = steps.find((step) => step.kind === 'tool')
  assert.deepEqual(asked?.kind === 'tool' && [asked.result, asked.is_error], [{ colour: 'green' }, false])
})

test('a cancelled question counts as declined, and the run is told', async () => {
  const model = script([{ calls: [{ name: 'ask_human', args: { question: 'May I?' } }] }, { text: 'then not' }])
  const agent = await kit.createAgent(project.id, { tools: ['ask_human'] })
  const waiting = (await trigger(agent.id)).body
  const { items } = (await kit.call<List<Task>>(`GET ${base}/tasks?kind=escalation&status=pending`)).body
  const task = items.find((each) => each.run_id === waiting.id)
  await kit.call(`PATCH ${base}/tasks/${task?.id}`, { body: { status: 'cancelled' } })
  assert.equal((await finished(waiting.id)).summary, 'then not')
  assert.match(JSON.stringify(model.requests[1]?.prompt), /declined to answer/)
})

test('an answer to a run that was cancelled meanwhile wakes no run', async () => {
  const model = script([{ calls: [{ name: 'ask_human', args: { question: 'Still there?' } }] }, { text: 'never' }])
  const agent = await kit.createAgent(project.id, { tools: ['ask_human'] })
  const waiting = (await trigger(agent.id)).body
  const { items } = (await kit.call<List<Task>>(`GET ${base}/tasks?kind=escalation`)).body
  const task = items.find((each) => each.run_id === waiting.id)
  const cancelled = (await post(`/runs/${waiting.id}/cancel`)).body
  assert.equal(cancelled.status, 'cancelled')
  await kit.call(`PATCH ${base}/tasks/${task?.id}`, { body: { status: 'completed', result: 'yes' } })
  const { rows } = await kit.pool.query('select ready_at, owner from agent_runs where id = $1', [waiting.id])
  assert.deepEqual(rows, [{ ready_at: null, owner: null }])
  assert.deepEqual(await read(waiting.id), cancelled)
  assert.equal(model.requests.length, 1)
})

test('halt and unhalt are announced to the workers after their commit', async () => {
  const own = await kit.createProject()
  const before = kit.services.halts.length
  await kit.call(`POST /api/projects/${own.id}/halt`)
  await kit.call(`POST /api/projects/${own.id}/unhalt`)
  assert.deepEqual(kit.services.halts.slice(before), [
    [own.id, true],
    [own.id, false],
  ])
})
