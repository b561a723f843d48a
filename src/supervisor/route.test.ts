import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { agentSummary, supervisorStatuses } from '../kernel/supervisor.ts'
import { route } from './route.ts'

for (const [name, state, node] of [
  ['IF supervisor.status == "DONE" → finalizer', { status: 'DONE' }, 'finalizer'],
  [
    'IF supervisor.status == "DONE" → finalizer, also with an active agent',
    { status: 'DONE', active_agent: 'a' },
    'finalizer',
  ],
  ['IF supervisor.status == "ESCALATE" → hitl_escalation', { status: 'ESCALATE' }, 'hitl_escalation'],
  ['IF supervisor.active_agent == null → supervisor', { status: 'RUNNING' }, 'supervisor'],
  [
    'ELSE → node named supervisor.active_agent',
    { status: 'RUNNING', active_agent: 'research_agent' },
    'research_agent',
  ],
] as const) {
  test(`Routing correctness: ${name}`, () => assert.equal(route(state), node))
}

test('No implicit routing: the notes, the plan and the history of a state do not matter', () => {
  const states = fc.record({
    status: fc.constantFrom(...supervisorStatuses),
    notes: fc.string(),
    plan: fc.array(fc.anything()),
    history: fc.array(fc.anything()),
  })
  fc.assert(
    fc.property(states, fc.option(fc.constantFrom('a', 'b'), { nil: undefined }), (state, agent) => {
      const own = { status: state.status, ...(agent === undefined ? {} : { active_agent: agent }) }
      assert.equal(route({ ...state, ...own }), route(own))
    }),
  )
})

const fits = {
  agent_name: 'a',
  step_id: 's',
  result: 'COMPLETED',
  short_summary: 'Done.',
  key_decisions: ['one'],
  next_instructions_for_supervisor: 'Go on.',
}

test('AgentSummary schema: a summary that fits is taken unchanged', () => {
  assert.deepEqual(agentSummary.parse(fits), fits)
})

for (const [what, change] of [
  ['an unknown result', { result: 'MAYBE' }],
  ['no agent_name', { agent_name: undefined }],
  ['key_decisions that are no list', { key_decisions: 'one' }],
  ['an unknown field', { status: 'DONE' }],
  ['no next_instructions_for_supervisor', { next_instructions_for_supervisor: undefined }],
] as const) {
  test(`AgentSummary schema: ${what} does not fit`, () => {
    assert.equal(agentSummary.safeParse({ ...fits, ...change }).success, false)
  })
}
