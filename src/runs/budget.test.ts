import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestRuns, testTool } from '../../test/kit/run-worker.ts'
import { createScriptedModel } from '../../test/kit/scripted-model.ts'
import { getAgent, updateAgent } from '../agents/agents.ts'
import { systemActor } from '../kernel/principal.ts'

const look = testTool('look', async () => 'ok')
const runs = await createTestRuns({ tools: [look], slots: 30 })
const by = { actor: systemActor, checkNames: async () => null, onChanged: async () => {} }
const usage = { inputTokens: 60, outputTokens: 40 }
const model = { provider: 'test', name: 'script', max_output_tokens: 40 }

const marksOf = async (agentId: string): Promise<number[]> => {
  const { rows } = await runs.pool.query(
    `select details from audit_log where action = 'agent.budget' and target_id = $1 order by seq`,
    [agentId],
  )
  return rows.map((row) => row.details.mark)
}

test('every call is metered on the agent, and crossing 90 %, 95 % and all of the allocation is recorded once each', async () => {
  runs.models.set(
    'script',
    createScriptedModel((_request, call) => ({ calls: [{ name: 'look', args: { call } }], usage })),
  )
  const agent = await runs.createAgent({ tools: ['look'], token_allocation: 2_000, model })
  const run = await runs.run(agent)
  assert.equal(run.status, 'paused')
  assert.equal(run.pause_reason, 'budget')
  const after = await getAgent(runs.pool, runs.projectId, agent.id)
  assert.equal(after.token_used, run.usage.total_tokens)
  assert.ok(after.token_used >= 2_000 && after.token_used <= 2_100, `${after.token_used}`)
  assert.ok(after.last_active_at)
  assert.deepEqual(await marksOf(agent.id), [90, 95, 100])
})

test('a run that is refused before its first call fails; a larger allocation admits the next run', async () => {
  runs.models.set(
    'script',
    createScriptedModel([
      { text: 'a', usage },
      { text: 'b', usage },
    ]),
  )
  const agent = await runs.createAgent({ token_allocation: 50, model })
  assert.equal((await runs.run(agent)).status, 'completed')
  const refused = await runs.run(agent)
  assert.equal(refused.status, 'failed')
  assert.equal(refused.error_code, 'BUDGET_EXHAUSTED')
  await updateAgent(runs.pool, runs.projectId, agent.id, { token_allocation: 10_000 }, by)
  assert.equal((await runs.run(agent)).status, 'completed')
})

test('twenty runs of one agent at once overshoot its allocation by one call at most, and all of them end', async () => {
  let calls = 0
  runs.models.set(
    'script',
    createScriptedModel(async (_request, call) => {
      calls++
      await new Promise(setImmediate)
      return { calls: [{ name: 'look', args: { call } }], usage }
    }),
  )
  const agent = await runs.createAgent({ tools: ['look'], token_allocation: 3_000, model })
  const started = await Promise.all(Array.from({ length: 20 }, () => runs.start(agent)))
  const ended = await Promise.all(started.map(({ id }) => runs.finished(id)))
  for (const run of ended) {
    assert.ok(run.pause_reason === 'budget' || run.error_code === 'BUDGET_EXHAUSTED', JSON.stringify(run))
  }
  const { token_used } = await getAgent(runs.pool, runs.projectId, agent.id)
  assert.equal(token_used, calls * 100)
  assert.ok(token_used >= 3_000 && token_used <= 3_100, `${token_used}`)
  const { rows } = await runs.pool.query('select reserved from agent_tokens where agent_id = $1', [agent.id])
  assert.equal(rows[0].reserved, 0)
})

test('an answer without figures, or with impossible ones, never lowers the number of spent tokens', async () => {
  runs.models.set('script', createScriptedModel([{ text: 'a', usage: { ...usage, isEstimated: true } }]))
  const agent = await runs.createAgent({ model })
  const run = await runs.run(agent)
  assert.equal(run.usage.estimated, true)
  assert.equal(run.usage.total_tokens, 100)
})
