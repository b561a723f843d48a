import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestRuns } from '../../test/kit/run-worker.ts'
import { createScriptedModel, type Script, type ScriptedAnswer } from '../../test/kit/scripted-model.ts'
import { until } from '../../test/kit/until.ts'
import { tryNow } from '../journal/provider-outages.ts'
import { restartTimers } from '../journal/wake.ts'
import type { Run } from '../kernel/run.ts'
import { cancelRun } from './cancel.ts'

const runs = await createTestRuns({ slots: 50 })
const { pool, clock, projectId } = runs
const down = { message: 'acme answered 503: Down for a while.', isRetryable: true }

let named = 0
/** Each test has a model of its own, because an outage is known by provider and model. */
async function agentWith(answers: readonly ScriptedAnswer[] | Script, fields: object = {}, options = {}) {
  const name = `model ${++named}`
  const model = createScriptedModel(answers, options)
  runs.models.set(name, model)
  return { model, name, agent: await runs.createAgent({ model: { provider: 'acme', name }, ...fields }) }
}

const isWaiting = async (id: string): Promise<boolean> => {
  const run = await runs.get(id)
  return run.status === 'paused' && run.pause_reason === 'unavailable'
}
const untilWaiting = (id: string) => until(() => isWaiting(id), 'the run waits')
const untilEnded = async (id: string): Promise<Run> => {
  await until(async () => (await runs.get(id)).completed_at !== null, 'the run has ended')
  return runs.get(id)
}
const waitingFor = async (id: string) =>
  (await pool.query('select owner, waits_for, wake_at is not null as wakes from agent_runs where id = $1', [id]))
    .rows[0]
const outageOf = async (name: string) =>
  (await pool.query('select * from provider_outages where provider = $1 and model = $2', ['acme', name])).rows[0]

test('a run whose provider stays away waits without a slot, and the same run continues by itself', async () => {
  let isDown = true
  const { agent, model, name } = await agentWith(() => (isDown ? { fail: down } : { text: 'at last' }))
  const { id } = await runs.start(agent)
  await untilWaiting(id)
  assert.equal(model.requests.length, 5)
  const run = await runs.get(id)
  assert.deepEqual(
    [run.is_wait, run.waiting_for, run.wait_message, run.error_code],
    [true, 'provider acme', down.message, null],
  )
  const inMs = Date.parse(run.next_try_at ?? '') - Date.parse(run.created_at)
  assert.ok(inMs >= 2_000 && inMs < 30_000, `the next try comes after ${inMs} ms`)
  assert.deepEqual(await waitingFor(id), { owner: null, waits_for: 'provider', wakes: true })
  isDown = false
  await clock.advance(2_000)
  const ended = await untilEnded(id)
  assert.deepEqual([ended.status, ended.summary, ended.waiting_for], ['completed', 'at last', null])
  await until(async () => (await outageOf(name)) === undefined, 'the outage is over')
  assert.deepEqual((await runs.kinds(id)).slice(-5), [
    'step.restarted',
    'run.paused',
    'run.continued',
    'step.completed',
    'run.completed',
  ])
})

test('the waits of a call double, and patience ends them', async (t) => {
  await runs.set({ model_patience: 60_000 })
  t.after(() => runs.set({ model_patience: 3_600_000 }))
  const { agent, model, name } = await agentWith(() => ({ fail: down }))
  const { id } = await runs.start(agent)
  const waits: number[] = []
  for (const failures of [1, 2, 3]) {
    await until(async () => (await outageOf(name))?.failures === failures && (await isWaiting(id)), 'it waits again')
    const { rows } = await pool.query<{ ms: number }>(
      `select extract(epoch from next_try_at - failed_at)::float8 * 1000 as ms from provider_outages where model = $1`,
      [name],
    )
    waits.push(Math.round(rows[0]?.ms ?? 0))
    await clock.advance(waits.at(-1) ?? 0)
  }
  assert.deepEqual(waits, [2_000, 4_000, 8_000])
  await until(async () => (await outageOf(name))?.failures === 4, 'it was tried once more')
  assert.equal(model.requests.length, 8)
  await clock.advance(60_000)
  const ended = await untilEnded(id)
  assert.deepEqual([ended.status, ended.error_code], ['failed', 'MODEL_ERROR'])
  assert.match(ended.error_message ?? '', /Down for a while\. \(tried 9 times in (7|8)\d s\)$/)
})

