import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase } from '../../test/kit/database.ts'
import { measureStatements, recordStatements } from '../../test/kit/query-plans.ts'
import { insertProject, insertRuns } from '../../test/kit/runs.ts'
import { takeTurn } from '../db/in-batches.ts'
import { inTransaction } from '../db/transaction.ts'
import { deleteProject } from '../identity/projects.ts'
import { newId } from '../kernel/id.ts'
import { systemActor } from '../kernel/principal.ts'
import { CHECKPOINT_TABLES } from '../supervisor/checkpoints/remove-checkpoints.ts'
import { PROJECT_TABLES, removeProjects, SMALL_TABLES } from './remove-projects.ts'

const { pool } = await createTestDatabase()
const OF_GRAPH = ['objects', 'relationships', 'tasks', 'agent_messages', 'agent_runs', 'hooks', 'agents']
const FILLED = [...CHECKPOINT_TABLES, ...OF_GRAPH, 'prompt_variants', 'evals', 'members']

/** Makes objects with a version and an edge each, as many nested tasks, and some rows of every other table. */
async function fill(project: string, count: number): Promise<void> {
  await pool.query(
    `with made as (
       insert into objects (id, project_id, type, properties, actor_type, words)
       select gen_random_uuid(), $1, 'note', '{}', 'user', '' from generate_series(1, $2::int) returning id
     ), versions as (
       insert into object_versions (object_id, version, op, properties, actor_type)
       select id, 1, 'create', '{}', 'user' from made
     ), numbered as (select id, row_number() over () as number from made)
     insert into relationships (id, project_id, type, from_id, to_id, actor_type)
     select gen_random_uuid(), $1, 'next', a.id, b.id, 'user' from numbered a join numbered b on b.number = a.number + 1`,
    [project, count],
  )
  await pool.query(
    `with ids as (select gen_random_uuid() as id, number from generate_series(1, $2::int) number)
     insert into tasks (id, project_id, kind, title, created_by, parent_task_id)
     select a.id, $1, 'work', 'x', '{}', b.id from ids a left join ids b on b.number = a.number - 1`,
    [project, count],
  )
  const runs = await insertRuns(pool, project, 20)
  await pool.query(
    `insert into run_events (run_id, seq, id, kind, data)
     select run, seq, gen_random_uuid(), 'x', '{}' from unnest($1::uuid[]) run, generate_series(1, 10) seq`,
    [runs],
  )
  await pool.query(
    `insert into chats (project_id, chat_id, run_id) select $1, 'chat ' || run, run from unnest($2::uuid[]) run`,
    [project, runs],
  )
  const keys = `project_id, thread_id, checkpoint_ns`
  for (const [table, columns, values] of [
    ['supervisor_checkpoints', 'checkpoint_id, checkpoint, metadata', `n, '{}', '{}'`],
    ['supervisor_channels', 'channel, version, value', `'a', n, '1'`],
    ['supervisor_writes', 'checkpoint_id, task_id, place, channel, value', `n, 'x', 0, 'a', '1'`],
  ]) {
    await pool.query(
      `insert into ${table} (${keys}, ${columns}) select $1, 'x', '', ${values} from generate_series(1, 20) n`,
      [project],
    )
  }
  const agent = newId()
  await pool.query(`insert into agents (id, project_id, name, capabilities) values ($1, $2, 'one', '{}')`, [
    agent,
    project,
  ])
  await pool.query(
    `insert into agent_messages (id, project_id, from_agent, to_agent, kind, body)
     select gen_random_uuid(), $1, $2, $2, 'status', 'x' from generate_series(1, $3::int)`,
    [project, agent, count],
  )
  await pool.query('insert into task_queues (agent_id, project_id) values ($1, $2)', [agent, project])
  await pool.query('insert into agent_tokens (agent_id, used) values ($1, 5)', [agent])
  await pool.query(`insert into project_tokens (project_id, month, used) values ($1, '2026-01-01', 5)`, [project])
  await pool.query(
    `insert into usage_days (project_id, day, agent_id, source, input_tokens, output_tokens)
     select $1, date '2026-01-01' + i, $2, 'agent', 1, 1 from generate_series(1, $3::int) i`,
    [project, agent, count],
  )
  await pool.query('insert into project_calls (id, project_id, worker_id, bound) values ($1, $2, $1, 5)', [
    newId(),
    project,
  ])
  const hook = newId()
  await pool.query(`insert into hooks (id, project_id, agent_id, name, sealed_secret) values ($1, $2, $3, 'x', '')`, [
    hook,
    project,
    agent,
  ])
  await pool.query(
    `insert into hook_deliveries (hook_id, webhook_id, run_id) select $1, n::text, $2 from generate_series(1, 20) n`,
    [hook, runs[0]],
  )
  await pool.query(
    `with made as (
       insert into prompt_variants (id, project_id, prompt_id, variant_id, version, is_deleted)
       select gen_random_uuid(), $1, 'prompt_' || n, 'blue', 10, false from generate_series(1, 5) n returning id
     )
     insert into prompt_versions (variant, version, messages, actor_type)
     select id, version, '[]', 'user' from made, generate_series(1, 10) version`,
    [project],
  )
  await pool.query(
    `with made as (
       insert into evals (id, project_id, name, variants, systems, total)
       select gen_random_uuid(), $1, 'x', '{blue,green}', '[]', 20 from generate_series(1, 5) returning id
     ), cases as (
       insert into eval_cases (eval_id, place, task, metadata, expect)
       select id, place, 'x', '{}', '{}' from made, generate_series(0, 9) place
     )
     insert into eval_results (eval_id, place, variant)
     select id, place, variant from made, generate_series(0, 9) place, generate_series(0, 1) variant`,
    [project],
  )
  await pool.query(`insert into members (id, project_id, email, role) values ($1, $2, 'a@example.com', 'viewer')`, [
    newId(),
    project,
  ])
}

