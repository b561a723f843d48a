// The time of a run whose sub-run waits until a process has its tool.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestRuns, testTool } from '../../test/kit/run-worker.ts'
import { createScriptedModel } from '../../test/kit/scripted-model.ts'
import { until } from '../../test/kit/until.ts'

const runs = await createTestRuns({ isRouted: true })
const { pool, clock } = runs

interface ParentRow {
  status: string
  stands_still: boolean
  left: number | null
}
const parentNow = async (id: string): Promise<ParentRow | undefined> => {
  const { rows } = await pool.query<ParentRow>(
    `select status, stands_still, (extract(epoch from wake_at - muster.now()) * 1000)::float8 as left
     from agent_runs where id = $1`,
    [id],
  )
  return rows[0]
}

test('a run stands still while its sub-run waits for a tool, and is woken when a process has the tool', async () => {
  const gate = Promise.withResolvers<void>()
  runs.models.set(
    'script',
    createScriptedModel(() => gate.promise.then(() => ({ text: 'child done' }))),
  )
  runs.models.set(
    'parent',
    createScriptedModel((_request, call) =>
      call === 1 ? { calls: [{ name: 'spawn_agent', args: { agent: 'child', input: 'Go.' } }] } : { text: 'done' },
    ),
  )
  await runs.createAgent({ name: 'child', tools: ['elsewhere'] })
  const parent = await runs.createAgent({
    model: { provider: 'test', name: 'parent' },
    tools: ['spawn_agent'],
    default_timeout: 30_000,
  })
  const { id } = await runs.start(parent)
  const waits = async () => {
    const { rowCount } = await pool.query(`select from agent_runs where parent_run_id = $1 and waits_for = 'tool'`, [
      id,
    ])
    return rowCount === 1
  }
  await until(waits, 'the sub-run waits for the tool')
  await clock.advance(60_000)
  await until(async () => (await parentNow(id))?.stands_still === true, 'the run stands still')
  assert.equal((await runs.get(id)).status, 'running')
  const second = await createTestRuns({ tools: [testTool('elsewhere', async () => 1)], isRouted: true, database: runs })
  await until(async () => {
    const row = await parentNow(id)
    return row?.stands_still === false && row.left !== null && row.left <= 30_000
  }, 'the run knows its deadline again')
  gate.resolve()
  assert.equal((await runs.finished(id)).status, 'completed')
  await second.worker.stop()
  const { rows } = await pool.query('select ended is not null as has_ended from run_rests')
  assert.deepEqual(rows, [{ has_ended: true }])
})

test('time in which several runs below work at once counts once, and time in waits does not', async () => {
  const project = runs.projectId
  const { rows: made } = await pool.query<{ top: string; one: string; two: string }>(
    'select gen_random_uuid() as top, gen_random_uuid() as one, gen_random_uuid() as two',
  )
  const { top, one, two } = made[0] ?? assert.fail()
  const at = (seconds: number): string => new Date(Date.UTC(2020, 0, 1) + seconds * 1_000).toISOString()
  // Without ready_at no worker claims them.
  const insert = (id: string, parent: string | null, from: number, to: number): Promise<unknown> =>
    pool.query(
      `insert into agent_runs (id, project_id, parent_run_id, ancestors, status, trigger, input, created_at, completed_at, ready_at)
       values ($1, $2, $3, $4, 'completed', '{"type": "manual"}', '""', $5, $6, null)`,
      [id, project, parent, parent === null ? [] : [parent], at(from), at(to)],
    )
  await insert(top, null, 0, 100)
  await insert(one, top, 0, 50)
  await insert(two, top, 30, 60)
  const rest = (id: string, seq: number, from: number, to: number): Promise<unknown> =>
    pool.query(
      `insert into run_events (run_id, seq, id, kind, data, at) values
         ($1, $2, gen_random_uuid(), 'run.paused', '{}', $3), ($1, $2 + 1, gen_random_uuid(), 'run.continued', '{}', $4)`,
      [id, seq, at(from), at(to)],
    )
  const work = async (since: number, isIncluded = false): Promise<number | undefined> => {
    const { rows } = await pool.query<{ ms: number; goes_on: boolean }>(
      'select ms, goes_on from muster.work_of_runs($1, $2, $3)',
      [top, at(since), isIncluded],
    )
    assert.equal(rows[0]?.goes_on, false)
    return rows[0]?.ms
  }
  assert.deepEqual([await work(0), await work(40), await work(70)], [60_000, 20_000, 0])
  assert.equal(await work(0, true), 100_000)
  await rest(one, 1, 10, 20)
  await rest(two, 1, 55, 70)
  assert.equal(await work(0), 45_000)
  await pool.query('insert into run_rests (run_id, began, ended) values ($1, $2, $3)', [one, at(0), at(5)])
  assert.equal(await work(0), 40_000)
})
