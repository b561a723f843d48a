import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRandom } from '../../test/kit/random.ts'
import {
  type AgentStatus,
  agentStatuses,
  isAvailable,
  type StatusEvent,
  type StatusState,
  stateAfter,
  statusEvents,
} from './agent-status.ts'

/** The pairs of statuses between which an agent may go. */
const allowedTransitions: ReadonlySet<`${AgentStatus} ${AgentStatus}`> = new Set([
  'active bored',
  'active stuck',
  'active paused',
  'bored active',
  'bored paused',
  'stuck active',
  'stuck paused',
  'paused active',
  'paused paused',
])

const places: Record<string, StatusState> = {
  active: { status: 'active', paused_for: null },
  bored: { status: 'bored', paused_for: null },
  stuck: { status: 'stuck', paused_for: null },
  stopped: { status: 'paused', paused_for: 'stopped' },
  broke: { status: 'paused', paused_for: 'budget' },
}

/** The expected status after each event, from each place. The table is written by hand, independent of the code. */
const expected: Record<keyof typeof places, Partial<Record<StatusEvent, string>>> = {
  active: { idle: 'bored', blocked: 'stuck', stop: 'stopped', exhausted: 'broke' },
  bored: { given: 'active', start: 'active', stop: 'stopped', exhausted: 'broke' },
  stuck: { freed: 'active', start: 'active', stop: 'stopped', exhausted: 'broke' },
  stopped: { start: 'active' },
  broke: { start: 'active', funded: 'active', stop: 'stopped' },
}

for (const [name, state] of Object.entries(places)) {
  for (const event of statusEvents) {
    const after = expected[name]?.[event] ?? name
    test(`${name}, then ${event}: ${after === name ? 'nothing changes' : after}`, () => {
      assert.deepEqual(stateAfter(state, event), places[after])
    })
  }
}

test('the table covers every pair of statuses: some event leads there, or none does', () => {
  const reached = new Set<string>()
  for (const state of Object.values(places)) {
    for (const event of statusEvents) {
      const after = stateAfter(state, event)
      if (after !== state) reached.add(`${state.status} ${after.status}`)
    }
  }
  for (const from of agentStatuses) {
    for (const to of agentStatuses) {
      const pair = `${from} ${to}` as `${AgentStatus} ${AgentStatus}`
      assert.equal(reached.has(pair), allowedTransitions.has(pair), pair)
    }
  }
})

test('random events never reach a forbidden status', () => {
  const random = createRandom(7)
  let state = places.active ?? assert.fail()
  for (let round = 0; round < 100_000; round++) {
    const event = random.pick(statusEvents)
    const after = stateAfter(state, event)
    if (after !== state)
      assert.ok(allowedTransitions.has(`${state.status} ${after.status}`), `${event} from ${state.status}`)
    assert.equal(after.paused_for !== null, after.status === 'paused')
    state = after
  }
})

test('an agent is available if it is enabled, active or bored, and funded', () => {
  const agent = { enabled: true, status: 'active', token_allocation: null, token_used: 5 } as const
  assert.ok(isAvailable(agent))
  assert.ok(isAvailable({ ...agent, status: 'bored', token_allocation: 6 }))
  for (const change of [
    { enabled: false },
    { status: 'stuck' },
    { status: 'paused' },
    { token_allocation: 5 },
  ] as const) {
    assert.ok(!isAvailable({ ...agent, ...change }), JSON.stringify(change))
  }
})
