// The support desk of examples/desk.ts, with a provider that fails at every point of a run in turn. Whoever retries (the
// task, the leaf, Resume, a person), the ledger outside has each refund and each mail once.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, test } from 'node:test'
import type { Page } from '../../src/kernel/fields.ts'
import type { FlowRun } from '../../src/kernel/flow-run.ts'
import type { Run } from '../../src/kernel/run.ts'
import type { Task } from '../../src/kernel/task.ts'
import { serveLocally } from '../kit/local-server.ts'
import { made } from '../kit/made.ts'
import { makeFolder, startMuster } from '../kit/process.ts'
import { until } from '../kit/until.ts'

/** The failure of the provider, by the order that a run is about. */
interface Fault {
  /** The calls that have a result when the provider fails: 1 before the refund, 2 after it, 3 after the mail. */
  results: number
  isSummary: boolean
  status: 400 | 503
  times: number
}
const faults = new Map<string, Fault>()

interface Message {
  role: string
  content?: unknown
}

/** Looks the order up, refunds it, writes a mail and reports; a call without tools is a summary. */
async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body: { messages: Message[]; tools?: unknown[]; tool_choice?: string; response_format?: unknown } = JSON.parse(
    await text(request),
  )
  const order = /order-[\w-]+/.exec(JSON.stringify(body.messages))?.[0] ?? assert.fail('no order')
  const results = body.messages.filter(({ role }) => role === 'tool').length
  const isSummary = body.tool_choice === 'none'
  const fault = faults.get(order)
  if (fault && fault.times > 0 && fault.results === results && fault.isSummary === isSummary) {
    fault.times--
    response.writeHead(fault.status, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ error: { message: 'The provider has a bad minute.' } }))
    return
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const send = (delta: object, finish: string | null = null): void =>
    void response.write(
      `data: ${JSON.stringify({ ...CHUNK, choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`,
    )
  const call = isSummary || body.response_format ? undefined : calls(order)[results]
  if (body.response_format) send({ content: '{"subtasks":[]}' })
  else if (isSummary) send({ content: 'So far.' })
  else if (call) {
    const [name, args] = call
    const called = {
      index: 0,
      id: `call_${results}`,
      type: 'function',
      function: { name, arguments: JSON.stringify(args) },
    }
    send({ tool_calls: [called] })
  } else send({ content: 'The customer has the money back.' })
  send({}, call ? 'tool_calls' : 'stop')
  response.end('data: [DONE]\n\n')
}
const CHUNK = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'desk' }
const calls = (order: string): [string, object][] => [
  ['find_order', { order }],
  ['refund', { order, amount: 10 }],
  ['send_mail', { to: `${order}@example.com`, text: 'Your money is on its way.' }],
]

const cleanup = { after }
const folder = await makeFolder(cleanup)
const ledgerFile = join(folder, 'ledger.jsonl')
const model = await serveLocally(cleanup, answer)
const muster = await startMuster(cleanup, {
  env: { MUSTER_APP: join(import.meta.dirname, '../../examples/desk.ts'), MUSTER_DEMO: 'off', DESK_LEDGER: ledgerFile },
})
await made(muster, 'POST /api/providers', {
  name: 'desk',
  kind: 'openai-compatible',
  base_url: `${model}/v1`,
  api_key: 'any',
})
const { body: projects } = await muster.call<Page<{ id: string; name: string }>>('GET /api/projects')
const project = `/api/projects/${projects.items.find(({ name }) => name === 'Support desk')?.id}`
const setTo = async (settings: object): Promise<void> => {
  const { status, text: words } = await muster.call(`PATCH ${project}/settings`, { body: settings })
  assert.equal(status, 200, words)
}
await setTo({ default_model: { provider: 'desk', name: 'desk' }, grace_period: 1_000 })
const { body: agents } = await muster.call<Page<{ id: string; name: string }>>(`GET ${project}/agents`)
const desk = agents.items.find(({ name }) => name === 'Desk')?.id ?? assert.fail('there is no desk')

async function ledgerOf(order: string): Promise<Record<string, number>> {
  const lines = (await readFile(ledgerFile, 'utf8').catch(() => '')).split('\n').filter((line) => line.includes(order))
  const entries = lines.map((line): { tool: string; key: string } => JSON.parse(line))
  const keys = new Set(entries.map(({ tool, key }) => `${tool} ${key}`))
  const refunds = entries.filter(({ tool }) => tool === 'refund').length
  return { refunds, mails: [...keys].filter((key) => key.startsWith('send_mail')).length }
}
const ONCE = { refunds: 1, mails: 1 }

const trigger = async (order: string, more = {}): Promise<Run> => {
  const { body } = await muster.call<Run>(`POST ${project}/agents/${desk}/trigger`, {
    body: { input: `Refund ${order}.`, ...more },
  })
  return body
}
const resume = async (runId: string): Promise<Run> => {
  const { status, body, text: words } = await muster.call<Run>(`POST ${project}/runs/${runId}/resume`, { body: {} })
  assert.equal(status, 200, words)
  return body
}
const read = async <Thing>(path: string): Promise<Thing> => (await muster.call<Thing>(`GET ${project}${path}`)).body
const give = async (order: string): Promise<string> =>
  made(muster, `POST ${project}/tasks`, { title: `Refund ${order}.`, assigned_to: desk })
