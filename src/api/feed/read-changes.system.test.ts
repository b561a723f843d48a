// The cost of the feed on an instance that is years old: it depends on the changes, not on the size of the tables.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLargeDatabase } from '../../../test/kit/large-database.ts'
import { LARGE_TABLES } from '../../../test/kit/large-tables.ts'
import { type QueryPlan, readPlans, recordStatements } from '../../../test/kit/query-plans.ts'
import { insertWorker } from '../../../test/kit/runs.ts'
import { type Changes, readChanges, readPresent, readProgress } from './read-changes.ts'
import type { Seen } from './seen.ts'

const KINDS = 7
/** A descent of an index, with the last page of the table. */
const PER_DESCENT = 5
/** An entry of the index, its row, and the last event of its journal. */
const PER_ROW = 12

const { pool, large } = await createLargeDatabase()
const [busy = '', quiet = ''] = large.projects
const present = async (): Promise<Seen> => (await readPresent(pool)).seen

/** The plans of the statement, for these values and for any, with its answer. */
async function measure<Answer>(read: () => Promise<Answer>): Promise<{ answer: Answer; plans: QueryPlan[] }> {
  const recording = recordStatements(pool)
  const answer = await read()
  recording.stop()
  const plans = await readPlans(pool, recording.statements, { large: [...LARGE_TABLES, 'agents'] })
  assert.equal(plans.length, 2)
  assert.deepEqual(
    plans.flatMap(({ sequentialScans }) => sequentialScans.filter(({ table }) => table !== 'agents')),
    [],
  )
  return { answer, plans }
}
function requireCheap(plans: readonly QueryPlan[], most: number): void {
  for (const { buffers, mode, explained } of plans) {
    assert.ok(buffers <= most, `${mode}: ${buffers} buffers, ${most} are allowed\n${explained}`)
  }
}
const changesIn = (project: string, since: Seen): Promise<Changes> => readChanges(pool, [project], since)

test('a look at projects without news is a descent of an index for each kind', async () => {
  const since = await present()
  const { answer, plans } = await measure(() => readChanges(pool, large.projects, since))
  assert.deepEqual(answer.changes, [])
  assert.ok(answer.isWhole)
  requireCheap(plans, large.projects.length * 2 * KINDS * PER_DESCENT)
})

test('a look costs as much as the changes in the project itself, whatever happens in others', async () => {
  const since = await present()
  await pool.query(
    `update agent_runs set status = 'failed', changed_in = pg_current_xact_id() where id in (
       select id from agent_runs where project_id = $1 and status = 'completed' limit 5000)`,
    [busy],
  )
  await pool.query(
    `update agent_runs set status = 'cancelled' where id in (
       select id from agent_runs where project_id = $1 and status = 'completed' limit 30)`,
    [quiet],
  )
  await pool.query('vacuum analyze agent_runs')
  const { answer, plans } = await measure(() => changesIn(quiet, since))
  assert.equal(answer.changes.length, 30)
  requireCheap(plans, 2 * KINDS * PER_DESCENT + 30 * PER_ROW)
})

test('a page ends with its transaction, and the next goes on after it', async () => {
  let since = await present()
  const told: string[] = []
  for (let batch = 0; batch < 30; batch++) {
    await pool.query(
      `update agent_runs set status = 'paused', pause_reason = 'timeout' where id in (
         select id from agent_runs where project_id = $1 and status = 'failed' limit 100)`,
      [busy],
    )
  }
  for (let pages = 1; ; pages++) {
    const { answer, plans } = await measure(() => changesIn(busy, since))
    requireCheap(plans, 2 * KINDS * PER_DESCENT + 1_100 * PER_ROW)
    told.push(...answer.changes.map(({ id }) => id))
    since = answer.seen
    if (!answer.isWhole) continue
    assert.ok(pages >= 3, `${pages} pages`)
    break
  }
  assert.equal(told.length, 3_000)
  assert.equal(new Set(told).size, 3_000)
})

test('the runs at work are found by the index of owned rows', async () => {
  const worker = await insertWorker(pool)
  await pool.query(
    `update agent_runs set owner = $2, completed_at = null where id in (
       select id from agent_runs where project_id = $1 and status = 'completed' limit 50)`,
    [quiet, worker],
  )
  await pool.query('update agent_runs set step_count = step_count + 1 where owner = $1', [worker])
  const { answer, plans } = await measure(() => readProgress(pool, [quiet, busy]))
  assert.equal(answer.changes.length, 50)
  requireCheap(plans, 100 + 50 * PER_ROW)
})
