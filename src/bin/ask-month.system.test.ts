// Model calls that no agent makes, in a project that limits its month.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestFlows } from '../../test/kit/flows.ts'
import { untilTrue } from '../../test/kit/organisation.ts'
import { insertWorker } from '../../test/kit/runs.ts'
import { createScriptedModel, type Script, type ScriptedModel } from '../../test/kit/scripted-model.ts'
import { createBuiltInFunctions } from '../flows/built-in-functions.ts'
import { readMonth, wakeForMonth } from '../journal/month.ts'
import { createProjectCalls } from '../journal/project-calls.ts'
import type { FlowNode } from '../kernel/flow.ts'
import { newId } from '../kernel/id.ts'
import { createAsk, createDecide, type ModelParts } from './ask-model.ts'

let model: ScriptedModel = createScriptedModel([])
let isHalted = false
/** The number of times that a function looked at the off switch, and asked for room in the month. */
const looks = { atSwitch: 0, atMonth: 0 }
const parts = (): ModelParts => ({
  pool: flows.pool,
  resolveModel: async () => model,
  isHalted: () => {
    looks.atSwitch++
    return isHalted
  },
  calls: {
    admit: (...call) => {
      looks.atMonth++
      return calls.admit(...call)
    },
    ask: (...call) => calls.ask(...call),
  },
  firstBackoffMs: 1,
})
const ask: ReturnType<typeof createAsk> = (...question) => createAsk(parts())(...question)
const flows = await createTestFlows({ functions: Object.fromEntries(createBuiltInFunctions({ ask })) })
const { pool, projectId } = flows
const calls = createProjectCalls({ pool, ownerId: () => flows.worker.ownerId() })

const usage = { inputTokens: 100, outputTokens: 50 }
const use = (script: Script = () => ({ text: 'an answer', usage })): void => {
  model = createScriptedModel(script)
  flows.models.set('script', model)
}
const asks = (prompt = 'Say.'): FlowNode => ({ type: 'task', function: 'muster.ask', args: { prompt } })
const month = () => readMonth(pool, projectId)
const limitTo = async (limit: number | null): Promise<void> => {
  await flows.set({ monthly_token_limit: limit })
  if ((await wakeForMonth(pool, projectId)) > 0) flows.worker.onReady()
}
const rowsOfCalls = async (): Promise<number> => (await pool.query('select from project_calls')).rowCount ?? 0

test('calls of functions and of agents in flows count for one month, failed tries too', async () => {
  use((_request, call) =>
    call === 1 ? { fail: { message: 'busy', isRetryable: true }, usage } : { text: 'an answer', usage },
  )
  const before = (await month()).used
  const agent = await flows.createAgent({ name: 'a leaf' })
  const root: FlowNode = { type: 'sequential', steps: [asks(), { type: 'task', agent: agent.name, input: 'go' }] }
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

test('functions and agents that ask at once overshoot the limit by one call in all', async () => {
  use(async () => {
    await new Promise(setImmediate)
    return { text: 'an answer', usage }
  })
  const limit = (await month()).used + 400
  await limitTo(limit)
  const agents = await Promise.all(Array.from({ length: 4 }, () => flows.createAgent()))
  const leaves = agents.map((agent): FlowNode => ({ type: 'task', agent: agent.name, input: 'go' }))
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

test('a call of a dead process, or one that could not be settled, keeps nobody waiting', async () => {
  const limit = (await month()).used + 100
  await limitTo(limit)
  const admitted = await calls.admit(projectId, 50)
  assert.ok(admitted)
  assert.equal(await calls.admit(projectId, 60), null, 'there is a call under way')
  admitted.end()
  assert.equal(await rowsOfCalls(), 1)
  const next = await calls.admit(projectId, 60)
  assert.ok(next, 'the row that was left behind is gone')
  const other = createProjectCalls({ pool, ownerId: newId })
  await next.settle(0)
  next.end()
  assert.ok(await other.admit(projectId, 99))
  assert.equal((await month()).reserved, 0, 'its process is none of those that live')
  const living = await insertWorker(pool)
  assert.ok(await createProjectCalls({ pool, ownerId: () => living }).admit(projectId, 40))
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
