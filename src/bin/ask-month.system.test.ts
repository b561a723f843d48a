// Model calls of functions, in a project that limits its tokens of a month.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestFlows } from '../../test/kit/flows.ts'
import { untilTrue } from '../../test/kit/organisation.ts'
import { recordStatements } from '../../test/kit/query-plans.ts'
import { insertWorker } from '../../test/kit/runs.ts'
import { createScriptedModel, type Script, type ScriptedModel } from '../../test/kit/scripted-model.ts'
import { createBuiltInFunctions } from '../flows/definition/built-in-functions.ts'
import type { BuiltInNode } from '../flows/machine/built-in-patterns.ts'
import { readMonth, wakeForMonth } from '../journal/month.ts'
import { type AdmittedCall, createProjectCalls } from '../journal/project-calls.ts'
import { newId } from '../kernel/id.ts'
import { createAsk, createDecide, type ModelParts } from './ask-model.ts'

let model: ScriptedModel = createScriptedModel([])
let isHalted = false
/** The number of times that a function read the off switch, and asked for room in the month. */
const looks = { atSwitch: 0, atMonth: 0 }
const parts = (): ModelParts => ({
  pool: flows.pool,
  resolveModel: async () => model,
  isHalted: () => {
    looks.atSwitch++
    return isHalted
  },
  calls: {
    ask: (...call) => {
      looks.atMonth++
      return calls.ask(...call)
    },
  },
  outages: flows.worker.outages,
  firstBackoffMs: 1,
})
const ask: ReturnType<typeof createAsk> = (...question) => createAsk(parts())(...question)
const flows = await createTestFlows({ functions: Object.fromEntries(createBuiltInFunctions({ ask })) })
const { pool, projectId } = flows
const calls = createProjectCalls({ pool, ownerId: () => flows.worker.ownerId() })

const admit = async (bound: number, from = calls): Promise<AdmittedCall | null> => {
  const asked = await from.ask(projectId, bound)
  return 'verdict' in asked ? null : asked
}

const usage = { inputTokens: 100, outputTokens: 50 }
const use = (script: Script = () => ({ text: 'an answer', usage })): void => {
  model = createScriptedModel(script)
  flows.models.set('script', model)
}
const asks = (prompt = 'Say.'): BuiltInNode => ({ type: 'task', function: 'muster.ask', args: { prompt } })
const month = () => readMonth(pool, projectId)
const limitTo = async (limit: number | null): Promise<void> => {
  await flows.set({ monthly_token_limit: limit })
  if ((await wakeForMonth(pool, projectId)) > 0) flows.worker.onReady()
}
const rowsOfCalls = async (): Promise<number> => (await pool.query('select from project_calls')).rowCount ?? 0

test('calls of functions and of agents in flows count for the same month, failed tries too', async () => {
  use((_request, call) =>
    call === 1 ? { fail: { message: 'busy', isRetryable: true }, usage } : { text: 'an answer', usage },
  )
  const before = (await month()).used
  const agent = await flows.createAgent({ name: 'a leaf' })
  const root: BuiltInNode = { type: 'sequential', steps: [asks(), { type: 'task', agent: agent.name, input: 'go' }] }
  assert.equal((await flows.play(root)).status, 'completed')
  assert.equal((await month()).used, before + 450)
})

test('at the limit a function waits without a failure, and goes on when the limit is raised', async () => {
  use()
  await limitTo((await month()).used)
  const before = looks.atMonth
  const id = await flows.startFlow(asks())
  await untilTrue(async () => looks.atMonth > before + 1, 'the function asks again')
  assert.equal(model.requests.length, 0)
  await limitTo(null)
  assert.deepEqual((await flows.ended(id)).output, 'an answer')
})

test('functions and agents that ask at once exceed the limit by one call in all', async () => {
  use(async () => {
    await new Promise(setImmediate)
    return { text: 'an answer', usage }
  })
  const limit = (await month()).used + 400
  await limitTo(limit)
  const agents = await Promise.all(Array.from({ length: 4 }, () => flows.createAgent()))
  const leaves = agents.map((agent): BuiltInNode => ({ type: 'task', agent: agent.name, input: 'go' }))
  const id = await flows.startFlow({
    type: 'parallel',
    branches: [...leaves, ...Array.from({ length: 6 }, () => asks())],
  })
  const spent = await untilTrue(async () => {
    const facts = await month()
    return facts.used >= limit && facts.reserved === 0 ? facts : null
  }, 'the month is used up')
  assert.ok(spent.used < limit + 150, `${spent.used} of ${limit}`)
  assert.equal(model.requests.length, 3)
  await limitTo(null)
  assert.equal((await flows.ended(id)).status, 'completed')
  assert.equal(await rowsOfCalls(), 0)
})

test('a function that waited for tokens heeds the off switch, too', async () => {
  use()
  await limitTo(0)
  const asked = looks.atMonth
  const id = await flows.startFlow(asks())
  await untilTrue(async () => looks.atMonth > asked, 'the function waits for tokens')
  isHalted = true
  await limitTo(null)
  const looked = looks.atSwitch
  await untilTrue(async () => looks.atSwitch > looked + 4 || model.requests.length > 0, 'the function looks again')
  assert.equal(model.requests.length, 0)
  isHalted = false
  assert.equal((await flows.ended(id)).status, 'completed')
})

