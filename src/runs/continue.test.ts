// Runs that go on: after a pause, from a point of the past, after an answer, after the off switch, in other hands.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestRuns, testTool } from '../../test/kit/run-worker.ts'
import { buryWorker } from '../../test/kit/runs.ts'
import { createScriptedModel, type Script, type ScriptedAnswer } from '../../test/kit/scripted-model.ts'
import { inTransaction } from '../db/transaction.ts'
import { setHalted } from '../identity/projects.ts'
import { wakeHalted, wakeWaiting } from '../journal/wake.ts'
import { systemActor } from '../kernel/principal.ts'
import { cancelRuns } from './cancel.ts'
import { forkRun } from './fork.ts'
import type { AskHuman } from './owned-run.ts'
import { resumeRun } from './resume.ts'

const made: { tool: string; key: string; attempt: number }[] = []
let holdTools: Promise<void> | null = null
const watched = (name: string, effect: 'readonly' | 'keyed' | 'unsafe') =>
  testTool(
    name,
    async (_args, { key, attempt }) => {
      made.push({ tool: name, key, attempt })
      await holdTools
      return { by: name }
    },
    { effect },
  )
const questions = new Map<string, string>()
const answers = new Map<string, { answer: unknown; isRefused: boolean }>()
const askHuman: AskHuman = {
  ask: async ({ taskId, question }) => void questions.set(taskId, question),
  answers: async (ids) => new Map(ids.flatMap((id) => (answers.has(id) ? [[id, answers.get(id) as never]] : []))),
}
const tools = [watched('look', 'readonly'), watched('pay', 'keyed'), watched('send', 'unsafe')]
const runs = await createTestRuns({ tools, askHuman, leaseMs: 900 })
const { pool, projectId } = runs

const script = (answers: readonly ScriptedAnswer[] | Script) => {
  const model = createScriptedModel(answers)
  runs.models.set('script', model)
  return model
}
const lookAt = (what: number) => ({ calls: [{ name: 'look', args: { what } }] })
const resume = async (runId: string, input = {}) => {
  const run = await resumeRun(pool, projectId, runId, input)
  runs.worker.onReady()
  return runs.finished(run.id)
}

test('a resumed run is a new run with the old history; steps go on counting, its limit counts for the new run alone', async () => {
  script((request, call) => (request.toolChoice === 'none' ? { text: 'so far' } : lookAt(call)))
  const paused = await runs.run(await runs.createAgent({ tools: ['look'], max_steps: 2 }), { input: 'The task.' })
  assert.equal(paused.step_count, 3)
  const model = script((request, call) => (request.toolChoice === 'none' ? { text: 'more' } : lookAt(100 + call)))
  const resumed = await resume(paused.id, { max_steps: 4, input: 'Go on, please.' })
  assert.equal(resumed.resumed_from, paused.id)
  assert.equal(resumed.trigger.type, 'resume')
  assert.equal(resumed.status, 'paused')
  assert.equal(resumed.step_count, 8)
  assert.equal(resumed.max_steps, 4)
  const prompt = JSON.stringify(model.requests[0]?.prompt)
  assert.match(prompt, /The task\..*so far.*Go on, please\./)
  assert.partialDeepStrictEqual((await runs.steps(resumed.id))[0], { step: 4 })
  const unchanged = await runs.get(paused.id)
  assert.deepEqual(unchanged, { ...paused, resumed_as: resumed.id })
  script([{ text: 'the end' }])
  const third = await resume(resumed.id)
  assert.equal(third.status, 'completed')
  assert.equal(third.step_count, 9)
})

test('a person who resumes a run sets the counter of the doom loop back', async () => {
  made.length = 0
  script((request) => (request.toolChoice === 'none' ? { text: 'tired' } : lookAt(1)))
  const paused = await runs.run(await runs.createAgent({ tools: ['look'], max_steps: 2 }))
  assert.equal(paused.pause_reason, 'step_limit')
  script(() => lookAt(1))
  const resumed = await resume(paused.id, { max_steps: 10 })
  assert.equal(resumed.error_code, 'DOOM_LOOP')
  assert.equal(made.length, 4)
  assert.equal(resumed.step_count, 8)
  script([{ text: 'enough' }])
  assert.equal((await resume(resumed.id)).status, 'completed')
})

test('only a run that paused for good is resumed, and once', async () => {
  script([{ text: 'done' }])
  const completed = await runs.run(await runs.createAgent())
  await assert.rejects(resumeRun(pool, projectId, completed.id, {}), { code: 'CONFLICT' })
  script((request, call) => (request.toolChoice === 'none' ? { text: 's' } : lookAt(call)))
  const paused = await runs.run(await runs.createAgent({ tools: ['look'], max_steps: 1 }))
  await assert.rejects(resumeRun(pool, projectId, paused.id, { outcome: 'done' }), { code: 'INVALID_REQUEST' })
  script([{ text: 'done' }])
  await resume(paused.id)
  await assert.rejects(resumeRun(pool, projectId, paused.id, {}), { code: 'CONFLICT' })
})

