import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Tool } from '../kernel/tool.ts'
import { heldInEval } from './eval-calls.ts'
import type { OwnedRun } from './owned-run.ts'
import { pendingCall } from './pending-call.ts'
import { newState } from './run-state.ts'

const names: Record<string, Tool['kind']> = {
  keyed: 'call',
  unsafe: 'call',
  readonly: 'call',
  write: 'write',
  ask_human: 'ask_human',
  spawn_agent: 'spawn_agent',
  finish_loop: 'finish_loop',
}

function ownedRunOf(evalId: string | null): Pick<OwnedRun, 'run' | 'state' | 'stage'> {
  const state = newState()
  for (const [name, kind] of [...Object.entries(names), ['gone', 'call'] as const]) {
    const effect = kind === 'call' ? (name === 'gone' ? 'unsafe' : (name as 'keyed')) : 'run' // named after it
    const call = pendingCall({ step: 1, call_id: name, name, args: {}, key: name, effect }, 0)
    // This is the state after the death of the owner that announced the call.
    state.pending.set(name, { ...call, isUnknown: true, attempt: 2 })
  }
  const byName = new Map(Object.entries(names).map(([name, kind]) => [name, { name, kind } as Tool]))
  const trigger = { type: 'supervisor', ...(evalId === null ? {} : { eval_id: evalId }) }
  const run = { trigger } as OwnedRun['run'] // all that is read
  return { run, state, stage: { index: 0, byName, faces: [] } }
}

test('in an eval calls that change something are answered, also those that a dead owner announced', () => {
  const held = heldInEval(ownedRunOf('an eval'))
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

test('outside of an eval every call is made', () => assert.deepEqual(heldInEval(ownedRunOf(null)), []))
