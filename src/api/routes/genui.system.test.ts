// `POST /v1/genui/layout` over HTTP: layouts of real rows whose buttons work, ids of other projects, and models of
// every kind.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createGraph } from '../../../test/kit/graph.ts'
import { readPlans, recordStatements } from '../../../test/kit/query-plans.ts'
import { insertRuns } from '../../../test/kit/runs.ts'
import { createScriptedModel, type ScriptedAnswer } from '../../../test/kit/scripted-model.ts'
import { createSupervisor, delegate, finish, summary } from '../../../test/kit/supervisor.ts'
import { until } from '../../../test/kit/until.ts'
import { createDecide } from '../../bin/ask-model.ts'
import { inTransaction } from '../../db/transaction.ts'
import { createOutageWatch } from '../../journal/outage-watch.ts'
import { createProjectCalls } from '../../journal/project-calls.ts'
import { type Component, componentsOf, type Layout, layoutSchema, type OfType } from '../../kernel/genui.ts'
import { newId } from '../../kernel/id.ts'
import { silentLog } from '../../kernel/log.ts'
import type { Run } from '../../kernel/run.ts'
import type { Task } from '../../kernel/task.ts'
import { suggest } from '../../tasks/suggest.ts'

let script: (call: number) => ScriptedAnswer = () => ({ text: '' })
const model = createScriptedModel((_, call) => script(call))
let isHalted = false
const kit = await createSupervisor(
  {
    supervisor: [delegate('research_agent', [], 'Look.'), { plan: [], action: 'escalate', notes: 'Who?' }, finish()],
    summary: { research_agent: summary('COMPLETED', 'There are two.') },
    escalation: 'Which of the two?',
    finalizer: 'It is the **first**.',
  },
  {
    models: new Map([['script', createScriptedModel(() => ({ text: 'Here <b>it</b> is.' }))]]),
    decide: (...question) =>
      createDecide({
        pool: kit.pool,
        resolveModel: async () => model,
        isHalted: () => isHalted,
        calls: createProjectCalls({ pool: kit.pool, ownerId: newId }),
        outages: createOutageWatch({ pool: kit.pool, ownerId: newId, onReady: () => {}, log: silentLog }),
        firstBackoffMs: 1,
      })(...question),
  },
)
const { project, base } = kit
const graph = await createGraph(kit, project.id)
const member = (await kit.createKey(project.id, 'member')).key
const theirs = await kit.createProject('theirs')
const theirGraph = await createGraph(kit, theirs.id)
const [theirRun = ''] = await insertRuns(kit.pool, theirs.id, 1)

type Answer = Layout & { error: { code: string; message: string } }
const ask = (context: object) => kit.call<Answer>('POST /v1/genui/layout', { token: member, body: { context } })
async function lay(context: object): Promise<Layout> {
  const { status, body, text } = await ask(context)
  assert.equal(status, 200, text)
  assert.deepEqual(layoutSchema.parse(body), body)
  return body
}
function find<Type extends Component['type']>(layout: Layout, type: Type, id: string): OfType<Type> {
  const found = componentsOf(layout).find((each) => each.id === id)
  assert.equal(found?.type, type, `${id}: ${JSON.stringify(layout)}`)
  return found as OfType<Type> // has the type that was asked for
}
const chooseModel = async (provider: string): Promise<void> => {
  const body = { default_model: { provider, name: 'any' } }
  assert.equal((await kit.call(`PATCH ${base}/settings`, { body })).status, 200)
}

test('generic: a title and a field, as in the spec; an unknown scenario gives the same page', async () => {
  const { components } = await lay({ scenario: 'generic' })
  assert.deepEqual(
    components.map(({ type }) => type),
    ['text', 'input'],
  )
  assert.deepEqual((await lay({ scenario: 'no such scenario' })).components, components)
  const filled = await lay({ scenario: 'generic', title: 'A refund', fields: [{ label: 'Amount' }], customer: 'ACME' })
  assert.equal(find(filled, 'text', 'title').value, 'A refund')
  assert.deepEqual(find(filled, 'table', 'facts').rows, [{ cells: ['customer', 'ACME'] }])
})