test('no try comes before Retry-After, however long', async () => {
  let isDown = true
  const { agent, model } = await agentWith(() =>
    isDown ? { fail: { ...down, retryAfterMs: 90_000 } } : { text: 'ok' },
  )
  const { id } = await runs.start(agent)
  await untilWaiting(id)
  assert.equal(model.requests.length, 1)
  isDown = false
  await clock.advance(80_000)
  const other = await runs.start(agent)
  await untilWaiting(other.id)
  assert.equal(model.requests.length, 1, 'a new run joins those that wait')
  await clock.advance(11_000)
  assert.equal((await untilEnded(id)).status, 'completed')
  assert.equal((await untilEnded(other.id)).status, 'completed')
})

test('a quota that is used up waits from the first answer on, another 4xx fails at once', async () => {
  const quota = await agentWith(() => ({ fail: { message: 'No quota.', isRetryable: true, reason: 'quota' } }))
  const { id } = await runs.start(quota.agent)
  await untilWaiting(id)
  assert.equal(quota.model.requests.length, 1)
  const refused = await agentWith(() => ({ fail: { message: 'No.', isRetryable: false } }))
  const run = await untilEnded((await runs.start(refused.agent)).id)
  assert.deepEqual([run.status, run.error_code, refused.model.requests.length], ['failed', 'MODEL_ERROR', 1])
})

test('time in the wait counts for no timeout, also in the last call of a run', async () => {
  let isDown = true
  const { agent } = await agentWith((request) =>
    isDown ? { fail: down } : { text: request.toolChoice === 'none' ? 'summary' : 'done' },
  )
  const { id } = await runs.start(agent, { timeout: 60_000 })
  await untilWaiting(id)
  await clock.advance(1_800_000)
  isDown = false
  const run = await untilEnded(id)
  assert.deepEqual([run.status, run.summary], ['completed', 'done'])

  const limited = await agentWith((_, call) =>
    call === 1 ? { calls: [{ name: 'nothing' }] } : call < 7 ? { fail: down } : { text: 'summary' },
  )
  const second = await runs.start(limited.agent, { max_steps: 1, timeout: 60_000 })
  await untilWaiting(second.id)
  await clock.advance(1_800_000)
  const ended = await untilEnded(second.id)
  assert.deepEqual([ended.status, ended.pause_reason, ended.summary], ['paused', 'step_limit', 'summary'])
})

test('a request that is too long for the provider is compacted once and made again', async () => {
  const tooLong = { fail: { message: 'prompt is too long', isRetryable: false, reason: 'context' as const } }
  const calls = { calls: [{ name: 'nothing', args: { a: 'x'.repeat(400) } }] }
  const { agent, model } = await agentWith([calls, calls, tooLong, { text: 'what was' }, { text: 'done' }])
  const run = await runs.run(agent)
  assert.deepEqual([run.status, run.summary], ['completed', 'done'])
  assert.ok((await runs.kinds(run.id)).includes('context.compacted'))
  assert.equal(model.requests.length, 5)
  const still = await agentWith([calls, calls, tooLong, { text: 'what was' }, tooLong])
  const paused = await runs.run(still.agent)
  assert.deepEqual([paused.status, paused.pause_reason, paused.is_wait], ['paused', 'context', false])
})

test('a run waits in its compaction, too', async () => {
  const calls = { calls: [{ name: 'nothing', args: { a: 'word '.repeat(3_000) } }], usage: { inputTokens: 9_000 } }
  const { agent } = await agentWith(
    (_, call) => (call === 1 ? calls : call < 7 ? { fail: down } : { text: `answer ${call}` }),
    {},
    { contextTokens: 10_000 },
  )
  const { id } = await runs.start(agent)
  await untilWaiting(id)
  await clock.advance(2_000)
  const run = await untilEnded(id)
  assert.deepEqual([run.status, run.summary], ['completed', 'answer 8'])
})

