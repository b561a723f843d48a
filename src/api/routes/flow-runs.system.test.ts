import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../../test/kit/app.ts'
import { createScriptedModel } from '../../../test/kit/scripted-model.ts'
import type { FlowMetrics } from '../../flows/history/metrics.ts'
import { type FlowTask, traceSchema } from '../../flows/history/trace.ts'
import type { FlowRun } from '../../kernel/flow-run.ts'
import type { ErrorAnswer } from '../http/errors.ts'

let gate = Promise.withResolvers<void>()
const models = new Map([['script', createScriptedModel(() => ({ text: 'An agent was here.' }))]])
const kit = await createTestApp({
  models,
  functions: {
    add: (n: number) => n + 1,
    fail: () => {
      throw new Error('broken')
    },
    wait: async (_: unknown, { signal }) => {
      await Promise.race([gate.promise, new Promise((resolve) => signal.addEventListener('abort', resolve))])
      return 'waited'
    },
    large: (megabytes: number) => 'x'.repeat(megabytes * 1_048_576),
    echo: (value: unknown) => value,
    letters: ({ items }: { items: string[] }) => items.map((item) => [item, 1]),
    count: ({ values }: { values: number[] }) => values.length,
  },
})
const project = await kit.createProject()
const base = `/api/projects/${project.id}`
const runs = `${base}/flow-runs`
const f = (name: string, more: object = {}) => ({ type: 'task', function: name, ...more })
const sequence = (...steps: object[]) => ({ type: 'sequential', steps })
const parallel = (...branches: object[]) => ({ type: 'parallel', branches })

async function start(root: object, more: object = {}): Promise<FlowRun> {
  const { status, body, text } = await kit.call<FlowRun>(`POST ${runs}`, { body: { root, ...more } })
  assert.equal(status, 202, text)
  return body
}
const read = async (id: string): Promise<FlowRun> => (await kit.call<FlowRun>(`GET ${runs}/${id}`)).body
/** Reads the run until the condition holds. No time is measured. */
async function until(id: string, holds: (run: FlowRun) => boolean): Promise<FlowRun> {
  for (;;) {
    const run = await read(id)
    if (holds(run)) return run
    await new Promise(setImmediate)
  }
}
const ended = (id: string): Promise<FlowRun> => until(id, ({ completed_at }) => completed_at !== null)
const play = async (root: object, more: object = {}): Promise<FlowRun> => ended((await start(root, more)).id)
const tasksOf = async (id: string): Promise<FlowTask[]> =>
  (await kit.call<{ items: FlowTask[] }>(`GET ${runs}/${id}/tasks`)).body.items

test('a flow run is started once more by its id: its tree, or its stored flow as it is now', async () => {
  const first = await play(sequence(f('add', { id: 'a' })), { input: 1 })
  const again = async (rerun_of: string, more: object = {}) =>
    kit.call<FlowRun & ErrorAnswer>(`POST ${runs}`, { body: { rerun_of, ...more } })
  const second = await ended((await again(first.id, { input: 5, workers: 2 })).body.id)
  assert.deepEqual([second.status, second.output, second.workers, second.flow_id], ['completed', 6, 2, null])
  const flow = await kit.call<{ id: string }>(`POST ${base}/flows`, {
    body: { name: 'again', root: sequence(f('add')) },
  })
  const stored = await kit.call<FlowRun>(`POST ${runs}`, { body: { flow_id: flow.body.id, input: 1 } })
  await kit.call(`PATCH ${base}/flows/${flow.body.id}`, { body: { root: sequence(f('add'), f('add')) } })
  const third = await ended((await again(stored.body.id, { input: 1 })).body.id)
  assert.deepEqual([third.flow_id, third.output], [flow.body.id, 3])
  assert.equal((await again(first.id, { root: sequence(f('add')) })).status, 400)
  const other = await kit.createProject()
  const elsewhere = await kit.call(`POST /api/projects/${other.id}/flow-runs`, { body: { rerun_of: first.id } })
  assert.equal(elsewhere.status, 404)
})

