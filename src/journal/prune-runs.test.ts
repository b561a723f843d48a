import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase } from '../../test/kit/database.ts'
import { insertProject, insertRuns } from '../../test/kit/runs.ts'
import { silentLog } from '../kernel/log.ts'
import { createJournal } from './append.ts'
import { pruneRuns } from './prune-runs.ts'

const { pool, clock } = await createTestDatabase()
const journal = createJournal({ db: pool, log: silentLog })
const DAY_MS = 86_400_000

const end = (runId: string) =>
  journal.append({
    runId,
    fence: 1,
    events: [{ kind: 'run.completed', data: { summary: 'x' } }],
    change: { set: { status: 'completed', summary: 'x', ended: true } },
  })
const left = async (ids: readonly string[]): Promise<string[]> => {
  const { rows } = await pool.query('select id from agent_runs where id = any($1)', [ids])
  return rows.map((row) => row.id)
}
const eventsLeft = async (ids: readonly string[]): Promise<number> =>
  (await pool.query('select from run_events where run_id = any($1)', [ids])).rowCount ?? 0

test('runs that ended longer ago than their project keeps them go, whole; others stay', async () => {
  const keeper = await insertProject(pool, 'keeps everything')
  const forgetful = await insertProject(pool, 'keeps ten days')
  await pool.query(`update projects set settings = '{"run_retention_days": 10}' where id = $1`, [forgetful])
  const kept = await insertRuns(pool, keeper, 2)
  const [old = '', continued = '', parent = '', under = '', continuing = '', child = ''] = await insertRuns(
    pool,
    forgetful,
    6,
  )
  await pool.query('update agent_runs set base_run_id = $2 where id = $1', [continuing, continued])
  await pool.query('update agent_runs set parent_run_id = $2 where id = $1', [child, parent])
  for (const id of [...kept, old, continued, parent]) await end(id)
  await clock.advance(11 * DAY_MS)
  await end(child)
  assert.equal(await pruneRuns(pool), 1)
  const all = [...kept, old, continued, parent, under, continuing, child]
  assert.deepEqual((await left(all)).toSorted(), all.filter((id) => id !== old).toSorted())
  assert.equal(await eventsLeft([old]), 0)
  assert.equal(await eventsLeft([continued]), 1)
  await end(continuing)
  await clock.advance(11 * DAY_MS)
  assert.equal(await pruneRuns(pool), 4)
  assert.deepEqual((await left(all)).toSorted(), [...kept, under].toSorted())
})

test('a project takes its runs and their journals with it', async () => {
  const project = await insertProject(pool, 'goes')
  const ids = await insertRuns(pool, project, 3)
  for (const id of ids) await end(id)
  assert.equal(await eventsLeft(ids), 3)
  await pool.query('delete from projects where id = $1', [project])
  assert.equal(await eventsLeft(ids), 0)
})
