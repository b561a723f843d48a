// The services of compose.yaml as separate processes over one database: the answers of each service, a prompt library
// that goes away and comes back, and the pages' service in front of an agent-service that dies.
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { before, test } from 'node:test'
import type { AgentRunAnswer } from '../../src/kernel/supervisor.ts'
import { atEnd } from '../kit/at-end.ts'
import { createUnusedDatabase } from '../kit/database.ts'
import { freePort } from '../kit/free-port.ts'
import { isReady, type Muster, runMuster, spawnMuster, startMuster } from '../kit/process.ts'
import { until } from '../kit/until.ts'

const wholeFile = { after: atEnd }
const TOKEN = 'one-admin-token-for-all-services'
const BACK_WITHIN_MS = 60_000

let databaseUrl = ''
let ports = { agent: 0, prompts: 0, genui: 0, ui: 0 }
let agent: Muster
let prompts: Muster
let genui: Muster
let ui: Muster
let project = ''

const uiUrl = (): string => `http://127.0.0.1:${ports.ui}`
/** The ports of compose.yaml. */
const instance = () => ({
  MUSTER_ADMIN_TOKEN: TOKEN,
  MUSTER_SECRET_KEY: 'one key for all services over this database',
  MUSTER_PUBLIC_URL: uiUrl(),
})
const startPrompts = (): Promise<Muster> =>
  startMuster(wholeFile, { databaseUrl, port: ports.prompts, env: { ...instance(), MUSTER_SERVE: 'prompts' } })
const startAgent = (): Promise<Muster> =>
  startMuster(wholeFile, {
    databaseUrl,
    port: ports.agent,
    env: {
      ...instance(),
      MUSTER_SERVE: 'agent',
      MUSTER_PROMPTS_URL: `http://127.0.0.1:${ports.prompts}`,
      MUSTER_PROMPTS_KEY: TOKEN,
      MUSTER_TRUST_PROXY: '127.0.0.1',
      MUSTER_LEASE: '2000',
    },
  })

before(async () => {
  databaseUrl = await createUnusedDatabase()
  ports = { agent: await freePort(), prompts: await freePort(), genui: await freePort(), ui: await freePort() }
  const starts = [
    startAgent(),
    startPrompts(),
    startMuster(wholeFile, { databaseUrl, port: ports.genui, env: { ...instance(), MUSTER_SERVE: 'genui' } }),
  ]
  const [first, second, third] = await Promise.all(starts)
  agent = first ?? assert.fail()
  prompts = second ?? assert.fail()
  genui = third ?? assert.fail()
  // This service gets flags in place of variables, and no settings of the instance.
  const args = ['start', '--serve', 'ui', '--agent-url', agent.url, '--port', String(ports.ui)]
  ui = await spawnMuster(wholeFile, args, { port: ports.ui })
  await until(() => isReady(ui).catch(() => false), 'the pages are served', BACK_WITHIN_MS)
  const made = await agent.call<{ id: string }>('POST /api/projects', { body: { name: 'Services' } })
  project = made.body.id
  // The answer takes a while, so that a run is in progress while the test checks it.
  await agent.call('POST /api/providers', { body: { name: 'slow', kind: 'offline', options: { delay_ms: 10 } } })
  const settings = { default_model: { provider: 'slow', name: 'offline' } }
  assert.equal((await agent.call(`PATCH /api/projects/${project}/settings`, { body: settings })).status, 200)
})

const inProject = () => ({ 'x-project-id': project })
const getPrompt = () => ({
  headers: inProject(),
  body: { prompt_id: 'supervisor_planner', variant_id: 'blue' },
})