test('a flow is accepted at once and read until it has ended', async () => {
  const begun = await start(sequence(f('add', { id: 'a' }), f('add')), { input: 1, workers: 3 })
  // A worker may be at work on the run before the answer is read.
  assert.ok(['queued', 'running', 'completed'].includes(begun.status))
  assert.deepEqual([begun.flow_id, begun.input, begun.progress.total, begun.workers], [null, 1, 2, 3])
  const run = await ended(begun.id)
  assert.deepEqual([run.status, run.output, run.results, run.error], ['completed', 3, { a: 2 }, null])
  assert.ok(run.started_at && run.completed_at && run.duration !== null)
  assert.equal(run.cancel_requested_at, null)
})

test('a stored flow is started by its id, with the timeout of the settings unless it is given one', async () => {
  const root = f('add')
  const flow = (await kit.call<{ id: string }>(`POST ${base}/flows`, { body: { name: 'stored', root } })).body
  await kit.call(`PATCH ${base}/settings`, { body: { flow_timeout: 123_000 } })
  const timeoutOf = async (body: object): Promise<number | undefined> => {
    const { id } = (await kit.call<FlowRun>(`POST ${runs}`, { body: { flow_id: flow.id, input: 1, ...body } })).body
    assert.deepEqual([(await ended(id)).output, (await read(id)).flow_id], [2, flow.id])
    const { rows } = await kit.pool.query<{ timeout: number }>('select timeout from flow_runs where id = $1', [id])
    return rows[0]?.timeout
  }
  assert.equal(await timeoutOf({}), 123_000)
  assert.equal(await timeoutOf({ timeout: 5_000 }), 5_000)
  const list = await kit.call<{ items: FlowRun[] }>(`GET ${runs}?flow_id=${flow.id}&status=completed`)
  assert.equal(list.body.items.length, 2)
})

test('results hold the values of finished leaves, also after a failure; a loop keeps the last value', async () => {
  const failed = await play(sequence(f('add', { id: 'a' }), f('fail', { id: 'b' }), f('add', { id: 'c' })), {
    input: 1,
  })
  assert.deepEqual([failed.status, failed.error, failed.results], ['failed', 'b: broken', { a: 2 }])
  const loop = await play({ type: 'loop', body: f('add', { id: 'x' }), max_iterations: 3 }, { input: 0 })
  assert.deepEqual(loop.results, { x: 3 })
  const nothing = await play(f('echo', { id: 'n', args: null }))
  assert.deepEqual([nothing.output, nothing.results], [null, { n: null }])
})

test('flow runs are listed newest first, in pages, like single runs', async () => {
  const first = await play(f('add', { id: 'a' }), { input: 1 })
  const second = await play(f('add'), { input: 2 })
  const page = await kit.call<{ items: FlowRun[]; next_cursor: string }>(`GET ${runs}?limit=1`)
  assert.deepEqual(page.body.items, [second])
  const next = await kit.call<{ items: FlowRun[] }>(`GET ${runs}?limit=1&cursor=${page.body.next_cursor}`)
  assert.deepEqual(next.body.items, [first])
})

test('the same Idempotency-Key starts one run and gives the same answer', async () => {
  const call = { body: { root: f('add'), input: 1 }, headers: { 'idempotency-key': 'a run' } }
  const answers = await Promise.all([1, 2, 3].map(() => kit.call<FlowRun>(`POST ${runs}`, call)))
  assert.deepEqual(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size, 1)
  assert.equal(answers[0]?.status, 202)
  const other = { ...call, body: { ...call.body, input: 2 } }
  assert.equal((await kit.call<ErrorAnswer>(`POST ${runs}`, other)).body.error.code, 'IDEMPOTENCY_MISMATCH')
})

test('agents are listed as tasks, with their usage', async () => {
  await kit.createAgent(project.id, { name: 'leaf' })
  const run = await play(sequence({ type: 'task', agent: 'leaf', id: 'a', input: 'Hello.' }, f('echo')))
  assert.deepEqual([run.status, run.output], ['completed', 'An agent was here.'])
  const [agent, echo] = await tasksOf(run.id)
  assert.deepEqual([agent?.kind, agent?.depends_on, echo?.kind, echo?.depends_on], ['agent', [], 'function', ['a']])
  assert.ok((agent?.usage?.total_tokens ?? 0) > 0)
  assert.equal(echo?.usage, null)
})

