// The times in which a run waited, over HTTP.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../../test/kit/app.ts'
import { createScriptedModel } from '../../../test/kit/scripted-model.ts'
import { until } from '../../../test/kit/until.ts'
import type { Page } from '../../kernel/fields.ts'
import type { Run, RunWait } from '../../kernel/run.ts'
import type { Task } from '../../kernel/task.ts'

const asking = createScriptedModel(({ prompt }) =>
  prompt.filter((message) => message.role === 'tool').length > 1
    ? { text: 'Done.' }
    : { calls: [{ name: 'ask_human', args: { question: `Shall I? ${prompt.length}` } }] },
)
const searching = createScriptedModel(() => ({ calls: [{ name: 'object_search', args: {} }] }))
const kit = await createTestApp({
  models: new Map([
    ['script', asking],
    ['searching', searching],
  ]),
})
const project = await kit.createProject()
const base = `/api/projects/${project.id}`
const agent = await kit.createAgent(project.id, { tools: ['ask_human'] })
const read = async (runId: string): Promise<Run> => (await kit.call<Run>(`GET ${base}/runs/${runId}`)).body
const waits = async (runId: string, query = ''): Promise<Page<RunWait>> =>
  (await kit.call<Page<RunWait>>(`GET ${base}/runs/${runId}/waits${query}`)).body
const start = async (of = agent): Promise<Run> =>
  (await kit.call<Run>(`POST ${base}/agents/${of.id}/trigger`, { body: { input: 'x' } })).body

async function answer(runId: string): Promise<void> {
  const { items } = (await kit.call<Page<Task>>(`GET ${base}/tasks?kind=escalation&status=pending`)).body
  const task = items.find(({ run_id: ofRun }) => ofRun === runId)
  const { status } = await kit.call(`PATCH ${base}/tasks/${task?.id}`, { body: { status: 'completed', result: 'yes' } })
  assert.equal(status, 200)
}

test('a question is a wait: open until it is answered, then with its duration, page by page', async () => {
  const run = await start()
  const [open] = (await waits(run.id)).items
  assert.deepEqual([open?.reason, open?.duration], ['human', null])
  // The wait began a minute ago, by the clock of the database.
  await kit.pool.query(`update run_events set at = at - interval '1 minute' where run_id = $1 and seq = $2`, [
    run.id,
    open?.seq,
  ])
  await answer(run.id)
  await until(async () => (await waits(run.id)).items.length === 2, 'the run asks again')
  const [first, second] = (await waits(run.id)).items
  assert.ok(first?.duration && first.duration >= 60_000, `${first?.duration}`)
  assert.equal(second?.duration, null)
  const page = await waits(run.id, '?limit=1')
  assert.deepEqual(page.items, [first])
  assert.deepEqual((await waits(run.id, `?limit=1&cursor=${page.next_cursor}`)).items, [second])
  await answer(run.id)
  await until(async () => (await read(run.id)).completed_at !== null, 'the run ends')
  assert.ok((await waits(run.id)).items.every(({ duration }) => duration !== null))
})

test('a wait ends with the cancel of its run, and a pause that ends a run is no wait', async () => {
  const run = await start()
  await kit.call(`POST ${base}/runs/${run.id}/cancel`, { body: {} })
  const { items } = await waits(run.id)
  assert.deepEqual(
    items.map(({ reason, duration }) => [reason, typeof duration]),
    [['human', 'number']],
  )
  const model = { provider: 'test', name: 'searching' }
  const limited = await start(await kit.createAgent(project.id, { model, tools: ['object_search'], max_steps: 1 }))
  assert.equal(limited.status, 'paused')
  assert.deepEqual((await waits(limited.id)).items, [])
})
