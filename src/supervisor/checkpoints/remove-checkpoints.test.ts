import assert from 'node:assert/strict'
import { createTestDatabase } from '../../../test/kit/database.ts'
import { readPlans, recordStatements } from '../../../test/kit/query-plans.ts'
import { insertProject, insertRuns } from '../../../test/kit/runs.ts'
import { inSystem, inTest as test } from '../../../test/kit/tiers.ts'
import { inTransaction } from '../../db/transaction.ts'
import { newId } from '../../kernel/id.ts'
import { silentLog } from '../../kernel/log.ts'
import { createCheckpoints } from './checkpoints.ts'
import { CHECKPOINT_TABLES, pruneCheckpoints, removeCheckpointsOf } from './remove-checkpoints.ts'

const { pool, clock } = await createTestDatabase()
const DAY_MS = 86_400_000

/** Stores this many checkpoints in each thread, each with a channel and a write, as puts do. */
async function fill(projectId: string, threadIds: readonly string[], each: number): Promise<void> {
  const keys = `$1, thread, '', lpad(n::text, 6, '0')`
  const given = `unnest($2::text[]) thread, generate_series(1, $3::int) n`
  for (const sql of [
    `insert into supervisor_checkpoints (project_id, thread_id, checkpoint_ns, checkpoint_id, checkpoint, metadata)
     select ${keys}, json_build_object('v', 4, 'channel_versions', json_build_object('a', n)), '{}' from ${given}`,
    `insert into supervisor_channels (project_id, thread_id, checkpoint_ns, channel, version, value)
     select $1, thread, '', 'a', n::text, '1' from ${given}`,
    `insert into supervisor_writes (project_id, thread_id, checkpoint_ns, checkpoint_id, task_id, place, channel, value)
     select ${keys}, 'task', 0, 'a', '1' from ${given}`,
  ]) {
    await pool.query(sql, [projectId, threadIds, each])
  }
}

/** The threads of a project with the number of their rows, the same in each table. */
async function threadsOf(projectId: string): Promise<Record<string, number>> {
  const counts: Record<string, number>[] = []
  for (const table of CHECKPOINT_TABLES) {
    const { rows } = await pool.query<{ thread_id: string; count: number }>(
      `select thread_id, count(*)::int as count from ${table} where project_id = $1 group by 1 order by 1`,
      [projectId],
    )
    counts.push(Object.fromEntries(rows.map((row) => [row.thread_id, row.count])))
  }
  const [first = {}, ...others] = counts
  for (const other of others) assert.deepEqual(other, first)
  return first
}

test('threads older than their project keeps runs are removed; the thread of a kept run stays', async () => {
  const [project, other] = [await insertProject(pool), await insertProject(pool)]
  const [run = ''] = await insertRuns(pool, project, 1)
  const manyThreads = Array.from({ length: 30 }, (_, n) => `old ${n}`)
  await fill(project, [...manyThreads, run, 'goes on'], 20)
  await fill(other, ['old 1'], 1)
  await clock.advance(11 * DAY_MS)
  await fill(project, ['young'], 2)
  await pool.query(
    `update supervisor_checkpoints set created_at = muster.now() where thread_id = 'goes on' and checkpoint_id = '000020'`,
  )
  assert.equal(await pruneCheckpoints(pool, { projectId: project, days: 10 }), 600)
  assert.deepEqual(await threadsOf(project), { [run]: 20, 'goes on': 20, young: 2 })
  assert.deepEqual(await threadsOf(other), { 'old 1': 1 })
  assert.equal(await pruneCheckpoints(pool, { projectId: project, days: 10 }), 0)
  await pool.query('delete from agent_runs where id = $1', [run])
  assert.equal(await pruneCheckpoints(pool, { projectId: project, days: 10 }), 20)
  assert.deepEqual(Object.keys(await threadsOf(project)), ['goes on', 'young'])
})

test('retention ends after the current batch when it is stopped', async () => {
  const project = await insertProject(pool)
  await fill(project, ['old'], 1)
  await clock.advance(11 * DAY_MS)
  assert.equal(await pruneCheckpoints(pool, { projectId: project, days: 10 }, AbortSignal.abort()), 0)
  assert.deepEqual(await threadsOf(project), { old: 1 })
})

test('the rows of a deleted project are removed in batches, and rows of other projects stay', async () => {
  const [project, other] = [await insertProject(pool), await insertProject(pool)]
  await fill(project, ['a', 'b'], 50)
  await fill(other, ['a'], 5)
  const removed: number[] = []
  do removed.push(await inTransaction(pool, (tx) => removeCheckpointsOf(tx, project, 40)))
  while (removed.at(-1) !== 0)
  assert.deepEqual(removed, [120, 120, 60, 0])
  assert.deepEqual(await threadsOf(other), { a: 5 })
})

inSystem('reads, puts and retention go by index, however many checkpoints there are', async () => {
  const projects = [await insertProject(pool), await insertProject(pool)]
  const threads = Array.from({ length: 500 }, () => newId())
  for (const project of projects) await fill(project, threads, 40)
  await pool.query('vacuum analyze supervisor_checkpoints, supervisor_channels, supervisor_writes')
  const [project = ''] = projects
  const recording = recordStatements(pool)
  const saver = await createCheckpoints({ pool, log: silentLog }).saverFor(project)
  const configurable = { thread_id: threads[7], checkpoint_ns: '' }
  const newest = await saver.getTuple({ configurable })
  assert.equal(newest?.config.configurable?.checkpoint_id, '000040')
  await saver.getTuple({ configurable: { ...configurable, checkpoint_id: '000005' } })
  await saver.getTuple({ configurable: { ...configurable, checkpoint_ns: 'none' } })
  const meta = { source: 'loop', step: 1, parents: {} } as const
  await saver.put({ configurable }, { ...newest.checkpoint, id: '000041' }, meta, { a: 41 })
  await saver.putWrites({ configurable: { ...configurable, checkpoint_id: '000041' } }, [['a', 1]], 'task')
  for await (const _ of saver.list({ configurable }, { limit: 5 }));
  for await (const _ of saver.list({ configurable: { thread_id: threads[7] } }, { limit: 5 }));
  for await (const _ of saver.list({}, { limit: 5 }));
  await pruneCheckpoints(pool, { projectId: project, days: 10 })
  await saver.deleteThread(threads[7] ?? '')
  recording.stop()
  const statements = recording.statements.filter(({ text }) => text.includes('supervisor_'))
  assert.ok(statements.length >= 9, `only ${statements.length} statements`)
  for (const plan of await readPlans(pool, statements, { large: CHECKPOINT_TABLES })) {
    assert.deepEqual(plan.sequentialScans, [], plan.explained)
    assert.ok(plan.buffers < 150 + 60 * plan.rows, `${plan.buffers} buffers\n${plan.explained}`)
  }
})