test('tasks are listed in pages, with status and error', async () => {
  const { id } = await play(parallel(f('add', { id: 'good' }), f('fail', { id: 'bad', retry: { max_retries: 1 } })))
  const tasks = await tasksOf(id)
  assert.deepEqual(tasks.map((task) => [task.id, task.status, task.attempts, task.error, task.parent_id]).toSorted(), [
    ['bad', 'failed', 2, 'broken', 'root'],
    ['good', 'completed', 1, null, 'root'],
  ])
  const first = await kit.call<{ items: FlowTask[]; next_cursor: string }>(`GET ${runs}/${id}/tasks?limit=1`)
  const next = await kit.call<{ items: FlowTask[]; next_cursor: null }>(
    `GET ${runs}/${id}/tasks?limit=1&cursor=${first.body.next_cursor}`,
  )
  assert.deepEqual([...first.body.items, ...next.body.items], tasks)
  assert.equal(next.body.next_cursor, null)
})

test('Flow execution trace: the trace has start, end and dependencies, and can be exported', async () => {
  const { id } = await play(sequence(f('add', { id: 'a' }), parallel(f('add'), f('add')), f('echo', { id: 'z' })))
  const trace = await kit.call(`GET ${runs}/${id}/trace`)
  const { tasks, timeline } = traceSchema.parse(trace.body)
  assert.deepEqual(
    tasks.map((task) => [task.id, task.depends_on]),
    [
      ['a', []],
      ['root/1/0', ['a']],
      ['root/1/1', ['a']],
      ['z', ['root/1/0', 'root/1/1']],
    ],
  )
  assert.ok(tasks.every((task) => task.start_at !== null && task.end_at !== null && task.start_at <= task.end_at))
  assert.deepEqual([timeline[0]?.event, timeline.at(-1)?.event], ['flow.started', 'flow.completed'])
  const chrome = await kit.call<{ traceEvents: { ph: string }[] }>(`GET ${runs}/${id}/trace?format=chrome`)
  assert.equal(chrome.body.traceEvents.filter((event) => event.ph === 'X').length, 5)
  const otlp = await kit.call<{ resourceSpans: unknown[] }>(`GET ${runs}/${id}/trace?format=otlp`)
  assert.equal(otlp.body.resourceSpans.length, 1)
  const csv = await kit.call(`GET ${runs}/${id}/trace?format=csv`)
  assert.match(String(csv.headers['content-type']), /^text\/csv/)
  assert.equal(csv.text.trim().split('\r\n').length, 5)
})

test('Flow performance metrics: metrics come from the journal, during the run and afterwards', async () => {
  gate = Promise.withResolvers()
  const { id } = await start(sequence(f('wait', { id: 'slow' }), f('add')), { workers: 2 })
  await until(id, (run) => run.progress.running === 1)
  const running = await kit.call<FlowMetrics>(`GET ${runs}/${id}/metrics`)
  assert.equal(running.status, 200)
  gate.resolve()
  const { duration } = await ended(id)
  const { body } = await kit.call<FlowMetrics>(`GET ${runs}/${id}/metrics`)
  assert.equal(body.total_duration, duration)
  assert.ok(body.worker_utilization >= 0 && body.worker_utilization <= 1)
})

test('Flow cancellation: tasks under way may end and keep their results, and a second cancel changes nothing', async () => {
  gate = Promise.withResolvers()
  const { id } = await start(sequence(f('wait', { id: 'w' }), f('add', { id: 'never' })))
  await until(id, (run) => run.progress.running === 1)
  const cancel = () => kit.call<FlowRun>(`POST ${runs}/${id}/cancel`)
  const first = await cancel()
  const { cancel_requested_at: askedAt, ...rest } = first.body
  assert.deepEqual([first.status, rest.status, rest.eta], [200, 'running', null])
  assert.ok(askedAt !== null)
  assert.equal((await cancel()).body.cancel_requested_at, askedAt)
  gate.resolve()
  const run = await ended(id)
  assert.deepEqual([run.status, run.results], ['cancelled', { w: 'waited' }])
  assert.equal(run.cancel_requested_at, askedAt)
  assert.deepEqual((await cancel()).body, run, 'a run that has ended stays as it is')
  const { rows } = await kit.pool.query(`select 1 from audit_log where action = 'flow.cancel' and target_id = $1`, [id])
  assert.equal(rows.length, 1)
})