test('approval: the diff of the suggestion, and buttons that do what they say', async () => {
  const context = { scenario: 'approval', task_id: graph.suggestionId.toUpperCase() }
  const layout = await lay(context)
  assert.equal(find(layout, 'text', 'author').value, 'Suggested by a reactor.')
  assert.deepEqual(find(layout, 'diff', 'change_1').changes, [
    { field: 'name', kind: 'changed', before: '"first"', after: '"second"' },
  ])
  const { action } = find(layout, 'button', 'approve')
  assert.deepEqual(action, { type: 'approve', task_id: graph.suggestionId })
  assert.equal(find(layout, 'button', 'reject').action.type, 'reject')
  const approved = await kit.call(`POST ${base}/tasks/${graph.suggestionId}/approve`, { token: member })
  assert.equal(approved.status, 200)
  const after = await lay(context)
  assert.match(find(after, 'text', 'state').value, /approved/)
  assert.equal(
    componentsOf(after).some((each) => each.id === 'approve'),
    false,
  )
})

test('run_summary and approval of a supervisor’s run: its question, its answer, its specialists', async () => {
  const asked = await kit.run('Which one is it?')
  assert.equal(asked.body.result.status, 'ESCALATE', JSON.stringify(asked.body))
  const runId = asked.body.metadata.run_id
  const paused = await lay({ scenario: 'run_summary', run_id: runId })
  assert.equal(find(paused, 'text', 'title').value, 'Run of the supervisor, variant blue')
  assert.equal(find(paused, 'text', 'why').value, 'The run waits for the answer of a person.')
  assert.equal(find(paused, 'markdown', 'question_1_question').value, 'Which of the two?')
  const { action } = find(paused, 'button', 'question_1_send')
  assert.ok(action.type === 'answer')
  const question = await lay({ scenario: 'approval', task_id: action.task_id })
  assert.equal(find(question, 'markdown', 'question').value, 'Which of the two?')
  assert.deepEqual(find(question, 'button', 'send').action, { ...action, from: 'answer' })

  const body = { status: 'completed', result: 'The first.' }
  const answered = await kit.call<Task>(`PATCH ${base}/tasks/${action.task_id}`, { body, token: member })
  assert.equal(answered.status, 200)
  await until(async () => (await kit.get<Run>(`/runs/${runId}`)).status === 'completed', 'the run went on')
  const done = await lay({ scenario: 'run_summary', run_id: runId })
  assert.equal(find(done, 'markdown', 'summary').value, 'It is the **first**.')
  assert.deepEqual(find(done, 'table', 'history').rows, [{ cells: ['research_agent', 'COMPLETED', 'There are two.'] }])
  const [sub] = find(done, 'table', 'sub_runs').rows
  assert.equal(sub?.cells[0], 'research_agent')
  const specialist = await lay({ scenario: 'run_summary', run_id: sub?.open?.id ?? '' })
  assert.equal(find(specialist, 'text', 'title').value, 'Run of research_agent')
  assert.deepEqual(find(specialist, 'button', 'open_parent').action, { type: 'open', target: 'run', id: runId })
})

test('run_summary of an agent’s run: its text cannot become markup, and its figures are those of the run', async () => {
  const agent = await kit.createAgent(project.id, { name: 'Speaker' })
  const triggered = await kit.call<Run>(`POST ${base}/agents/${agent.id}/trigger`, { body: { input: 'Speak.' } })
  assert.equal(triggered.body.status, 'completed')
  const layout = await lay({ scenario: 'run_summary', run_id: triggered.body.id })
  assert.equal(find(layout, 'text', 'title').value, 'Run of Speaker')
  assert.equal(find(layout, 'markdown', 'summary').value, 'Here < b>it< /b> is.')
  const facts = Object.fromEntries(find(layout, 'table', 'facts').rows.map(({ cells }) => cells))
  assert.deepEqual([facts.Steps, facts.Tokens], ['1', '15 (10 in, 5 out)'])
})

