import assert from 'node:assert/strict'
import { test } from 'node:test'
import { planProblem, type Subtask } from '../../kernel/decision.ts'
import type { FlowNode } from '../../kernel/flow.ts'
import { createMachine, type LeafOutcome, type LeafTask } from '../machine.ts'

const root: FlowNode = {
  ...{ type: 'hierarchical', queen: 'queen', workers: ['ann', 'bob', 'cyd'] },
  goal: 'Analyze {{input}} for security issues',
}
const subtask = (id: string, depends_on: string[] = [], workers = 1): Subtask => ({
  ...{ id, title: `Title of ${id}`, description: `Do ${id}.`, depends_on, workers },
})
const plan = (...subtasks: Subtask[]): string => JSON.stringify({ subtasks })
const accept = JSON.stringify({ acceptable: true, problems: [], report: 'All is well.' })
const refuse = JSON.stringify({ acceptable: false, problems: ['Too short.'], report: 'Hm.' })

interface Team {
  /** In the order in which she is asked. */
  queen: string[]
  work?: (task: LeafTask) => LeafOutcome
}

function play({ queen, work = done }: Team) {
  const machine = createMachine(root, 'the code')
  const asked: LeafTask[] = []
  const made: LeafTask[] = []
  const open = machine.begin()
  for (let task = open.shift(); task; task = open.shift()) {
    const isQueen = 'agent' in task.leaf && task.leaf.agent === 'queen'
    ;(isQueen ? asked : made).push(task)
    const outcome: LeafOutcome = isQueen ? { status: 'completed', value: queen[asked.length - 1] ?? '' } : work(task)
    open.push(...machine.settle(task.id, outcome))
  }
  return { outcome: machine.outcome() ?? assert.fail('it did not end'), asked, made }
}
const done = (task: LeafTask): LeafOutcome => ({ status: 'completed', value: `result of ${task.id.split('/')[1]}` })
const agentOf = ({ leaf }: LeafTask): string => ('agent' in leaf ? leaf.agent : '')

test('Queen planning phase: she is asked for a plan under its name, with the goal and the workers', () => {
  const { asked } = play({ queen: [plan(subtask('a')), accept] })
  assert.equal(asked[0]?.answer?.name, 'queen_plan')
  assert.match(String(asked[0]?.argument), /Analyze the code for security issues/)
  assert.match(String(asked[0]?.argument), /ann, bob, cyd/)
})

test('Queen delegation: subtasks go to the workers in turn, each when what it depends on is done', () => {
  const subtasks = [subtask('report', ['scan', 'audit']), subtask('scan'), subtask('audit')]
  const { made, outcome } = play({ queen: [plan(...subtasks), accept] })
  assert.deepEqual(
    made.map((task) => [task.id, agentOf(task)]),
    [
      ['root/do 1 scan 0', 'bob'],
      ['root/do 1 audit 0', 'cyd'],
      ['root/do 1 report 0', 'ann'],
    ],
  )
  assert.match(String(made[2]?.argument), /Title of scan:\nresult of do 1 scan 0/)
  assert.deepEqual(outcome, { status: 'completed', value: 'All is well.', error: null })
})

test('a worker that fails is replaced by another, once; then the queen hears of it and the flow is partial', () => {
  const failing = (task: LeafTask): LeafOutcome =>
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
  assert.match(String(never.asked[1]?.argument), /Title of a: all ill\n- Title of b: What it depends on failed/)
})

test('a subtask for several workers is several runs with the same brief and their number, and gives a list', () => {
  const { made, asked } = play({ queen: [plan(subtask('a', [], 3)), accept] })
  assert.deepEqual(made.map(agentOf), ['ann', 'bob', 'cyd'])
  assert.match(String(made[1]?.argument), /You are worker 2 of 3/)
  assert.match(String(asked[1]?.argument), /\["result of do 1 a 0","result of do 1 a 1","result of do 1 a 2"\]/)
})

test('Queen synthesis: what she does not accept is done once more with the problems, then it is partial', () => {
  const { outcome, asked, made } = play({ queen: [plan(subtask('a')), refuse, plan(subtask('a')), refuse] })
  assert.equal(asked[1]?.answer?.name, 'queen_review')
  assert.match(String(asked[2]?.argument), /not acceptable:\n- Too short\./)
  assert.deepEqual(
    made.map((task) => task.id),
    ['root/do 1 a 0', 'root/do 2 a 0'],
  )
  assert.deepEqual(outcome, { status: 'partial', value: 'Hm.', error: null, problems: ['Too short.'] })
})

for (const [what, answer] of Object.entries({
  'no JSON': 'I would rather not.',
  'an unknown dependency': plan(subtask('a', ['nobody'])),
  'a cycle': plan(subtask('a', ['b']), subtask('b', ['a'])),
  'a name twice': plan(subtask('a'), subtask('a')),
  'no subtasks': plan(),
})) {
  test(`a plan with ${what} is asked for once more with what is wrong; then the flow fails and no worker was called`, () => {
    const failed = play({ queen: [answer, answer] })
    assert.equal(failed.outcome.status, 'failed')
    assert.deepEqual([failed.asked.length, failed.made.length], [2, 0])
    assert.match(String(failed.asked[1]?.argument), /did not fit/)
    assert.equal(play({ queen: [answer, plan(subtask('a')), accept] }).outcome.status, 'completed')
  })
}

test('a plan is read through the words around it', () => {
  const { outcome } = play({ queen: [`Here it is:\n${plan(subtask('a'))}\nGood luck.`, accept] })
  assert.equal(outcome.status, 'completed')
})

test('a plan that can be carried out has no problem', () => {
  assert.equal(planProblem([subtask('a'), subtask('b', ['a']), subtask('c', ['a', 'b'])]), null)
  assert.match(planProblem([subtask('a', ['a'])]) ?? '', /wait for each other: a/)
})