test('a flow that waits for its agents has no owner, and is cancelled together with them', async () => {
  await kit.call(`PATCH ${base}/settings`, { body: { cancel_drain: 0 } })
  const asked = Promise.withResolvers<void>()
  models.set(
    'patient',
    createScriptedModel(() => {
      asked.resolve()
      return { waitFor: 'abort' }
    }),
  )
  await kit.createAgent(project.id, { name: 'patient', model: { provider: 'test', name: 'patient' } })
  const { id } = await start(sequence(f('add', { id: 'a' }), { type: 'task', agent: 'patient', input: 'x' }), {
    input: 1,
  })
  await asked.promise
  const owner = async (): Promise<unknown> =>
    (await kit.pool.query('select owner from flow_runs where id = $1', [id])).rows[0].owner
  while ((await owner()) !== null) await new Promise(setImmediate)
  await kit.call(`POST ${runs}/${id}/cancel`)
  const run = await ended(id)
  assert.deepEqual([run.status, run.results], ['cancelled', { a: 2 }])
})

test('workers are added while the flow runs, and not after its end', async () => {
  gate = Promise.withResolvers()
  const { id } = await start(f('wait'), { workers: 2 })
  const add = (count: number) => kit.call<FlowRun & ErrorAnswer>(`POST ${runs}/${id}/workers`, { body: { add: count } })
  assert.equal((await add(3)).body.workers, 5)
  assert.equal((await add(10_000)).body.workers, 10_000)
  gate.resolve()
  await ended(id)
  const late = await add(1)
  assert.deepEqual([late.status, late.body.error.code], [409, 'CONFLICT'])
  const usual = await start(f('add'), { input: 1 })
  assert.equal(usual.workers, 50)
})

test('output and results over 1 MiB are replaced by an address, at which they are whole', async () => {
  const run = await play(parallel(f('large', { id: 'a', args: 1 }), f('large', { id: 'b', args: 2 })))
  const url = `${runs}/${run.id}/output`
  assert.deepEqual(run.output, { truncated: true, url })
  assert.deepEqual(run.results, { truncated: true, url: `${url}?part=results` })
  const output = await kit.call<string[]>(`GET ${url}`)
  assert.deepEqual(
    output.body.map((part) => part.length),
    [1_048_576, 2_097_152],
  )
  const results = await kit.call<Record<string, string>>(`GET ${url}?part=results`)
  assert.deepEqual([results.body.a?.length, results.body.b?.length], [1_048_576, 2_097_152])
  const [listed] = (await kit.call<{ items: FlowRun[] }>(`GET ${runs}?limit=1`)).body.items
  assert.deepEqual(listed, run)
})

test('an output just below 1 MiB is shown, even if the database writes it with more bytes', async () => {
  const numbers = Array.from({ length: 500_000 }, () => 1)
  const run = await play(f('echo', { id: 'n', args: '{{input}}' }), { input: numbers })
  assert.deepEqual([(run.output as number[]).length, (run.results.n as number[]).length], [500_000, 500_000]) // as sent
  const small = await play(f('echo', { args: 1 }))
  assert.equal((await kit.call(`GET ${runs}/${small.id}/output`)).text, '1')
  assert.deepEqual((await kit.call(`GET ${runs}/${small.id}/output?part=results`)).body, {})
})

test('the results of the parts of a map and of a reduce are lists in their order', async () => {
  const map = { type: 'task', id: 'm', function: 'letters' }
  const reduce = { type: 'task', id: 'r', function: 'count' }
  const run = await play({ type: 'map_reduce', items: ['a', 'b', 'a'], workers: 3, reducers: 1, map, reduce })
  assert.deepEqual([run.status, run.output], ['completed', [2, 1]])
  assert.deepEqual(run.results, { m: [[['a', 1]], [['b', 1]], [['a', 1]]], r: [[2, 1]] })
  const whole = await kit.call(`GET ${runs}/${run.id}/output?part=results`)
  assert.deepEqual(whole.body, run.results)
})
