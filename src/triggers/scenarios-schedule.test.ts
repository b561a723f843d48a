// The scenarios of "Dynamic Scheduling", under their names, with a worker that executes the started runs.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestRuns } from '../../test/kit/run-worker.ts'
import { createScheduleClock } from '../../test/kit/schedule-clock.ts'
import { createScriptedModel } from '../../test/kit/scripted-model.ts'
import { until } from '../../test/kit/until.ts'
import { updateAgent } from '../agents/agents.ts'
import type { Agent } from '../kernel/agent.ts'
import { silentLog } from '../kernel/log.ts'
import { systemActor } from '../kernel/principal.ts'
import type { Run } from '../kernel/run.ts'
import { followAgent } from './follow-agent.ts'
import { startScheduler } from './scheduler.ts'
import { tick } from './tick.ts'

// The lease is long because the clock is moved under the worker.
const runs = await createTestRuns({ leaseMs: 24 * 3_600_000 })
const { pool, projectId } = runs
const clock = createScheduleClock(runs)
const model = createScriptedModel(() => ({ text: 'Done.' }))
runs.models.set('script', model)
const parts = { pool, log: silentLog, onReady: () => runs.worker.onReady() }
const FIVE_MINUTES_MS = 5 * 60_000

const later = (instant: Date, ms: number): string => new Date(instant.getTime() + ms).toISOString()

async function nextRunAt(agent: Agent): Promise<Date> {
  const { rows } = await pool.query<{ at: Date | null }>(
    'select next_run_at as at from schedules where agent_id = $1',
    [agent.id],
  )
  return rows[0]?.at ?? assert.fail('it is not scheduled')
}

async function runIds(agent: Agent): Promise<string[]> {
  const sql = `select id from agent_runs where agent_id = $1 order by trigger->>'scheduled_at'`
  return (await pool.query<{ id: string }>(sql, [agent.id])).rows.map((row) => row.id)
}

/** Sets the clock to a second after the tick, and returns the agent's newest run when that run has ended. */
async function passTick(agent: Agent, at: Date): Promise<Run> {
  await clock.passTo(later(at, 1_000))
  await tick(parts)
  // The scheduler under test may have been faster; this waits for its transaction then.
  await until(async () => (await nextRunAt(agent)) > at, 'the tick is over')
  return runs.finished((await runIds(agent)).at(-1) ?? assert.fail('nothing was started'))
}

test('Bootstrap Scheduling: an agent found at start runs every five minutes', async () => {
  const agent = await runs.createAgent({ trigger_type: 'schedule', cron_schedule: '*/5 * * * *' })
  await pool.query('delete from schedules where agent_id = $1', [agent.id])
  const scheduler = startScheduler(parts)
  try {
    const isThere = async () =>
      (await pool.query('select from schedules where agent_id = $1', [agent.id])).rowCount === 1
    await until(isThere, 'the agent is scheduled')
    const first = await nextRunAt(agent)
    assert.equal(first.getTime() % FIVE_MINUTES_MS, 0)
    for (let count = 0; count < 3; count++) {
      const at = later(first, count * FIVE_MINUTES_MS)
      const run = await passTick(agent, new Date(at))
      assert.deepEqual([run.status, run.summary], ['completed', 'Done.'])
      assert.deepEqual(run.trigger, { type: 'schedule', scheduled_at: at })
      assert.match(JSON.stringify(model.requests.at(-1)), new RegExp(at), 'the model is not told when it was scheduled')
      assert.equal((await runIds(agent)).length, count + 1)
    }
  } finally {
    await scheduler.stop()
  }
})

test('Dynamic Update: the old schedule ends with the write, and the new one begins', async () => {
  const agent = await runs.createAgent({ trigger_type: 'schedule', cron_schedule: '*/5 * * * *' })
  const scheduler = startScheduler(parts)
  try {
    await passTick(agent, await nextRunAt(agent))
    const old = await nextRunAt(agent)
    const cron_schedule = `${(old.getUTCMinutes() + 3) % 60} * * * *`
    const write = { actor: systemActor, checkNames: async () => null, onChanged: followAgent }
    await updateAgent(pool, projectId, agent.id, { cron_schedule }, write)
    const next = await nextRunAt(agent)
    assert.equal(next.toISOString(), later(old, 3 * 60_000))
    await clock.passTo(later(old, 1_000))
    await tick(parts)
    assert.equal((await runIds(agent)).length, 1, 'the old schedule started a run')
    const run = await passTick(agent, next)
    assert.equal(run.trigger.scheduled_at, next.toISOString())
    assert.equal((await runIds(agent)).length, 2)
    assert.equal((await nextRunAt(agent)).toISOString(), later(next, 3_600_000))
  } finally {
    await scheduler.stop()
  }
})
