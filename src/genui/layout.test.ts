import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { anyFacts, aRun, aTask, runFacts } from '../../test/kit/genui-facts.ts'
import { howMany } from '../../test/kit/how-many.ts'
import { type Component, componentsOf, type Layout, layoutSchema, type OfType } from '../kernel/genui.ts'
import { idFrom, newId } from '../kernel/id.ts'
import { pauseReasons, runStatuses } from '../kernel/run.ts'
import type { SuggestedChange, Task } from '../kernel/task.ts'
import type { EvalFacts } from './eval-comparison.ts'
import { explainStop } from './explain-stop.ts'
import { layOut } from './layout.ts'

function find<Type extends Component['type']>(layout: Layout, type: Type, id: string): OfType<Type> {
  const found = componentsOf(layout).find((each) => each.id === id)
  assert.equal(found?.type, type, `${id}: ${componentsOf(layout).map((each) => each.id)}`)
  return found as OfType<Type> // its type is as asked
}
const has = (layout: Layout, id: string): boolean => componentsOf(layout).some((each) => each.id === id)
const actions = (layout: Layout) =>
  componentsOf(layout).flatMap((each) =>
    each.type === 'button' && each.action.type !== 'open' ? [[each.label, each.action]] : [],
  )
const rowsOf = (table: OfType<'table'>) => table.rows.map(({ cells }) => cells)

test('every layout fits the union, has unique ids, and is the same for the same facts', () => {
  fc.assert(
    fc.property(anyFacts, (facts) => {
      const layout = layOut(facts)
      const parsed = layoutSchema.safeParse(layout)
      assert.equal(parsed.success, true, JSON.stringify(parsed.error?.issues[0]))
      const ids = componentsOf(layout).map(({ id }) => id)
      assert.equal(new Set(ids).size, ids.length)
      assert.deepEqual(layOut(facts), layout)
    }),
    { numRuns: howMany(300, 5_000) },
  )
})

const change = (fields: Partial<SuggestedChange> = {}): SuggestedChange => ({
  op: 'update',
  object_type: 'Person',
  object_id: newId(),
  base_version: 3,
  before: { name: 'Ada', city: 'Paris', age: 36 },
  after: { name: 'Ada', city: 'London', tags: ['x'] },
  ...fields,
})
const approval = (task: Task, author: string | null = 'Clerk'): Layout =>
  layOut({ scenario: 'approval', facts: { task, author } })

test('the approval of a suggestion shows the change, the reason, and buttons with the task’s id', () => {
  const suggested = change()
  const task = aTask({ changes: [suggested], reasoning: 'She **moved**.' })
  const layout = approval(task)
  assert.equal(find(layout, 'text', 'title').value, 'Update Person Ada')
  assert.equal(find(layout, 'text', 'author').value, 'Suggested by Clerk.')
  assert.equal(find(layout, 'markdown', 'reasoning').value, 'She **moved**.')
  assert.deepEqual(find(layout, 'diff', 'change_1'), {
    type: 'diff',
    id: 'change_1',
    title: 'Update Person, as of version 3',
    changes: [
      { field: 'city', kind: 'changed', before: '"Paris"', after: '"London"' },
      { field: 'age', kind: 'removed', before: '36', after: null },
      { field: 'tags', kind: 'added', before: null, after: '[\n  "x"\n]' },
    ],
    unchanged: 1,
    is_whole: true,
  })
  assert.deepEqual(actions(layout), [
    ['Approve', { type: 'approve', task_id: task.id }],
    ['Reject', { type: 'reject', task_id: task.id, from: 'reason' }],
  ])
  const opened = ['open_task', 'open_run', 'open_object_1'].map((id) => find(layout, 'button', id).action)
  assert.deepEqual(opened, [
    { type: 'open', target: 'task', id: task.id },
    { type: 'open', target: 'run', id: task.run_id },
    { type: 'open', target: 'object', id: suggested.object_id },
  ])
})