test('a run with 20,000 sub-runs shows the newest in their order, and reads no others', async () => {
  const [parent = '', ...children] = await insertRuns(kit.pool, project.id, 20_001)
  await kit.pool.query(
    `update agent_runs r set parent_run_id = $1, created_at = muster.now() + n * interval '1 s'
     from unnest($2::uuid[]) with ordinality as c (id, n) where r.id = c.id`,
    [parent, children],
  )
  await kit.pool.query('vacuum analyze agent_runs')
  const recording = recordStatements(kit.pool)
  const table = find(await lay({ scenario: 'run_summary', run_id: parent }), 'table', 'sub_runs')
  recording.stop()
  assert.deepEqual(
    table.rows.map(({ open }) => open?.id),
    children.slice(-100),
  )
  assert.match(table.note ?? '', /newest 100/)
  const ofRuns = recording.statements.filter(({ text }) => text.includes('from agent_runs'))
  assert.ok(ofRuns.length >= 2, `${ofRuns.length} statements`)
  for (const plan of await readPlans(kit.pool, ofRuns, { large: ['agent_runs'] })) {
    assert.deepEqual(plan.sequentialScans, [], plan.explained)
    assert.ok(plan.buffers < 500, `${plan.buffers} buffers\n${plan.explained}`)
  }
  await kit.pool.query('delete from agent_runs where parent_run_id = $1', [parent])
})

const workTask = await kit.call<Task>(`POST ${base}/tasks`, { body: { title: 'Work', metadata: { secret: 'canary' } } })
const [myRun = ''] = await insertRuns(kit.pool, project.id, 1)

const missing: [name: string, context: (id: string) => object, ids: string[], code: string][] = [
  [
    'a task',
    (task_id) => ({ scenario: 'approval', task_id }),
    [theirGraph.suggestionId, workTask.body.id, myRun],
    'NOT_FOUND',
  ],
  ['a run', (run_id) => ({ scenario: 'run_summary', run_id }), [theirRun, graph.suggestionId], 'RUN_NOT_FOUND'],
  ['an eval', (eval_id) => ({ scenario: 'eval_comparison', eval_id }), [myRun, theirRun], 'NOT_FOUND'],
  [
    'a task that is only named',
    (task_id) => ({ scenario: 'generic', task_id }),
    [theirGraph.suggestionId],
    'NOT_FOUND',
  ],
  ['a run that is only named', (run_id) => ({ scenario: 'x', run_id }), [theirRun], 'RUN_NOT_FOUND'],
  [
    'a run beside a task',
    (run_id) => ({ scenario: 'approval', task_id: graph.suggestionId, run_id }),
    [theirRun],
    'RUN_NOT_FOUND',
  ],
]
for (const [name, context, ids, code] of missing) {
  test(`${name} of another project, or of another kind, is answered like an unknown one`, async () => {
    const unknown = await ask(context(newId()))
    assert.deepEqual([unknown.status, unknown.body.error.code], [404, code])
    for (const id of ids) {
      const answer = await ask(context(id))
      assert.deepEqual([answer.status, answer.text], [404, unknown.text], id)
    }
    assert.equal((await ask(context('no-id'))).status, 400)
  })
}

test('a scenario without its id, and a body of another shape, are refused', async () => {
  for (const [scenario, name] of Object.entries({
    approval: 'task_id',
    run_summary: 'run_id',
    eval_comparison: 'eval_id',
  })) {
    const { status, body } = await ask({ scenario })
    assert.deepEqual([status, body.error.message], [400, `The scenario ${scenario} needs context.${name}.`])
  }
  for (const body of [{}, { context: {} }, { context: { scenario: 1 } }, { context: { scenario: 'x' }, more: 1 }]) {
    const answer = await kit.call('POST /v1/genui/layout', { token: member, body })
    assert.equal(answer.status, 400, JSON.stringify(body))
  }
})

const context = { scenario: 'run_summary', run_id: myRun }
const words = { type: 'text', id: 'headline', value: 'It is at work.' }
const says = (answer: unknown): ScriptedAnswer => ({ text: JSON.stringify(answer) })
/**
 * The layout with the real model that gives these answers, the layout without it, and the requests that the model got.
 */
