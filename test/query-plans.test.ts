import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase } from './kit/database.ts'
import { readPlans, recordStatements } from './kit/query-plans.ts'

test('statements are recorded with values, and reads of their triggers and foreign keys are counted', async () => {
  const { pool } = await createTestDatabase()
  await pool.query(`
    create table large (id int primary key, other int);
    create table small (id int primary key);
    create table pointing (id int primary key, small_id int references small on delete cascade);
    insert into large select i, i from generate_series(1, 20000) i;
    insert into pointing select i, null from generate_series(1, 20000) i;
    insert into small values (1);
    create function read_large() returns trigger language plpgsql as
      $$ begin perform count(*) from large where other > 0; return null; end $$;
    create trigger reads after update on small for each statement execute function read_large();
    analyze`)
  const recording = recordStatements(pool)
  await pool.query('select * from large where id = $1', [7])
  await pool.query({ name: 'any', text: 'select * from large where other = any($1::int[])' }, [[1, 2]])
  const client = await pool.connect()
  await client.query('begin')
  await client.query('update small set id = id')
  await client.query('delete from small where id = 1')
  await client.query('rollback')
  client.release()
  recording.stop()
  await pool.query('select 1')
  assert.equal(recording.statements.length, 6)
  assert.deepEqual(recording.statements[0]?.values, [7])
  const plans = await readPlans(pool, recording.statements, { large: ['large', 'pointing'] })
  assert.deepEqual(
    plans.map(({ mode, rows, sequentialScans }) => ({ mode, rows, tables: sequentialScans.map((scan) => scan.table) })),
    [
      { mode: 'custom', rows: 1, tables: [] },
      { mode: 'custom', rows: 2, tables: ['large'] },
      { mode: 'generic', rows: 2, tables: ['large'] },
      { mode: 'custom', rows: 0, tables: ['large'] },
      { mode: 'custom', rows: 0, tables: ['pointing'] },
    ],
  )
  const [byKey, byScan] = plans
  assert.ok(byKey && byScan && byKey.buffers < 10 && byScan.buffers > 80, 'buffers follow the plan')
  const { rowCount } = await pool.query('select from small')
  assert.equal(rowCount, 1, 'measuring a statement changes no row')
})