test('a fork starts from any step of the past, with another input or agent, and leaves the original as it was', async () => {
  script([lookAt(1), lookAt(2), lookAt(3), { text: 'first end' }])
  const original = await runs.run(await runs.createAgent({ tools: ['look'] }), { input: 'The task.' })
  const kinds = await runs.kinds(original.id)
  const model = script([{ text: 'another end' }])
  const other = await runs.createAgent({ prompt: 'You are somebody else.' })
  const fork = await forkRun(pool, projectId, original.id, {
    after_step: 2,
    input: 'Now differently.',
    agent_id: other.id,
  })
  runs.worker.onReady()
  const run = await runs.finished(fork.id)
  assert.equal(run.status, 'completed')
  assert.equal(run.forked_from, original.id)
  assert.equal(run.step_count, 3)
  assert.equal(run.agent_id, other.id)
  const prompt = JSON.stringify(model.requests[0]?.prompt)
  assert.match(prompt, /somebody else.*The task\.(?=.*"what":2).*Now differently\./)
  assert.doesNotMatch(prompt, /"what":3/)
  assert.deepEqual(await runs.kinds(original.id), kinds)
  const fromStart = await forkRun(pool, projectId, original.id, { after_step: 0 })
  script([{ text: 'from the start' }])
  runs.worker.onReady()
  assert.equal((await runs.finished(fromStart.id)).step_count, 1)
  await assert.rejects(forkRun(pool, projectId, original.id, { after_step: 9 }), { code: 'INVALID_REQUEST' })
  const ofFork = await forkRun(pool, projectId, run.id, { after_step: 1 })
  const again = script([{ text: 'deep' }])
  runs.worker.onReady()
  assert.equal((await runs.finished(ofFork.id)).step_count, 2)
  assert.doesNotMatch(JSON.stringify(again.requests[0]?.prompt), /"what":2/)
})

test('ask_human waits without a slot, as a task, and the answer continues the same run', async () => {
  const model = script([
    { calls: [{ name: 'ask_human', args: { question: 'Blue or green?' } }] },
    { text: 'Blue it is.' },
  ])
  const waiting = await runs.run(await runs.createAgent({ tools: ['ask_human'] }))
  assert.equal(waiting.status, 'paused')
  assert.equal(waiting.pause_reason, 'human')
  assert.equal(waiting.completed_at, null)
  await assert.rejects(resumeRun(pool, projectId, waiting.id, {}), { code: 'CONFLICT' })
  const [[taskId = '', question] = []] = [...questions].slice(-1)
  assert.equal(question, 'Blue or green?')
  answers.set(taskId, { answer: 'blue', isRefused: false })
  await wakeWaiting(pool, waiting.id, 'human')
  runs.worker.onReady()
  while ((await runs.get(waiting.id)).completed_at === null) await new Promise(setImmediate)
  const run = await runs.get(waiting.id)
  assert.equal(run.status, 'completed')
  assert.equal(run.summary, 'Blue it is.')
  assert.deepEqual(await runs.kinds(run.id), [
    'run.started',
    'step.completed',
    'tool.started',
    'run.paused',
    'run.continued',
    'tool.completed',
    'step.completed',
    'run.completed',
  ])
  assert.match(JSON.stringify(model.requests[1]?.prompt), /blue/)
})

test('the time that a sub-run waits for a person does not count against its timeout', async () => {
  const ask = { calls: [{ name: 'ask_human', args: { question: 'May I?' } }] }
  runs.models.set(
    'asking',
    createScriptedModel((request) => (request.prompt.length > 2 ? { text: 'I may.' } : ask)),
  )
  const asking = { provider: 'test', name: 'asking' }
  await runs.createAgent({ name: 'asking', tools: ['ask_human'], model: asking, default_timeout: 60_000 })
  script((request) =>
    request.prompt.length > 2
      ? { text: 'done' }
      : { calls: [{ name: 'spawn_agent', args: { agent: 'asking', input: 'go' } }] },
  )
  questions.clear()
  const { id } = await runs.start(await runs.createAgent({ tools: ['spawn_agent'] }))
  while (questions.size === 0) await new Promise(setImmediate)
  const [taskId = ''] = questions.keys()
  const { rows } = await pool.query('select id from agent_runs where parent_run_id = $1', [id])
  await runs.finished(rows[0].id)
  await runs.clock.advance(3_600_000)
  answers.set(taskId, { answer: 'yes', isRefused: false })
  await wakeWaiting(pool, rows[0].id, 'human')
  runs.worker.onReady()
  const run = await runs.finished(id)
  assert.equal(run.status, 'completed')
  assert.equal((await runs.get(rows[0].id)).summary, 'I may.')
})