async function countRows(project: string): Promise<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const table of [...CHECKPOINT_TABLES, ...PROJECT_TABLES]) {
    const { rowCount } = await pool.query(`select from ${table} where project_id = $1`, [project])
    if (rowCount) counts[table] = rowCount
  }
  return counts
}

const projectIsThere = async (project: string): Promise<boolean> =>
  (await pool.query('select from projects where id = $1', [project])).rowCount === 1

/** Moves the deletion into the past, as though every process had heard of it. */
const letTimePass = (project: string) =>
  pool.query(`update projects set deleted_at = muster.now() - interval '1 minute' where id = $1`, [project])

/** Moves the deletion into the future, as though the machine removed the rows in no time. */
const holdTime = (project: string) =>
  pool.query(`update projects set deleted_at = muster.now() + interval '1 hour' where id = $1`, [project])

test('every table with rows of projects is known to the removal', async () => {
  const { rows } = await pool.query<{ name: string }>(
    `select conrelid::regclass::text as name from pg_constraint where contype = 'f' and confrelid = 'projects'::regclass`,
  )
  assert.deepEqual(
    rows.map(({ name }) => name).sort(),
    [...CHECKPOINT_TABLES, ...PROJECT_TABLES, ...SMALL_TABLES].sort(),
  )
})

test('a deleted project loses its rows in batches, and another project loses none', async () => {
  const project = await insertProject(pool, 'goes')
  const other = await insertProject(pool, 'stays')
  await fill(project, 10_000)
  await fill(other, 100)
  const before = await countRows(other)
  assert.deepEqual(Object.keys(await countRows(project)).sort(), [...FILLED].sort())
  await pool.query('analyze')
  await deleteProject(pool, project, systemActor)
  assert.equal((await countRows(project)).objects, 10_000, 'the deletion itself removes no rows')

  await holdTime(project)
  const recording = recordStatements(pool)
  const startedAt = performance.now()
  assert.equal(await removeProjects(pool), 0)
  const tookMs = performance.now() - startedAt
  recording.stop()
  for (const table of ['objects', 'usage_days']) {
    const deletes = recording.statements.filter(({ text }) => text.includes(`delete from ${table}`))
    assert.ok(deletes.length > 20, `${table} in batches`)
  }
  assert.ok(tookMs < 60_000, `it took ${Math.round(tookMs)} ms`)
  assert.deepEqual(await countRows(project), {})
  assert.ok(await projectIsThere(project), 'the row tells every process that the project was deleted')
  await letTimePass(project)
  assert.equal(await removeProjects(pool), 1)
  assert.equal(await projectIsThere(project), false)

  assert.deepEqual(await countRows(other), before)
  for (const [table, left] of [
    ['object_versions', 100],
    ['run_events', 200],
    ['hook_deliveries', 20],
    ['agent_tokens', 1],
    ['task_queues', 1],
    ['project_tokens', 1],
    ['project_calls', 1],
    ['usage_days', 100],
    ['eval_cases', 50],
    ['eval_results', 100],
    ['chats', 20],
  ] as const) {
    const { rowCount } = await pool.query(`select from ${table}`)
    assert.equal(rowCount, left, table)
  }
})

