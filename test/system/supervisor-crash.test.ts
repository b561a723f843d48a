// Servers are killed in the middle of a supervisor's run: the run goes on from its last checkpoint, no question with a
// stored answer is asked again, no specialist is repeated, and a reader continues the stream at the next server.
import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { z } from 'zod'
import type { AgentRunAnswer } from '../../src/kernel/supervisor.ts'
import { atEnd } from '../kit/at-end.ts'
import { createUnusedDatabase } from '../kit/database.ts'
import { createGates } from '../kit/gates.ts'
import { serveLocally } from '../kit/local-server.ts'
import { type Muster, startMuster } from '../kit/process.ts'
import { inTier, inTest as test } from '../kit/tiers.ts'
import { until } from '../kit/until.ts'

const wholeFile = { after: atEnd }
const databaseUrl = await createUnusedDatabase()
const gates = createGates()
const { hold, release, held } = gates.forTests
/** The questions that the model was asked, by task: the name of the node and of the question. */
const asked: string[] = []

const requestShape = z.looseObject({
  messages: z.array(z.looseObject({ role: z.string(), content: z.unknown().optional() })),
  response_format: z.looseObject({ json_schema: z.looseObject({ name: z.string() }).optional() }).optional(),
})

const toDo = (id: string, status: string, owner: string) => ({ id, description: id, status, owner_agent: owner })

/** Two specialists one after the other, then the answer. A request waits in its middle at the gate `<tag> <what>`. */
async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { messages, response_format: format } = requestShape.parse(JSON.parse(await text(request)))
  const said = JSON.stringify(messages)
  const tag = /tag-(\w+)/.exec(said)?.[1] ?? ''
  const summaries = said.split('agent_name').length - 1
  const schema = format?.json_schema?.name
  const what = whatIs(said, schema, summaries)
  asked.push(`${tag} ${what}`)
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const chunk = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'm' }
  const send = (delta: object, finish_reason: string | null = null): void =>
    void response.write(`data: ${JSON.stringify({ ...chunk, choices: [{ index: 0, delta, finish_reason }] })}\n\n`)
  const [first, rest] = replyTo(what, tag, summaries)
  send({ content: first })
  await gates.pass(`${tag} ${what}`, response)
  if (response.destroyed) return
  send({ content: rest })
  send({}, 'stop')
  response.end('data: [DONE]\n\n')
}

function whatIs(said: string, schema: string | undefined, summaries: number): string {
  if (schema === 'supervisor_decision') return `decision ${summaries + 1}`
  if (schema === 'agent_summary') return `summary ${summaries + 1}`
  return /final answer/i.test(said) && summaries >= 2 ? 'final' : `work ${summaries + 1}`
}

function replyTo(what: string, tag: string, summaries: number): [string, string] {
  if (what === 'final') return ['It is ', `done: ${tag}.`]
  if (what.startsWith('work')) return ['I looked ', `at tag-${tag}.`]
  const reply = what.startsWith('summary')
    ? {
        result: 'COMPLETED',
        short_summary: `part of tag-${tag}`,
        key_decisions: [],
        next_instructions_for_supervisor: '',
      }
    : decision(tag, summaries)
  const json = JSON.stringify(reply)
  return [json.slice(0, 10), json.slice(10)]
}

function decision(tag: string, summaries: number): object {
  const statuses =
    [
      ['IN_PROGRESS', 'PENDING'],
      ['DONE', 'IN_PROGRESS'],
      ['DONE', 'DONE'],
    ][summaries] ?? []
  const owners = ['research_agent', 'transform_agent']
  const plan = owners.map((owner, place) => toDo(`t${place + 1}`, statuses[place] ?? 'DONE', owner))
  if (summaries >= 2) return { plan, action: 'finish' }
  return { plan, action: 'delegate', agent: owners[summaries], instructions: `Do your part of tag-${tag}.` }
}

const env = {
  MUSTER_ADMIN_TOKEN: 'one-token-for-all-servers',
  MUSTER_SECRET_KEY: 'one-key-for-all-of-the-servers',
  MUSTER_DEMO: 'off',
}
const start = (more: Record<string, string> = {}) => startMuster(wholeFile, { databaseUrl, env: { ...env, ...more } })

let server = await start()
const url = await serveLocally(wholeFile, answer)
await server.call('POST /api/providers', {
  body: { name: 'm', kind: 'openai-compatible', base_url: `${url}/v1`, api_key: 'x' },
})
const project = (await server.call<{ id: string }>('POST /api/projects', { body: { name: 'supervised' } })).body
await server.call(`PATCH /api/projects/${project.id}/settings`, {
  body: { default_model: { provider: 'm', name: 'm' } },
})
const headers = { 'x-project-id': project.id }

