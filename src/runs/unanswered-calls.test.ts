// Keyed calls that were made and given up before they answered: whoever makes them again, they have their keys.
import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { createTestRuns, testTool } from '../../test/kit/run-worker.ts'
import { createScriptedModel, type Script } from '../../test/kit/scripted-model.ts'
import { until } from '../../test/kit/until.ts'
import type { ModelRequest } from '../kernel/model-call.ts'
import { cancelRuns } from './cancel.ts'
import { listEffects } from './effects.ts'
import { forkRun } from './fork.ts'
import { resumeRun } from './resume.ts'

const keys: string[] = []
let isDeaf = true
const pay = (name: string, timeoutMs: number | null) =>
  testTool(
    name,
    async (_args, { key }) => {
      const place = keys.push(key)
      if (isDeaf) await new Promise(() => {})
      return { receipt: place }
    },
    { effect: 'keyed', timeoutMs },
  )
const runs = await createTestRuns({ tools: [pay('pay', null), pay('quick_pay', 30)] })
const { pool, projectId } = runs

beforeEach(async () => {
  keys.length = 0
  isDeaf = true
  await runs.set({ cancel_drain: 0 })
})

const results = ({ prompt }: ModelRequest): number => prompt.filter(({ role }) => role === 'tool').length
const script = (answer: Script) => {
  const model = createScriptedModel(answer)
  runs.models.set('script', model)
  return model
}
const call = (name: string) => ({ calls: [{ name, args: { order: 1 } }] })
const resume = async (runId: string) => {
  const { id } = await resumeRun(pool, projectId, runId, {})
  runs.worker.onReady()
  return runs.finished(id)
}

test('a call that a cancel cut off is made again by the run that continues, with its key', async () => {
  script(() => call('pay'))
  const { id } = await runs.start(await runs.createAgent({ tools: ['pay'] }))
  await until(() => keys.length === 1, 'the call was made')
  await cancelRuns(runs, projectId, [id])
  assert.equal((await runs.finished(id)).status, 'cancelled')
  isDeaf = false
  const model = script(() => ({ text: 'Paid.' }))
  const resumed = await resume(id)
  assert.equal(resumed.status, 'completed')
  assert.deepEqual([keys.length, new Set(keys).size], [2, 1])
  assert.partialDeepStrictEqual((await runs.steps(resumed.id))[0], { kind: 'tool', step: 1, args: { order: 1 } })
  assert.match(JSON.stringify(model.requests[0]?.prompt), /"receipt":2/)
})

test('a call that the time limit of its run cut off has its key when the model makes it again', async () => {
  script((request) => (request.toolChoice === 'none' ? { text: 'So far.' } : call('pay')))
  const late = await runs.run(await runs.createAgent({ tools: ['pay'] }), { timeout: 300 })
  assert.equal(late.pause_reason, 'timeout')
  assert.equal(keys.length, 1)
  const [effect] = (await listEffects(pool, late.id)).items
  assert.deepEqual([effect?.outcome, effect?.result, effect?.key], ['unknown', null, keys[0]])
  isDeaf = false
  script((request) => (results(request) < 3 ? call('pay') : { text: 'Paid twice.' }))
  assert.equal((await resume(late.id)).status, 'completed')
  assert.equal(keys.length, 3)
  assert.equal(keys[0], keys[1])
  assert.notEqual(keys[1], keys[2])
})

test('a call that its own time limit cut off has its key when the model makes it again', async () => {
  script((request) => {
    isDeaf = results(request) === 0
    return results(request) < 2 ? call('quick_pay') : { text: 'Paid.' }
  })
  assert.equal((await runs.run(await runs.createAgent({ tools: ['quick_pay'] }))).status, 'completed')
  assert.deepEqual([keys.length, new Set(keys).size], [2, 1])
})

test('a fork makes an open call under a key of its own, and so does the run that continues the fork', async () => {
  script(() => call('pay'))
  const cut = async (id: string, count: number) => {
    await until(() => keys.length === count, 'the call was made')
    await cancelRuns(runs, projectId, [id])
    await runs.finished(id)
  }
  const { id } = await runs.start(await runs.createAgent({ tools: ['pay'] }))
  await cut(id, 1)
  const fork = await forkRun(pool, projectId, id, { after_step: 1 })
  runs.worker.onReady()
  await cut(fork.id, 2)
  isDeaf = false
  script(() => ({ text: 'Paid.' }))
  assert.equal((await resume(fork.id)).status, 'completed')
  const [original, forked, continued] = keys
  assert.equal(keys.length, 3)
  assert.notEqual(forked, original)
  assert.equal(continued, forked)
})