test('each service answers its own routes only; health, readiness and metrics are everywhere', async () => {
  const list = `GET /api/projects/${project}/prompts`
  const answers: [Muster, route: string, status: number, call?: object][] = [
    [agent, 'GET /api/projects', 200],
    [agent, list, 200],
    [agent, 'POST /v1/prompts/get', 200, getPrompt()],
    [agent, 'GET /', 404],
    [prompts, 'POST /v1/prompts/get', 200, getPrompt()],
    [prompts, list, 200],
    [prompts, 'GET /openapi.json', 200],
    [prompts, 'GET /api/projects', 404],
    [prompts, 'POST /v1/agent/run', 404, { body: { input: { task: 'x' } }, headers: inProject() }],
    [prompts, 'GET /', 404],
    [genui, 'POST /v1/genui/layout', 200, { headers: inProject(), body: { context: { scenario: 'generic' } } }],
    [genui, 'GET /api/projects', 404],
    [genui, 'POST /v1/prompts/get', 404, getPrompt()],
    [ui, 'GET /', 200],
    [ui, 'GET /projects/p/runs', 200],
    [ui, 'GET /api/projects', 200],
    [ui, 'POST /v1/prompts/get', 200, getPrompt()],
    [ui, 'POST /v1/genui/layout', 200, { headers: inProject(), body: { context: { scenario: 'generic' } } }],
    [ui, 'GET /openapi.json', 200],
    ...[agent, prompts, genui, ui].flatMap((each): [Muster, string, number][] => [
      [each, 'GET /healthz', 200],
      [each, 'GET /readyz', 200],
    ]),
    ...[agent, prompts, genui].map((each): [Muster, string, number] => [each, 'GET /metrics', 200]),
    // The service has no admin token.
    [ui, 'GET /metrics', 403],
  ]
  for (const [service, route, status, call = {}] of answers) {
    const answer = await service.call(route, { token: TOKEN, ...call })
    assert.equal(answer.status, status, `${service.port} ${route}: ${answer.text.slice(0, 200)}`)
  }
})

test('the pages’ service has no data folder; wrong settings end the start with one sentence', async (t) => {
  assert.equal(existsSync(ui.dataDir), false)
  for (const [env, says] of [
    [{ MUSTER_SERVE: 'ui' }, 'MUSTER_SERVE=ui needs MUSTER_AGENT_URL: the agent-service to which it forwards.'],
    [{ MUSTER_SERVE: 'prompts' }, 'MUSTER_SERVE=prompts needs DATABASE_URL: the embedded database serves one process.'],
    [{ MUSTER_SERVE: 'page' }, 'MUSTER_SERVE must be agent, prompts, genui, ui or unset'],
  ] as const) {
    const { code, stdout, stderr, muster } = await runMuster(t, ['start'], { env })
    assert.deepEqual({ code, stdout, stderr }, { code: 1, stdout: '', stderr: `Configuration: ${says}\n` })
    assert.equal(existsSync(muster.dataDir), false)
  }
})

test('a person signs in by the link of the agent-service and works on the pages’ origin', async () => {
  const link = agent.signInLink()
  assert.ok(link.startsWith(`${uiUrl()}/sign-in/`), link)
  const signedIn = await fetch(link, { redirect: 'manual' })
  const [cookie = ''] = signedIn.headers.getSetCookie().map((each) => each.split(';')[0] ?? '')
  assert.match(cookie, /^muster_session=/)
  assert.equal((await ui.call('GET /api/me', { cookie })).status, 200)
  const body = { name: 'Made by a person' }
  assert.equal((await ui.call('POST /api/projects', { cookie, body })).status, 201)
  const elsewhere = { cookie, body, headers: { origin: agent.url } }
  assert.equal((await ui.call('POST /api/projects', elsewhere)).status, 403)
})

test('a stream through the pages’ service arrives during its run, and is complete', async () => {
  const stream = await openStream('Compare green tea with black coffee.')
  const runId = stream.runId
  const first = await stream.next()
  assert.equal(first?.event_type, 'status_update')
  assert.equal((await read(runId)).result.status, 'RUNNING', 'the first line was held back until the end')
  const rest = await stream.rest()
  const final = rest.at(-1)
  assert.deepEqual([final?.event_type, final?.data.status], ['final', 'DONE'])
  const tokens = rest.filter(({ event_type: type }) => type === 'token').map(({ data }) => data.text)
  assert.ok(tokens.length > 10, `the text came in ${tokens.length} pieces`)
  const { result } = await read(runId)
  assert.equal(tokens.join(''), result.output?.content)
  assert.deepEqual(final?.data.output, result.output)
})

