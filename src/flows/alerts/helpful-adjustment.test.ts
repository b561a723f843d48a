import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FlowRunRow } from '../history/flow-runs.ts'
import { helpfulAdjustment } from './helpful-adjustment.ts'

const startedAt = new Date('2026-01-01T00:00:00Z')
interface Case {
  elapsed: number
  timeout: number
  workers?: number | null
  progress?: Partial<FlowRunRow['progress']>
}
const runOf = ({ elapsed, timeout, workers = 100, progress = {} }: Case): FlowRunRow => ({
  id: '',
  project_id: '',
  flow_id: null,
  resumed_from: null,
  resumed_as: null,
  parent_run_id: null,
  pattern: 'parallel',
  status: 'running',
  input: null,
  output: null,
  is_large: false,
  error: null,
  workers,
  timeout,
  created_at: startedAt,
  started_at: startedAt,
  completed_at: null,
  duration: null,
  cancel_requested_at: null,
  last_seq: 1,
  input_tokens: 0,
  output_tokens: 0,
  expected: null,
  people_waits: 0,
  waited: 0,
  usage_estimated: false,
  cost_usd: null,
  read_at: new Date(startedAt.getTime() + elapsed),
  progress: { total: 10, pending: 0, running: 2, completed: 0, failed: 0, skipped: 0, ...progress },
})

const cases: [name: string, given: Case, helps: object | null][] = [
  ['nothing, where there is time and room', { elapsed: 10_000, timeout: 600_000 }, null],
  [
    'time, where half of it is over and nothing is done',
    { elapsed: 400_000, timeout: 600_000 },
    { timeout: 1_200_000 },
  ],
  [
    'time, where the ETA is after the end',
    { elapsed: 100_000, timeout: 600_000, progress: { completed: 1 } },
    { timeout: 1_500_000 },
  ],
  ['nothing, where the ETA is in time', { elapsed: 100_000, timeout: 600_000, progress: { completed: 5 } }, null],
  [
    'workers, where leaves wait and all workers are busy',
    { elapsed: 10_000, timeout: 600_000, workers: 2, progress: { pending: 1 } },
    { workers: 3 },
  ],
  [
    'twice the workers at most',
    { elapsed: 10_000, timeout: 600_000, workers: null, progress: { pending: 500, running: 50, total: 550 } },
    { workers: 100 },
  ],
  ['no workers, where one is free', { elapsed: 10_000, timeout: 600_000, workers: 3, progress: { pending: 1 } }, null],
  ['no time beyond all', { elapsed: 2 ** 31, timeout: 2 ** 31 - 1 }, { timeout: 2 ** 31 - 1 }],
]
for (const [name, given, helps] of cases) {
  test(`an adjustment helps a slow flow run with ${name}`, () => {
    assert.deepEqual(helpfulAdjustment(runOf(given), 50), helps)
  })
}

test('without a known number of workers no other is advised', () => {
  const run = runOf({ elapsed: 1, timeout: 600_000, workers: null, progress: { pending: 9, running: 50 } })
  assert.equal(helpfulAdjustment(run, null), null)
})