const taskIs = (id: string, status: Task['status']): Promise<void> =>
  until(async () => (await read<Task>(`/tasks/${id}`)).status === status, `the task is ${status}`)
const play = async (path: string, body: object): Promise<FlowRun> => {
  const answer = await muster.call<FlowRun>(`POST ${project}${path}`, { body, headers: { prefer: 'wait=60' } })
  assert.equal(answer.status, 200, answer.text)
  return answer.body
}
const leaf = (retries: number) => ({
  type: 'task',
  agent: 'Desk',
  input: '{{input}}',
  retry: { max_retries: retries, backoff: 0 },
})

/** The ways in which failed work is tried again. Each ends when the customer has the money back. */
const ways: Record<string, (order: string) => Promise<void>> = {
  'the next attempt at a task': async (order) => taskIs(await give(order), 'completed'),
  'a person who sets a blocked task to pending': async (order) => {
    await setTo({ stuck_retry_limit: 0 })
    const id = await give(order)
    await taskIs(id, 'blocked')
    await muster.call(`PATCH ${project}/tasks/${id}`, { body: { status: 'pending' } })
    await taskIs(id, 'completed')
    await setTo({ stuck_retry_limit: 3 })
  },
  'the retry of a leaf': async (order) => {
    const flow = await play('/flow-runs', { root: leaf(1), input: `Refund ${order}.` })
    assert.equal(flow.status, 'completed', flow.error ?? '')
  },
  'the retry of a pattern': async (order) => {
    const root = { type: 'sequential', steps: [leaf(0)], retry: { max_retries: 1, backoff: 0 } }
    const flow = await play('/flow-runs', { root, input: `Refund ${order}.` })
    assert.equal(flow.status, 'completed', flow.error ?? '')
  },
  'Resume of a flow run': async (order) => {
    const failed = await play('/flow-runs', { root: leaf(0), input: `Refund ${order}.` })
    assert.equal(failed.status, 'failed')
    assert.equal((await play(`/flow-runs/${failed.id}/resume`, {})).status, 'completed')
  },
  'Resume of a run': async (order) => {
    const failed = await trigger(order)
    assert.equal(failed.status, 'failed')
    const resumed = await resume(failed.id)
    assert.deepEqual([resumed.status, resumed.resumed_from], ['completed', failed.id])
  },
}

const places: [place: string, results: number][] = [
  ['before the first call', 0],
  ['before the refund', 1],
  ['between the refund and the mail', 2],
  ['after both effects', 3],
]

let orders = 0
for (const [way, retry] of Object.entries(ways)) {
  for (const [place, results] of places) {
    test(`the provider fails ${place}, and ${way} repeats no effect`, async () => {
      const order = `order-${++orders}`
      faults.set(order, { results, isSummary: false, status: 400, times: 1 })
      await retry(order)
      assert.equal(faults.get(order)?.times, 0, 'the provider has failed')
      assert.deepEqual(await ledgerOf(order), ONCE)
    })
  }
}

test('the provider fails while the run is summarised at its step limit, and Resume repeats no effect', async () => {
  const order = `order-${++orders}`
  faults.set(order, { results: 2, isSummary: true, status: 400, times: 1 })
  const paused = await trigger(order, { max_steps: 2 })
  assert.deepEqual([paused.status, paused.pause_reason, faults.get(order)?.times], ['paused', 'step_limit', 0])
  assert.equal((await resume(paused.id)).status, 'completed')
  assert.deepEqual(await ledgerOf(order), ONCE)
})

test('a provider that is away after the refund costs no attempt, and the same run continues', async () => {
  const order = `order-${++orders}`
  faults.set(order, { results: 2, isSummary: false, status: 503, times: 6 })
  const id = await give(order)
  await until(async () => {
    const { items } = await read<Page<Run>>(`/runs?agent_id=${desk}&pause_reason=unavailable`)
    return items.some(
      ({ waiting_for, wait_message: words }) => waiting_for === 'provider desk' && /bad minute/.test(words ?? ''),
    )
  }, 'the run waits for the provider')
  assert.equal((await read<Task>(`/tasks/${id}`)).status, 'in-progress')
  await taskIs(id, 'completed')
  const { items } = await read<Page<Run>>(`/runs?task_id=${id}`)
  assert.equal(items.length, 1)
  assert.deepEqual(await ledgerOf(order), ONCE)
})

test('the careful desk asks before it refunds', async () => {
  const order = `order-${++orders}`
  const careful = agents.items.find(({ name }) => name === 'Careful desk')?.id
  const { body: run } = await muster.call<Run>(`POST ${project}/agents/${careful}/trigger`, {
    body: { input: `Refund ${order}.` },
  })
  assert.deepEqual([run.pause_reason, run.waiting_for, run.is_wait], ['human', 'approval', true])
  assert.deepEqual(await ledgerOf(order), { refunds: 0, mails: 0 })
  const { items } = await read<Page<Task>>('/tasks?kind=suggestion&status=pending')
  const [suggestion] = items.filter((task) => task.run_id === run.id)
  assert.deepEqual(suggestion?.changes, [{ op: 'call', tool: 'refund', args: { order, amount: 10 } }])
  const { status } = await muster.call(`POST ${project}/tasks/${suggestion?.id}/approve`)
  assert.equal(status, 200)
  await until(async () => (await read<Run>(`/runs/${run.id}`)).status === 'completed', 'the run has completed')
  assert.deepEqual(await ledgerOf(order), ONCE)
})
