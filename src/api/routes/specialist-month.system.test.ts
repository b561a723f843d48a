import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testTool } from '../../../test/kit/run-worker.ts'
import { createScriptedModel } from '../../../test/kit/scripted-model.ts'
import { createSupervisor, delegate, finish, summary } from '../../../test/kit/supervisor.ts'

test('a specialist whose history was shortened leaves no open call that counts for the month', async () => {
  const small = createScriptedModel(
    (request, call) => {
      const prompt = JSON.stringify(request.prompt)
      const usage = { inputTokens: Math.ceil(prompt.length / 4), outputTokens: 10 }
      if (request.answerSchema) return { text: JSON.stringify(summary()), usage }
      if (request.toolChoice === 'none') return { text: 'The short form.', usage }
      if (prompt.includes('The short form.')) return { text: 'Done.', usage }
      return { text: 'x'.repeat(2_000), calls: [{ name: 'look', args: { call } }], usage }
    },
    { contextTokens: 4_000 },
  )
  const kit = await createSupervisor(
    {
      supervisor: ({ prompt }) =>
        JSON.stringify(prompt).includes('agent_name') ? finish() : delegate('research_agent'),
    },
    { tools: [testTool('look', async () => 'ok')], models: new Map([['small', small]]) },
  )
  const model = { provider: 'test', name: 'small', max_output_tokens: 100 }
  const specialists = [{ ...kit.specialist('research_agent', ['look']), model }, kit.specialist('transform_agent')]
  assert.equal((await kit.put('blue', { ...kit.config, specialists })).status, 200)
  const body = { monthly_token_limit: 10_000_000, recursion_limit: 20 }
  assert.equal((await kit.call(`PATCH ${kit.base}/settings`, { body })).status, 200)
  const { body: answer } = await kit.run('Find it.')
  assert.equal(answer.result.supervisor_state.history[0]?.result, 'COMPLETED', JSON.stringify(answer))
  assert.ok(
    small.requests.some(({ toolChoice }) => toolChoice === 'none'),
    'the history was not shortened',
  )
  const { rows } = await kit.pool.query('select bound from project_calls')
  assert.deepEqual(rows, [])
})
