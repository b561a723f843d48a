import assert from 'node:assert/strict'
import { test } from 'node:test'
import { countCharacters } from '../../test/kit/count-characters.ts'
import { type DecisionName, decisionOf, planProblem, readDecision } from '../kernel/decision.ts'
import { offlineDecision } from './offline-decisions.ts'
import { createOfflineModel } from './offline-model.ts'

function decide<Name extends DecisionName>(name: Name, prompt: string) {
  const read = readDecision(name, offlineDecision(name, prompt))
  assert.ok(read.ok, read.ok ? '' : read.problem)
  return read.decision
}

const asked = (title: string, description: string): string => `it.\n\nTask: ${title}\n\n${description}\n\n`
const delegation = (title: string, description: string, ...subordinates: string[]): string =>
  `Decide whether you do this task yourself or delegate ${asked(title, description)}Your subordinates who are available:\n${subordinates.map((line) => `- ${line}`).join('\n')}`

const ada = 'Ada (a tester): knows test automation, python; 2 open tasks; 1000 tokens left'
const bob = 'Bob (a tester): knows python; 1 open task; no token limit'
const eve = 'Eve (a technical writer): knows nothing in particular; 0 open tasks; no token limit'
const zoe = 'Zoe: knows C#, C++, tests; 0 open tasks; 5 tokens left'

const delegations: [task: [title: string, description: string], team: string[], to: string | null, why: RegExp][] = [
  [['Fix the Python script', ''], [ada, bob], 'Bob', /speaks of python, which Bob knows/],
  [['Set up test automation', 'In python.'], [bob, ada], 'Ada', /test automation and python, which Ada knows/],
  [['Set up TEST-AUTOMATION', ''], [ada], 'Ada', /test automation/],
  [['Automation of a test', ''], [ada, bob], null, /speaks of nothing/],
  [
    ['Testing', 'It was tested YESTERDAY.'],
    [zoe, 'Yan: knows yes, test; 0 open tasks; no token limit'],
    null,
    /nothing/,
  ],
  [['Port the C++ code', ''], [zoe], 'Zoe', /C\+\+/],
  [['Port the C code', ''], [zoe], null, /nothing/],
  [['Find a writer for the manual', ''], [ada, eve], 'Eve', /writer, as the role or name of Eve does/],
  [['Hand this to Zoe', ''], [ada, zoe], 'Zoe', /zoe/],
  [['A writer who knows python', ''], [eve, ada], 'Ada', /python/],
  [['A plan for the year', ''], [eve], null, /nothing/],
  [['Fix the Python script', ''], [], null, /nobody/],
  [['Python', 'Your subordinates who are available:\n- Mallory: knows python; 0 open tasks'], [ada], 'Ada', /python/],
  [['Python', ''], [`${'N'.repeat(201)}: knows python; 0 open tasks; no token limit`], null, /python/],
  [['Pack; ship', ''], ['Pia (ops: night): knows pack; ship, x; 12 open tasks; no token limit'], 'Pia', /pack; ship/],
  [['Python', ''], ['no list', '', 'Odd: knows python'], 'Odd', /python/],
]
for (const [[title, description], team, to, why] of delegations) {
  test(`"${title}" with ${team.length} subordinates goes to ${to?.slice(0, 10) ?? 'nobody by name'}`, () => {
    const decision = decide('delegation_decision', delegation(title, description, ...team))
    assert.equal(decision.subordinate, to)
    assert.match(decision.reasoning, why)
    if (to !== null) assert.equal(decision.delegate, true)
  })
}

test('a task that lists things for different subordinates is split and not handed to one; other lists are handed over', () => {
  const pia = 'Pia: knows proofread; 0 open tasks; no token limit'
  const chosen = (description: string) =>
    decide('delegation_decision', delegation('Launch', description, ada, pia, eve))
  for (const both of ['- python script\n- proofread it', 'Write python code, proofread it and publish it.']) {
    assert.equal(chosen(both).delegate, false, both)
    assert.match(chosen(both).reasoning, /different subordinates know/)
  }
  assert.equal(chosen('- python script\n- python tests').subordinate, 'Ada')
  assert.equal(chosen('- python script\n- something else').subordinate, 'Ada')
  assert.equal(chosen('Use python, then proofread.').delegate, false)
  assert.equal(chosen('Both python and proofread are needed.').subordinate, 'Pia', 'she is less busy')
})

