import assert from 'node:assert/strict'
import { test } from 'node:test'
import { planProblem, type Subtask } from '../../../kernel/decision.ts'
import { type BuiltInNode, builtInPatterns } from '../built-in-patterns.ts'
import type { FlowLeaf } from '../flow-leaf.ts'
import { createMachine, type LeafOutcome } from '../machine.ts'

const root: BuiltInNode = {
  type: 'hierarchical',
  queen: 'queen',
  workers: ['ann', 'bob', 'cyd'],
  goal: 'Analyze {{input}} for security issues',
}
const subtask = (id: string, depends_on: string[] = [], workers = 1): Subtask => ({
  id,
  title: `Title of ${id}`,
  description: `Do ${id}.`,
  depends_on,
  workers,
})
const plan = (...subtasks: Subtask[]): string => JSON.stringify({ subtasks })
const accept = JSON.stringify({ acceptable: true, problems: [], report: 'All is well.' })
const refuse = JSON.stringify({ acceptable: false, problems: ['Too short.'], report: 'Hm.' })

interface Team {
  /** The answers of the queen, in the order in which she is asked. */
  queen: string[]
  work?: (task: FlowLeaf) => LeafOutcome
}

function play({ queen, work = done }: Team) {
  const machine = createMachine(root, 'the code', builtInPatterns)
  const asked: FlowLeaf[] = []
  const made: FlowLeaf[] = []
  const open = machine.begin()
  for (let task = open.shift(); task; task = open.shift()) {
    const isQueen = 'agent' in task.node && task.node.agent === 'queen'
    ;(isQueen ? asked : made).push(task)
    const outcome: LeafOutcome = isQueen ? { status: 'completed', value: queen[asked.length - 1] ?? '' } : work(task)
    open.push(...machine.settle(task.id, outcome))
  }
  return { outcome: machine.outcome() ?? assert.fail('the flow did not end'), asked, made }
}
const done = (task: FlowLeaf): LeafOutcome => ({ status: 'completed', value: `result of ${task.id.split('/')[1]}` })
const agentOf = ({ node }: FlowLeaf): string => ('agent' in node ? node.agent : '')

test('Queen planning phase: the queen is asked for a plan, with the goal and the workers', () => {
  const { asked } = play({ queen: [plan(subtask('a')), accept] })
  assert.equal(asked[0]?.answer?.name, 'queen_plan')
  assert.match(String(asked[0]?.argumentOf(0)), /Analyze the code for security issues/)
  assert.match(String(asked[0]?.argumentOf(0)), /ann, bob, cyd/)
})

test('Queen delegation: subtasks go to the workers with the least to do, each once its dependencies are done', () => {
  const subtasks = [subtask('report', ['scan', 'audit']), subtask('scan'), subtask('audit')]
  const { made, outcome } = play({ queen: [plan(...subtasks), accept] })
  assert.deepEqual(
    made.map((task) => [task.id, agentOf(task)]),
    [
      ['root/do 1 scan 0', 'ann'],
      ['root/do 1 audit 0', 'bob'],
      ['root/do 1 report 0', 'cyd'],
    ],
  )
  assert.deepEqual(made[2]?.after, ['root/do 1 scan 0', 'root/do 1 audit 0'])
  assert.match(String(made[2]?.argumentOf(0)), /Title of scan:\nresult of do 1 scan 0/)
  assert.deepEqual(outcome, { status: 'completed', value: 'All is well.', error: null })
})

test('a worker that fails is replaced once; then the queen is told of the failure and the flow is partial', () => {
  const failing = (task: FlowLeaf): LeafOutcome =>
    agentOf(task) === 'ann' ? { status: 'failed', error: 'ill' } : done(task)
  const once = play({ queen: [plan(subtask('a')), accept], work: failing })
  assert.deepEqual(once.made.map(agentOf), ['ann', 'bob'])
  assert.equal(once.outcome.status, 'completed')
  const never = play({
    queen: [plan(subtask('a'), subtask('b', ['a'])), accept],
    work: () => ({ status: 'failed', error: 'all ill' }),
  })
  assert.equal(never.made.length, 2)
  assert.equal(never.outcome.status, 'partial')
  assert.match(
    String(never.asked[1]?.argumentOf(0)),
    /Title of a: all ill\n- Title of b: A subtask that this one depends on failed/,
  )
})