test('the approval of a call shows its tool and its arguments as a table, and no object', () => {
  const args = { order: '<b>7</b>', amount: 5, to: { city: 'Paris' } }
  const task = aTask({ title: 'Call refund', changes: [{ op: 'call', tool: 'mcp:desk/refund', args }] })
  const layout = approval(task)
  assert.deepEqual(find(layout, 'table', 'call'), {
    type: 'table',
    id: 'call',
    title: 'Call mcp:desk/refund',
    columns: [{ label: 'Argument' }, { label: 'Value' }],
    rows: [
      { cells: ['order', '"<b>7</b>"'] },
      { cells: ['amount', '5'] },
      { cells: ['to', '{\n  "city": "Paris"\n}'] },
    ],
  })
  assert.deepEqual(
    actions(layout).map(([label]) => label),
    ['Approve', 'Reject'],
  )
  assert.ok(!has(layout, 'open_object_1'))
  assert.match(find(approval({ ...task, status: 'completed' }), 'text', 'state').value, /its run makes the call/)
  const long = approval(aTask({ changes: [{ op: 'call', tool: 'refund', args: { text: 'x'.repeat(2_001) } }] }))
  assert.deepEqual(
    actions(long).map(([label]) => label),
    ['Reject'],
  )
})

test('a stale suggestion can only be rejected; a resolved suggestion has no buttons', () => {
  const stale = approval(aTask({ changes: [change()], metadata: { stale: true, stale_reason: 'It moved.' } }))
  assert.deepEqual(
    actions(stale).map(([label]) => label),
    ['Reject'],
  )
  assert.equal(find(stale, 'text', 'state').value, 'It moved. It can only be rejected.')
  for (const [status, says] of [
    ['completed', /approved/],
    ['rejected', /rejected/],
    ['cancelled', /cancelled/],
  ] as const) {
    const layout = approval(aTask({ changes: [change()], status }))
    assert.deepEqual(actions(layout), [])
    assert.match(find(layout, 'text', 'state').value, says)
    assert.ok(has(layout, 'change_1'))
  }
})

const large: [name: string, changes: SuggestedChange[]][] = [
  ['a long value', [change({ after: { text: 'x'.repeat(20_001) } })]],
  ['many values', [change({ after: Object.fromEntries(Array.from({ length: 201 }, (_, at) => [`p${at}`, at])) })]],
  [
    'much in all',
    [change({ after: Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`p${at}`, 'x'.repeat(19_000)])) })],
  ],
  ['a long name', [change({ after: { ['n'.repeat(201)]: 1 } })]],
  [
    'many long names',
    Array.from({ length: 20 }, () =>
      change({
        after: Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`${at}`.padEnd(200, '\u0001'), at])),
      }),
    ),
  ],
  ['many changes', Array.from({ length: 21 }, () => change())],
]
for (const [name, changes] of large) {
  test(`a change that is not shown whole cannot be approved: ${name}`, () => {
    const layout = approval(aTask({ changes }))
    assert.deepEqual(
      actions(layout).map(([label]) => label),
      ['Reject'],
    )
    assert.match(find(layout, 'text', 'state').value, /too large to be shown whole/)
    assert.equal(layoutSchema.safeParse(layout).success, true)
  })
}

test('no part of a change can hide: marks are written out, texts quoted, properties like toString shown', () => {
  const before = { 'a\u202eb': '1' }
  const after = { 'a\u202eb': 1, constructor: 'x\u200by', note: '<b>\nsecond line' }
  const { changes } = find(approval(aTask({ changes: [change({ before, after })] })), 'diff', 'change_1')
  assert.deepEqual(changes, [
    { field: 'a⟨U+202E⟩b', kind: 'changed', before: '"1"', after: '1' },
    { field: 'constructor', kind: 'added', before: null, after: '"x⟨U+200B⟩y"' },
    { field: 'note', kind: 'added', before: null, after: '<b>\nsecond line' },
  ])
})

test('an escalation shows the question, an input, and the button that answers it', () => {
  const task = aTask({ kind: 'escalation', title: 'Which one?', description: 'Which one?\n\nA or B' })
  const layout = approval(task)
  assert.equal(find(layout, 'text', 'author').value, 'Asked by Clerk.')
  assert.equal(find(layout, 'markdown', 'question').value, 'Which one?\n\nA or B')
  assert.equal(find(layout, 'input', 'answer').required, true)
  assert.deepEqual(actions(layout), [['Answer', { type: 'answer', task_id: task.id, from: 'answer' }]])
})

