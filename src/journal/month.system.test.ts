// The month of a project: the calls that count, the limit, and the wait for the next month.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { untilTrue } from '../../test/kit/organisation.ts'
import { recordStatements } from '../../test/kit/query-plans.ts'
import { createTestRuns, type TestRuns, testTool } from '../../test/kit/run-worker.ts'
import { insertProject, insertRuns } from '../../test/kit/runs.ts'
import { createScriptedModel } from '../../test/kit/scripted-model.ts'
import { deleteAgent } from '../agents/agents.ts'
import { setHalted } from '../identity/projects.ts'
import { updateSettings } from '../identity/settings.ts'
import type { Agent } from '../kernel/agent.ts'
import { systemActor } from '../kernel/principal.ts'
import type { SettingsPatch } from '../kernel/project.ts'
import { noteTokensOfMonth, readMonth, wakeForMonth, wakeFunded } from './month.ts'
import { HALT_CHANNEL, tellProcesses, wakeHalted } from './wake.ts'

const look = testTool('look', async () => 'ok')
const first = await createTestRuns({ tools: [look] })
const { pool, clock } = first
const usage = { inputTokens: 60, outputTokens: 40 }
const model = { provider: 'test', name: 'script', max_output_tokens: 40 }
const answers = (text = 'Done.') => createScriptedModel(() => ({ text, usage }))
first.models.set('script', answers())

const used = async (projectId = first.projectId): Promise<number> => (await readMonth(pool, projectId)).used
const setting = (patch: SettingsPatch, projectId = first.projectId) =>
  updateSettings(pool, projectId, patch, systemActor)
/** Sets the limit as the route does. */
async function limitTo(limit: number | null): Promise<void> {
  await setting({ monthly_token_limit: limit })
  await tellProcesses(pool, HALT_CHANNEL)
  if ((await wakeForMonth(pool, first.projectId)) > 0) first.worker.onReady()
}
const agentOf = (runs: TestRuns, fields: object = {}): Promise<Agent> => runs.createAgent({ model, ...fields })
const isCompleted = (runs: TestRuns, id: string) =>
  untilTrue(async () => (await runs.get(id)).status === 'completed', 'the run is completed')

/** Moves the clock a second past the turn of the month. */
async function turnMonth(): Promise<void> {
  const { leftMs } = await readMonth(pool, first.projectId)
  await clock.advance(Math.ceil(leftMs) + 1_000)
}

test('every call of every agent counts, also the calls of an agent that was deleted since', async () => {
  const before = await used()
  const agents = [await agentOf(first), await agentOf(first)]
  for (const agent of agents) assert.equal((await first.run(agent)).status, 'completed')
  assert.equal(await used(), before + 200)
  await deleteAgent(pool, first.projectId, agents[0]?.id ?? '', { actor: systemActor, onChanged: async () => {} })
  assert.equal(await used(), before + 200)
})

test('at the limit a run pauses with budget before its call, and goes on under its id when the limit is raised', async () => {
  const script = answers()
  first.models.set('script', script)
  await limitTo(await used())
  const agent = await agentOf(first)
  const run = await first.run(agent)
  assert.deepEqual([run.status, run.pause_reason, run.completed_at], ['paused', 'budget', null])
  assert.equal(script.requests.length, 0)
  await limitTo((await used()) + 1)
  await isCompleted(first, run.id)
  assert.deepEqual(await first.kinds(run.id), [
    'run.started',
    'run.paused',
    'run.continued',
    'step.completed',
    'run.completed',
  ])
  await limitTo(null)
})

test('a limit that is lowered wakes nobody, and null wakes all', async () => {
  await limitTo(await used())
  const run = await first.run(await agentOf(first))
  await setting({ monthly_token_limit: 0 })
  assert.equal(await wakeForMonth(pool, first.projectId), 0)
  await limitTo(null)
  await isCompleted(first, run.id)
})

test('runs of all agents that ask at once overshoot the limit by one call in all', async () => {
  let calls = 0
  first.models.set(
    'script',
    createScriptedModel(async (_request, call) => {
      calls++
      await new Promise(setImmediate)
      return { calls: [{ name: 'look', args: { call } }], usage }
    }),
  )
  const limit = (await used()) + 1_500
  await limitTo(limit)
  const agents = await Promise.all(Array.from({ length: 8 }, () => agentOf(first, { tools: ['look'] })))
  const started = await Promise.all(agents.map((agent) => first.start(agent)))
  const ended = await Promise.all(started.map(({ id }) => first.finished(id)))
  for (const run of ended) assert.equal(run.pause_reason, 'budget', JSON.stringify(run))
  const after = await readMonth(pool, first.projectId)
  assert.ok(after.used >= limit && after.used < limit + 100, `${after.used} of ${limit} after ${calls} calls`)
  assert.equal(after.reserved, 0)
  for (const { id } of started) await first.journal.append(cancelledEnd(id))
  first.models.set('script', answers())
  await limitTo(null)
})

