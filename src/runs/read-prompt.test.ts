// Runs of agents with a prompt_id: the way from the messages of a prompt to the model, and the fate of a run whose
// prompt changes, is missing, or cannot be read.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestRuns, testTool } from '../../test/kit/run-worker.ts'
import { buryWorker } from '../../test/kit/runs.ts'
import { createScriptedModel, type Script, type ScriptedAnswer } from '../../test/kit/scripted-model.ts'
import { wakeWaiting } from '../journal/wake.ts'
import { promptMissing, unavailable } from '../kernel/errors.ts'
import { newId } from '../kernel/id.ts'
import type { ModelRequest } from '../kernel/model-call.ts'
import type { PromptMessage } from '../kernel/prompt.ts'
import { cancelRuns } from './cancel.ts'
import { forkRun } from './fork.ts'
import type { AskHuman, RunDeps } from './owned-run.ts'
import { resumeRun } from './resume.ts'

const system = (content: string): PromptMessage => ({ role: 'system', content })
const user = (content: string): PromptMessage => ({ role: 'user', content })

/** The library: its prompts, the number of reads, and the error that it throws while it is away. */
const library = new Map<string, PromptMessage[]>()
let asked = 0
let away: (() => Error) | null = null
const resolvePrompt: RunDeps['resolvePrompt'] = async (_, promptId) => {
  asked++
  if (away) throw away()
  const messages = library.get(promptId)
  if (!messages) throw promptMissing(promptId, 'blue', { isDuringRun: true })
  return { messages, version: 1, variantId: 'blue' }
}

const answers = new Map<string, { answer: unknown; isRefused: boolean }>()
const questions: string[] = []
const askHuman: AskHuman = {
  ask: async ({ taskId }) => void questions.push(taskId),
  answers: async (ids) => new Map(ids.flatMap((id) => (answers.has(id) ? [[id, answers.get(id) as never]] : []))),
}
const look = testTool('look', async () => 'seen')
const runs = await createTestRuns({ tools: [look], askHuman, resolvePrompt, leaseMs: 900 })
const { pool, projectId } = runs

const script = (given: readonly ScriptedAnswer[] | Script, options = {}) => {
  const model = createScriptedModel(given, options)
  runs.models.set('script', model)
  return model
}
const done = () => script(() => ({ text: 'done' }))

let named = 0
/** An agent whose prompt in the library has these messages. */
const agentWith = (messages: PromptMessage[] | null, more: Parameters<typeof runs.createAgent>[0] = {}) => {
  const prompt_id = `prompt_${++named}`
  if (messages) library.set(prompt_id, messages)
  return runs.createAgent({ prompt_id, ...more })
}

/** The messages of a request in short: the role, and the texts of its parts. */
const shown = (request: ModelRequest | undefined): string[] =>
  (request?.prompt ?? []).map(({ role, content }) => {
    const texts =
      typeof content === 'string' ? [content] : content.map((part) => ('text' in part ? part.text : part.type))
    return `${role}: ${texts.join(' + ')}`
  })

const resume = async (runId: string, input = {}) => {
  const run = await resumeRun(pool, projectId, runId, input)
  runs.worker.onReady()
  return runs.finished(run.id)
}

const forms: { name: string; messages: PromptMessage[]; input?: unknown; role?: string; shows: string[] }[] = [
  {
    name: 'all messages, with the input filled in and the other variables empty',
    messages: [
      system('Be {{USER_INPUT}}.'),
      user('Plan: <{{PLAN_JSON}}>'),
      user('User: {{USER_INPUT}}'),
      system('And kind.'),
    ],
    shows: ['system: Be Do it..\n\nAnd kind.', 'user: Plan: <>', 'user: User: Do it.'],
  },
  {
    name: 'an input that is an object, as JSON',
    messages: [system('S'), user('{{USER_INPUT}}')],
    input: { a: [1] },
    shows: ['system: S', 'user: {"a":[1]}'],
  },
  {
    name: 'an input that holds a variable, unchanged',
    messages: [system('S'), user('{{USER_INPUT}} {{PLAN_JSON}}')],
    input: '{{PLAN_JSON}}',
    shows: ['system: S', 'user: {{PLAN_JSON}} '],
  },
  {
    name: 'the input last, if the prompt has no place for it',
    messages: [system('S'), user('Work as you were told.')],
    shows: ['system: S', 'user: Work as you were told.', 'user: Do it.'],
  },
  {
    name: 'the input by itself, if the prompt has a system message alone',
    messages: [system('Your task: {{USER_INPUT}}')],
    shows: ['system: Your task: Do it.', 'user: Do it.'],
  },
  {
    name: 'the role of the agent, if the prompt has no system message',
    messages: [user('User: {{USER_INPUT}}')],
    role: 'a baker',
    shows: ['system: You are a baker.', 'user: User: Do it.'],
  },
  {
    name: 'no message that is nothing but an empty variable',
    messages: [system('S'), user('{{HISTORY_JSON}}'), user('{{USER_INPUT}}')],
    shows: ['system: S', 'user: Do it.'],
  },
]