test('the off switch pauses runs at their next guard; after the release they go on under the same id', async () => {
  const go = Promise.withResolvers<void>()
  const asked = Promise.withResolvers<void>()
  made.length = 0
  script((_request, call) => {
    asked.resolve()
    return call === 1 ? { ...lookAt(1), waitFor: go.promise } : { text: 'on again' }
  })
  const { id } = await runs.start(await runs.createAgent({ tools: ['look'] }))
  await asked.promise
  await setHalted(pool, projectId, true, systemActor)
  await pool.query(`select pg_notify('muster_halt', '')`)
  // Until this process has read the switch, new runs may still complete.
  let later = await runs.run(await runs.createAgent())
  while (later.status === 'completed') later = await runs.run(await runs.createAgent())
  assert.equal(later.pause_reason, 'halted')
  go.resolve()
  const halted = await runs.finished(id)
  assert.equal(halted.pause_reason, 'halted')
  assert.equal(halted.completed_at, null)
  assert.equal(made.length, 0)
  await setHalted(pool, projectId, false, systemActor)
  await pool.query(`select pg_notify('muster_halt', '')`)
  // The switch is a fact that each process reads; until this process has read it, the runs pause again.
  while ((await runs.get(id)).completed_at === null || (await runs.get(later.id)).completed_at === null) {
    await wakeHalted(pool, projectId)
    runs.worker.onReady()
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  assert.equal((await runs.get(id)).summary, 'on again')
  assert.equal(made.length, 1)
})

/** Declares the only worker dead: its runs are free, and it comes back under another name. */
async function declareDead(): Promise<void> {
  const workers = () => pool.query<{ id: string }>('select id from workers')
  while ((await workers()).rowCount === 0) await new Promise(setImmediate)
  for (const { id } of (await workers()).rows) await buryWorker(pool, id)
}

test('after the death of an owner keyed tools are called again under the same key, unsafe ones never', async () => {
  const hold = Promise.withResolvers<void>()
  holdTools = hold.promise
  made.length = 0
  const model = script((_request, call) =>
    call === 1
      ? {
          calls: [
            { name: 'pay', args: {} },
            { name: 'send', args: {} },
          ],
        }
      : { text: 'settled' },
  )
  const { id } = await runs.start(await runs.createAgent({ tools: ['pay', 'send'] }))
  while (made.length < 2) await new Promise(setImmediate)
  holdTools = null
  await declareDead()
  runs.worker.onReady()
  const paused = await runs.finished(id)
  hold.resolve()
  assert.equal(paused.status, 'paused')
  assert.equal(paused.pause_reason, 'outcome_unknown')
  assert.deepEqual(
    made.map(({ tool, attempt }) => [tool, attempt]),
    [
      ['pay', 1],
      ['send', 1],
      ['pay', 2],
    ],
  )
  assert.equal(made[0]?.key, made[2]?.key)
  await assert.rejects(resumeRun(pool, projectId, id, {}), { code: 'INVALID_REQUEST' })
  await assert.rejects(forkRun(pool, projectId, id, { after_step: 1 }), { code: 'CONFLICT' })
  const answers = await Promise.allSettled(
    ['done', 'done', 'done'].map((outcome) =>
      inTransaction(pool, (tx) => resumeRun(tx, projectId, id, { outcome: outcome as 'done', result: { sent: true } })),
    ),
  )
  const [resumed, ...others] = answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []))
  assert.ok(resumed)
  assert.equal(others.length, 0, 'of several resumes at once one succeeds')
  await cancelRuns(runs, projectId, [resumed.id])
  await assert.rejects(resumeRun(pool, projectId, id, { outcome: 'done' }), {
    code: 'CONFLICT',
    details: { run_id: resumed.id },
  })
  const run = await resume(resumed.id)
  assert.equal(run.status, 'completed')
  assert.equal(made.length, 3)
  const [settled] = (await runs.steps(run.id)).filter((step) => step.kind === 'tool')
  assert.deepEqual([settled?.name, settled?.step, settled?.args, settled?.result], ['send', 1, {}, { sent: true }])
  const fork = await forkRun(pool, projectId, run.id, { after_step: 1 })
  runs.worker.onReady()
  assert.equal((await runs.finished(fork.id)).status, 'completed')
  assert.equal(made.length, 3, 'a fork of a run in which the call is settled does not make the call')
  assert.match(JSON.stringify(model.requests.at(-1)?.prompt), /"sent":true/)
})

test('not_done tells the model that the call was not carried out', async () => {
  const hold = Promise.withResolvers<void>()
  holdTools = hold.promise
  made.length = 0
  const model = script((_request, call) => (call === 1 ? { calls: [{ name: 'send', args: {} }] } : { text: 'I see' }))
  const { id } = await runs.start(await runs.createAgent({ tools: ['send'] }))
  while (made.length < 1) await new Promise(setImmediate)
  holdTools = null
  await declareDead()
  runs.worker.onReady()
  await runs.finished(id)
  hold.resolve()
  const run = await resume(id, { outcome: 'not_done', input: 'Try another way.' })
  assert.equal(run.status, 'completed')
  assert.match(JSON.stringify(model.requests.at(-1)?.prompt), /not carried out.*Try another way/)
})