const cancelledEnd = (runId: string) => ({
  runId,
  fence: null,
  events: [{ kind: 'run.cancelled', data: { summary: null } }],
  change: { set: { status: 'cancelled', ended: true } as const },
})

test('far from the limit a call is judged without a sum over all agents, near it with one', async () => {
  first.models.set(
    'script',
    createScriptedModel((_request, call) =>
      call % 20 === 0 ? { text: 'Done.', usage } : { calls: [{ name: 'look', args: { call } }], usage },
    ),
  )
  const agent = await agentOf(first, { tools: ['look'] })
  const sumsOf = async (limit: number): Promise<number> => {
    await limitTo(limit)
    const { statements, stop } = recordStatements(pool)
    await first.finished((await first.start(agent)).id)
    stop()
    return statements.filter(({ text }) => text.includes('sum(t.month_used)')).length
  }
  const far = await sumsOf(10_000_000)
  assert.ok(far <= 1, `${far} sums for 20 calls`)
  const near = await sumsOf((await used()) + 2_500)
  assert.ok(near > 2, `${near} sums for 20 calls`)
  first.models.set('script', answers())
  await limitTo(null)
})

test('two projects do not share a limit', async () => {
  const projectId = await insertProject(pool, 'another')
  const second = await createTestRuns({ database: { ...first, projectId } })
  await limitTo(0)
  const agent = await agentOf(second)
  assert.equal((await second.run(agent)).status, 'completed')
  assert.equal(await used(projectId), 100)
  await setting({ monthly_token_limit: 0 }, projectId)
  await limitTo(null)
  assert.equal((await first.run(await agentOf(first))).status, 'completed')
  assert.equal((await second.run(agent)).pause_reason, 'budget')
  await second.worker.stop()
})

test('in the next month waiting runs go on by themselves, and tokens are counted anew', async () => {
  const limit = await used()
  await limitTo(limit)
  const run = await first.run(await agentOf(first, { default_timeout: 60_000 }))
  assert.equal(run.pause_reason, 'budget')
  await turnMonth()
  await isCompleted(first, run.id)
  assert.equal(await used(), 100)
  await limitTo(null)
})

test('a limit that is set while a run is under way holds for its next calls', async () => {
  let isOver = false
  const script = createScriptedModel((_request, call) =>
    isOver ? { text: 'Done.', usage } : { calls: [{ name: 'look', args: { call } }], usage },
  )
  first.models.set('script', script)
  const run = await first.start(await agentOf(first, { tools: ['look'] }))
  await untilTrue(async () => script.requests.length > 1, 'the run is under way')
  await limitTo(1)
  const paused = await first.finished(run.id)
  assert.deepEqual([paused.status, paused.pause_reason], ['paused', 'budget'])
  isOver = true
  await limitTo(null)
  await isCompleted(first, run.id)
})

test('a limit that is raised while a run is under way is not forgotten at its next call', async () => {
  const raised = Promise.withResolvers<void>()
  const script = createScriptedModel((_request, call) =>
    call === 1 ? { calls: [{ name: 'look', args: {} }], usage, waitFor: raised.promise } : { text: 'Done.', usage },
  )
  first.models.set('script', script)
  await limitTo((await used()) + 1)
  const run = await first.start(await agentOf(first, { tools: ['look'] }))
  await untilTrue(async () => script.requests.length === 1, 'the first call is under way')
  await limitTo((await used()) + 1_000_000)
  raised.resolve()
  assert.equal((await first.finished(run.id)).status, 'completed')
  await limitTo(null)
})

