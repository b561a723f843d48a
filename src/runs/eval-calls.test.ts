import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Tool } from '../kernel/tool.ts'
import { heldInEval } from './eval-calls.ts'
import { newState, pendingCall } from './run-state.ts'
import type { Session } from './session.ts'

const names: Record<string, Tool['kind']> = {
  keyed: 'call',
  unsafe: 'call',
  readonly: 'call',
  write: 'write',
  ask_human: 'ask_human',
  spawn_agent: 'spawn_agent',
  finish_loop: 'finish_loop',
}

function sessionOf(evalId: string | null): Pick<Session, 'run' | 'state' | 'stage'> {
  const state = newState()
  for (const [name, kind] of [...Object.entries(names), ['gone', 'call'] as const]) {
    const effect = kind === 'call' ? (name === 'gone' ? 'unsafe' : (name as 'keyed')) : 'run' // tools are called after their effect
    const call = pendingCall({ step: 1, call_id: name, name, args: {}, key: name, effect })
    // As after the death of the owner that announced it.
    state.pending.set(name, { ...call, isUnknown: true, attempt: 2 })
  }
  const byName = new Map(Object.entries(names).map(([name, kind]) => [name, { name, kind } as Tool]))
  const run = { trigger: { type: 'supervisor', ...(evalId === null ? {} : { eval_id: evalId }) } } as Session['run'] // all that is read
  return { run, state, stage: { index: 0, byName, faces: [] } }
}

test('in an eval calls that change something are answered, also those that a dead owner announced', () => {
  const held = heldInEval(sessionOf('an eval'))
  assert.deepEqual(
    held.map((event) => (event.kind === 'tool.completed' ? [event.data.call_id, event.data.is_error] : [])),
    [
      ['keyed', false],
      ['unsafe', false],
      ['write', false],
      ['ask_human', false],
    ],
  )
})

test('outside of an eval nothing is held', () => assert.deepEqual(heldInEval(sessionOf(null)), []))
