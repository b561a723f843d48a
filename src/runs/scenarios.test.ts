// Every scenario of the execution specification, under its name, on a real database with a scripted model.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestRuns, testTool } from '../../test/kit/run-worker.ts'
import { createScriptedModel, type Script, type ScriptedAnswer } from '../../test/kit/scripted-model.ts'
import { cancelRuns } from './cancel.ts'

const made: unknown[] = []
const look = testTool('look', async (args) => {
  made.push(args)
  return { seen: args }
})
/** This tool ignores its signal, as some tools do. */
const hang = testTool('hang', () => new Promise(() => {}))
const runs = await createTestRuns({ tools: [look, hang] })

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

test('Sequential-flow agent execution', async () => {
  const model = script([lookAt(1), { text: 'outline' }, { text: 'draft' }, { text: 'final' }])
  const steps = [
    { prompt: 'Outline it.', tools: ['look'] },
    { prompt: 'Draft it.', tools: [] },
    { prompt: 'Polish it.' },
  ]
  const agent = await runs.createAgent({ prompt: 'You write.', flow_type: 'sequential', steps, tools: ['look'] })
  const run = await runs.run(agent, { input: 'A text about owls.' })
  assert.equal(run.status, 'completed')
  assert.equal(run.summary, 'final')
  assert.equal(run.step_count, 4)
  const [, , second, third] = model.requests
  assert.deepEqual(second?.prompt, [
    { role: 'system', content: 'You write.\n\nDraft it.' },
    { role: 'user', content: [{ type: 'text', text: 'outline' }] },
  ])
  assert.deepEqual(second?.tools, [])
  assert.deepEqual(third?.prompt[1], { role: 'user', content: [{ type: 'text', text: 'draft' }] })
  assert.equal(third?.tools.length, 1)
})

test('Loop-flow agent execution', async () => {
  const model = script((_request, call) => ({ text: `round ${call}` }))
  const agent = await runs.createAgent({ flow_type: 'loop', max_iterations: 3 })
  const run = await runs.run(agent)
  assert.equal(run.status, 'completed')
  assert.equal(run.summary, 'round 3')
  assert.equal(run.step_count, 3)
  assert.match(JSON.stringify(model.requests[2]?.prompt), /round 1.*round 2/)
})

test('Loop-flow agent execution: the exit tool ends it at once', async () => {
  const model = script([
    { text: 'draft' },
    { text: 'better', calls: [{ name: 'finish_loop', args: { result: 'best' } }] },
  ])
  const agent = await runs.createAgent({ flow_type: 'loop', max_iterations: 10 })
  const run = await runs.run(agent)
  assert.equal(run.status, 'completed')
  assert.equal(run.summary, 'best')
  assert.equal(model.requests.length, 2)
})

test('Loop-flow agent execution: an exit without a result answers with the last text', async () => {
  script([{ text: 'good', calls: [{ name: 'finish_loop' }] }])
  const run = await runs.run(await runs.createAgent({ flow_type: 'loop', max_iterations: 10 }))
  assert.equal(run.summary, 'good')
})

test('Successful execution', async () => {
  const asked = Promise.withResolvers<void>()
  const go = Promise.withResolvers<void>()
  script(() => {
    asked.resolve()
    return { text: 'done', waitFor: go.promise }
  })
  const { id } = await runs.start(await runs.createAgent())
  await asked.promise
  const under = await runs.get(id)
  assert.equal(under.status, 'running')
  assert.equal(under.completed_at, null)
  go.resolve()
  const run = await runs.finished(id)
  assert.equal(run.status, 'completed')
  assert.equal(run.summary, 'done')
  assert.equal(run.error_message, null)
  assert.ok(run.started_at && run.completed_at)
  const took = Date.parse(run.completed_at) - Date.parse(run.started_at)
  assert.ok(Math.abs((run.duration ?? -10) - took) <= 1, `${run.duration} against ${took}`)
  assert.deepEqual(await runs.kinds(id), ['run.started', 'step.completed', 'run.completed'])
})

test('Failed execution', async () => {
  script([{ fail: { message: 'The provider answered 401: no such key.', isRetryable: false } }])
  const run = await runs.run(await runs.createAgent())
  assert.equal(run.status, 'failed')
  assert.equal(run.error_code, 'MODEL_ERROR')
  assert.equal(run.error_message, 'The provider answered 401: no such key.')
  assert.ok(run.completed_at)
  assert.ok(run.duration !== null && run.duration >= 0)
})