/** The statements that wait for a lock. */
async function waiting(statement: RegExp): Promise<boolean> {
  const { rows } = await pool.query<{ query: string }>(
    `select query from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
  )
  return rows.some(({ query }) => statement.test(query))
}

test('an append charges the project before its agents, as calls lock them', async () => {
  const projectId = await insertProject(pool, 'a third')
  const [ofAgent = '', ofProject = ''] = await insertRuns(pool, projectId, 2)
  await pool.query('update agent_runs set ready_at = null, agent_id = null where id = $1', [ofProject])
  const { rows } = await pool.query<{ agent_id: string }>(
    'update agent_runs set ready_at = null where id = $1 returning agent_id',
    [ofAgent],
  )
  await pool.query('insert into agent_tokens (agent_id) values ($1) on conflict do nothing', [rows[0]?.agent_id])
  await noteTokensOfMonth(pool, projectId, 1)
  const holder = await pool.connect()
  await holder.query('begin')
  await holder.query('select from agent_tokens where agent_id = $1 for update', [rows[0]?.agent_id])
  const charge = (runId: string) =>
    first.journal.append({
      runId,
      fence: null,
      events: [{ kind: 'run.parked', data: { waits_for: 'budget' } }],
      change: { inputTokens: 5 },
    })
  const charged = Promise.all([charge(ofAgent), charge(ofProject)])
  await untilTrue(() => waiting(/agent_runs/), 'the append waits for the agent')
  const asked = pool.query('select from project_tokens where project_id = $1 for update nowait', [projectId])
  await assert.rejects(asked, /could not obtain lock/)
  await holder.query('commit')
  holder.release()
  await charged
})

test('a limit that is raised between the look at the month and the parking of a run wakes the run', async () => {
  const begun = Promise.withResolvers<void>()
  const script = createScriptedModel((_request, call) =>
    call === 1 ? { calls: [{ name: 'look', args: {} }], usage, waitFor: begun.promise } : { text: 'Done.', usage },
  )
  first.models.set('script', script)
  await limitTo((await used()) + 1)
  const run = await first.start(await agentOf(first, { tools: ['look'] }))
  await untilTrue(async () => script.requests.length === 1, 'the first call is under way')
  const [project, row] = [await pool.connect(), await pool.connect()]
  await project.query('begin')
  await project.query('select from projects where id = $1 for update', [first.projectId])
  begun.resolve()
  await untilTrue(() => waiting(/from projects/), 'the run looks at its month')
  // The run is judged by the low limit, and cannot park before the test lets go of its row.
  await row.query('begin')
  await row.query('select from agent_runs where id = $1 for update', [run.id])
  await project.query('commit')
  await untilTrue(() => waiting(/agent_runs/), 'the run is about to park')
  let isRaised = false
  const raising = limitTo(5_000_000).then(() => {
    isRaised = true
  })
  await untilTrue(async () => isRaised || (await waiting(/from projects/)), 'the limit is raised, or waits')
  await row.query('commit')
  await raising
  await isCompleted(first, run.id)
  for (const client of [project, row]) client.release()
  await limitTo(null)
})

test('a run that was not woken when the limit was raised is found by the regular search for such runs', async () => {
  first.models.set('script', answers())
  await limitTo(0)
  const run = await first.run(await agentOf(first))
  assert.equal(run.pause_reason, 'budget')
  assert.equal(await wakeFunded(pool), 0)
  await setting({ monthly_token_limit: 10_000_000 })
  assert.equal(await wakeFunded(pool), 1)
  await isCompleted(first, run.id)
  await limitTo(null)
})

test('a halted project makes no call, whatever its month; after the release the month decides', async () => {
  const script = answers()
  first.models.set('script', script)
  await limitTo(0)
  const run = await first.run(await agentOf(first))
  const halt = async (isHalted: boolean): Promise<void> => {
    await setHalted(pool, first.projectId, isHalted, systemActor)
    await tellProcesses(pool, HALT_CHANNEL)
    if (isHalted) return
    await wakeHalted(pool, first.projectId)
    first.worker.onReady()
  }
  await halt(true)
  await untilTrue(async () => first.worker.isHalted(first.projectId), 'the process has heard of the halt')
  await limitTo(10_000_000)
  await untilTrue(async () => (await first.get(run.id)).pause_reason === 'halted', 'the run waits for the release')
  await limitTo(0)
  await halt(false)
  await untilTrue(async () => (await first.get(run.id)).pause_reason === 'budget', 'the run waits for the month')
  assert.equal(script.requests.length, 0)
  const pauses = async () => (await first.kinds(run.id)).filter((kind) => kind === 'run.paused').length
  const before = await pauses()
  await turnMonth()
  await untilTrue(async () => (await pauses()) > before, 'a limit of 0 admits no call in any month')
  await limitTo(null)
  await isCompleted(first, run.id)
})

test('a process that was down when the month turned goes on with the runs that waited', async () => {
  await limitTo(await used())
  const run = await first.run(await agentOf(first))
  assert.equal(run.pause_reason, 'budget')
  await first.worker.stop()
  await turnMonth()
  const second = await createTestRuns({ database: first })
  await isCompleted(second, run.id)
  assert.equal(await used(), 100)
})