async function withModel(answers: ScriptedAnswer[], about: object = context) {
  await chooseModel('offline')
  const plain = await lay(about)
  assert.equal(model.requests.length, 0, 'the offline model is not asked')
  await chooseModel('real')
  const first = answers[0] ?? { text: '' }
  script = (call) => answers[call - 1] ?? first
  const layout = await lay(about)
  return { layout, plain, requests: model.requests.splice(0) }
}
const real = { name: 'real', kind: 'openai-compatible', base_url: 'http://127.0.0.1:1/v1' }
for (const body of [real, { name: 'offline', kind: 'offline' }]) {
  assert.equal((await kit.call('POST /api/providers', { body })).status, 201)
}
const openSuggestion = newId()
const renaming = { op: 'update' as const, object_type: 'Other', object_id: graph.otherId, base_version: 1 }
await inTransaction(kit.pool, (tx) =>
  suggest(tx, {
    taskId: openSuggestion,
    projectId: project.id,
    agentId: graph.reactorId,
    runId: newId(),
    reasoning: 'Because.',
    depth: 0,
    change: { ...renaming, before: { name: 'a' }, after: { name: 'b', is_admin: true } },
  }),
)

test('a real model is asked under the name genui_layout, and a good answer is the page', async () => {
  const page = { components: [words, { type: 'table', id: 'facts', columns: [{ label: 'x' }], rows: [] }] }
  const { layout, plain, requests } = await withModel([says(page)])
  assert.equal(requests.length, 1)
  assert.equal(requests[0]?.answerSchema?.name, 'genui_layout')
  assert.deepEqual(layout.components, [words, find(plain, 'table', 'facts')])
})

test('a bad answer is asked for once more with its problem; after two bad answers the page has the plain facts', async () => {
  const { layout, requests } = await withModel([
    says({ components: [{ type: 'page' }] }),
    says({ components: [words] }),
  ])
  assert.deepEqual(layout.components, [words])
  assert.match(JSON.stringify(requests[1]?.prompt), /Your last answer did not fit: components\.0/)
  const twice = await withModel([{ text: 'Sorry.' }, { text: 'Sorry.' }])
  assert.deepEqual(twice.layout, twice.plain)
  assert.equal(twice.requests.length, 2)
})

test('a hostile answer cannot make the page do anything', async () => {
  const suggestion = { scenario: 'approval', task_id: openSuggestion }
  const decision = [
    { type: 'diff', id: 'change_1', changes: [{ field: 'typo', kind: 'changed', before: 'teh', after: 'the' }] },
    { type: 'input', id: 'reason', label: 'x' },
    { type: 'button', id: 'approve', label: 'Cancel', action: { type: 'approve', task_id: openSuggestion } },
    { type: 'button', id: 'reject', label: 'Keep', action: { type: 'reject', task_id: openSuggestion } },
  ]
  const disguised = await withModel([says({ components: decision })], suggestion)
  for (const { id } of decision) {
    const byId = (each: Component): boolean => each.id === id
    assert.deepEqual(disguised.layout.components.find(byId), componentsOf(disguised.plain).find(byId), id)
  }
  const button = (action: object) => ({ type: 'button', id: 'x', label: 'More', action })
  const hostile = [
    { type: 'markdown', id: 'x', value: '<script>steal()</script>' },
    { type: 'markdown', id: 'x', value: '[more](javascript:steal())' },
    { type: 'html', id: 'x', value: 'x' },
    button({ type: 'approve', task_id: theirGraph.suggestionId }),
    button({ type: 'open', target: 'run', id: theirRun }),
    button({ type: 'open', href: 'https://evil.example' }),
    button({ type: 'delete', task_id: openSuggestion }),
  ]
  for (const component of hostile) {
    const answer = says({ components: [...decision, component] })
    const { layout, plain, requests } = await withModel([answer, answer], suggestion)
    assert.deepEqual(layout, plain, JSON.stringify(component))
    assert.equal(requests.length, 2)
  }
})

test('a model that fails or does not exist never fails the page', async () => {
  const failed = await withModel([{ fail: { message: '401: no such key.', isRetryable: false } }])
  assert.deepEqual(failed.layout, failed.plain)
  await kit.call('DELETE /api/providers/real')
  assert.deepEqual(await lay(context), failed.plain)
  await kit.call('POST /api/providers', { body: real })
  model.requests.splice(0)
})

test('a halted project asks no model', async () => {
  const good = says({ components: [words] })
  isHalted = true
  const halted = await withModel([good])
  isHalted = false
  assert.deepEqual([halted.layout, halted.requests.length], [halted.plain, 0])
  assert.deepEqual((await withModel([good])).layout.components, [words])
})