test('runs pause as unavailable while the prompt library is down, and go on without loss when it is back', async () => {
  const path = `/api/projects/${project}`
  const messages = [{ role: 'system', content: 'Greet {{USER_INPUT}}.' }]
  await prompts.call(`PUT ${path}/prompts/greeter/variants/blue`, { body: { messages } })
  const greeter = await agent.call<{ id: string }>(`POST ${path}/agents`, {
    body: { name: 'Greeter', prompt_id: 'greeter' },
  })
  const trigger = () => agent.call<Run>(`POST ${path}/agents/${greeter.body.id}/trigger`, { body: { input: 'Ada' } })
  assert.equal((await trigger()).body.status, 'completed', 'the library is read while it is there')

  const early = await openStream('Compare tea with coffee.')
  for (;;) if ((await early.next())?.data.active_agent === 'research_agent') break
  await prompts.kill('SIGKILL')
  const [paused, refused, lines] = await Promise.all([trigger(), run('Compare milk with water.'), early.rest()])
  const message = (and: string) =>
    new RegExp(
      `^The prompt library at http://127\\.0\\.0\\.1:${ports.prompts} cannot be reached\\. \\(tried 5 times\\)${and}$`,
    )

  const { status, pause_reason, error_code, error_message } = paused.body
  assert.deepEqual([status, pause_reason, error_code], ['paused', 'unavailable', 'UNAVAILABLE'])
  assert.match(error_message ?? '', message(''))
  const { error } = refused.body
  assert.deepEqual([refused.status, error?.code], [503, 'UNAVAILABLE'])
  assert.match(error?.message ?? '', message('\\. Send options\\.run_id to continue the run\\.'))
  const lateId = String(error?.details.run_id)
  const final = lines.at(-1)
  assert.deepEqual([final?.event_type, final?.data.status, final?.data.error?.code], ['final', 'FAILED', 'UNAVAILABLE'])
  for (const id of [early.runId, lateId]) {
    const { body } = await agent.call<Run>(`GET ${path}/runs/${id}`)
    assert.deepEqual([body.status, body.pause_reason, body.completed_at], ['paused', 'unavailable', null])
  }
  await until(() => isReady(agent), 'the agent-service itself is well')
  const without = await agent.call<{ id: string }>(`POST ${path}/agents`, { body: { name: 'Plain', prompt: 'Speak.' } })
  const plain = await agent.call<Run>(`POST ${path}/agents/${without.body.id}/trigger`, { body: { input: 'Hello' } })
  assert.equal(plain.body.status, 'completed', 'runs that need no library go on')

  prompts = await startPrompts()
  const resumed = await agent.call<Run>(`POST ${path}/runs/${paused.body.id}/resume`)
  assert.deepEqual([resumed.body.status, resumed.body.resumed_from], ['completed', paused.body.id])
  for (const id of [early.runId, lateId]) {
    const continued = await run('Please go on.', { run_id: id })
    assert.deepEqual([continued.status, continued.body.result?.status], [200, 'DONE'], JSON.stringify(continued.body))
    const { plan, history } = continued.body.result.supervisor_state
    assert.deepEqual(
      plan.map((toDo) => toDo.status),
      ['DONE', 'DONE'],
    )
    assert.deepEqual(
      history.map((summary) => [summary.agent_name, summary.result]),
      [
        ['research_agent', 'COMPLETED'],
        ['transform_agent', 'COMPLETED'],
      ],
    )
    // Three decisions and the report: no question was asked twice.
    const steps = await agent.call<{ items: { kind: string }[] }>(`GET ${path}/runs/${id}/steps`)
    assert.equal(steps.body.items.filter(({ kind }) => kind === 'model').length, 4)
    const events = await agent.call(`GET ${path}/runs/${id}/events`)
    const seqs = [...events.text.matchAll(/^id: (\d+)$/gm)].map((match) => Number(match[1]))
    assert.deepEqual(
      seqs,
      seqs.map((_, index) => index + 1),
      'the journal has no gap',
    )
  }
})