for (const { name, messages, input, role = '', shows } of forms) {
  test(`the model is shown ${name}`, async () => {
    const model = done()
    const run = await runs.run(await agentWith(messages, { role }), input === undefined ? {} : { input })
    assert.equal(run.status, 'completed', run.error_message ?? '')
    assert.deepEqual(shown(model.requests[0]), shows)
  })
}

test('a run reads its prompt once and journals it; the next run reads the prompt anew', async () => {
  script((_, call) => (call < 3 ? { calls: [{ name: 'look', args: { call } }] } : { text: 'done' }))
  const agent = await agentWith([system('one'), user('{{USER_INPUT}}')], { tools: ['look'] })
  asked = 0
  const first = await runs.run(agent)
  assert.equal(asked, 1)
  assert.deepEqual((await runs.kinds(first.id)).slice(0, 3), ['run.started', 'prompt.read', 'step.completed'])
  const { rows } = await pool.query(`select data from run_events where run_id = $1 and kind = 'prompt.read'`, [
    first.id,
  ])
  const messages = [system('one'), user('{{USER_INPUT}}')]
  assert.deepEqual(rows[0].data, { prompt_id: agent.prompt_id, variant_id: 'blue', version: 1, messages })
  library.set(agent.prompt_id ?? '', [system('two')])
  const model = done()
  await runs.run(agent)
  assert.equal(shown(model.requests[0])[0], 'system: two')
})

test('a missing prompt fails the run with the name of the prompt, before any model is called', async () => {
  const model = done()
  const agent = await agentWith(null)
  const run = await runs.run(agent)
  assert.deepEqual([run.status, run.error_code], ['failed', 'PROMPT_MISSING'])
  assert.match(run.error_message ?? '', new RegExp(`"${agent.prompt_id}" in the variant "blue"`))
  assert.equal(model.requests.length, 0)
  assert.deepEqual(await runs.kinds(run.id), ['run.started', 'run.failed'])
})

test('a prompt that grows too large with its input fails the run', async () => {
  const agent = await agentWith([user('{{USER_INPUT}}'.repeat(100))])
  const run = await runs.run(agent, { input: 'x'.repeat(500_000) })
  assert.deepEqual([run.status, run.error_code], ['failed', 'PROMPT_TOO_LARGE'])
  assert.deepEqual(await runs.kinds(run.id), ['run.started', 'run.failed'], 'nothing that would fail a later owner')
})

test('a run that waited goes on with the text it has read, even if the prompt has changed', async () => {
  const model = script((_, call) =>
    call === 1 ? { calls: [{ name: 'ask_human', args: { question: 'Well?' } }] } : { text: 'done' },
  )
  const agent = await agentWith([system('one'), user('A: {{USER_INPUT}}')], { tools: ['ask_human'] })
  const waiting = await runs.run(agent)
  assert.deepEqual([waiting.status, waiting.pause_reason], ['paused', 'human'])
  library.delete(agent.prompt_id ?? '')
  asked = 0
  answers.set(questions.at(-1) ?? '', { answer: 'yes', isRefused: false })
  await wakeWaiting(pool, waiting.id, 'human')
  runs.worker.onReady()
  while ((await runs.get(waiting.id)).status !== 'completed') await new Promise(setImmediate)
  assert.equal(asked, 0)
  assert.deepEqual(shown(model.requests[1]), [
    'system: one',
    'user: A: Do it.',
    'assistant: tool-call',
    'tool: tool-result',
  ])
})

test('a run whose owner died goes on with the text it has read', async () => {
  const hold = Promise.withResolvers<void>()
  const model = script((_, call) => (call === 1 ? { waitFor: hold.promise, text: 'lost' } : { text: 'done' }))
  const agent = await agentWith([system('one'), user('A: {{USER_INPUT}}')])
  const { id } = await runs.start(agent)
  while (model.requests.length === 0) await new Promise(setImmediate)
  library.set(agent.prompt_id ?? '', [system('two')])
  asked = 0
  const { rows } = await pool.query<{ id: string }>('select id from workers')
  for (const worker of rows) await buryWorker(pool, worker.id)
  runs.worker.onReady()
  const run = await runs.finished(id)
  hold.resolve()
  assert.equal(run.status, 'completed')
  assert.equal(asked, 0)
  assert.deepEqual(shown(model.requests[1]), ['system: one', 'user: A: Do it.'])
})