test('a subtask for several workers is several runs with the same brief and their number, and gives a list', () => {
  const { made, asked } = play({ queen: [plan(subtask('a', [], 3)), accept] })
  assert.deepEqual(made.map(agentOf), ['ann', 'bob', 'cyd'])
  assert.match(String(made[1]?.argumentOf(0)), /You are worker 2 of 3/)
  assert.match(String(asked[1]?.argumentOf(0)), /\["result of do 1 a 0","result of do 1 a 1","result of do 1 a 2"\]/)
})

test('Queen synthesis: a result she rejects is worked on once more with her problems, then the flow is partial', () => {
  const { outcome, asked, made } = play({ queen: [plan(subtask('a')), refuse, plan(subtask('a')), refuse] })
  assert.equal(asked[1]?.answer?.name, 'queen_review')
  assert.match(String(asked[2]?.argumentOf(0)), /not acceptable:\n- Too short\./)
  assert.deepEqual(
    made.map((task) => task.id),
    ['root/do 1 a 0', 'root/do 2 a 0'],
  )
  assert.deepEqual(outcome, { status: 'partial', value: 'Hm.', error: null, problems: ['Too short.'] })
})

test('a second round is told the calls of failed work, and its plan is given that work instead', () => {
  const work = (task: FlowLeaf): LeafOutcome => {
    if (!/ 1 [ab] /.test(task.id)) return done(task)
    return { status: 'failed', error: 'ill', made: `- refund for ${task.id.split('/')[1]}` }
  }
  const unfit = 'No plan.'
  const second = plan(subtask('x'), subtask('y', ['x']))
  const { asked, made, outcome } = play({
    queen: [plan(subtask('a', [], 2), subtask('b'), subtask('c'), subtask('d', ['b'])), refuse, unfit, second, accept],
    work,
  })
  const ofRuns = ['root/do 1 a 0', 'root/do 1 a 1', 'root/do 1 b 0']
  assert.deepEqual(
    asked.map(({ id, replaces }) => [id, replaces]),
    [
      ['root/plan 1', []],
      ['root/review 1', []],
      ['root/plan 2', ofRuns],
      ['root/plan 2 again', []],
      ['root/review 2', []],
    ],
  )
  const briefs = [...asked.slice(2, 4), ...made.slice(-2)].map((task) => String(task.argumentOf(0)))
  for (const brief of briefs) {
    for (const id of ofRuns) assert.match(brief, new RegExp(`- refund for ${id.split('/')[1]}`))
  }
  assert.match(briefs[0] ?? '', /Title of c:\nresult of do 1 c 0.*These failed:.*Too short\./s)
  assert.equal(outcome.status, 'completed')
})

for (const [what, answer] of Object.entries({
  'no JSON': 'I would rather not.',
  'an unknown dependency': plan(subtask('a', ['nobody'])),
  'a cycle': plan(subtask('a', ['b']), subtask('b', ['a'])),
  'a name twice': plan(subtask('a'), subtask('a')),
  'no subtasks': plan(),
})) {
  test(`a plan with ${what} is asked for once more with its problem; then the flow fails without a worker`, () => {
    const failed = play({ queen: [answer, answer] })
    assert.equal(failed.outcome.status, 'failed')
    assert.deepEqual([failed.asked.length, failed.made.length], [2, 0])
    assert.match(String(failed.asked[1]?.argumentOf(0)), /did not fit/)
    assert.equal(play({ queen: [answer, plan(subtask('a')), accept] }).outcome.status, 'completed')
  })
}

test('a plan is found among the words around it', () => {
  const { outcome } = play({ queen: [`Here it is:\n${plan(subtask('a'))}\nGood luck.`, accept] })
  assert.equal(outcome.status, 'completed')
})

test('a plan that can be carried out has no problem', () => {
  assert.equal(planProblem([subtask('a'), subtask('b', ['a']), subtask('c', ['a', 'b'])]), null)
  assert.match(planProblem([subtask('a', ['a'])]) ?? '', /wait for each other: a/)
})

