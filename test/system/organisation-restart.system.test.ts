// A server is asked to stop in the middle of agents' tasks, and another starts over the same database: no task is
// orphaned, the work goes on from the same point, no call is made twice, and a stopped agent stays stopped.
import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { z } from 'zod'
import type { Agent } from '../../src/kernel/agent.ts'
import type { Run } from '../../src/kernel/run.ts'
import type { Task } from '../../src/kernel/task.ts'
import { atEnd } from '../kit/at-end.ts'
import { createUnusedDatabase } from '../kit/database.ts'
import { createGates } from '../kit/gates.ts'
import { startLedger } from '../kit/ledger-server.ts'
import { serveLocally } from '../kit/local-server.ts'
import { type Muster, repository, startMuster } from '../kit/process.ts'
import { withClient } from '../kit/test-server.ts'
import { until } from '../kit/until.ts'

const wholeFile = { after: atEnd }
const ledger = await startLedger(wholeFile)
const databaseUrl = await createUnusedDatabase()
const gates = createGates()
const { hold, release, held } = gates.forTests
/** The name of the decision, or `work <step>`, of every request, with the title of its task. */
const asked: string[] = []

const requestShape = z.looseObject({
  messages: z.array(z.looseObject({ role: z.string(), content: z.unknown().optional() })),
  response_format: z.looseObject({ json_schema: z.looseObject({ name: z.string() }).optional() }).optional(),
})

/** Delegates tasks called "Delegated", and pays once for every other task; the second step waits at the task's gate. */
async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { messages, response_format: format } = requestShape.parse(JSON.parse(await text(request)))
  const title = /Task: ([\w ]+)/.exec(JSON.stringify(messages))?.[1] ?? ''
  const results = messages.filter(({ role }) => role === 'tool').length
  const decision = format?.json_schema?.name
  asked.push(`${title}: ${decision ?? `work ${results + 1}`}`)
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const chunk = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'm' }
  const send = (delta: object, finish_reason: string | null = null): void =>
    void response.write(`data: ${JSON.stringify({ ...chunk, choices: [{ index: 0, delta, finish_reason }] })}\n\n`)
  if (decision === 'delegation_decision') {
    send({ content: JSON.stringify({ delegate: true, subordinate: null, reasoning: 'They pay.' }) })
  } else if (decision) {
    send({ content: '{"subtasks":[]}' })
  } else if (results === 0) {
    const call = { name: 'pay', arguments: JSON.stringify({ url: ledger.url, label: title }) }
    send({ tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: call }] })
  } else {
    send({ content: 'It is ' })
    await gates.pass(title, response)
    if (response.destroyed) return
    send({ content: 'paid.' })
  }
  send({}, !decision && results === 0 ? 'tool_calls' : 'stop')
  response.end('data: [DONE]\n\n')
}

const env = {
  MUSTER_ADMIN_TOKEN: 'one-token-for-all-servers',
  MUSTER_SECRET_KEY: 'one-key-for-all-of-the-servers',
  MUSTER_DEMO: 'off',
  MUSTER_APP: join(repository, 'test/fixtures/ledger-app.ts'),
}
const start = (drainMs: number) =>
  startMuster(wholeFile, { databaseUrl, env: { ...env, MUSTER_DRAIN: String(drainMs) } })

async function made<Body>(server: Muster, route: string, body: object): Promise<Body> {
  const { status, body: answered, text: said } = await server.call<Body>(route, { body })
  assert.equal(status, 201, said)
  return answered
}

let server = await start(20_000)
const url = await serveLocally(wholeFile, answer)
await made(server, 'POST /api/providers', { name: 'm', kind: 'openai-compatible', base_url: `${url}/v1`, api_key: 'x' })
const project = await made<{ id: string }>(server, 'POST /api/projects', { name: 'a team' })
const base = `/api/projects/${project.id}`
const agent = (name: string, fields: object = {}) =>
  made<Agent>(server, `POST ${base}/agents`, { name, model: { provider: 'm', name: 'm' }, tools: ['pay'], ...fields })
const give = (title: string, to: Agent) => made<Task>(server, `POST ${base}/tasks`, { title, assigned_to: to.id })
const read = async <Body>(path: string): Promise<Body> => (await server.call<Body>(`GET ${base}${path}`)).body
const untilDone = (task: Task) =>
  until(async () => (await read<Task>(`/tasks/${task.id}`)).status === 'completed', `${task.title} is done`, 30_000)