test('Cancelled execution', async () => {
  const asked = Promise.withResolvers<void>()
  script((_request, call) => {
    if (call === 1) return lookAt(1)
    asked.resolve()
    return { textParts: ['Half a ', 'sentence'], waitFor: 'abort' }
  })
  const { id } = await runs.start(await runs.createAgent({ tools: ['look'] }))
  await asked.promise
  await cancelRuns(runs, runs.projectId, [id])
  const run = await runs.finished(id)
  assert.equal(run.status, 'cancelled')
  assert.equal(run.summary, 'Half a sentence')
  assert.ok(run.completed_at)
  assert.equal(run.usage.estimated, true)
})

test('Sub-agent default step limit', async () => {
  const child = await runs.createAgent({
    name: 'busy child',
    tools: ['look'],
    model: { provider: 'test', name: 'busy' },
  })
  let looked = 0
  runs.models.set(
    'busy',
    createScriptedModel((request) => (request.toolChoice === 'none' ? { text: 'so far' } : lookAt(++looked))),
  )
  script([{ calls: [{ name: 'spawn_agent', args: { agent: 'busy child', input: 'go' } }] }, { text: 'ok' }])
  const parent = await runs.run(await runs.createAgent({ tools: ['spawn_agent'] }))
  assert.equal(parent.status, 'completed')
  const { rows } = await runs.pool.query('select * from agent_runs where parent_run_id = $1', [parent.id])
  assert.equal(rows.length, 1)
  assert.equal(rows[0].agent_id, child.id)
  assert.equal(rows[0].max_steps, 50)
  assert.equal(rows[0].status, 'paused')
  assert.equal(rows[0].pause_reason, 'step_limit')
  assert.equal(rows[0].step_count, 51)
  assert.equal(looked, 50)
  const [, spawned] = await runs.steps(parent.id)
  assert.deepEqual(spawned?.kind === 'tool' && spawned.result, {
    run_id: rows[0].id,
    status: 'paused',
    summary: 'so far',
    error_message: null,
  })
})

test('Sub-agent default step limit: the setting changes it', async () => {
  await runs.set({ subagent_max_steps: 2 })
  await runs.createAgent({ name: 'short child', tools: ['look'], model: { provider: 'test', name: 'busy' } })
  script([{ calls: [{ name: 'spawn_agent', args: { agent: 'short child', input: 'go' } }] }, { text: 'ok' }])
  const parent = await runs.run(await runs.createAgent({ tools: ['spawn_agent'] }))
  const { rows } = await runs.pool.query('select step_count from agent_runs where parent_run_id = $1', [parent.id])
  assert.equal(rows[0].step_count, 3)
  await runs.set({ subagent_max_steps: 50 })
})

test('Top-level agent unlimited steps', async () => {
  script((_request, call) => (call <= 120 ? lookAt(call) : { text: 'after all' }))
  const run = await runs.run(await runs.createAgent({ tools: ['look'], max_steps: null }))
  assert.equal(run.status, 'completed')
  assert.equal(run.step_count, 121)
})

test('Soft stop at step limit', async () => {
  const model = script((request, call) => (request.toolChoice === 'none' ? { text: 'What I did.' } : lookAt(call)))
  const run = await runs.run(await runs.createAgent({ tools: ['look'], max_steps: 2 }))
  assert.equal(run.status, 'paused')
  assert.equal(run.pause_reason, 'step_limit')
  assert.equal(run.summary, 'What I did.')
  assert.equal(run.step_count, 3)
  const last = model.requests[2]
  assert.equal(last?.toolChoice, 'none')
  assert.match(String(last?.prompt[0]?.content), /[Ss]ummarise/)
  assert.equal(last?.prompt.filter((message) => message.role === 'system').length, 1)
})

test('Hard stop after soft stop ignored', async () => {
  made.length = 0
  script((_request, call) => ({ text: `thought ${call}`, ...lookAt(call) }))
  const run = await runs.run(await runs.createAgent({ tools: ['look'], max_steps: 2 }))
  assert.equal(run.status, 'paused')
  assert.equal(run.pause_reason, 'step_limit')
  assert.equal(run.summary, 'thought 3')
  assert.equal(made.length, 2)
  const refused = (await runs.steps(run.id)).at(-1)
  assert.equal(refused?.kind === 'tool' && refused.blocked, 'step_limit')
})

