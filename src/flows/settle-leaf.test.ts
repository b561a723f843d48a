import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FlowEvent } from '../kernel/flow-run.ts'
import type { Session } from './flow-session.ts'
import { standingOf } from './flow-standing.ts'
import { take } from './settle-leaf.ts'

/** Large as JSON and small in memory: 10 MB. */
const shared = Array.from({ length: 100 }, () => 'x'.repeat(1_000))
const large = Array.from({ length: 100 }, () => shared)

test('what the leaves of a flow run give in all is bounded, and what is refused is on record as a failure', () => {
  const leaf = { type: 'task', function: 'large' } as const
  const now = new Date()
  const standing = standingOf(
    {
      ...{ id: '', project_id: '', root: { type: 'parallel', branches: Array.from({ length: 30 }, () => leaf) } },
      ...{ input: null, fence: 1, workers: null, timeout: 1_000, crashes: 0, last_seq: 0, ended_leaves: 0 },
      ...{ cancel_requested_at: null, wanted_topology: null, is_topology_new: false, age: 0, claimed_at: now },
    },
    [],
  )
  const events: FlowEvent[] = []
  for (const task of standing.fresh.splice(0)) {
    standing.running.set(task.id, task)
    // It asks for nothing else of the session.
    take({ standing } as Session, events, task, { status: 'completed', value: large }, 0)
  }
  assert.deepEqual([standing.counts.completed, standing.counts.failed], [26, 4])
  const failure = events.find((event) => event.kind === 'task.failed')
  assert.match(failure?.data.error ?? '', /results of this flow run take more than 268435456 bytes \(256 MiB\)/)
})