test('rows that refer to a removed row are found by index', async () => {
  const [project, other] = [await insertProject(pool), await insertProject(pool)]
  const count = 2_000
  await fill(project, count)
  await fill(other, count)
  await deleteProject(pool, project, systemActor)
  await letTimePass(project)
  await pool.query('analyze')
  const large = [
    'objects',
    'relationships',
    'tasks',
    'object_versions',
    'agent_runs',
    'processing_log',
    'agent_messages',
  ]
  const { measured, stop } = measureStatements(pool, { large })
  assert.equal(await removeProjects(pool, { atOnce: count }), 1)
  stop()
  assert.ok(measured.length > PROJECT_TABLES.length)
  // A statement may read a table once; without an index it would read a table once for each deleted row.
  const scans = measured.flatMap((statement) => statement.sequentialScans).filter(({ rows }) => rows > 3 * count)
  assert.deepEqual(scans, [])
})

test('a removal that is cut off is continued later', async () => {
  const project = await insertProject(pool, 'in pieces')
  await fill(project, 100)
  await deleteProject(pool, project, systemActor)
  await letTimePass(project)
  const seen: number[] = []
  for (let round = 1; await projectIsThere(project); round++) {
    const stop = new AbortController()
    const recording = recordStatements(pool)
    const cut = setInterval(() => {
      // Each round is stopped a little later, because every table that is empty by now takes a statement, too.
      if (recording.statements.filter(({ text }) => text.startsWith('with taken')).length > round) stop.abort()
    }, 0)
    await removeProjects(pool, { atOnce: 40, signal: stop.signal })
    clearInterval(cut)
    recording.stop()
    seen.push(Object.values(await countRows(project)).reduce((sum, count) => sum + count, 0))
  }
  assert.ok(new Set(seen).size > 3, `it was cut off too late: ${seen}`)
  assert.deepEqual(
    seen,
    seen.toSorted((one, other) => other - one),
  )
  assert.equal(seen.at(-1), 0)
})

test('one process at a time removes rows, and does not wait for locked rows', async () => {
  const project = await insertProject(pool, 'held')
  await fill(project, 10)
  await deleteProject(pool, project, systemActor)
  await letTimePass(project)
  await inTransaction(pool, async (tx) => {
    await takeTurn(tx, 'projects')
    const before = await countRows(project)
    assert.equal(await removeProjects(pool), 0)
    assert.deepEqual(await countRows(project), before)
  })
  await inTransaction(pool, async (tx) => {
    await tx.query('select from agent_runs where project_id = $1 limit 1 for update', [project])
    assert.equal(await removeProjects(pool), 0)
    assert.deepEqual(await countRows(project), { agent_runs: 1 })
  })
  assert.equal(await removeProjects(pool), 1)
})

test('rows that a late request wrote are removed in the next round', async () => {
  const project = await insertProject(pool, 'late')
  await deleteProject(pool, project, systemActor)
  await removeProjects(pool)
  await pool.query(`insert into agents (id, project_id, name, capabilities) values ($1, $2, 'late', '{}')`, [
    newId(),
    project,
  ])
  await letTimePass(project)
  assert.equal(await removeProjects(pool), 1)
  assert.deepEqual(await countRows(project), {})
})

test('a deletion writes the row of the project alone, however many runs wait for their flow runs', async () => {
  const project = await insertProject(pool)
  const runs = await insertRuns(pool, project, 3)
  const wait = `update agent_runs set started_flow_run_id = id, waits_for = 'children' where id = any($1)`
  await pool.query(wait, [runs])
  await deleteProject(pool, project, systemActor)
  const { rows } = await pool.query('select distinct ready_at from agent_runs where id = any($1)', [runs])
  assert.deepEqual(rows, [{ ready_at: null }])
})