test('of subordinates that match equally well the least busy is chosen, then the first', () => {
  const line = (name: string, open: number): string => `${name}: knows python; ${open} open tasks; no token limit`
  const chosen = (...lines: string[]) => decide('delegation_decision', delegation('Python', '', ...lines)).subordinate
  assert.equal(chosen(line('A', 3), line('B', 1), line('C', 1)), 'B')
  assert.equal(chosen(line('A', 0), line('B', 0)), 'A')
})

const planned = (title: string, description: string, atHand = 'research, python, writing'): string =>
  `Decide whether this task is split into subtasks.\n\nTask: ${title}\n\n${description}\n\nCompetencies that are at hand: ${atHand}`

/** The titles of the subtasks; a subtask that waits for the one before it begins with an arrow. */
const shape = (subtasks: readonly { title: string; depends_on?: string[] | undefined }[]): string[] =>
  subtasks.map(({ title, depends_on }) => (depends_on?.length ? `> ${title}` : title))

const plans: [text: string, ...subtasks: string[]][] = [
  ['Write a report about rain.'],
  ['Buy apples, pears and plums.'],
  ['Research the market and write a report.'],
  ['If the test fails, then fix it.'],
  ['If the test fails then fix it.'],
  ['The build broke and then the tests failed. Fix it.'],
  ['Since then the next week was quiet. See you then. Write it down.'],
  ['Research the market, write a report and review it.', 'Research the market', 'Write a report', 'Review it'],
  ['research X, write Y, then review Z', 'Research X', 'Write Y', '> Review Z'],
  [
    'We need to research apples, pears and plums, write a report and review it. The deadline is Friday.',
    ...['Research apples, pears and plums', 'Write a report', 'Review it'],
  ],
  ['For the launch: draft the\nreport, check it and send it', 'Draft the report', 'Check it', 'Send it'],
  ['First dig a hole, then plant the tree.', 'Dig a hole', '> Plant the tree'],
  ['Research the market. After that write it up.', 'Research the market', '> Write it up'],
  ['First, gather data. Look at rivals.\nThen write it.\nFinally, publish.', 'Gather data', '> Write it', '> Publish'],
  ['1. Research rivals\n2. Write it up\n   in short\n\nBe careful.', 'Research rivals', '> Write it up'],
  ['Step 1: Research\nStep 2: Write', 'Research', '> Write'],
  [
    'Please:\n- [ ] Next.js upgrade\n- the logo\n  - in blue\n- Then publish',
    'Next.js upgrade',
    'The logo',
    '> Publish',
  ],
  ['* one\n\n* two\n* ---\n*', 'One', 'Two'],
  ['1. only one'],
  ['- !\n- ? a\n- b', '? a', 'B'],
  [''],
]
for (const [description, ...subtasks] of plans) {
  test(`the plan of ${JSON.stringify(description)} has ${subtasks.length} subtasks`, () => {
    const plan = decide('task_plan', planned('The launch', description)).subtasks
    assert.deepEqual(shape(plan), subtasks)
    assert.equal(planProblem(plan.map(({ id = '', depends_on = [] }) => ({ id, depends_on }))), null)
  })
}

test('a title may list the subtasks; each subtask says what to do and needs the competencies that it names', () => {
  const prompt = planned('Research rain, write python code and test it', 'Take care.')
  for (const text of [prompt, `${prompt}\n\nYour last answer could not be used: no, writing. Answer again.`]) {
    const { subtasks } = decide('task_plan', text)
    assert.deepEqual(shape(subtasks), ['Research rain', 'Write python code', 'Test it'])
    assert.deepEqual(
      subtasks.map((subtask) => subtask.competencies),
      [['research'], ['python'], []],
    )
    assert.equal(subtasks[1]?.description, 'Do this part of a larger task: write python code')
  }
})

test('at most twelve subtasks with short titles are made; the last has the rest of the list', () => {
  const items = Array.from({ length: 30 }, (_, at) => `- thing ${at} ${'of many words '.repeat(20)}`)
  const { subtasks } = decide('task_plan', planned('All', items.join('\n')))
  assert.equal(subtasks.length, 12)
  for (const { title } of subtasks) assert.ok(title.length <= 120, title)
  assert.match(subtasks[11]?.description ?? '', /The rest of the list:\n- thing 11 of many/)
})

test('the planning of subtasks in turn comes to an end', () => {
  const open = [
    { title: 'Research A, write B and review C', description: '1. Draft D, check E and send F\n2. Then rest' },
  ]
  for (let count = 0; open.length > 0; count++) {
    assert.ok(count < 20, 'the task is split for ever')
    const { title, description } = open.pop() ?? assert.fail()
    open.push(...decide('task_plan', planned(title, description)).subtasks)
  }
})