/** A plan under way: the started leaves by key, and the watched leaves. */
function begin(...subtasks: Subtask[]) {
  const machine = createMachine(root, 'the code', builtInPatterns)
  const open = new Map<string, FlowLeaf>()
  const add = (tasks: readonly FlowLeaf[]): void => {
    for (const task of tasks) open.set(task.id.slice('root/'.length), task)
    for (const task of machine.dropped()) open.delete(task.id.slice('root/'.length))
  }
  const settle = (key: string, value: string, tookMs = 100): void => {
    open.delete(key)
    add(machine.settle(`root/${key}`, { status: 'completed', value, tookMs }))
  }
  add(machine.begin())
  settle('plan 1', plan(...subtasks))
  return {
    machine,
    open,
    settle,
    slow: (key: string) => add(machine.slow(`root/${key}`)),
    watched: () => Object.fromEntries([...machine.watched()].map(([id, ms]) => [id.slice('root/'.length), ms])),
  }
}
const adjust = (decision: Record<string, unknown>): string => JSON.stringify(decision)
const three = [subtask('a'), subtask('b'), subtask('c')]

test('a worker that was fast gets the next subtask, even if others have as little to do', () => {
  const { open, settle } = begin(...three, subtask('d', ['a', 'b', 'c']), subtask('e', ['a', 'b', 'c']))
  settle('do 1 a 0', 'done', 900)
  settle('do 1 b 0', 'done', 100)
  settle('do 1 c 0', 'done', 150)
  const agents = ['d', 'e'].map((id) => agentOf(open.get(`do 1 ${id} 0`) ?? assert.fail(`${id} was not started`)))
  assert.deepEqual(agents, ['bob', 'cyd'])
})

test('a subtask may take ten times the median of two finished peers; before that ten times the planned time', () => {
  const { settle, watched } = begin({ ...subtask('a'), expected: 50 }, subtask('b'), subtask('c'))
  assert.deepEqual(watched(), { 'do 1 a 0': 500 })
  settle('do 1 b 0', 'done', 100)
  assert.deepEqual(watched(), { 'do 1 a 0': 500 })
  settle('do 1 c 0', 'done', 300)
  assert.deepEqual(watched(), { 'do 1 a 0': 2_000 })
  settle('do 1 a 0', 'done')
  assert.deepEqual(watched(), {})
})

test('Queen oversight and adjustment: the queen is asked about a slow subtask once, and may split it', () => {
  const { machine, open, settle, slow } = begin(...three, subtask('d', ['c']))
  settle('do 1 a 0', 'A')
  settle('do 1 b 0', 'B')
  slow('do 1 c 0')
  const asked = open.get('adjust 1 c') ?? assert.fail('she was not asked')
  assert.deepEqual([agentOf(asked), asked.answer?.name], ['queen', 'queen_adjust'])
  assert.match(String(asked.argumentOf(0)), /Title of c/)
  settle('adjust 1 c', adjust({ action: 'split', subtasks: [subtask('x'), subtask('y', ['x'])] }))
  assert.deepEqual([...open.keys()], ['part 1 c 0'], 'the slow run was given up')
  assert.deepEqual(machine.settle('root/do 1 c 0', { status: 'completed', value: 'too late' }), [])
  settle('part 1 c 0', 'X')
  assert.match(String(open.get('part 1 c 1')?.argumentOf(0)), /x:\nX/)
  settle('part 1 c 1', 'Y')
  assert.match(String(open.get('do 1 d 0')?.argumentOf(0)), /Title of c:\n\["X","Y"\]/)
  settle('do 1 d 0', 'D')
  settle('review 1', accept)
  assert.equal(machine.outcome()?.status, 'completed')
})

