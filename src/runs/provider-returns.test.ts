// The ways in which a provider is there again, or is known never to be: all that wait for it hear of it soon.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestRuns } from '../../test/kit/run-worker.ts'
import { createScriptedModel, type Script } from '../../test/kit/scripted-model.ts'
import { until } from '../../test/kit/until.ts'
import { tryProvider } from '../journal/provider-outages.ts'
import type { Agent } from '../kernel/agent.ts'
import type { Run } from '../kernel/run.ts'

const runs = await createTestRuns({ slots: 50 })
const { pool, clock } = runs
const away = { fail: { message: 'acme answered 503: Down.', isRetryable: true, retryAfterMs: 1_800_000 } }

let named = 0
async function agentWith(script: Script) {
  const name = `model ${++named}`
  const model = createScriptedModel(script)
  runs.models.set(name, model)
  return { name, model, agent: await runs.createAgent({ model: { provider: 'acme', name } }) }
}

async function startWaiting(agent: Agent, count: number): Promise<string[]> {
  const started = await Promise.all(Array.from({ length: count }, () => runs.start(agent)))
  for (const { id } of started) {
    await until(async () => (await runs.get(id)).pause_reason === 'unavailable', 'the run waits')
  }
  return started.map(({ id }) => id)
}

async function ended(ids: readonly string[]): Promise<Run[]> {
  return Promise.all(
    ids.map(async (id) => {
      await until(async () => (await runs.get(id)).completed_at !== null, 'the run has ended')
      return runs.get(id)
    }),
  )
}

test('a provider that refuses one request is not away: the others go', async () => {
  let answer: Awaited<ReturnType<Script>> = away
  const { agent } = await agentWith(() => answer)
  const ids = await startWaiting(agent, 6)
  answer = { fail: { message: 'acme answered 401: No.', isRetryable: false } }
  await clock.advance(1_801_000)
  for (const run of await ended(ids)) assert.deepEqual([run.status, run.error_code], ['failed', 'MODEL_ERROR'])
})

test('a changed provider is tried in a moment, whatever it had asked for', async () => {
  let answer: Awaited<ReturnType<Script>> = away
  const { agent, name, model } = await agentWith(() => answer)
  const ids = await startWaiting(agent, 4)
  // One of them waits alone: the provider has answered others meanwhile.
  await pool.query('delete from provider_waits where id = $1', [ids[0]])
  await pool.query(
    `update run_events set data = jsonb_set(data, '{provider_wait,wait}', '1800000')
     where run_id = $1 and data ? 'provider_wait'`,
    [ids[0]],
  )
  const tries = model.requests.length
  answer = { text: 'ok' }
  await tryProvider(pool, 'acme')
  const { rows } = await pool.query('select not_before from provider_outages where model = $1', [name])
  assert.deepEqual(rows, [{ not_before: null }])
  assert.equal(model.requests.length, tries)
  await clock.advance(3_000)
  for (const run of await ended(ids)) assert.equal(run.status, 'completed')
})

test('a provider that was deleted keeps nobody waiting', async () => {
  const { agent, name } = await agentWith(() => away)
  const ids = await startWaiting(agent, 6)
  runs.models.delete(name)
  await tryProvider(pool, 'acme')
  await clock.advance(3_000)
  for (const run of await ended(ids)) assert.match(run.error_message ?? '', /There is no provider called "acme"/)
})
