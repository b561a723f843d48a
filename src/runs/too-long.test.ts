// A request that the provider refuses as too long, at each place of a run.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestRuns } from '../../test/kit/run-worker.ts'
import { createScriptedModel, type Script, type ScriptedAnswer } from '../../test/kit/scripted-model.ts'
import { resumeRun } from './resume.ts'

const runs = await createTestRuns()
const tooLong: ScriptedAnswer = { fail: { message: 'prompt is too long', isRetryable: false, reason: 'context' } }
const calls: ScriptedAnswer = { calls: [{ name: 'nothing', args: { a: 'x'.repeat(400) } }] }
const MANY = 30

let named = 0
async function agentWith(answers: readonly ScriptedAnswer[] | Script, fields: object = {}) {
  const name = `model ${++named}`
  const model = createScriptedModel(answers)
  runs.models.set(name, model)
  return { model, agent: await runs.createAgent({ model: { provider: 'acme', name }, ...fields }) }
}

test('the summary after the last step is asked for once more with a shorter history', async () => {
  const { agent, model } = await agentWith((_, call) => {
    assert.ok(call < MANY, 'the run ends')
    return [calls, calls, tooLong, { text: 'what was' }, { text: 'the summary' }][call - 1] ?? tooLong
  })
  const run = await runs.run(agent, { max_steps: 2 })
  assert.deepEqual([run.status, run.pause_reason, run.summary], ['paused', 'step_limit', 'the summary'])
  assert.equal(model.requests.length, 5)
})

test('a summary that stays too long ends the run at its limit, with the text so far', async () => {
  const { agent, model } = await agentWith((_, call) => {
    assert.ok(call < MANY, 'the run ends')
    return [{ ...calls, text: 'so far' }, calls, tooLong, { text: 'what was' }][call - 1] ?? tooLong
  })
  const run = await runs.run(agent, { max_steps: 2 })
  assert.deepEqual([run.status, run.pause_reason, run.summary], ['paused', 'step_limit', 'so far'])
  assert.equal(model.requests.length, 5)
})

test('a resume tries the request again, whatever the provider said before', async () => {
  let isSmall = true
  const { agent } = await agentWith((_, call) => {
    if (call === 4) return { text: 'what was' }
    return call < 3 ? calls : isSmall ? tooLong : { text: 'done' }
  })
  const run = await runs.run(agent)
  assert.deepEqual([run.status, run.pause_reason], ['paused', 'context'])
  isSmall = false
  const { id } = await resumeRun(runs.pool, runs.projectId, run.id, {})
  runs.worker.onReady()
  const resumed = await runs.finished(id)
  assert.deepEqual([resumed.status, resumed.summary], ['completed', 'done'])
})

test('in a small context, too, the summary is asked for with the end of the history', async () => {
  const { agent, model } = await agentWith([calls, calls, calls, tooLong, { text: 'what was' }, { text: 'done' }])
  const run = await runs.run(agent)
  assert.deepEqual([run.status, run.summary], ['completed', 'done'])
  const roles = model.requests[4]?.prompt.map(({ role }) => role)
  assert.deepEqual(roles?.slice(-3), ['assistant', 'tool', 'user'])
})