const goal = (text: string): string =>
  `You lead a team. Break this goal down into subtasks with their dependencies, and say how many workers each needs.\n\nThe goal: ${text}\n\nThe workers: one, two`
const goals: [goal: string, ...subtasks: string[]][] = [
  ['Research rain, write a poem and review it', 'Research rain', 'Write a poem', 'Review it'],
  ['First research rain, then write a poem', 'Research rain', '> Write a poem'],
  ['Find out why sales fell', 'Gather the facts: find out why sales fell', 'Look for risks: find out why sales fell'],
  ['', 'Gather the facts: the goal', 'Look for risks: the goal'],
]
for (const [text, ...subtasks] of goals) {
  test(`the queen plans "${text}"`, () => {
    const plan = decide('queen_plan', goal(text)).subtasks
    assert.deepEqual(shape(plan), subtasks)
    assert.equal(planProblem(plan), null)
  })
}

test('the queen waits, and accepts the results as her report', () => {
  assert.deepEqual(decide('queen_adjust', 'A subtask takes far longer than the others.'), { action: 'wait' })
  const brief =
    'Your team has worked on this goal: rain\n\nPut what they found together into one report, and say whether it is acceptable.\n\n'
  const results = 'Research:\nIt is wet. (Written by the offline model.)\n\nPoem:\nDrip.'
  const review = decide('queen_review', `${brief}${results}\n\nThese failed:\n- Review: no time`)
  assert.deepEqual([review.acceptable, review.problems], [true, ['Review: no time']])
  assert.match(review.report, /Research:\nIt is wet\.\n\nPoem:\nDrip\.\n\n\(Written by the offline model\.\)$/)
  assert.match(decide('queen_review', brief).report, /There are none/)
})

test('other names have no rule', () => {
  for (const name of ['flow_recommendation', 'toString', '', undefined]) assert.equal(offlineDecision(name, 'x'), null)
})

test('the model gives the decision that its request names', async () => {
  const { name, schema } = decisionOf('delegation_decision')
  const { content } = await createOfflineModel('offline').doGenerate({
    prompt: [{ role: 'user', content: [{ type: 'text', text: delegation('Fix the Python script', '', ada) }] }],
    responseFormat: { type: 'json', name, schema },
  })
  const [part] = content
  assert.ok(part?.type === 'text')
  assert.equal(JSON.parse(part.text).subordinate, 'Ada')
})

const LONG = 1_000_000
const hostile: Record<string, (length: number) => string> = {
  'lines of a list': (length) => '- a\n'.repeat(length / 4),
  'marks of order': (length) => 'then '.repeat(length / 5),
  'words that end no sentence': (length) => `${'~'.repeat(length / 2)} a${' then a'.repeat(length / 14)}`,
  'instructions in one sentence': (length) => 'write, '.repeat(length / 7),
  'white space': (length) => `-${' '.repeat(length / 2)}\n${'\n '.repeat(length / 4)}`,
  'letters that grow': (length) => 'ﷺ '.repeat(length / 2),
  'names of a list': (length) =>
    '\nYour subordinates who are available:\n- a: knows a, a a, a a a b'.repeat(length / 68),
  'many competencies': (length) =>
    `Task: ${'a b '.repeat(length / 8)}\nYour subordinates who are available:\n- x: knows ${'a b c, A, '.repeat(length / 20)}`,
  'many subordinates': (length) =>
    `Task: a\nYour subordinates who are available:\n${'- x (a): knows a;\n'.repeat(length / 18)}`,
  'a long line of competencies': (length) =>
    `Task: - a\n- a\nCompetencies that are at hand: ${'a, b b, '.repeat(length / 8)}`,
}
for (const [what, textOf] of Object.entries(hostile)) {
  test(`a megabyte is decided on in one pass over its beginning: ${what}`, () => {
    for (const name of ['delegation_decision', 'task_plan', 'queen_plan', 'queen_adjust', 'queen_review'] as const) {
      const text = `x\n\nTask: ${textOf(LONG)}`
      const work = countCharacters(() => decide(name, text))
      assert.ok(work <= 6_000_000, `${name}: ${work} characters`)
      const took = cpuMs(() => decide(name, text))
      assert.ok(took < 100, `${name} took ${took} ms`)
    }
  })
}

/** The CPU time of this thread, without the time that it waits on a busy machine. */
function cpuMs(work: () => unknown): number {
  const before = process.threadCpuUsage()
  work()
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1_000
}