test('try-now tries a run at once; a cancel ends it at once', async () => {
  let isDown = true
  const { agent, model } = await agentWith(() =>
    isDown ? { fail: { ...down, retryAfterMs: 900_000 } } : { text: 'ok' },
  )
  const [one, two] = [await runs.start(agent), await runs.start(agent)]
  await untilWaiting(one.id)
  await untilWaiting(two.id)
  const before = model.requests.length
  assert.equal(await tryNow(pool, projectId, one.id), true)
  runs.worker.onReady()
  await until(() => model.requests.length > before, 'it was tried')
  await untilWaiting(one.id)
  await cancelRun({ pool, journal: runs.journal }, projectId, two.id, async () => {})
  assert.equal((await runs.get(two.id)).status, 'cancelled')
  assert.equal(await tryNow(pool, projectId, two.id), false)
  isDown = false
  assert.equal(await tryNow(pool, projectId, one.id), true)
  runs.worker.onReady()
  assert.equal((await untilEnded(one.id)).status, 'completed')
})

test('when a provider comes back, runs go a few at a time: 1, 2, 4, dealt over projects', async () => {
  let isDown = true
  let underWay = 0
  const together: number[] = []
  const { agent, name } = await agentWith(async () => {
    if (isDown) return { fail: { ...down, retryAfterMs: 300_000 } }
    together.push(++underWay)
    await new Promise((resolve) => setTimeout(resolve, 60))
    underWay--
    return { text: 'ok' }
  })
  const started = await Promise.all(Array.from({ length: 20 }, () => runs.start(agent)))
  for (const { id } of started) await untilWaiting(id)
  isDown = false
  await clock.advance(301_000)
  for (const { id } of started) assert.equal((await untilEnded(id)).status, 'completed')
  assert.equal(together[0], 1)
  assert.ok(Math.max(...together.slice(0, 3)) <= 2, together.join())
  assert.ok(Math.max(...together.slice(0, 7)) <= 4, together.join())
  await until(async () => (await outageOf(name)) === undefined, 'the outage is over')
})

test('one that was let go and is never heard of keeps the others waiting for half a minute at most', async () => {
  let isDown = true
  const { agent, name } = await agentWith(() => (isDown ? { fail: down } : { text: 'ok' }))
  const [one, two] = [await runs.start(agent), await runs.start(agent)]
  await untilWaiting(one.id)
  await untilWaiting(two.id)
  // The process that took up the first one has died: nobody reports its outcome.
  await pool.query(
    `update provider_outages set is_probing = true, next_try_at = muster.now() + interval '30 s'
    where model = $1`,
    [name],
  )
  isDown = false
  await clock.advance(31_000)
  assert.equal((await untilEnded(one.id)).status, 'completed')
  assert.equal((await untilEnded(two.id)).status, 'completed')
})

test('a run that fails while others are answered is only kept waiting by itself', async () => {
  let answered = Promise.withResolvers<void>()
  // Between two tries of the bad run another run is answered.
  const { agent, name } = await agentWith((request) =>
    JSON.stringify(request.prompt).includes('bad') ? { fail: down, waitFor: answered.promise } : { text: 'ok' },
  )
  const bad = await runs.start(agent, { input: 'bad' })
  let isOver = false
  const others = (async () => {
    while (!isOver) {
      assert.equal((await runs.run(agent, { input: 'good' })).status, 'completed')
      answered.resolve()
      answered = Promise.withResolvers()
    }
    answered.resolve()
  })()
  await untilWaiting(bad.id)
  isOver = true
  await others
  assert.equal(await outageOf(name), undefined)
  assert.equal((await runs.run(agent, { input: 'good' })).status, 'completed')
})

