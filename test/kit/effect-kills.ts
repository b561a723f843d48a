// Two servers over one database that random scripts kill with SIGKILL, at the moments the scripts choose. The model and
// the ledger live in the test process, so they know exactly what happened before each kill.
import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { z } from 'zod'
import { createUnusedDatabase } from './database.ts'
import type { EffectServers, EffectWork } from './effect-work.ts'
import { serveLocally } from './local-server.ts'
import { made, ONE_FOR_ALL_SERVERS } from './made.ts'
import { type Cleanup, type Muster, repository, startMuster } from './process.ts'
import type { ScriptedAnswer } from './scripted-model.ts'
import { until } from './until.ts'

export interface EffectKills extends EffectServers {
  databaseUrl: string
  /** The works by the names of their models; calls of tools find theirs by the project. */
  works: Map<string, EffectWork>
  kills(): number
  /** Waits until all servers are alive. Meanwhile and until `mayKill` nobody dies. */
  hold(): Promise<void>
  /** From now on servers are killed; kills that were wished for before happen now. */
  mayKill(): void
}

const callShape = z.strictObject({
  tool: z.string(),
  args: z.record(z.string(), z.unknown()),
  key: z.string(),
  run: z.string(),
  project: z.string(),
  pid: z.int(),
})

const requestShape = z.looseObject({
  model: z.string(),
  messages: z.array(
    z.looseObject({ role: z.string(), content: z.unknown().optional(), tool_call_id: z.string().optional() }),
  ),
  response_format: z.looseObject({ json_schema: z.looseObject({ name: z.string() }).optional() }).optional(),
})

const DECISIONS: Record<string, ScriptedAnswer> = {
  delegation_decision: { text: JSON.stringify({ delegate: false, subordinate: null, reasoning: 'Mine.' }) },
  task_plan: { text: JSON.stringify({ subtasks: [] }) },
}
const STARTS_A_RUN = /trigger$|resume$|POST .*flow-runs$/

export async function startEffectKills(t: Cleanup): Promise<EffectKills> {
  const databaseUrl = await createUnusedDatabase()
  const works = new Map<string, EffectWork>()
  let gate = Promise.withResolvers<void>()
  let order = 0
  let kills = 0
  let asked = 0
  let isOver = false
  t.after(async () => {
    isOver = true
  })

  async function hear(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pid, project, ...execution } = callShape.parse(JSON.parse(await text(request)))
    const work = [...works.values()].find(({ projectId }) => projectId === project) ?? assert.fail()
    const fault = work.faultOfCall()
    if (fault === 'dies before' || fault === 'dies after') await gate.promise
    if (fault === 'dies before') return killed(pid)
    work.note(execution)
    if (fault === 'dies after') return killed(pid)
    response.statusCode = fault === 'throws' ? 500 : 200
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ receipt: execution.key }))
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { model, messages, response_format: format } = requestShape.parse(JSON.parse(await text(request)))
    const work = works.get(model) ?? assert.fail()
    const decision = DECISIONS[format?.json_schema?.name ?? '']
    const results = messages.flatMap(({ tool_call_id: id, content }) =>
      id === undefined ? [] : [{ id, text: JSON.stringify(content) }],
    )
    const leaf = Number(/<<leaf (\d+)>>/.exec(JSON.stringify(messages))?.[1] ?? 0)
    const given = decision ?? (await work.answer(leaf, results))
    if (given.waitFor instanceof Promise) await given.waitFor
    send(response, given)
  }

  const ledgerUrl = await serveLocally(t, hear)
  const modelUrl = await serveLocally(t, answer)
  const start = (): Promise<Muster> =>
    startMuster(t, {
      databaseUrl,
      env: {
        ...ONE_FOR_ALL_SERVERS,
        MUSTER_DEMO: 'off',
        MUSTER_LEASE: '1000',
        MUSTER_RATE_LIMIT: '0',
        MUSTER_POOL: '10',
        MUSTER_APP: join(repository, 'test/fixtures/effects-app.ts'),
        EFFECTS_LEDGER: ledgerUrl,
      },
    })
  /** Null from the kill until the next server is ready. */
  const places: (Muster | null)[] = [await start(), await start()]
  const living = (): Muster[] => places.filter((server) => server !== null)
  const provider = { name: 'scripted', kind: 'openai-compatible', base_url: `${modelUrl}/v1`, api_key: 'any' }
  await made(living()[0] ?? assert.fail(), 'POST /api/providers', provider)

  /** The process is dead when this resolves; another one takes its place. */
  async function killed(pid: number): Promise<void> {
    const place = places.findIndex((server) => server?.pid === pid)
    const server = places[place]
    // A server may work before the test knows that it is ready; then its start fails, and is tried again.
    if (!server) return void killIfThere(pid)
    places[place] = null
    kills++
    await server.kill('SIGKILL')
    void replace(place)
  }

  async function replace(place: number): Promise<void> {
    while (!isOver && places[place] === null) places[place] = await start().catch(() => null)
  }

  return {
    databaseUrl,
    works,
    provider: 'scripted',
    kills: () => kills,
    hold: async () => {
      gate = Promise.withResolvers<void>()
      await until(() => living().length === places.length, 'all servers are alive')
    },
    mayKill: () => gate.resolve(),
    nextOrder: () => ++order,
    die: async () => {
      await gate.promise
      const open = living()
      const victim = open[asked % open.length]
      if (victim) await killed(victim.pid)
    },
    call: async (route, body) => {
      await until(() => living().length > 0, 'a server is alive')
      const open = living()
      const server = open[++asked % open.length]
      if (!server) throw new Error('No server is alive.')
      const headers = STARTS_A_RUN.test(route) ? { prefer: 'respond-async' } : {}
      const answered = await server.call(route, { ...(body ? { body } : {}), headers })
      if (answered.status >= 500) throw new Error(`${route}: ${answered.status} ${answered.text}`)
      return answered
    },
  }
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // The process is dead already.
  }
}

const CHUNK = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'any' }

function send(response: ServerResponse, { text: words = '', calls = [], fail }: ScriptedAnswer): void {
  if (fail && words === '') {
    response.writeHead(fail.isRetryable ? 503 : 400, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ error: { message: fail.message } }))
    return
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const chunk = (delta: object, finish: string | null = null): void => {
    const choices = [{ index: 0, delta, finish_reason: finish }]
    response.write(`data: ${JSON.stringify({ ...CHUNK, choices })}\n\n`)
  }
  if (words !== '') chunk({ content: words })
  if (fail) return void response.destroy()
  for (const [index, { id, name, args }] of calls.entries()) {
    const called = { name, arguments: JSON.stringify(args ?? {}) }
    chunk({ tool_calls: [{ index, id, type: 'function', function: called }] })
  }
  chunk({}, calls.length > 0 ? 'tool_calls' : 'stop')
  const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }
  response.end(`data: ${JSON.stringify({ ...CHUNK, choices: [], usage })}\n\ndata: [DONE]\n\n`)
}