test('people choose the outcome of a call; an answered question shows the answer', () => {
  const runId = newId()
  const task = aTask({
    id: idFrom(`${runId}:outcome:call_1`),
    kind: 'escalation',
    run_id: runId,
    metadata: { run_id: runId, call_id: 'call_1', kind: 'outcome_unknown' },
  })
  const options = find(approval(task), 'select', 'answer').options.map(({ value }) => value)
  assert.deepEqual(options, ['done', 'not_done'])
  const answered = approval({ ...task, status: 'completed', result: 'done' })
  assert.deepEqual(actions(answered), [])
  assert.equal(find(answered, 'markdown', 'given').value, 'done')
})

test('a text of an agent cannot become markup: neither HTML, nor an image, nor a script behind a link', () => {
  const hostile = '<img src=x onerror=alert(1)> ![p](https://evil.example/?q) [ok](javascript:alert(1))'
  const layout = approval(aTask({ title: hostile, changes: [change()], reasoning: hostile }), '<b>Clerk</b>')
  assert.equal(
    find(layout, 'markdown', 'reasoning').value,
    '< img src=x onerror=alert(1)> [p](https://evil.example/?q) [ok] (javascript:alert(1))',
  )
  assert.match(find(layout, 'text', 'title').value, /^< img/)
  assert.equal(find(layout, 'text', 'author').value, 'Suggested by < b>Clerk< /b>.')
})

test('a run is shown with its status, reason, steps, tokens, cost, duration, sub-runs and answer', () => {
  const sub = {
    id: newId(),
    name: 'Helper',
    status: 'paused' as const,
    pause_reason: 'step_limit' as const,
    step_count: 2,
    total_tokens: 50,
    cost_usd: null,
    duration: 61_000,
    said: 'Half\n done',
  }
  const run = aRun({ summary: '# Done\n\nSee [it](https://a.example).', max_steps: 10, parent_run_id: newId() })
  const layout = layOut({ scenario: 'run_summary', facts: runFacts({ run, subRuns: [sub], hasMoreSubRuns: true }) })
  assert.equal(find(layout, 'text', 'title').value, 'Run of Researcher')
  assert.deepEqual(
    [find(layout, 'text', 'why').value, find(layout, 'text', 'why').tone],
    ['The run finished its work.', 'good'],
  )
  assert.deepEqual(Object.fromEntries(rowsOf(find(layout, 'table', 'facts'))), {
    Status: 'completed',
    'Started by': 'manual',
    Steps: '3 of at most 10',
    Tokens: '1,234 (1,000 in, 234 out)',
    Cost: '$0.0123',
    Duration: '1.2 s',
    Created: run.created_at,
    Ended: run.completed_at,
  })
  assert.equal(find(layout, 'markdown', 'summary').value, run.summary)
  const table = find(layout, 'table', 'sub_runs')
  assert.deepEqual(table.rows, [
    {
      cells: ['Helper', 'paused (step_limit)', 2, 50, '–', '1 min 1 s', 'Half done'],
      open: { target: 'run', id: sub.id },
    },
  ])
  assert.match(table.note ?? '', /there are more/)
  assert.deepEqual(find(layout, 'button', 'open_parent').action, { type: 'open', target: 'run', id: run.parent_run_id })
})

test('a run that waits for a person has the question and the button that resolves it, and no answer', () => {
  const run = aRun({
    status: 'paused',
    pause_reason: 'human',
    summary: 'Which one?',
    completed_at: null,
    duration: null,
  })
  const questions = [aTask({ kind: 'escalation', description: 'Which one?' }), aTask({ kind: 'escalation' })]
  const layout = layOut({ scenario: 'run_summary', facts: runFacts({ run, questions }) })
  assert.equal(find(layout, 'text', 'why').value, 'The run waits for the answer of a person.')
  assert.deepEqual(
    actions(layout).map(([, action]) => action),
    questions.map(({ id }, at) => ({ type: 'answer', task_id: id, from: `question_${at + 1}_answer` })),
  )
  assert.equal(has(layout, 'summary'), false)
  assert.ok(rowsOf(find(layout, 'table', 'facts')).some((row) => row.join() === 'Duration,not over yet'))
})