test('a resumed run reads the prompt anew: its system part is new, its history is unchanged, and the task is the first input', async () => {
  script([{ calls: [{ name: 'look' }] }, { text: 'so far' }])
  const agent = await agentWith([system('one {{USER_INPUT}}'), user('A: {{USER_INPUT}}')], {
    tools: ['look'],
    max_steps: 1,
  })
  const paused = await runs.run(agent)
  assert.equal(paused.pause_reason, 'step_limit')
  library.set(agent.prompt_id ?? '', [system('two {{USER_INPUT}}'), user('B: {{USER_INPUT}}')])
  const model = done()
  const resumed = await resume(paused.id, { input: 'More.', max_steps: 5 })
  assert.equal(resumed.status, 'completed', resumed.error_message ?? '')
  const request = shown(model.requests[0])
  assert.deepEqual([request[0], request[1], request.at(-1)], ['system: two Do it.', 'user: A: Do it.', 'user: More.'])
})

test('a resume after the prompt was deleted fails, and works once the prompt is back', async () => {
  script([{ calls: [{ name: 'look' }] }, { text: 'so far' }])
  const agent = await agentWith([system('one')], { tools: ['look'], max_steps: 1 })
  const paused = await runs.run(agent)
  library.delete(agent.prompt_id ?? '')
  done()
  const failed = await resume(paused.id, { max_steps: 5 })
  assert.equal(failed.error_code, 'PROMPT_MISSING')
  library.set(agent.prompt_id ?? '', [system('back')])
  assert.equal((await resume(failed.id, { max_steps: 5 })).status, 'completed')
})

test('a fork from the beginning is shown the task by the prompt of its own agent; a later fork keeps the history', async () => {
  script([{ calls: [{ name: 'look' }] }, { text: 'done' }])
  const original = await runs.run(await agentWith([system('one'), user('A: {{USER_INPUT}}')], { tools: ['look'] }))
  const other = await agentWith([system('other'), user('B: {{USER_INPUT}}')])
  const plain = await runs.createAgent({ prompt: 'plain' })
  const fork = async (after_step: number, agentId: string, input?: string) => {
    const model = done()
    const run = await forkRun(pool, projectId, original.id, {
      after_step,
      agent_id: agentId,
      ...(input ? { input } : {}),
    })
    runs.worker.onReady()
    await runs.finished(run.id)
    return shown(model.requests[0]).slice(0, 3)
  }
  assert.deepEqual(await fork(0, other.id), ['system: other', 'user: B: Do it.'])
  assert.deepEqual(await fork(0, other.id, 'Also.'), ['system: other', 'user: B: Do it.', 'user: Also.'])
  assert.deepEqual(await fork(1, other.id), ['system: other', 'user: A: Do it.', 'assistant: tool-call'])
  assert.deepEqual(await fork(1, plain.id), ['system: plain', 'user: A: Do it.', 'assistant: tool-call'])
})

test('all messages of the task stay when the history is shortened', async () => {
  const model = script(
    (request, call) => {
      const size = JSON.stringify(request.prompt)
      if (size.includes('about to be shortened')) return { text: 'In short.' }
      const usage = { inputTokens: Math.ceil(size.length / 4) }
      return call < 14
        ? { text: 'x'.repeat(2_000), calls: [{ name: 'look', args: { call } }], usage }
        : { text: 'done', usage }
    },
    { contextTokens: 3_000 },
  )
  const agent = await agentWith([system('S'), user('First.'), user('Second: {{USER_INPUT}}')], {
    tools: ['look'],
    model: { provider: 'test', name: 'script', max_output_tokens: 100 },
  })
  const run = await runs.run(agent)
  assert.equal(run.status, 'completed', run.error_message ?? run.pause_reason ?? '')
  assert.ok((await runs.kinds(run.id)).filter((kind) => kind === 'context.compacted').length > 1)
  assert.match(shown(model.requests.at(-1))[1] ?? '', /^user: First\. \+ Second: Do it\. \+ What happened so far/)
})

test('the steps of a sequential agent pass on their output unchanged', async () => {
  const model = script([{ text: 'half' }, { text: 'whole' }])
  const steps = [{ prompt: 'Step one.' }, { prompt: 'Step two.' }]
  const run = await runs.run(
    await agentWith([system('S'), user('A: {{USER_INPUT}}')], { flow_type: 'sequential', steps }),
  )
  assert.equal(run.summary, 'whole')
  assert.deepEqual(model.requests.map(shown), [
    ['system: S\n\nStep one.', 'user: A: Do it.'],
    ['system: S\n\nStep two.', 'user: half'],
  ])
})