test('a call of a dead process, or a call that could not be settled, keeps no other call waiting', async () => {
  const limit = (await month()).used + 100
  await limitTo(limit)
  const admitted = await admit(50)
  assert.ok(admitted)
  assert.equal(await admit(60), null, 'there is a call under way')
  admitted.end()
  assert.equal(await rowsOfCalls(), 1)
  const next = await admit(60)
  assert.ok(next, 'the row that was left behind is gone')
  const other = createProjectCalls({ pool, ownerId: newId })
  await next.settle(0)
  next.end()
  assert.ok(await admit(99, other))
  assert.equal((await month()).reserved, 0, 'the process of the call is dead')
  const living = await insertWorker(pool)
  assert.ok(await admit(40, createProjectCalls({ pool, ownerId: () => living })))
  assert.equal((await month()).reserved, 40)
  await pool.query('delete from workers where id = $1', [living])
  assert.equal((await month()).reserved, 0)
  await limitTo(null)
})

test('a recommendation asks no model at the limit, and does not wait for the next month', async () => {
  use()
  await pool.query(`insert into providers (name, kind, source) values ('real', 'openai', 'api')`)
  await flows.set({ default_model: { provider: 'real', name: 'any' }, monthly_token_limit: 0 })
  const question = { prompt: 'Which?', answer: { name: 'flow_recommendation', schema: {} } }
  const decide = () => createDecide(parts())(projectId, question, AbortSignal.timeout(10_000))
  assert.equal(await decide(), null)
  const before = (await month()).used
  await limitTo(null)
  assert.equal(await decide(), 'an answer')
  assert.equal((await month()).used, before + 150)
})

/** Holds the row of the agent's tokens until it is let go. */
async function holdTokens(agentId: string): Promise<{ letGo(): Promise<void> }> {
  const client = await pool.connect()
  await client.query('begin')
  await client.query('select from agent_tokens where agent_id = $1 for update', [agentId])
  return {
    letGo: async () => {
      await client.query('commit')
      client.release()
    },
  }
}

/** The number of statements that wait for a lock. */
async function waiting(): Promise<number> {
  const { rowCount } = await pool.query(
    `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
  )
  return rowCount ?? 0
}

const isLocked = (table: string, where: string, id: string): Promise<boolean> =>
  pool.query(`select from ${table} where ${where} = $1 for update nowait`, [id]).then(
    () => false,
    () => true,
  )

test('the bound of a call counts once for the month, however many agents pay for it', async () => {
  const payers = [await flows.createAgent(), await flows.createAgent()]
  const ids = payers.map(({ id }) => id)
  await limitTo((await month()).used + 1_000_000)
  const asked = await calls.ask(projectId, 50, ids)
  assert.ok('settle' in asked)
  assert.equal((await month()).reserved, 50)
  await asked.settle(0)
  asked.end()
  const answered = Promise.withResolvers<void>()
  use(async () => answered.promise.then(() => ({ text: 'an answer', usage })))
  const { name } = await flows.createAgent()
  const within = { depth: 1, chain_depth: 0, rights: {}, payers: ids }
  const root: BuiltInNode = { type: 'task', agent: name, input: 'go' }
  const id = await flows.startFlow(root, { parent: { runId: newId(), within } })
  await untilTrue(async () => model.requests.length === 1, 'the leaf asks its model')
  const { rows } = await pool.query<{ reserved: number }>('select reserved from agent_runs where flow_run_id = $1', [
    id,
  ])
  assert.ok((rows[0]?.reserved ?? 0) > 0)
  assert.equal((await month()).reserved, rows[0]?.reserved)
  answered.resolve()
  assert.equal((await flows.ended(id)).status, 'completed')
  assert.equal((await month()).reserved, 0)
  await limitTo(null)
})

test('a call that ends and a call that begins lock in one order, so neither is tried twice', async () => {
  const { id } = await flows.createAgent()
  await limitTo((await month()).used + 1_000_000)
  const first = await calls.ask(projectId, 50, [id])
  assert.ok('settle' in first)
  const { statements, stop } = recordStatements(pool)
  const held = await holdTokens(id)
  const ended = first.settle(10)
  await untilTrue(async () => (await waiting()) === 1, 'the end of the call waits for the agent')
  const second = calls.ask(projectId, 50, [id])
  await untilTrue(async () => (await waiting()) === 2, 'the next call waits')
  await held.letGo()
  await ended
  const asked = await second
  assert.ok('settle' in asked)
  const times = (start: string): number => statements.filter(({ text }) => text.startsWith(start)).length
  assert.deepEqual([times('delete from project_calls where id ='), times('insert into project_calls')], [1, 1])
  stop()
  await asked.settle(0)
  for (const call of [first, asked]) call.end()
  await limitTo(null)
})

test('calls that were left behind give their tokens back in the order of the agents, as all others lock them', async () => {
  const [low = '', high = ''] = [await flows.createAgent(), await flows.createAgent()].map(({ id }) => id).toSorted()
  await limitTo((await month()).used + 1_000_000)
  const left = [await calls.ask(projectId, 50, [high]), await calls.ask(projectId, 50, [low])]
  for (const call of left) if ('end' in call) call.end()
  const held = await holdTokens(high)
  const asking = admit(10)
  await untilTrue(async () => (await waiting()) === 1, 'the clean-up waits for the higher agent')
  assert.ok(await isLocked('agent_tokens', 'agent_id', low), 'the lower agent is locked first')
  assert.ok(!(await isLocked('projects', 'id', projectId)), 'no call of the project waits for the clean-up')
  await held.letGo()
  const admitted = await asking
  await admitted?.settle(0)
  admitted?.end()
  const { rows } = await pool.query('select reserved from agent_tokens where agent_id = any($1)', [[low, high]])
  assert.deepEqual(rows, [{ reserved: 0 }, { reserved: 0 }])
  await limitTo(null)
})
