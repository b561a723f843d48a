// The limit on open streams per caller, and the cache of ended flow runs, which computes each answer once.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http'
import { test } from 'node:test'
import { ADMIN_TOKEN, createTestApp } from '../../../test/kit/app.ts'
import { flowCalls } from '../../../test/kit/flow-calls.ts'
import { signInByLink } from '../../../test/kit/people.ts'
import { insertRuns } from '../../../test/kit/runs.ts'
import { createScriptedModel } from '../../../test/kit/scripted-model.ts'
import { STREAMS_PER_KEY } from './open-streams.ts'

const MOST = 3
const gate = Promise.withResolvers<void>()
const kit = await createTestApp({
  streamsPerKey: MOST,
  // The kit has a worker because it has models.
  models: new Map([['script', createScriptedModel([])]]),
  functions: { wait: () => gate.promise.then(() => 1), one: () => 1 },
})
const project = await kit.createProject()
const address = await kit.app.listen({ port: 0, host: '127.0.0.1' })
const { start, play } = flowCalls(kit, project.id)
const [runId = assert.fail()] = await insertRuns(kit.pool, project.id, 1)
const { id: flowId } = await start({ type: 'task', function: 'wait' })
const ofRun = `/api/projects/${project.id}/runs/${runId}/events`
const ofFlow = `/api/projects/${project.id}/flow-runs/${flowId}/events`

interface Opened {
  status: number | undefined
  retryAfter: string | undefined
  sent: ClientRequest
  response: IncomingMessage
}

async function open(path: string, headers: Record<string, string>): Promise<Opened> {
  const sent = httpRequest(`${address}${path}`, { headers, agent: false })
  sent.on('error', () => {})
  sent.end()
  const [response] = (await once(sent, 'response')) as [IncomingMessage] // as node:http emits it
  response.on('error', () => {})
  return { status: response.statusCode, retryAfter: response.headers['retry-after'], sent, response }
}

/** Tries until the place is free, because nothing tells the test when the server notices a closed connection. */
async function openAgain(path: string, headers: Record<string, string>): Promise<Opened> {
  for (;;) {
    const opened = await open(path, headers)
    if (opened.status === 200) return opened
    await once(opened.response.resume(), 'end')
  }
}

const bearer = (key: string): Record<string, string> => ({ authorization: `Bearer ${key}` })

test('the default number of streams is that of the contract', () => assert.equal(STREAMS_PER_KEY, 500))

test('a key may have a limited number of streams open, of runs and flow runs together', async () => {
  const { key } = await kit.createKey(project.id, 'viewer')
  const opened = [await open(ofRun, bearer(key)), await open(ofFlow, bearer(key)), await open(ofRun, bearer(key))]
  assert.deepEqual(
    opened.map(({ status }) => status),
    [200, 200, 200],
  )
  for (const path of [ofRun, ofFlow]) {
    const refused = await open(path, bearer(key))
    assert.equal(refused.status, 429)
    assert.ok(Number(refused.retryAfter) > 0)
    const chunks: string[] = []
    for await (const chunk of refused.response.setEncoding('utf8')) chunks.push(chunk)
    const { error } = JSON.parse(chunks.join(''))
    assert.equal(error.code, 'RATE_LIMITED')
    assert.match(error.message, /3 streams are open/)
  }
  // Another key, a person and the instance admin have limits of their own.
  const other = await kit.createKey(project.id, 'viewer')
  const person = await signInByLink(kit, { member: { projectId: project.id, role: 'viewer' } })
  const others = [await open(ofRun, bearer(other.key)), await open(ofRun, { cookie: person.cookie })]
  for (let more = 0; more <= MOST; more++) others.push(await open(ofRun, bearer(ADMIN_TOKEN)))
  assert.ok(others.every(({ status }) => status === 200))
  // A stream that breaks off frees its place; a refused stream never had a place.
  opened[0]?.response.destroy()
  opened[1]?.sent.destroy()
  const again = [await openAgain(ofRun, bearer(key)), await openAgain(ofFlow, bearer(key))]
  assert.equal((await open(ofRun, bearer(key))).status, 429)
  for (const { sent } of [...opened, ...others, ...again]) sent.destroy()
})

test('the streams of a person are counted over all sessions, and a stream that ends frees its place', async () => {
  const person = await signInByLink(kit, { member: { projectId: project.id, role: 'viewer' } })
  const { id } = await play({ type: 'task', function: 'one' })
  for (let count = 0; count < 2 * MOST; count++) {
    const whole = await openAgain(`/api/projects/${project.id}/flow-runs/${id}/events`, { cookie: person.cookie })
    await once(whole.response.resume(), 'end')
  }
  const held: Opened[] = []
  for (let count = 0; count < MOST; count++) held.push(await openAgain(ofRun, { cookie: person.cookie }))
  assert.equal((await open(ofRun, { cookie: person.cookie })).status, 429)
  for (const { sent } of held) sent.destroy()
})

test('an answer about an ended flow run is computed once for many requests', async (t) => {
  const { id } = await play({
    type: 'parallel',
    branches: Array.from({ length: 5 }, () => ({ type: 'task', function: 'one' })),
  })
  let reads = 0
  const query = kit.pool.query.bind(kit.pool)
  t.mock.method(kit.pool, 'query', (...args: Parameters<typeof query>) => {
    const [sql] = args as unknown[]
    const text = typeof sql === 'string' ? sql : String((sql as { text?: string }).text)
    if (/from flow_events/.test(text) && /task/.test(text)) reads++
    return query(...args)
  })
  const path = `/api/projects/${project.id}/flow-runs/${id}`
  for (const what of ['trace', 'trace?format=csv', 'trace?format=otlp', 'metrics', 'tasks?limit=2', 'topology']) {
    reads = 0
    const ask = async (): Promise<string> => (await kit.call(`GET ${path}/${what}`)).text
    const [first, ...rest] = [...(await Promise.all(Array.from({ length: 5 }, ask))), await ask(), await ask()]
    assert.ok(rest.every((each) => each === first))
    assert.equal(reads, 1, what)
  }
  const page = await kit.call<{ items: object[]; next_cursor: string }>(`GET ${path}/tasks?limit=2`)
  const next = await kit.call<{ items: object[] }>(`GET ${path}/tasks?limit=200&cursor=${page.body.next_cursor}`)
  assert.deepEqual([page.body.items.length, next.body.items.length], [2, 3])
})

test('an answer about a flow run under way is computed anew for each request', async () => {
  const path = `/api/projects/${project.id}/flow-runs/${flowId}`
  const before = await kit.call<{ tasks: { status: string }[] }>(`GET ${path}/trace`)
  assert.equal(before.body.tasks[0]?.status, 'running')
  gate.resolve()
  for (;;) {
    const { body } = await kit.call<{ tasks: { status: string }[] }>(`GET ${path}/trace`)
    if (body.tasks[0]?.status === 'completed') break
  }
  assert.equal((await kit.call(`GET /api/projects/${project.id}/flow-runs/${crypto.randomUUID()}/trace`)).status, 404)
})
