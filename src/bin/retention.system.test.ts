import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLargeDatabase } from '../../test/kit/large-database.ts'
import { LARGE_TABLES } from '../../test/kit/large-tables.ts'
import { measureStatements } from '../../test/kit/query-plans.ts'
import { removeLapsed } from './retention.ts'

const { pool, large } = await createLargeDatabase()
const [project = ''] = large.projects

const count = async (table: string, where = 'true'): Promise<number> => {
  const { rows } = await pool.query<{ count: number }>(`select count(*)::int as count from ${table} where ${where}`)
  return rows[0]?.count ?? 0
}
const keep = (days: number | null) =>
  pool.query(`update projects set settings = jsonb_build_object('run_retention_days', $2::float8) where id = $1`, [
    project,
    days,
  ])

/** Statements that read more buffers than their returned or deleted rows explain. */
async function costly(): Promise<string[]> {
  const { measured, stop } = measureStatements(pool, { large: LARGE_TABLES })
  await removeLapsed(pool)
  stop()
  assert.ok(measured.length > 5)
  return measured.flatMap(({ text, values, rows, buffers, sequentialScans }) => {
    const ids = values.flat().length
    // A deleted row has entries in up to a dozen indexes, and so have its events, its tasks and its log entry.
    const explained = 60 + 60 * (rows + ids)
    if (sequentialScans.length === 0 && buffers <= explained) return []
    return [`${buffers} buffers for ${rows} rows and ${ids} values, reads ${JSON.stringify(sequentialScans)}: ${text}`]
  })
}

test('lapsed rows are found by index among 100,000 ended runs, and removed in small batches', async () => {
  await keep(null)
  assert.deepEqual(await costly(), [], 'nothing to do')
  await keep(59.99)
  const before = { runs: await count('agent_runs'), flows: await count('flow_runs') }
  assert.deepEqual(await costly(), [], 'some to do')
  const gone = { runs: before.runs - (await count('agent_runs')), flows: before.flows - (await count('flow_runs')) }
  assert.ok(gone.runs > 10 && gone.runs < 60 && gone.flows > 1, JSON.stringify(gone))
})

test('all lapsed rows of a project with short retention are removed in one round, and no row is orphaned', async () => {
  await keep(1)
  await pool.query(`update idempotency_keys set created_at = now() - interval '25 hours'`)
  await removeLapsed(pool)
  for (const table of [
    'agent_runs',
    'flow_runs',
    'flow_alerts',
    'tasks',
    'processing_log',
    'flow_handouts',
    'agent_messages',
    'chats',
    'supervisor_checkpoints',
    'supervisor_channels',
    'supervisor_writes',
    'evals',
  ]) {
    assert.equal(await count(table, `project_id = '${project}'`), 0, table)
    assert.ok((await count(table)) > 0, `${table} of others`)
  }
  for (const table of ['eval_cases', 'eval_results']) {
    assert.equal(await count(table, 'not exists (select from evals e where e.id = eval_id)'), 0, table)
  }
  assert.equal(await count('idempotency_keys'), 0)
  assert.equal(await count('run_removals'), 0)
  assert.equal(await count('run_events e', 'not exists (select from agent_runs r where r.id = e.run_id)'), 0)
  assert.equal(await count('flow_events e', 'not exists (select from flow_runs r where r.id = e.run_id)'), 0)
})

test('a leaf stays with its flow run, and a flow run stays while a leaf waits for a decision', async () => {
  const [, other = ''] = large.projects
  await pool.query(`update projects set settings = '{"run_retention_days": 1}' where id = $1`, [other])
  const { rows } = await pool.query<{ id: string; flow_run_id: string }>(
    'select id, flow_run_id from agent_runs where project_id = $1 and flow_run_id is not null order by id limit 3',
    [other],
  )
  const [young, undecided, gone] = rows
  assert.ok(young && undecided && gone)
  await pool.query('update flow_runs set completed_at = muster.now() where id = $1', [young.flow_run_id])
  await pool.query(`update agent_runs set status = 'paused', pause_reason = 'outcome_unknown' where id = $1`, [
    undecided.id,
  ])
  await removeLapsed(pool)
  const { rows: left } = await pool.query<{ id: string }>('select id from agent_runs where id = any($1) order by id', [
    rows.map((row) => row.id),
  ])
  assert.deepEqual(
    left.map((row) => row.id),
    [young.id, undecided.id],
  )
  assert.equal(await count('flow_runs', `project_id = '${other}'`), 2)
})
