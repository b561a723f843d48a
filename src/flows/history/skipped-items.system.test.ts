import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase } from '../../../test/kit/database.ts'
import { readPlans, recordStatements } from '../../../test/kit/query-plans.ts'
import { insertProject } from '../../../test/kit/runs.ts'
import { newId } from '../../kernel/id.ts'
import { systemActor } from '../../kernel/principal.ts'
import { startFlow } from '../execution/start.ts'
import { builtInPatterns } from '../machine/built-in-patterns.ts'
import { withSkippedItems } from './skipped-items.ts'
import type { TaskRecord } from './trace.ts'

const { pool } = await createTestDatabase()
const projectId = await insertProject(pool, 'skipping')
const root = { type: 'task', function: 'f' } as const
const run = { projectId, flowId: null, root, input: null, timeoutMs: 1_000, workers: null }
const id = await startFlow(pool, run, systemActor, builtInPatterns)
const task = (taskId: string): TaskRecord => ({
  id: taskId,
  name: taskId,
  kind: 'function',
  parent_id: null,
  depends_on: [],
  worker: null,
  usage: null,
  status: 'running',
  attempts: 1,
  start_at: null,
  end_at: null,
  error: null,
  busy: 0,
  waited: 0,
  waitingSince: null,
  run_id: null,
  stages: ['first', 1],
})

test('the skipped items of many pipelines are found by index in a long journal', async () => {
  // 200 pipelines, and each event in twenty says that items were skipped.
  await pool.query(
    `insert into flow_events (run_id, seq, id, kind, data)
     select $1, i, gen_random_uuid(), case when i % 20 = 0 then 'items.skipped' else 'items.completed' end,
       jsonb_build_object('task_id', 'p' || i % 200, 'stage', 1,
         case when i % 20 = 0 then 'errors' else 'results' end,
         (select jsonb_agg(jsonb_build_array(i * 10 + n, 'bad ' || n)) from generate_series(0, 9) n))
     from generate_series(1, 40000) i`,
    [id],
  )
  await pool.query('analyze flow_events')
  const tasks = Array.from({ length: 200 }, (_, place) => task(`p${place}`))
  const recording = recordStatements(pool)
  const found = await withSkippedItems(pool, id, [...tasks, { ...task('other'), id: newId() }])
  recording.stop()
  // p0, p20, … have 200 such events of ten items each.
  assert.deepEqual(
    [found[20]?.skipped?.length, found[20]?.skipped?.[0], found[1]?.skipped, found[200]?.skipped],
    [100, { index: 200, stage: 1, error: 'bad 0' }, [], []],
  )
  for (const { sequentialScans, buffers } of await readPlans(pool, recording.statements, { large: ['flow_events'] })) {
    assert.deepEqual(sequentialScans, [])
    // A scan of the whole journal for each of the pipelines would be more than 100,000.
    assert.ok(buffers < 10_000, `${buffers} buffers`)
  }
})