test('after the agent-service is killed in a stream the pages’ service says so, and the run goes on', async () => {
  const stream = await openStream('Compare rain with snow.')
  await stream.next()
  await agent.kill('SIGKILL')
  await assert.rejects(stream.rest(), 'a stream that is cut must not look like one that ended')
  const dead = await ui.call<{ error: { code: string; message: string } }>('GET /api/projects', { token: TOKEN })
  assert.deepEqual([dead.status, dead.body.error.code], [503, 'UNAVAILABLE'])
  assert.equal(dead.body.error.message, 'The agent-service does not answer. Try again in a moment.')
  assert.equal(dead.headers.get('retry-after'), '1')
  assert.equal(await isReady(ui), false)
  assert.equal((await ui.call('GET /', { token: null })).status, 200)

  agent = await startAgent()
  await until(() => isReady(ui), 'the pages’ service is ready again', BACK_WITHIN_MS)
  const events = await ui.call(`GET /v1/agent/runs/${stream.runId}/events`, {
    token: TOKEN,
    headers: { ...inProject(), accept: 'text/event-stream', 'last-event-id': '1' },
  })
  assert.match(events.text, /event: final\ndata: .*"status":"DONE"/)
  assert.equal((await read(stream.runId)).result.status, 'DONE')
})

test('each service stops with exit 0', async () => {
  for (const service of [ui, agent, prompts, genui]) await service.stop()
})

interface Run {
  id: string
  status: string
  pause_reason: string | null
  error_code: string | null
  error_message: string | null
  resumed_from: string | null
  completed_at: string | null
}

interface Line {
  event_type: string
  data: {
    status?: string
    active_agent?: string
    text?: string
    output?: unknown
    error?: { code: string }
  }
}

type Answered = AgentRunAnswer & { error?: { code: string; message: string; details: Record<string, unknown> } }

const run = (task: string, options: object = {}) =>
  agent.call<Answered>('POST /v1/agent/run', { headers: inProject(), body: { input: { task }, options } })

const read = async (runId: string): Promise<AgentRunAnswer> =>
  (await agent.call<AgentRunAnswer>(`GET /v1/agent/runs/${runId}`, { headers: inProject() })).body

/** A streamed run, through the pages' service. */
async function openStream(task: string) {
  const answer = await fetch(`${uiUrl()}/v1/agent/run`, {
    method: 'POST',
    headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json', ...inProject() },
    body: JSON.stringify({ input: { task }, options: { stream: true } }),
  })
  assert.equal(answer.status, 200)
  assert.equal(answer.headers.get('content-type'), 'application/x-ndjson; charset=utf-8')
  const lines = linesOf(answer)
  const next = async (): Promise<Line | null> => (await lines.next()).value ?? null
  return {
    runId: answer.headers.get('x-run-id') ?? assert.fail('the answer names no run'),
    next,
    /** Rejects if the stream is cut. */
    rest: async (): Promise<Line[]> => {
      const rest: Line[] = []
      for await (const line of lines) rest.push(line)
      return rest
    },
  }
}

async function* linesOf(answer: Response): AsyncGenerator<Line, undefined> {
  let waiting = ''
  const decoder = new TextDecoder()
  for await (const chunk of answer.body ?? []) {
    waiting += decoder.decode(chunk, { stream: true })
    const lines = waiting.split('\n')
    waiting = lines.pop() ?? ''
    for (const line of lines) yield JSON.parse(line) as Line // asserted where it is used
  }
  assert.equal(waiting, '', 'the last line is whole')
  return undefined
}
