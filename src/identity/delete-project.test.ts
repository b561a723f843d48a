import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase } from '../../test/kit/database.ts'
import { measureStatements } from '../../test/kit/query-plans.ts'
import { insertProject } from '../../test/kit/runs.ts'
import { systemActor } from '../kernel/principal.ts'
import { deleteProject } from './projects.ts'

const { pool } = await createTestDatabase()
const OBJECTS = 2_000

/** Objects with an edge each, and as many tasks, each below the one before. */
async function fill(project: string): Promise<void> {
  await pool.query(
    `with made as (
       insert into objects (id, project_id, type, properties, actor_type, words)
       select gen_random_uuid(), $1, 'note', '{}', 'user', '' from generate_series(1, $2::int) returning id
     ), numbered as (select id, row_number() over () as number from made)
     insert into relationships (id, project_id, type, from_id, to_id, actor_type)
     select gen_random_uuid(), $1, 'next', a.id, b.id, 'user' from numbered a join numbered b on b.number = a.number + 1`,
    [project, OBJECTS],
  )
  await pool.query(
    `with ids as (select gen_random_uuid() as id, number from generate_series(1, $2::int) number)
     insert into tasks (id, project_id, kind, title, created_by, parent_task_id)
     select a.id, $1, 'work', 'x', '{}', b.id from ids a left join ids b on b.number = a.number - 1`,
    [project, OBJECTS],
  )
}

test('what hangs on a row that goes is found by index: a project goes as fast as it is large', async () => {
  const project = await insertProject(pool, 'goes')
  const other = await insertProject(pool, 'stays')
  await fill(project)
  await fill(other)
  await pool.query('analyze')
  const large = ['objects', 'relationships', 'tasks', 'object_versions', 'agent_runs', 'processing_log']
  const { measured, stop } = measureStatements(pool, { large })
  await deleteProject(pool, project, systemActor)
  stop()
  // A table is read once where half of it goes; a foreign key without an index would read it once for each row.
  const scans = measured.flatMap((statement) => statement.sequentialScans).filter(({ rows }) => rows > 3 * OBJECTS)
  assert.deepEqual(scans, [])
  for (const table of ['objects', 'relationships', 'tasks']) {
    const { rows } = await pool.query(`select project_id, count(*)::int as count from ${table} group by 1`)
    assert.deepEqual(rows, [{ project_id: other, count: table === 'relationships' ? OBJECTS - 1 : OBJECTS }], table)
  }
})
