// kill -9 of a server in the middle of an eval. Two other servers go on over the same database: every case of every
// variant is run once, and no answered question is asked again.
import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { z } from 'zod'
import type { Eval, ListedEval } from '../../src/kernel/eval.ts'
import { atEnd } from '../kit/at-end.ts'
import { createUnusedDatabase } from '../kit/database.ts'
import { createGates } from '../kit/gates.ts'
import { serveLocally } from '../kit/local-server.ts'
import { type Muster, startMuster } from '../kit/process.ts'
import { withClient } from '../kit/test-server.ts'
import { until } from '../kit/until.ts'

const CASES = 6
const UNDER_WAY = 5
const wholeFile = { after: atEnd }
const databaseUrl = await createUnusedDatabase()
const gates = createGates()
const { hold, release, held } = gates.forTests
/** Every complete answer: variant, case, decision, and the number of summaries in the prompt. */
const answered: string[] = []

const requestShape = z.looseObject({
  model: z.string(),
  messages: z.array(z.looseObject({ content: z.unknown().optional() })),
  response_format: z.looseObject({ json_schema: z.looseObject({ name: z.string() }).optional() }).optional(),
})

const summary = {
  result: 'COMPLETED',
  short_summary: 'Found it.',
  key_decisions: [],
  next_instructions_for_supervisor: 'Finish.',
}

/** Blue finishes after one specialist; green escalates in cases with an odd number. */
async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { model, messages, response_format: format } = requestShape.parse(JSON.parse(await text(request)))
  const shown = messages
    .map(({ content }) => (typeof content === 'string' ? content : JSON.stringify(content)))
    .join('\n')
  const name = /case \d/.exec(shown)?.[0] ?? 'no case'
  const summaries = shown.split(/\\?"agent_name/).length - 1
  const decision = format?.json_schema?.name ?? 'text'
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const chunk = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model }
  const send = (delta: object, finish_reason: string | null = null): void =>
    void response.write(`data: ${JSON.stringify({ ...chunk, choices: [{ index: 0, delta, finish_reason }] })}\n\n`)
  await gates.pass(name, response)
  if (response.destroyed) return
  const isOdd = Number(name.at(-1)) % 2 === 1
  const said = {
    supervisor_decision:
      model === 'green' && isOdd
        ? { plan: [], action: 'escalate' }
        : summaries === 0
          ? { plan: [], action: 'delegate', agent: 'research_agent', instructions: `Do ${name}.` }
          : { plan: [], action: 'finish' },
    agent_summary: summary,
  }[decision]
  send({ content: said ? JSON.stringify(said) : `An answer to ${name}.` })
  send({}, 'stop')
  const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }
  response.write(`data: ${JSON.stringify({ ...chunk, choices: [], usage })}\n\n`)
  answered.push(`${model} ${name} ${decision} ${summaries}`)
  response.end('data: [DONE]\n\n')
}

const origin = await serveLocally(wholeFile, answer)
const start = (): Promise<Muster> =>
  startMuster(wholeFile, {
    databaseUrl,
    env: {
      MUSTER_ADMIN_TOKEN: 'one-token-for-all-servers',
      MUSTER_SECRET_KEY: 'one-key-for-all-of-the-servers',
      MUSTER_DEMO: 'off',
      MUSTER_LEASE: '3000',
    },
  })

async function made<Body extends object = { id: string }>(muster: Muster, route: string, body: object): Promise<Body> {
  const said = await muster.call<Body>(route, { body })
  assert.ok(said.status < 300, said.text)
  return said.body
}

test('an eval goes on after kill -9: each case and variant is run once, and no question is asked twice', async () => {
  const first = await start()
  const provider = { name: 'planned', kind: 'openai-compatible', base_url: `${origin}/v1`, api_key: 'any' }
  await made(first, 'POST /api/providers', provider)
  const { id: projectId } = await made(first, 'POST /api/projects', { name: 'evaluated' })
  const base = `/api/projects/${projectId}`
  for (const variant of ['blue', 'green']) {
    const model = { provider: 'planned', name: variant }
    await made(first, `PUT ${base}/systems/${variant}`, {
      supervisor: { prompt_id: 'supervisor_planner', model },
      specialists: [{ name: 'research_agent', prompt_id: 'research_agent', model, tools: [] }],
      finalizer: { prompt_id: 'finalizer_agent', model },
      escalation: { prompt_id: 'hitl_escalation_handler', model },
      traffic: 1,
    })
  }
  const names = Array.from({ length: CASES }, (_, index) => `case ${index}`)
  for (const name of names.slice(2)) hold(name)
  const evaluated = await made<ListedEval>(first, `POST ${base}/evals`, {
    name: 'survives',
    variants: ['blue', 'green'],
    cases: names.map((task) => ({ task, expect: { status: 'DONE', route: ['research_agent'] } })),
  })
  const allHeld = (): number => names.reduce((sum, name) => sum + held(name), 0)
  await until(() => allHeld() === UNDER_WAY, `five runs wait for their models:\n${first.stderr()}`, 60_000)
  await first.kill('SIGKILL')
  assert.ok(answered.length > 0, 'the first cases were over')

  const [second, third] = await Promise.all([start(), start()])
  await until(() => allHeld() === UNDER_WAY, 'the same runs ask again', 60_000)
  for (const name of names) release(name)
  const read = async (): Promise<Eval> => (await third.call<Eval>(`GET ${base}/evals/${evaluated.id}`)).body
  await until(async () => (await read()).status !== 'running', `it ends:\n${second.stderr()}${third.stderr()}`, 90_000)

  const ended = await read()
  assert.deepEqual([ended.status, ended.progress], ['completed', { done: 2 * CASES, total: 2 * CASES }])
  assert.deepEqual([ended.variants.blue?.pass_rate, ended.variants.green?.pass_rate], [1, 0.5])
  assert.equal(ended.deltas.pass_rate, -0.5)
  assert.deepEqual(
    ended.changed.map(({ index }) => index),
    [1, 3, 5],
  )
  assert.equal(new Set(answered).size, answered.length, `a model was asked again: ${answered.toSorted().join('\n')}`)
  const runs = await withClient(databaseUrl, async (db) => {
    const { rows } = await db.query<{ runs: number; cases: number; open: number }>(
      `select count(*)::int as runs, count(distinct (input, part->>'variant'))::int as cases,
         count(*) filter (where completed_at is null)::int as open
       from agent_runs where trigger->>'eval_id' = $1 and parent_run_id is null`,
      [evaluated.id],
    )
    return rows[0]
  })
  assert.deepEqual(runs, { runs: 2 * CASES, cases: 2 * CASES, open: 0 })
  await second.stop()
  await third.stop()
})
