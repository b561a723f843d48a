// Retention of the supervisor system: its runs are removed as whole trees, with their checkpoints and chats.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createEvalKit, decide } from '../../test/kit/evals.ts'
import type { Run } from '../kernel/run.ts'
import type { Task } from '../kernel/task.ts'
import { CHECKPOINT_TABLES } from '../supervisor/checkpoints/remove-checkpoints.ts'
import { endUnavailable } from '../supervisor/end-unavailable.ts'
import { removeLapsed } from './retention.ts'

const DAY_MS = 86_400_000
const AWAY = { fail: { message: 'The model is away.', isRetryable: true } }
let asks = false
let isAway = false
const kit = await createEvalKit(
  { supervisor: (request: Parameters<typeof decide>[1]) => (isAway ? AWAY : decide(asks ? 'E' : 'R', request)) },
  {},
  { firstBackoffMs: 1 },
)
const { pool, base, headers } = kit

const checkpointsOf = async (runId: string): Promise<number[]> => {
  const counts: number[] = []
  for (const table of CHECKPOINT_TABLES) {
    const { rows } = await pool.query<{ count: number }>(
      `select count(*)::int as count from ${table} where thread_id = $1`,
      [runId],
    )
    counts.push(rows[0]?.count ?? 0)
  }
  return counts
}
const chat = async (id: string): Promise<string> => {
  const message = { id: 'm', role: 'user', parts: [{ type: 'text', text: 'Do it.' }] }
  const { status, headers: said } = await kit.call('POST /v1/agent/chat', {
    headers,
    body: { id, messages: [message] },
  })
  assert.equal(status, 200)
  return String(said['x-run-id'])
}
const statusOf = async (runId: string): Promise<number> => (await kit.call(`GET ${base}/runs/${runId}`)).status
const chats = async (): Promise<string[]> =>
  (await pool.query<{ chat_id: string }>('select chat_id from chats order by chat_id')).rows.map((row) => row.chat_id)

test('run_retention_days removes evals and ended trees of runs; trees that wait for people stay', async () => {
  const done = (await kit.run('Do it.')).body
  assert.equal(done.result.status, 'DONE')
  const { items: subRuns } = await kit.get<{ items: Run[] }>(`/runs?parent_run_id=${done.metadata.run_id}`)
  const chatted = await chat('ended')
  const evaluated = await kit.evaluate([{ task: 'Do it.', expect: { status: 'DONE' } }])
  const before = (await kit.get<{ items: Run[] }>('/runs?limit=200')).items
  asks = true
  const waiting = (await kit.run('Ask.')).body
  assert.equal(waiting.result.status, 'ESCALATE')
  const waitingChat = await chat('waits')
  asks = false
  assert.ok((await checkpointsOf(done.metadata.run_id)).every((count) => count > 0))
  const kept = await checkpointsOf(waiting.metadata.run_id)

  await kit.call(`PATCH ${base}/settings`, { body: { run_retention_days: 10 } })
  await kit.clock.advance(9 * DAY_MS)
  await removeLapsed(pool)
  assert.equal(await statusOf(done.metadata.run_id), 200, 'it is too young')
  assert.deepEqual(await kit.readEval(evaluated.id), evaluated)
  await kit.clock.advance(2 * DAY_MS)
  await removeLapsed(pool)

  for (const { id } of before) assert.deepEqual([await statusOf(id), await checkpointsOf(id)], [404, [0, 0, 0]], id)
  assert.ok([done.metadata.run_id, subRuns[0]?.id, chatted].every((id) => before.some((run) => run.id === id)))
  const gone = await kit.read(done.metadata.run_id)
  assert.equal(gone.status, 404)
  assert.deepEqual(await chats(), ['waits'])
  assert.equal((await kit.call('GET /v1/agent/chat/ended/stream', { headers })).status, 204)

  assert.deepEqual(await checkpointsOf(waiting.metadata.run_id), kept)
  assert.equal((await kit.read(waiting.metadata.run_id)).body.result.status, 'ESCALATE')
  assert.equal(await statusOf(waitingChat), 200)

  assert.equal((await kit.call(`GET ${base}/evals/${evaluated.id}`)).status, 404)
  for (const table of ['eval_cases', 'eval_results']) {
    assert.equal((await pool.query(`select from ${table}`)).rowCount, 0, table)
  }
})