const requestsFor = (title: string): string[] => asked.filter((each) => each.startsWith(`${title}:`))

/** Tasks in progress that would never go on: no run waits for a slot or to be settled, and no subtask is open. */
const orphans = (): Promise<{ title: string }[]> =>
  withClient(databaseUrl, async (db) => {
    const { rows } = await db.query<{ title: string }>(
      `select t.title from tasks t left join agent_runs r on r.id = t.attempt_run_id
       where t.status = 'in-progress' and t.waits_for is distinct from 'subtasks'
         and not (coalesce(r.is_task_open, false) and r.owner is null and (r.ready_at is not null or r.completed_at is not null))`,
    )
    return rows
  })

const boss = await agent('boss')
const worker = await agent('worker', { senior_id: boss.id })
const idle = await agent('idle')
const stopped = await agent('stopped')

test('Graceful shutdown works (no orphaned tasks): a running call may end, and no call is made twice', async () => {
  assert.equal((await server.call(`POST ${base}/agents/${stopped.id}/stop`)).status, 200)
  const forStopped = await give('For the stopped', stopped)
  hold('Delegated')
  const task = await give('Delegated', boss)
  await until(() => held('Delegated') === 1, 'the worker is in the middle of its answer')
  server.signal('SIGTERM')
  await until(() => /stopping/.test(server.stderr()), 'it has heard')
  release('Delegated')
  assert.deepEqual(await server.exited, { code: 0, signal: null }, server.stderr())
  assert.deepEqual(await orphans(), [])

  server = await start(500)
  await untilDone(task)
  assert.deepEqual(requestsFor('Delegated'), [
    'Delegated: delegation_decision',
    'Delegated: task_plan',
    'Delegated: work 1',
    'Delegated: work 2',
  ])
  assert.equal(ledger.callsOf('Delegated').length, 1)
  const [run, ...others] = (await read<{ items: Run[] }>(`/runs?agent_id=${worker.id}`)).items
  assert.deepEqual([run?.status, run?.summary, others], ['completed', 'It is paid.', []])

  const still = await read<Agent>(`/agents/${stopped.id}`)
  assert.equal(still.status, 'paused', 'a stopped agent stays stopped')
  assert.equal((await read<Task>(`/tasks/${forStopped.id}`)).status, 'pending')
  assert.equal((await read<Agent>(`/agents/${idle.id}`)).status, 'active')
})

test('a call that outlasts the drain is cut off and made again by the next server; earlier calls are not', async () => {
  hold('Cut')
  const task = await give('Cut', worker)
  await until(() => held('Cut') === 1, 'the worker is in the middle of its answer')
  await server.stop()
  assert.deepEqual(await orphans(), [])
  const waiting = await withClient(databaseUrl, (db) =>
    db.query('select status, attempts, error_message from tasks where id = $1', [task.id]),
  )
  assert.deepEqual(waiting.rows, [{ status: 'in-progress', attempts: 0, error_message: null }], 'it is no attempt')
  release('Cut')

  server = await start(20_000)
  await untilDone(task)
  assert.deepEqual(requestsFor('Cut'), ['Cut: task_plan', 'Cut: work 1', 'Cut: work 2', 'Cut: work 2'])
  assert.equal(ledger.callsOf('Cut').length, 1)
})

test('tasks made without a server start with the next one, and a stopped agent starts when told', async () => {
  await server.stop()
  await withClient(databaseUrl, (db) =>
    db.query(
      `with given as (
         insert into tasks (id, project_id, kind, title, assigned_to, created_by)
         values (gen_random_uuid(), $1, 'work', 'Overnight', $2, '{"type": "user", "id": null}')
       )
       update task_queues set due_at = muster.now() where agent_id = $2`,
      [project.id, worker.id],
    ),
  )
  server = await start(20_000)
  const { items } = await read<{ items: Task[] }>(`/tasks?assigned_to=${worker.id}`)
  await untilDone(items.find(({ title }) => title === 'Overnight') ?? assert.fail())
  assert.deepEqual(requestsFor('For the stopped'), [])
  assert.equal((await server.call(`POST ${base}/agents/${stopped.id}/restart`)).status, 200)
  const [waiting] = (await read<{ items: Task[] }>(`/tasks?assigned_to=${stopped.id}`)).items
  await untilDone(waiting ?? assert.fail())
  assert.equal(ledger.callsOf('For the stopped').length, 1)
  await server.stop()
})