test('Timeout with graceful shutdown', async () => {
  const model = script((request) =>
    request.toolChoice === 'none' ? { text: 'The summary.' } : { text: 'thinking…', waitFor: 'abort' },
  )
  const run = await runs.run(await runs.createAgent({ default_timeout: 50 }))
  assert.equal(run.status, 'paused')
  assert.equal(run.pause_reason, 'timeout')
  assert.equal(run.summary, 'The summary.')
  assert.match(String(model.requests[1]?.prompt[0]?.content), /time is up/)
})

test('Hard timeout after grace period', async () => {
  await runs.set({ grace_period: 60 })
  script((request) => ({ text: request.toolChoice === 'none' ? 'In sh' : 'working', waitFor: 'abort' }))
  const run = await runs.run(await runs.createAgent({ default_timeout: 50 }))
  assert.equal(run.status, 'paused')
  assert.equal(run.pause_reason, 'timeout')
  assert.equal(run.summary, 'In sh')
  await runs.set({ grace_period: 30_000 })
})

test('Hard timeout after grace period: a tool that hangs is aborted at the deadline', async () => {
  script((request) => (request.toolChoice === 'none' ? { text: 'late' } : { calls: [{ name: 'hang' }] }))
  const run = await runs.run(await runs.createAgent({ default_timeout: 50, tools: ['hang'] }))
  assert.equal(run.status, 'paused')
  assert.equal(run.summary, 'late')
  const tool = (await runs.steps(run.id))[1]
  assert.equal(tool?.kind === 'tool' && tool.blocked, 'timeout')
})

test('Spawn timeout overrides definition timeout', async () => {
  await runs.createAgent({ name: 'slow child', default_timeout: 3_600_000, model: { provider: 'test', name: 'slow' } })
  runs.models.set(
    'slow',
    createScriptedModel((request) => (request.toolChoice === 'none' ? { text: 'cut' } : { waitFor: 'abort' })),
  )
  script([
    { calls: [{ name: 'spawn_agent', args: { agent: 'slow child', input: 'go', timeout: 50 } }] },
    { text: 'ok' },
  ])
  const parent = await runs.run(await runs.createAgent({ tools: ['spawn_agent'] }))
  const { rows } = await runs.pool.query('select * from agent_runs where parent_run_id = $1', [parent.id])
  assert.equal(rows[0].timeout, 50)
  assert.equal(rows[0].pause_reason, 'timeout')
  assert.equal(rows[0].summary, 'cut')
})

test('Detection threshold', async () => {
  made.length = 0
  const model = script([lookAt(1), lookAt(1), lookAt(1), { text: 'I stop.' }])
  const run = await runs.run(await runs.createAgent({ tools: ['look'] }))
  assert.equal(run.status, 'completed')
  assert.equal(made.length, 2)
  const third = (await runs.steps(run.id)).filter((step) => step.kind === 'tool')[2]
  assert.equal(third?.blocked, 'doom_loop')
  assert.equal(third?.is_error, true)
  assert.match(JSON.stringify(model.requests[3]?.prompt.at(-1)), /different approach/)
})

test('Hard stop after continued looping', async () => {
  made.length = 0
  script(() => lookAt(1))
  const run = await runs.run(await runs.createAgent({ tools: ['look'] }))
  assert.equal(run.status, 'failed')
  assert.equal(run.error_code, 'DOOM_LOOP')
  assert.match(run.error_message ?? '', /doom loop/)
  assert.equal(run.step_count, 5)
  assert.equal(made.length, 2)
})

test('Non-identical calls reset counter', async () => {
  made.length = 0
  script([...[1, 1, 1, 2, 1, 1].map(lookAt), { text: 'fine' }])
  const run = await runs.run(await runs.createAgent({ tools: ['look'] }))
  assert.equal(run.status, 'completed')
  assert.equal(made.length, 5)
})

test('Detection threshold and hard stop follow the settings', async () => {
  await runs.set({ doom_loop_warn: 2, doom_loop_stop: 3 })
  script(() => lookAt(1))
  const run = await runs.run(await runs.createAgent({ tools: ['look'] }))
  assert.equal(run.error_code, 'DOOM_LOOP')
  assert.equal(run.step_count, 3)
  await runs.set({ doom_loop_warn: 3, doom_loop_stop: 5 })
})
