import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FlowEvent } from '../../kernel/flow-run.ts'
import { type BuiltInNode, builtInPatterns } from '../machine/built-in-patterns.ts'
import type { OwnedFlow } from './owned-flow.ts'
import { takeOutcome } from './settle-leaf.ts'
import { stateOf } from './state.ts'

/** A value that is large as JSON, 10 MB, and small in memory. */
const shared = Array.from({ length: 100 }, () => 'x'.repeat(1_000))
const large = Array.from({ length: 100 }, () => shared)

test('the results of a flow run are bounded together, and a refused result is journalled as a failure', () => {
  const leaf = { type: 'task', function: 'large' } as const
  const root: BuiltInNode = { type: 'parallel', branches: Array.from({ length: 30 }, () => leaf) }
  const now = new Date()
  const state = stateOf(
    {
      id: '',
      project_id: '',
      flow_id: null,
      root,
      input: null,
      fence: 1,
      workers: null,
      timeout: 1_000,
      crashes: 0,
      last_seq: 0,
      ended_leaves: 0,
      adjustments: 0,
      resumed_from: null,
      key_scope: null,
      parent_run_id: null,
      within: null,
      cancel_requested_at: null,
      wanted_topology: null,
      is_topology_new: false,
      age: 0,
      still: 0,
      is_still: false,
      claimed_at: now,
    },
    [],
    builtInPatterns,
  )
  const events: FlowEvent[] = []
  for (const task of state.fresh.splice(0)) {
    state.running.set(task.id, task)
    // The function uses no other part of the flow run.
    takeOutcome({ state } as OwnedFlow, events, task, { status: 'completed', value: large }, 0)
  }
  assert.deepEqual([state.counts.completed, state.counts.failed], [26, 4])
  const failure = events.find((event) => event.kind === 'task.failed')
  assert.match(failure?.data.error ?? '', /results of this flow run take more than 268435456 bytes \(256 MiB\)/)
})