test('the run of a supervisor shows its variant, its plan and the summaries of its specialists', () => {
  const supervisor = {
    variant: 'green',
    plan: [{ id: 't1', description: 'Look it up', status: 'DONE' as const, owner_agent: 'research_agent' }],
    history: [
      {
        agent_name: 'research_agent',
        step_id: newId(),
        result: 'COMPLETED' as const,
        short_summary: 'It is Paris.',
        key_decisions: [],
        next_instructions_for_supervisor: '',
      },
    ],
  }
  const facts = runFacts({ run: aRun({ agent_id: null }), agent: null, supervisor })
  const layout = layOut({ scenario: 'run_summary', facts })
  assert.equal(find(layout, 'text', 'title').value, 'Run of the supervisor, variant green')
  assert.deepEqual(rowsOf(find(layout, 'table', 'plan')), [['Look it up', 'research_agent', 'DONE']])
  assert.deepEqual(rowsOf(find(layout, 'table', 'history')), [['research_agent', 'COMPLETED', 'It is Paris.']])
})

test('every status, pause and known failure has its own words for why a run stopped', () => {
  const words = new Set<string>()
  const stopped = aRun({ completed_at: null })
  for (const status of runStatuses) if (status !== 'paused') words.add(explainStop({ ...stopped, status }).words)
  for (const pause_reason of pauseReasons) words.add(explainStop({ ...stopped, status: 'paused', pause_reason }).words)
  const codes = ['DOOM_LOOP', 'CRASH_LOOP', 'MODEL_ERROR', 'BUDGET_EXHAUSTED', 'TOOL_ERROR', 'PROMPT_MISSING']
  for (const error_code of codes) words.add(explainStop({ ...stopped, status: 'failed', error_code }).words)
  assert.equal(words.size, runStatuses.length - 1 + pauseReasons.length + codes.length)
  for (const each of words) assert.doesNotMatch(each, /[_A-Z]{4,}|undefined/, each)
  const failed = aRun({ status: 'failed', error_code: 'MODEL_ERROR', error_message: '401: no such key.' })
  assert.equal(
    explainStop(failed).words,
    'The model could not be used. Resume it to continue. It says: 401: no such key.',
  )
  const unknown = { ...failed, error_code: 'toString', error_message: null }
  assert.equal(explainStop(unknown).words, 'The run failed after 3 steps. Resume it to continue.')
  const limited = aRun({ status: 'paused', pause_reason: 'step_limit', max_steps: 1 })
  assert.equal(explainStop(limited).words, 'The run reached its limit of 1 step. Resume it to continue.')
})

const failedRun = newId()
/** An eval as `GET /evals/:evalId` returns it. */
const anEval: EvalFacts = {
  id: newId(),
  name: 'Capitals',
  status: 'completed',
  error_message: null,
  compared: ['blue', 'green'],
  progress: { done: 8, total: 8 },
  variants: {
    green: {
      pass_rate: 0.625,
      latency: 900,
      tokens: 330,
      cases: [
        {
          task: 'France?',
          passed: true,
          reason: null,
          run_id: newId(),
        },
        {
          task: 'Italy?',
          passed: true,
          reason: null,
          run_id: null,
        },
      ],
    },
    blue: {
      pass_rate: 0.5,
      latency: 1_200,
      tokens: 300,
      cases: [
        {
          task: 'France?',
          passed: false,
          reason: 'No Paris.',
          run_id: failedRun,
        },
        {
          task: 'Italy?',
          passed: true,
          reason: null,
          run_id: null,
        },
      ],
    },
  },
  deltas: { pass_rate: 0.125, latency: -300, tokens: 30 },
  intervals: { pass_rate: [-0.05, 0.3], latency: [-400, -200], tokens: [10, 50] },
}
const none = { pass_rate: null, latency: null, tokens: null }
const NO_FIGURES = { deltas: none, intervals: none }
const comparison = (facts: EvalFacts): Layout => layOut({ scenario: 'eval_comparison', facts })