test('the queen may give a slow subtask more workers, who get the same brief; the results are a list', () => {
  const { machine, open, settle, slow } = begin(...three)
  settle('do 1 a 0', 'A')
  settle('do 1 b 0', 'B')
  slow('do 1 c 0')
  settle('adjust 1 c', adjust({ action: 'more_workers', workers: 2 }))
  assert.deepEqual([...open.keys()], ['do 1 c 0', 'do 1 c 1', 'do 1 c 2'])
  assert.match(String(open.get('do 1 c 2')?.argumentOf(0)), /You are worker 3 of 3/)
  for (const place of [0, 1, 2]) settle(`do 1 c ${place}`, `C${place}`)
  assert.match(String(open.get('review 1')?.argumentOf(0)), /\["C0","C1","C2"\]/)
  settle('review 1', accept)
  assert.equal(machine.outcome()?.status, 'completed')
})

for (const [what, answer] of Object.entries({
  'wait is an answer': adjust({ action: 'wait' }),
  'an answer that does not fit changes nothing': 'Hm, I do not know.',
  'a split that cannot be carried out changes nothing': adjust({ action: 'split', subtasks: [subtask('x', ['x'])] }),
})) {
  test(`${what}: the subtask goes on, and the queen is not asked again`, () => {
    const { machine, open, settle, slow } = begin(...three)
    settle('do 1 a 0', 'A')
    settle('do 1 b 0', 'B')
    slow('do 1 c 0')
    settle('adjust 1 c', answer)
    assert.deepEqual([...open.keys()], ['do 1 c 0'])
    slow('do 1 c 0')
    assert.deepEqual([...open.keys()], ['do 1 c 0'])
    settle('do 1 c 0', 'C')
    settle('review 1', accept)
    assert.equal(machine.outcome()?.status, 'completed')
  })
}

for (const decision of [
  { action: 'split', subtasks: [subtask('x')] },
  { action: 'more_workers', workers: 3 },
]) {
  test(`an answer of the queen comes too late for a subtask that is done: ${decision.action}`, () => {
    const { machine, open, settle, slow } = begin(...three)
    settle('do 1 a 0', 'A')
    settle('do 1 b 0', 'B')
    slow('do 1 c 0')
    settle('do 1 c 0', 'C')
    assert.deepEqual([...open.keys()], ['adjust 1 c'])
    settle('adjust 1 c', adjust(decision))
    assert.deepEqual([...open.keys()], ['review 1'])
    settle('review 1', accept)
    assert.equal(machine.outcome()?.status, 'completed')
  })
}

test('a plan of three hundred subtasks is carried out', () => {
  const many = Array.from({ length: 300 }, (_, place) => subtask(`s${place}`, place < 150 ? [] : [`s${place - 150}`]))
  const { outcome, made } = play({ queen: [plan(...many), accept] })
  assert.deepEqual([outcome.status, made.length], ['completed', 300])
})

test('the machine tells how many leaves of the plan are still to come, and the judgement of the queen', () => {
  const machine = createMachine(root, 'the code', builtInPatterns)
  const end = (id: string, value: unknown): unknown => machine.settle(`root/${id}`, { status: 'completed', value })
  machine.begin()
  assert.equal(machine.toCome(), 0, 'nobody knows the plan')
  end('plan 1', plan(subtask('a'), subtask('b', ['a']), subtask('c', ['b'], 2)))
  assert.equal(machine.toCome(), 4, 'b, both runs of c, and the judgement')
  end('do 1 a 0', 'done')
  assert.equal(machine.toCome(), 3)
  end('do 1 b 0', 'done')
  end('do 1 c 0', 'done')
  assert.equal(machine.toCome(), 1)
  end('do 1 c 1', 'done')
  assert.equal(machine.toCome(), 0)
  end('review 1', accept)
  assert.deepEqual([machine.outcome()?.status, machine.toCome()], ['completed', 0])
})

test('the leaf of a subtask has its title, so that people see what it is about', () => {
  const machine = createMachine(root, 'the code', builtInPatterns)
  machine.begin()
  const started = machine.settle('root/plan 1', { status: 'completed', value: plan(subtask('a'), subtask('b')) })
  assert.deepEqual(
    started.map(({ id, title }) => [id, title]),
    [
      ['root/do 1 a 0', subtask('a').title],
      ['root/do 1 b 0', subtask('b').title],
    ],
  )
})