test('a Retry-After that is longer than the patience ends the wait when the patience is over, without a try', async (t) => {
  await runs.set({ model_patience: 60_000 })
  t.after(() => runs.set({ model_patience: 3_600_000 }))
  const away = { fail: { ...down, retryAfterMs: 7_200_000 } }
  const calls = { calls: [{ name: 'nothing', args: { a: 'word '.repeat(3_000) } }], usage: { inputTokens: 9_000 } }
  const first = await agentWith(() => away)
  const last = await agentWith((_, call) => (call === 1 ? { ...calls, text: 'so far' } : away))
  const compacting = await agentWith((_, call) => (call === 1 ? calls : away), {}, { contextTokens: 10_000 })
  const started = [
    { ...first, run: await runs.start(first.agent), end: ['failed', null, 'MODEL_ERROR'], tries: 1 },
    { ...last, run: await runs.start(last.agent, { max_steps: 1 }), end: ['paused', 'step_limit', null], tries: 2 },
    { ...compacting, run: await runs.start(compacting.agent), end: ['failed', null, 'MODEL_ERROR'], tries: 2 },
  ]
  for (const { run } of started) await untilWaiting(run.id)
  await clock.advance(60_000)
  for (const { run, end, tries, model } of started) {
    const ended = await untilEnded(run.id)
    assert.deepEqual([ended.status, ended.pause_reason, ended.error_code], end)
    assert.equal(model.requests.length, tries)
  }
})

test('a changed patience holds for runs that wait already, and none of them tries before Retry-After', async (t) => {
  t.after(() => runs.set({ model_patience: 3_600_000 }))
  await runs.set({ model_patience: 60_000 })
  let isDown = true
  const { agent, model } = await agentWith(() =>
    isDown ? { fail: { ...down, retryAfterMs: 120_000 } } : { text: 'ok' },
  )
  const patient = await runs.start(agent)
  await untilWaiting(patient.id)
  isDown = false
  const change = async (model_patience: number): Promise<void> => {
    await runs.set({ model_patience })
    assert.equal(await restartTimers(pool, projectId), 1)
    runs.worker.onReady()
  }
  const wakesIn = async (id: string): Promise<number> => {
    const { rows } = await pool.query<{ ms: number }>(
      `select extract(epoch from wake_at - muster.now())::float8 * 1000 as ms from agent_runs where id = $1`,
      [id],
    )
    return rows[0]?.ms ?? 0
  }
  await change(3_600_000)
  await until(async () => (await wakesIn(patient.id)) > 70_000, 'its clock is set anew')
  await clock.advance(61_000)
  await untilWaiting(patient.id)
  assert.equal(model.requests.length, 1)
  await clock.advance(60_000)
  assert.equal((await untilEnded(patient.id)).status, 'completed')

  isDown = true
  const impatient = await runs.start(agent)
  await untilWaiting(impatient.id)
  const tries = model.requests.length
  await change(1)
  assert.equal((await untilEnded(impatient.id)).error_code, 'MODEL_ERROR')
  assert.equal(model.requests.length, tries)
})

test('a run that is only kept waiting by itself does not try before Retry-After either', async (t) => {
  t.after(() => runs.set({ model_patience: 3_600_000 }))
  await runs.set({ model_patience: 60_000 })
  let isDown = true
  const { agent, name, model } = await agentWith(() =>
    isDown ? { fail: { ...down, retryAfterMs: 120_000 } } : { text: 'ok' },
  )
  const { id } = await runs.start(agent)
  await untilWaiting(id)
  // The provider has answered others, and nobody waits for a turn any more.
  await pool.query('delete from provider_waits where model = $1', [name])
  await pool.query('delete from provider_outages where model = $1', [name])
  isDown = false
  await runs.set({ model_patience: 3_600_000 })
  await pool.query(
    `update run_events set data = jsonb_set(data, '{provider_wait,wait}', '60000')
     where run_id = $1 and data ? 'provider_wait'`,
    [id],
  )
  await clock.advance(61_000)
  await until(async () => (await runs.kinds(id)).filter((kind) => kind === 'run.paused').length === 2, 'it waits on')
  const run = await runs.get(id)
  assert.deepEqual([run.wait_message, run.waiting_for], [down.message, 'provider acme'])
  assert.equal(model.requests.length, 1)
  assert.equal(await tryNow(pool, projectId, id), true)
  runs.worker.onReady()
  assert.equal((await untilEnded(id)).status, 'completed')
})
