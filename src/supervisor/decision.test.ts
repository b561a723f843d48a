import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SupervisorState, ToDo, ToDoStatus } from '../kernel/supervisor.ts'
import { toDoStatuses } from '../kernel/supervisor.ts'
import { judgeDecision, todoProblem } from './decision.ts'

const names = ['research_agent', 'transform_agent']
const toDo = (status: ToDoStatus, more: Partial<ToDo> = {}): ToDo => ({ id: 't', description: 'x', status, ...more })
const stateWith = (plan: ToDo[] = []): SupervisorState => ({ status: 'RUNNING', plan, history: [] })
const judge = (decision: object, plan: ToDo[] = []) => judgeDecision(stateWith(plan), JSON.stringify(decision), names)

const ALLOWED = new Set(['PENDING IN_PROGRESS', 'IN_PROGRESS DONE', 'IN_PROGRESS BLOCKED', 'BLOCKED PENDING'])
for (const from of toDoStatuses) {
  for (const to of toDoStatuses) {
    const fits = from === to || ALLOWED.has(`${from} ${to}`)
    test(`ToDo lifecycle: ${from} → ${to} ${fits ? 'fits' : 'does not fit'}`, () => {
      assert.equal(todoProblem([toDo(from)], [toDo(to)], names) === null, fits)
    })
  }
}

test('ToDo lifecycle: DONE is final, also for a plan that leaves the todo out', () => {
  const judged = judge({ plan: [], action: 'finish' }, [toDo('DONE'), toDo('PENDING', { id: 'other' })])
  assert.deepEqual(judged.ok && judged.state.plan, [toDo('DONE')])
})

for (const [what, plan, problem] of [
  ['two todos with one id', [toDo('PENDING'), toDo('PENDING')], /Two todos have the id t/],
  ['an owner that is no specialist', [toDo('PENDING', { owner_agent: 'nobody' })], /nobody, which is no specialist/],
  ['a parent that is no todo', [toDo('PENDING', { parent_id: 'gone' })], /below gone, which is no other todo/],
] as const) {
  test(`a plan with ${what} does not fit`, () => {
    const judged = judge({ plan, action: 'finish' })
    assert.match(judged.ok ? '' : judged.problem, problem)
  })
}

for (const [what, decision] of [
  ['an unknown specialist', { plan: [], action: 'delegate', agent: 'coder_agent' }],
  ['a node that is no specialist', { plan: [], action: 'delegate', agent: 'finalizer' }],
  ['the supervisor itself', { plan: [], action: 'delegate', agent: 'supervisor' }],
  ['a name that every object has', { plan: [], action: 'delegate', agent: 'constructor' }],
  ['nobody', { plan: [], action: 'delegate' }],
] as const) {
  test(`implicit routing via LLM output is prohibited: a decision that names ${what} is a failed one`, () => {
    assert.equal(judge(decision).ok, false)
  })
}

for (const answer of [
  '',
  'finish',
  '{}',
  '[]',
  '{"plan": [], "action": "stop"}',
  '{"plan": [], "action": "finish", "status": "DONE"}',
]) {
  test(`an answer that is no decision does not fit: ${answer || 'nothing'}`, () => {
    assert.equal(judgeDecision(stateWith(), answer, names).ok, false)
  })
}

test('a decision to delegate sets the active agent; to finish or escalate, the status', () => {
  const delegated = judge({
    plan: [toDo('IN_PROGRESS')],
    action: 'delegate',
    agent: 'research_agent',
  })
  assert.deepEqual(delegated, {
    ok: true,
    state: { status: 'RUNNING', plan: [toDo('IN_PROGRESS')], history: [], active_agent: 'research_agent' },
  })
  for (const [action, status] of [
    ['finish', 'DONE'],
    ['escalate', 'ESCALATE'],
  ] as const) {
    const judged = judge({ plan: [], action, agent: 'research_agent' })
    assert.deepEqual(judged.ok && [judged.state.status, judged.state.active_agent], [status, undefined])
  }
})

test('fields that a model fills with null are absent', () => {
  const plan = [{ ...toDo('PENDING'), owner_agent: null, parent_id: null, metadata: null }]
  const judged = judge({ plan, action: 'finish', agent: null, instructions: null, notes: null })
  assert.deepEqual(judged.ok && judged.state.plan, [toDo('PENDING')])
})