test('a sub-run reads its prompt after its start, for its own input', async () => {
  const child = await agentWith([system('child'), user('C: {{USER_INPUT}}')], { name: 'child' })
  const model = script((request, call) =>
    call === 1
      ? { calls: [{ name: 'spawn_agent', args: { agent: 'child', input: 'Dig.' } }] }
      : { text: shown(request)[0] ?? '' },
  )
  const parent = await runs.createAgent({ prompt: 'parent', tools: ['spawn_agent'] })
  const run = await runs.run(parent)
  assert.equal(run.status, 'completed')
  assert.deepEqual(shown(model.requests[1]), ['system: child', 'user: C: Dig.'])
  const { rows } = await pool.query<{ id: string }>('select id from agent_runs where agent_id = $1', [child.id])
  assert.deepEqual((await runs.kinds(rows[0]?.id ?? '')).slice(0, 2), ['run.started', 'prompt.read'])
})

test('a run whose agent is given another prompt while the run waits goes on with the new prompt', async () => {
  const model = script((_, call) =>
    call === 1 ? { calls: [{ name: 'ask_human', args: { question: 'Well?' } }] } : { text: 'done' },
  )
  const agent = await agentWith([system('one'), user('A: {{USER_INPUT}}')], { tools: ['ask_human'] })
  const waiting = await runs.run(agent)
  library.set('another', [system('another'), user('B: {{USER_INPUT}}')])
  await pool.query(`update agents set prompt_id = 'another', updated_at = muster.now() where id = $1`, [agent.id])
  answers.set(questions.at(-1) ?? '', { answer: 'yes', isRefused: false })
  await wakeWaiting(pool, waiting.id, 'human')
  runs.worker.onReady()
  while ((await runs.get(waiting.id)).status !== 'completed') await new Promise(setImmediate)
  assert.deepEqual(shown(model.requests[1]).slice(0, 2), ['system: another', 'user: A: Do it.'])
})

const isAway = () => unavailable('The prompt library at http://prompts cannot be reached.')

test('a library that comes back in time costs the run nothing but the wait', async () => {
  done()
  asked = 0
  away = () => {
    if (asked === 3) away = null
    return isAway()
  }
  const run = await runs.run(await agentWith([system('S')]))
  assert.equal(run.status, 'completed', run.error_message ?? '')
  assert.equal(asked, 4)
  const restarted = (await runs.kinds(run.id)).filter((kind) => kind === 'step.restarted')
  assert.equal(restarted.length, 3)
})

test('a library that stays away pauses the run with a clear error; a resume goes on when the library is back', async () => {
  const model = done()
  away = isAway
  const paused = await runs.run(await agentWith([system('S'), user('A: {{USER_INPUT}}')]))
  away = null
  assert.deepEqual([paused.status, paused.pause_reason, paused.error_code], ['paused', 'unavailable', 'UNAVAILABLE'])
  assert.match(paused.error_message ?? '', /cannot be reached\. \(tried 5 times\)/)
  assert.equal(model.requests.length, 0)
  const resumed = await resume(paused.id)
  assert.equal(resumed.status, 'completed', resumed.error_message ?? '')
  assert.deepEqual(shown(model.requests[0]), ['system: S', 'user: A: Do it.'])
})

test('an attempt at a task fails if the library stays away, so that the task is tried again', async () => {
  away = isAway
  const agent = await agentWith([system('S')])
  const id = newId()
  await pool.query(
    `insert into agent_runs (id, project_id, agent_id, trigger, input, rights, task_id, ready_at)
     values ($1, $2, $3, '{"type":"task"}', '"x"', '{}', $4, muster.now())`,
    [id, projectId, agent.id, newId()],
  )
  runs.worker.onReady()
  const run = await runs.finished(id)
  away = null
  assert.deepEqual([run.status, run.error_code], ['failed', 'UNAVAILABLE'])
})

test('a run that waits for the library holds no slot, and can be cancelled', async () => {
  away = () => unavailable('Later.', undefined, 30)
  const { id } = await runs.start(await agentWith([system('S')]))
  const isParked = async () =>
    (await pool.query(`select from agent_runs where id = $1 and owner is null and waits_for = 'backoff'`, [id]))
      .rowCount
  while (!(await isParked()) || runs.worker.active() > 0) await new Promise(setImmediate)
  await cancelRuns(runs, projectId, [id])
  runs.worker.onReady()
  const run = await runs.finished(id)
  away = null
  assert.equal(run.status, 'cancelled')
})
