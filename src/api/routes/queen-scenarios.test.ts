// The scenarios of the queen in the specification of flows, as a client of the API sees them. Her oversight and her
// adjustments are tested in flows/execution/queen-oversight.test.ts.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../../test/kit/app.ts'
import { flowCalls } from '../../../test/kit/flow-calls.ts'
import { createScriptedModel, type ScriptedAnswer } from '../../../test/kit/scripted-model.ts'
import type { Subtask } from '../../kernel/decision.ts'
import type { ModelRequest } from '../../kernel/model-call.ts'

const GOAL = 'Analyze codebase for security issues'
const subtask = (id: string, more: Partial<Subtask> = {}): Subtask => ({
  id,
  title: `Title of ${id}`,
  description: `Do ${id}.`,
  depends_on: [],
  workers: 1,
  ...more,
})

/** The queen's decisions by name, in turn; and the worker's answer to a prompt. */
let queen: Record<string, unknown[]> = {}
let work: (prompt: string) => ScriptedAnswer = () => ({ text: 'Done.' })
const asked: { decision: string | null; prompt: string }[] = []
const promptOf = (request: ModelRequest): string => JSON.stringify(request.prompt)
const model = createScriptedModel((request) => {
  const decision = request.answerSchema?.name ?? null
  asked.push({ decision, prompt: promptOf(request) })
  if (decision === null) return work(promptOf(request))
  return { text: JSON.stringify(queen[decision]?.shift()) }
})
const kit = await createTestApp({ models: new Map([['script', model]]) })
const project = await kit.createProject()
for (const name of ['queen', 'ann', 'bob', 'cyd']) await kit.createAgent(project.id, { name })
const { start, until, ended, play, tasksOf } = flowCalls(kit, project.id)
const root = { type: 'hierarchical', queen: 'queen', workers: ['ann', 'bob', 'cyd'], goal: GOAL }
const accepted = { acceptable: true, problems: [], report: 'Nothing was found.' }

function given(decisions: typeof queen, worker: typeof work = () => ({ text: 'Done.' })): void {
  queen = decisions
  work = worker
  asked.length = 0
}
const askedFor = (decision: string) => asked.filter((each) => each.decision === decision)

test('Queen planning phase', async () => {
  const subtasks = [
    subtask('static_analysis', { workers: 2 }),
    subtask('dependency_audit'),
    subtask('secret_scanning', { depends_on: ['static_analysis', 'dependency_audit'] }),
  ]
  given({ queen_plan: [{ subtasks }], queen_review: [accepted] })
  const run = await play(root)
  assert.deepEqual([run.status, run.output], ['completed', 'Nothing was found.'])
  const [plan, ...others] = askedFor('queen_plan')
  assert.equal(others.length, 0)
  assert.ok(plan?.prompt.includes(GOAL) && plan.prompt.includes('ann, bob, cyd'))
  const tasks = new Map((await tasksOf(run.id)).map((task) => [task.id, task]))
  const idOf = (id: string, place = 0): string => `root/do 1 ${id} ${place}`
  // The first task has two workers; the last task begins only when both others are done.
  assert.deepEqual(
    [...tasks.keys()].filter((id) => id.includes('/do ')).toSorted(),
    [
      ...[idOf('dependency_audit'), idOf('secret_scanning')],
      ...[idOf('static_analysis'), idOf('static_analysis', 1)],
    ].toSorted(),
  )
  assert.deepEqual(
    tasks.get(idOf('secret_scanning'))?.depends_on.toSorted(),
    [idOf('static_analysis'), idOf('static_analysis', 1), idOf('dependency_audit')].toSorted(),
  )
  const planning = tasks.get('root/plan 1')
  assert.ok(Date.parse(planning?.end_at ?? '') - Date.parse(planning?.start_at ?? '') < 1_000)
})

test('Queen delegation', async () => {
  const hold = Promise.withResolvers<void>()
  const isFirstTry = { audit: true }
  given(
    { queen_plan: [{ subtasks: [subtask('analysis'), subtask('audit'), subtask('scan')] }], queen_review: [accepted] },
    (prompt) => {
      if (prompt.includes('Do analysis.')) return { text: 'Analysed.', waitFor: hold.promise }
      if (!prompt.includes('Do audit.') || !isFirstTry.audit) return { text: 'Done.' }
      isFirstTry.audit = false
      return { fail: { message: 'The worker is gone.', isRetryable: false } }
    },
  )
  const { id } = await start(root)
  // The queen's view of the running flow: the plan, the audit's second try and the scan are done, one task is under
  // way.
  const seen = await until(id, ({ progress }) => progress.completed === 3 && progress.running === 1)
  assert.equal(seen.status, 'running')
  hold.resolve()
  const run = await ended(id)
  assert.deepEqual([run.status, run.progress.failed], ['completed', 1])
  const tasks = await tasksOf(id)
  const workerOf = (name: string): (string | null)[] =>
    tasks.filter((task) => task.id.includes(` ${name} `)).map((task) => task.worker)
  const first = [workerOf('analysis')[0], workerOf('audit')[0], workerOf('scan')[0]]
  assert.deepEqual(first.toSorted(), ['ann', 'bob', 'cyd'], 'all workers have equally many tasks')
  const [failing, next, ...more] = workerOf('audit')
  assert.ok(next && next !== failing && more.length === 0, `${failing}, then ${next}`)
})

test('Queen synthesis', async () => {
  const subtasks = [subtask('analysis'), subtask('audit'), subtask('scan')]
  const refused = { acceptable: false, problems: ['The audit names no package.'], report: 'Thin.' }
  given(
    { queen_plan: [{ subtasks }, { subtasks: [subtask('audit')] }], queen_review: [refused, accepted] },
    (prompt) => ({ text: `Finding of ${/Do (\w+)\./.exec(prompt)?.[1]}.` }),
  )
  const run = await play(root)
  const [first, second, ...more] = askedFor('queen_review')
  assert.equal(more.length, 0)
  for (const { id } of subtasks) assert.ok(first?.prompt.includes(`Finding of ${id}.`), id)
  assert.ok(second?.prompt.includes('Finding of audit.'))
  assert.ok(
    askedFor('queen_plan')[1]?.prompt.includes('The audit names no package.'),
    'the problem is part of the next plan',
  )
  assert.deepEqual([run.status, run.output], ['completed', 'Nothing was found.'])
})