test('an eval comparison has a row for each variant, the deltas with intervals, charts and the changed cases', () => {
  const layout = comparison(anEval)
  assert.equal(find(layout, 'text', 'title').value, 'Capitals')
  assert.equal(
    find(layout, 'text', 'verdict').value,
    'green passes more often than blue, by 12.5 points: this may be chance.',
  )
  assert.deepEqual(rowsOf(find(layout, 'table', 'variants')), [
    ['blue', '50 %', '1.2 s', '300'],
    ['green', '62.5 %', '900 ms', '330'],
  ])
  assert.equal(find(layout, 'table', 'deltas').title, 'green minus blue')
  assert.deepEqual(rowsOf(find(layout, 'table', 'deltas')), [
    ['Pass rate', '+12.5 points', '−5 points to +30 points', 'better; this may be chance'],
    ['Mean latency', '−300 ms', '−400 ms to −200 ms', 'better; this is unlikely to be chance'],
    ['Mean tokens', '+30', '+10 to +50', 'worse; this is unlikely to be chance'],
  ])
  const chart = find(layout, 'chart', 'chart_pass_rate')
  assert.deepEqual(
    [chart.categories, chart.series, chart.unit],
    [['blue', 'green'], [{ label: 'Pass rate', values: [50, 62.5] }], '%'],
  )
  assert.deepEqual(find(layout, 'chart', 'chart_latency').series[0]?.values, [1_200, 900])
  assert.deepEqual(find(layout, 'table', 'changed').rows, [
    { cells: ['France?', 'failed', 'passed', 'No Paris.'], open: { target: 'run', id: failedRun } },
  ])
  assert.deepEqual(find(layout, 'button', 'open_eval').action, { type: 'open', target: 'eval', id: anEval.id })
})

test('a running eval, and an eval of one variant, show the figures that are known', () => {
  const { blue } = anEval.variants
  const early = { ...anEval, status: 'running', progress: { done: 1, total: 4 }, ...NO_FIGURES } as const
  const layout = comparison({ ...early, compared: ['blue'], variants: { blue: blue ?? assert.fail() } })
  assert.match(find(layout, 'text', 'state').value, /running\. 1 of 4 runs are done/)
  for (const id of ['verdict', 'deltas', 'changed']) assert.equal(has(layout, id), false, id)
  const undecided = comparison(early)
  assert.equal(has(undecided, 'verdict'), false)
  assert.deepEqual(rowsOf(find(undecided, 'table', 'deltas'))[0], ['Pass rate', '–', '–', '–'])
  const failed = comparison({ ...anEval, status: 'failed', error_message: 'No configuration.' })
  assert.match(find(failed, 'text', 'state').value, /failed.*It says: No configuration\./)
  const sure = comparison({ ...anEval, intervals: { ...anEval.intervals, pass_rate: [0.01, 0.3] } })
  assert.match(find(sure, 'text', 'verdict').value, /unlikely to be chance/)
})

test('a generic layout has a title and a field, which a caller may name, and shows the caller’s other facts', () => {
  const bare = layOut({ scenario: 'generic', facts: { facts: {}, known: [] } })
  assert.deepEqual(
    bare.components.map(({ type }) => type),
    ['text', 'input'],
  )
  const taskId = newId()
  const layout = layOut({
    scenario: 'generic',
    facts: {
      title: 'A refund',
      fields: [{ label: 'Amount' }, { label: 'Currency', options: ['EUR', 'USD', 'EUR'] }],
      facts: { customer: 'ACME <b>', orders: [1, 2], paid: true },
      known: [{ target: 'task', id: taskId }],
    },
  })
  assert.equal(find(layout, 'text', 'title').value, 'A refund')
  assert.deepEqual(rowsOf(find(layout, 'table', 'facts')), [
    ['customer', 'ACME <b>'],
    ['orders', '[ 1, 2 ]'],
    ['paid', true],
  ])
  assert.equal(find(layout, 'input', 'field_1').label, 'Amount')
  assert.deepEqual(
    find(layout, 'select', 'field_2').options.map(({ value }) => value),
    ['EUR', 'USD'],
  )
  assert.deepEqual(find(layout, 'button', 'open_task').action, { type: 'open', target: 'task', id: taskId })
})

test('every type of component is used by some scenario', () => {
  const layouts = [
    approval(aTask({ changes: [change()], reasoning: 'x' })),
    comparison(anEval),
    layOut({ scenario: 'generic', facts: { facts: { a: 1 }, known: [], fields: [{ label: 'x', options: ['a'] }] } }),
  ]
  const used = new Set(layouts.flatMap(componentsOf).map(({ type }) => type))
  const types = ['text', 'input', 'select', 'button', 'table', 'diff', 'chart', 'markdown', 'group']
  assert.deepEqual([...used].toSorted(), types.toSorted())
})