test('a run that waited longer than the retention time goes on with its answer, and is removed later', async () => {
  const { items } = await kit.get<{ items: Task[] }>('/tasks?kind=escalation&status=pending')
  for (const task of items) {
    const answered = await kit.call(`PATCH ${base}/tasks/${task.id}`, { body: { status: 'completed', result: 'Yes.' } })
    assert.equal(answered.status, 200, answered.text)
    const runId = task.run_id ?? assert.fail()
    const events = await kit.call(`GET /v1/agent/runs/${runId}/events`, { headers })
    assert.match(events.text, /"status":"DONE"/)
  }
  assert.equal(items.length, 2)
  await removeLapsed(pool)
  assert.equal((await kit.get<{ items: Run[] }>('/runs')).items.length, 4, 'two runs and their specialists')
  await kit.clock.advance(11 * DAY_MS)
  await removeLapsed(pool)
  assert.deepEqual((await kit.get<{ items: Run[] }>('/runs')).items, [])
  for (const table of [...CHECKPOINT_TABLES, 'chats', 'tasks']) {
    assert.equal((await pool.query(`select from ${table}`)).rowCount, 0, table)
  }
})

test('an unavailable run that nobody continued fails after the retention time, and is then removed', async () => {
  const parts = { pool, journal: kit.services.journal }
  const keep = (days: number | null) => kit.call(`PATCH ${base}/settings`, { body: { run_retention_days: days } })
  const unavailable = async (options = {}): Promise<string> => {
    const { status, body } = await kit.run('Do it.', { options })
    assert.equal(status, 503)
    return String(body.error?.details.run_id)
  }
  isAway = true
  const left = await unavailable()
  const continued = await unavailable()
  const chatted = await chat('away')
  await kit.clock.advance(9 * DAY_MS)
  assert.equal(await unavailable({ run_id: continued }), continued)
  isAway = false
  const paused = await kit.get<Run>(`/runs/${continued}`)
  assert.deepEqual([paused.status, paused.pause_reason], ['paused', 'unavailable'])
  await kit.clock.advance(2 * DAY_MS)

  await keep(null)
  assert.equal(await endUnavailable(parts), 0, 'the project keeps everything')
  await keep(12)
  assert.equal(await endUnavailable(parts), 0, 'they are too young')
  await keep(10)
  assert.equal(await endUnavailable(parts), 2)
  assert.equal(await endUnavailable(parts), 0)
  const run = await kit.get<Run>(`/runs/${left}`)
  assert.deepEqual(
    [run.status, run.pause_reason, run.error_code, run.error_message],
    ['failed', null, 'UNAVAILABLE', 'The model is away. (tried 5 times)'],
  )
  const { rows } = await pool.query<{ kind: string }>(
    'select kind from run_events where run_id = $1 order by seq desc limit 2',
    [left],
  )
  assert.deepEqual(
    rows.map((row) => row.kind),
    ['run.failed', 'run.paused'],
  )
  const { result } = (await kit.read(left)).body
  assert.deepEqual([result.status, result.error?.code], ['FAILED', 'UNAVAILABLE'])
  assert.equal((await kit.get<Run>(`/runs/${continued}`)).status, 'paused', 'it paused two days ago')

  await removeLapsed(pool)
  assert.equal(await statusOf(left), 200, 'it ended just now')
  await kit.clock.advance(11 * DAY_MS)
  await removeLapsed(pool)
  for (const id of [left, chatted]) assert.deepEqual([await statusOf(id), await checkpointsOf(id)], [404, [0, 0, 0]])
  assert.deepEqual(await chats(), [])
  assert.equal(await statusOf(continued), 200)
})