async function accepted(on: Muster, tag: string): Promise<string> {
  const before = await listed(on)
  const request = on.call('POST /v1/agent/run', { headers, body: { input: { task: `Do tag-${tag}.` } } })
  request.catch(() => {}) // the server is killed before it answers
  let found: string | undefined
  await until(async () => {
    found = (await listed(on)).find((id) => !before.includes(id))
    return found !== undefined
  }, 'the run is accepted')
  return found ?? assert.fail()
}

async function listed(on: Muster): Promise<string[]> {
  const { body } = await on.call<{ items: { id: string; parent_run_id: string | null }[] }>(
    `GET /api/projects/${project.id}/runs?limit=200`,
  )
  return body.items.filter((run) => run.parent_run_id === null).map((run) => run.id)
}

const ALL = ['decision 1', 'work 1', 'summary 1', 'decision 2', 'work 2', 'summary 2', 'decision 3', 'final']
const of = (tag: string): string[] =>
  asked.filter((each) => each.startsWith(`${tag} `)).map((each) => each.slice(tag.length + 1))

async function untilDone(on: Muster, runId: string, tag: string): Promise<AgentRunAnswer> {
  let read: AgentRunAnswer | undefined
  await until(
    async () => {
      read = (await on.call<AgentRunAnswer>(`GET /v1/agent/runs/${runId}`, { headers })).body
      return read?.result?.status !== 'RUNNING'
    },
    `the run is over: ${JSON.stringify(of(tag))}`,
    60_000,
  )
  const done = read ?? assert.fail()
  assert.deepEqual([done.result.status, done.result.output?.content], ['DONE', `It is done: ${tag}.`])
  assert.deepEqual(
    done.result.supervisor_state.history.map(({ agent_name: name, result }) => [name, result]),
    [
      ['research_agent', 'COMPLETED'],
      ['transform_agent', 'COMPLETED'],
    ],
  )
  return done
}

for (const [place, what] of ALL.entries()) {
  inTier(/^work 1$|final/.test(what))(
    `kill -9 in the middle of a supervisor run (${what}): it continues, finished specialists are not repeated`,
    async () => {
      const tag = `mid${place}`
      hold(`${tag} ${what}`)
      const runId = await accepted(server, tag)
      await until(() => held(`${tag} ${what}`) === 1, `the model is asked: ${what}`, 30_000)
      await server.kill('SIGKILL')
      release(`${tag} ${what}`)
      server = await start()
      await untilDone(server, runId, tag)
      // Only a question whose answer was cut off is asked once more.
      assert.deepEqual(of(tag), [...ALL.slice(0, place + 1), ...ALL.slice(place)])
    },
  )
}

for (const [point, at] of [
  ['spawn.after_insert', 1],
  ['park.after_commit', 1],
  ['claim.after', 2],
  ['final.after_commit', 1],
  ['llm.after_reply_before_commit', 2],
] as const) {
  inTier(/spawn/.test(point))(`kill -9 at ${point}: no run is lost, and every specialist works once`, async () => {
    const tag = `at${point.replaceAll(/\W/g, '')}`
    await server.stop()
    const doomed = await start({ MUSTER_FAULTS: `${point}=kill@${at}` })
    const runId = await accepted(doomed, tag)
    await doomed.exited
    server = await start()
    await untilDone(server, runId, tag)
    const repeated = point === 'llm.after_reply_before_commit' ? 1 : 0
    assert.equal(of(tag).length, ALL.length + repeated, JSON.stringify(of(tag)))
  })
}

test('a reader continues the stream at another server: the tokens since the last reset are the answer', async () => {
  const tag = 'stream'
  hold(`${tag} final`)
  const runId = await accepted(server, tag)
  await until(() => held(`${tag} final`) === 1, 'the finalizer is in the middle of its answer', 30_000)
  await server.kill('SIGKILL')
  server = await start()
  const accept = { ...headers, accept: 'text/event-stream' }
  const reading = server.call(`GET /v1/agent/runs/${runId}/events`, { headers: accept })
  await until(() => held(`${tag} final`) === 1, 'the finalizer is asked again', 30_000)
  release(`${tag} final`)
  const { text: streamed } = await reading
  const lines = Array.from(streamed.matchAll(/^data: (.*)$/gm), ([, data = '']) => JSON.parse(data))
  const reset = lines.findLastIndex((line) => line.data.reset === true)
  const tokens = lines.slice(reset + 1).flatMap((line) => (line.event_type === 'token' ? [line.data.text] : []))
  assert.equal(tokens.join(''), `It is done: ${tag}.`)
  assert.deepEqual([lines.at(-1).event_type, lines.at(-1).data.status], ['final', 'DONE'])
})

test('MUSTER_CONCURRENCY=1: a run that waits for a specialist holds no slot', async () => {
  await server.stop()
  server = await start({ MUSTER_CONCURRENCY: '1' })
  await untilDone(server, await accepted(server, 'alone'), 'alone')
})
