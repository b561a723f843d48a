// Every scenario of the execution specification, under its name, on a real database with a scripted model.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestRuns, testTool } from '../../test/kit/run-worker.ts'
import { createScriptedModel, type Script, type ScriptedAnswer } from '../../test/kit/scripted-model.ts'

const made: unknown[] = []
const look = testTool('look', async (args) => {
  made.push(args)
  return { seen: args }
})
const runs = await createTestRuns({ tools: [look] })

const script = (answers: readonly ScriptedAnswer[] | Script) => {
  const model = createScriptedModel(answers)
  runs.models.set('script', model)
  return model
}
const lookAt = (what: number) => ({ calls: [{ name: 'look', args: { what } }] })

test('Single-flow agent execution', async () => {
  const model = script([lookAt(1), { text: 'I saw it.' }])
  const agent = await runs.createAgent({
    prompt: 'You look at things.',
    tools: ['look'],
    model: { provider: 'test', name: 'script', temperature: 0.3, max_output_tokens: 99 },
  })
  const run = await runs.run(agent, { input: 'Look at 1.' })
  assert.equal(run.status, 'completed')
  assert.equal(run.summary, 'I saw it.')
  assert.equal(run.step_count, 2)
  const [first, second] = model.requests
  assert.equal(first?.temperature, 0.3)
  assert.equal(first?.maxOutputTokens, 99)
  assert.deepEqual(
    first?.tools.map((tool) => tool.name),
    ['look'],
  )
  assert.deepEqual(first?.prompt, [
    { role: 'system', content: 'You look at things.' },
    { role: 'user', content: [{ type: 'text', text: 'Look at 1.' }] },
  ])
  assert.deepEqual(second?.prompt.at(-1), {
    role: 'tool',
    content: [
      {
        type: 'tool-result',
        toolCallId: 'call_1_1',
        toolName: 'look',
        output: { type: 'json', value: { seen: { what: 1 } } },
      },
    ],
  })
})
