// The event that a run waits for may happen while the run parks. Each test lets the event happen at many instants
// around that moment, and the sweep that looks for runs without a reason to sleep must find none.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { howMany } from '../../test/kit/how-many.ts'
import { createTestRuns } from '../../test/kit/run-worker.ts'
import { createScriptedModel } from '../../test/kit/scripted-model.ts'
import { inTransaction } from '../db/transaction.ts'
import { setHalted } from '../identity/projects.ts'
import { wakeHalted, wakeOverlooked, wakeWaiting } from '../journal/wake.ts'
import type { Log } from '../kernel/log.ts'
import { systemActor } from '../kernel/principal.ts'
import { createAskHuman } from '../tasks/ask-human.ts'
import { cancelRuns } from './cancel.ts'

const warnings: string[] = []
const log: Log = {
  debug: () => {},
  info: () => {},
  warn: (_fields, message) => void warnings.push(message),
  error: (_fields, message) => void warnings.push(message),
}
// The kit's own database has to be there before the people who answer.
const base = await createTestRuns({ slots: 0, log })
const runs = await createTestRuns({ database: base, askHuman: createAskHuman(base), log, slots: 20 })
const { pool, projectId, journal } = runs

runs.models.set(
  'script',
  createScriptedModel(({ prompt }) =>
    prompt.some((message) => message.role === 'tool')
      ? { text: 'Done.' }
      : { calls: [{ name: 'ask_human', args: { question: 'Shall I?' } }] },
  ),
)
const agent = await runs.createAgent({ tools: ['ask_human'] })
const TRIES = howMany(200, 2_000)
const AT_ONCE = 10

/** Waits until the question of the run is in the inbox: from then on the run is about to park. */
async function asked(runId: string): Promise<string> {
  for (;;) {
    const { rows } = await pool.query<{ id: string }>('select id from tasks where run_id = $1', [runId])
    if (rows[0]) return rows[0].id
  }
}

/** Waits between zero and a few milliseconds, so that some events come before the run has parked and some after. */
async function someTime(instant: number): Promise<void> {
  for (let turns = instant % 12; turns > 0; turns--) await pool.query('select')
}

async function inRounds(work: (instant: number) => Promise<void>): Promise<void> {
  for (let from = 0; from < TRIES; from += AT_ONCE) {
    await Promise.all(Array.from({ length: AT_ONCE }, (_, index) => work(from + index)))
  }
}

async function ended(runId: string): Promise<string> {
  for (;;) {
    const run = await runs.get(runId)
    if (run.completed_at !== null) return run.status
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

const overslept = (): string[] => warnings.filter((message) => message.includes('slept'))

async function asleep(): Promise<number> {
  const { rows } = await pool.query<{ n: number }>(
    `select count(*)::integer as n from agent_runs
     where status = 'paused' and pause_reason = 'halted' and owner is null and ready_at is null`,
  )
  return rows[0]?.n ?? 0
}

test('a cancel that is committed while a run parks ends the run', { timeout: 120_000 }, async () => {
  await inRounds(async (instant) => {
    const { id } = await runs.start(agent)
    await asked(id)
    await someTime(instant)
    await cancelRuns({ pool, journal }, projectId, [id])
    assert.equal(await ended(id), 'cancelled')
  })
  assert.deepEqual(overslept(), [])
})

test('an answer that is committed while a run parks continues the run', { timeout: 120_000 }, async () => {
  await inRounds(async (instant) => {
    const { id } = await runs.start(agent)
    const taskId = await asked(id)
    await someTime(instant)
    await inTransaction(pool, async (tx) => {
      await tx.query(
        `update tasks set status = 'completed', result = '"Yes."', completed_at = muster.now() where id = $1`,
        [taskId],
      )
      await wakeWaiting(tx, id, 'human')
    })
    runs.worker.onReady()
    assert.equal(await ended(id), 'completed')
  })
  assert.deepEqual(overslept(), [])
})

test('the end of a halt that is committed while runs park lets them go on', { timeout: 120_000 }, async () => {
  runs.models.set(
    'busy',
    createScriptedModel(async ({ prompt }) => {
      await new Promise((resolve) => setTimeout(resolve, 3))
      return prompt.length > 12 ? { text: 'Done.' } : { calls: [{ name: 'no_such_tool', args: { at: prompt.length } }] }
    }),
  )
  const busy = await runs.createAgent({ model: { provider: 'test', name: 'busy' } })
  for (let round = 0; round < TRIES / AT_ONCE; round++) {
    const started = await Promise.all(Array.from({ length: AT_ONCE }, () => runs.start(busy)))
    await setHalted(pool, projectId, true, systemActor)
    await pool.query(`select pg_notify('muster_halt', '')`)
    await someTime(round)
    await setHalted(pool, projectId, false, systemActor)
    await pool.query(`select pg_notify('muster_halt', '')`)
    await wakeHalted(pool, projectId)
    assert.equal(await asleep(), 0)
    runs.worker.onReady()
    for (const { id } of started) assert.equal(await ended(id), 'completed')
  }
  assert.deepEqual(overslept(), [])
})

test('a run without a reason to sleep is found: cancelled, its sub-runs ended, its project not halted', async () => {
  const states = [
    `waits_for = 'human', status = 'paused', pause_reason = 'human', cancel_requested_at = muster.now()`,
    `waits_for = 'children', status = 'running', open_children = 0`,
    `waits_for = 'halted', status = 'paused', pause_reason = 'halted'`,
  ]
  const ids: string[] = []
  for (const state of states) {
    const id = crypto.randomUUID()
    ids.push(id)
    await pool.query(
      `insert into agent_runs (id, project_id, agent_id, trigger, input, ready_at)
       values ($1, $2, $3, '{"type":"manual"}', '"x"', null)`,
      [id, projectId, agent.id],
    )
    await pool.query(`update agent_runs set ${state} where id = $1`, [id])
  }
  await wakeOverlooked(pool)
  runs.worker.onReady()
  const ends = await Promise.all(ids.map((id) => endedOrAsking(id)))
  assert.deepEqual(ends, ['cancelled', 'paused', 'paused'], 'each was taken up; the last two ask their question')
})

/** Waits until a worker has taken the run up and left it again. */
async function endedOrAsking(runId: string): Promise<string> {
  for (;;) {
    const { rows } = await pool.query<{ status: string }>(
      'select status from agent_runs where id = $1 and fence > 0 and owner is null and ready_at is null',
      [runId],
    )
    if (rows[0]) return rows[0].status
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

test('a second cancel helps a run that sleeps although it was cancelled', async () => {
  const { id } = await runs.start(agent)
  await asked(id)
  while ((await runs.get(id)).status !== 'paused') await pool.query('select')
  await pool.query('update agent_runs set cancel_requested_at = muster.now() where id = $1', [id])
  await cancelRuns({ pool, journal }, projectId, [id])
  runs.worker.onReady()
  assert.equal(await ended(id), 'cancelled')
})
