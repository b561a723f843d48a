// A queen who is asked about a slow subtask, through the real executor. Her workers are runs, and the run that hangs is
// cancelled when she replaces it.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { createTestFlows } from '../../../test/kit/flows.ts'
import { createTestRuns, testTool } from '../../../test/kit/run-worker.ts'
import { createScriptedModel } from '../../../test/kit/scripted-model.ts'
import { until } from '../../../test/kit/until.ts'
import { tasksOf } from '../history/trace.ts'
import { type BuiltInNode, builtInPatterns } from '../machine/built-in-patterns.ts'

const flows = await createTestFlows({ isRouted: true })
const subtask = (id: string, more: object = {}) => ({
  id,
  title: `Title of ${id}`,
  description: `Do ${id}.`,
  depends_on: [],
  workers: 1,
  ...more,
})
const accept = { acceptable: true, problems: [], report: 'All is well.' }

test('Queen oversight and adjustment', async () => {
  const plan = {
    subtasks: [subtask('quick'), subtask('slow', { expected: 20 }), subtask('last', { depends_on: ['slow'] })],
  }
  const decisions: Record<string, unknown> = {
    queen_plan: plan,
    queen_adjust: { action: 'split', subtasks: [subtask('first half'), subtask('second half')] },
    queen_review: accept,
  }
  flows.models.set(
    'script',
    createScriptedModel((request) => {
      const name = request.answerSchema?.name
      if (name) return { text: JSON.stringify(decisions[name]) }
      const asked = JSON.stringify(request.prompt)
      return asked.includes('Do slow.') ? { text: 'I am at it ', waitFor: 'abort' } : { text: 'Done.' }
    }),
  )
  const team = ['ann', 'bob']
  for (const name of ['queen', ...team]) await flows.createAgent({ name })
  const root: BuiltInNode = { type: 'hierarchical', queen: 'queen', workers: team, goal: 'Get it done' }
  const { id, status, output, progress } = await flows.play(root)
  assert.deepEqual([status, output], ['completed', 'All is well.'])
  assert.deepEqual(
    { ...progress, total: 0 },
    { total: 0, pending: 0, running: 0, completed: 7, failed: 0, skipped: 1 },
    'plan, quick, adjust, two halves, last and review; the slow subtask was given up',
  )
  const { rows: runs } = await flows.pool.query<{ status: string }>(
    `select status from agent_runs where flow_run_id = $1 and trigger->>'task_id' = 'root/do 1 slow 0'`,
    [id],
  )
  assert.deepEqual(runs, [{ status: 'cancelled' }])
  const { rows: events } = await flows.pool.query('select * from flow_events where run_id = $1 order by seq', [id])
  const tasks = new Map(
    tasksOf({ root, patterns: builtInPatterns, hasEnded: true, events }).map((task) => [task.id, task]),
  )
  assert.equal(tasks.get('root/do 1 slow 0')?.status, 'skipped')
  assert.deepEqual(tasks.get('root/do 1 last 0')?.depends_on, ['root/part 1 slow 0', 'root/part 1 slow 1'])
  assert.deepEqual([tasks.get('root/plan 1')?.kind, tasks.get('root/plan 1')?.worker], ['agent', 'queen'])
  assert.ok(tasks.get('root/review 1')?.depends_on.includes('root/do 1 last 0'))
})

test('the queen is not asked about a worker that waits, and its wait does not make it slow afterwards', async () => {
  const decisions: Record<string, unknown> = {
    queen_plan: { subtasks: [subtask('far', { expected: 400 })] },
    queen_review: accept,
  }
  const asked: string[] = []
  flows.models.set(
    'script',
    createScriptedModel(({ answerSchema }) => {
      if (!answerSchema) return { text: 'Done.' }
      asked.push(answerSchema.name)
      return { text: JSON.stringify(decisions[answerSchema.name]) }
    }),
  )
  await flows.createAgent({ name: 'empress' })
  await flows.createAgent({ name: 'traveller', tools: ['far'] })
  const root: BuiltInNode = { type: 'hierarchical', queen: 'empress', workers: ['traveller'], goal: 'Get it done' }
  const id = await flows.startFlow(root)
  const waits = async () =>
    (await flows.pool.query('select from flow_leaf_waits where flow_run_id = $1', [id])).rowCount === 1
  await until(waits, 'the worker waits for a process with its tool')
  // The watch goes by the real clock, and a run of 4 s is slow.
  await delay(5_000)
  const second = await createTestRuns({ tools: [testTool('far', async () => 1)], isRouted: true, database: flows })
  assert.equal((await flows.ended(id)).status, 'completed')
  await second.worker.stop()
  assert.deepEqual(asked, ['queen_plan', 'queen_review'])
})
