// The evals of a project on a real database, without a worker: the tests end runs and advance evals themselves.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase, createTestPool } from '../../test/kit/database.ts'
import { createRandom } from '../../test/kit/random.ts'
import { recordLog } from '../../test/kit/record-log.ts'
import { insertProject } from '../../test/kit/runs.ts'
import { createPool } from '../db/pool.ts'
import { inTransaction } from '../db/transaction.ts'
import type { EvalInput } from '../kernel/eval.ts'
import { silentLog } from '../kernel/log.ts'
import { systemActor } from '../kernel/principal.ts'
import { advanceEvals, findProjects, MOST_UNDER_WAY } from './advance.ts'
import { cancelEval } from './cancel-eval.ts'
import { createEval } from './create-eval.ts'
import { getEval, getListed } from './read-evals.ts'

const { pool, url } = await createTestDatabase()

const cases = (count: number): EvalInput['cases'] =>
  Array.from({ length: count }, (_, index) => ({ task: `task ${index}`, expect: { status: 'DONE' } }))

const make = (projectId: string, count: number, variants = ['blue', 'green']) =>
  inTransaction(pool, (tx) =>
    createEval(tx, projectId, { name: 'An eval', cases: cases(count), variants }, systemActor),
  )

const look = (projectId: string, log = silentLog) => advanceEvals(pool, log, projectId)

interface OpenRun {
  id: string
  task: string
  variant: string
  eval_id: string
}

const openRuns = async (projectId: string): Promise<OpenRun[]> => {
  const { rows } = await pool.query<OpenRun>(
    `select r.id, r.input #>> '{}' as task, r.part->>'variant' as variant, r.trigger->>'eval_id' as eval_id
     from agent_runs r join eval_results e on e.run_id = r.id
     where r.project_id = $1 and r.completed_at is null order by e.eval_id, e.place, e.variant`,
    [projectId],
  )
  return rows
}

const end = (runIds: readonly string[], { status = 'completed', duration = 7, tokens = 11 } = {}) =>
  pool.query(
    `update agent_runs set status = $2, completed_at = muster.now(), duration = $3, input_tokens = $4, summary = 'said'
     where id = any($1)`,
    [runIds, status, duration, tokens],
  )

/** True if a search finds work for the project; null if the project has no open eval. */
const found = async (projectId: string): Promise<boolean | null> =>
  (await findProjects(pool)).find(({ id }) => id === projectId)?.hasWork ?? null

const count = async (sql: string, values: unknown[]): Promise<number> => (await pool.query(sql, values)).rowCount ?? 0

test('a few runs are started at a time, and a case is run on all variants before the next case', async () => {
  const projectId = await insertProject(pool)
  const made = await make(projectId, 4)
  assert.deepEqual([made.status, made.compared, made.progress], ['running', ['blue', 'green'], { done: 0, total: 8 }])
  assert.equal((await look(projectId)).started, MOST_UNDER_WAY)
  assert.equal((await look(projectId)).started, 0, 'there is no room')
  const begun = await openRuns(projectId)
  assert.deepEqual(
    begun.map(({ task, variant }) => `${task} ${variant}`),
    ['task 0 blue', 'task 0 green', 'task 1 blue', 'task 1 green', 'task 2 blue'],
  )
  assert.ok(begun.every((run) => run.eval_id === made.id))
  await end(begun.slice(0, 2).map(({ id }) => id))
  assert.equal((await look(projectId)).started, 2)
  assert.deepEqual((await getListed(pool, projectId, made.id)).progress, { done: 2, total: 8 })
  for (let left = 6; left > 0; left -= MOST_UNDER_WAY) {
    await end((await openRuns(projectId)).map(({ id }) => id))
    await look(projectId)
  }
  const read = await getEval(pool, projectId, made.id)
  assert.deepEqual([read.status, read.progress], ['completed', { done: 8, total: 8 }])
  assert.ok(read.completed_at)
  const { cases: results = [], ...figures } = read.variants.green ?? assert.fail()
  assert.deepEqual([figures.pass_rate, figures.latency, figures.tokens], [1, 7, 11])
  const { run_id: runId, ...first } = results[0] ?? assert.fail()
  assert.ok(runId)
  assert.deepEqual(first, {
    index: 0,
    task: 'task 0',
    passed: true,
    status: 'DONE',
    route: [],
    output: 'said',
    reason: null,
    latency: 7,
    tokens: 11,
  })
  assert.equal(await found(projectId), null, 'the eval is no longer searched for')
})

test('two concurrent processes run every case of every variant once, and never too many at a time', async () => {
  const other = createTestPool(url, 5)
  try {
    const projectId = await insertProject(pool)
    const random = createRandom(7)
    const made = [await make(projectId, 12), await make(projectId, 5, ['green', 'blue'])]
    for (let round = 0; (await found(projectId)) !== null; round++) {
      assert.ok(round < 200, 'it does not end')
      const looks = Array.from({ length: 6 }, (_, place) =>
        advanceEvals(place % 2 ? other : pool, silentLog, projectId),
      )
      await Promise.all(looks)
      const open = await openRuns(projectId)
      assert.ok(open.length <= MOST_UNDER_WAY, `${open.length} runs are under way`)
      await end(open.filter(() => random.chance(0.6)).map(({ id }) => id))
    }
    for (const { id, progress } of made) {
      const { rows } = await pool.query<{ results: number; runs: number; started: number }>(
        `select count(*)::int as results, count(distinct run_id)::int as runs, (
           select count(*)::int from agent_runs where project_id = $2 and trigger->>'eval_id' = $1::uuid::text) as started
         from eval_results where eval_id = $1::uuid and passed`,
        [id, projectId],
      )
      assert.deepEqual(rows, [{ results: progress.total, runs: progress.total, started: progress.total }])
      assert.equal((await getListed(pool, projectId, id)).status, 'completed')
    }
  } finally {
    await other.end()
  }
})

test('the evals of one project take turns; evals of two projects do not wait for each other', async () => {
  const [one, other] = [await insertProject(pool), await insertProject(pool)]
  const older = await make(one, 2)
  const newer = await make(one, 2)
  await make(other, 3)
  await look(one)
  await look(other)
  const evalsOf = async (projectId: string) => (await openRuns(projectId)).map((run) => run.eval_id)
  assert.deepEqual(await evalsOf(one), [older.id, older.id, older.id, older.id, newer.id])
  assert.equal((await evalsOf(other)).length, MOST_UNDER_WAY)
})

test('a halted project starts no run, and judges runs that have ended', async () => {
  const projectId = await insertProject(pool)
  const { id } = await make(projectId, 5)
  await look(projectId)
  await pool.query('update projects set halted_at = muster.now() where id = $1', [projectId])
  assert.equal(await found(projectId), false, 'its runs are under way')
  await end((await openRuns(projectId)).map((run) => run.id))
  assert.equal(await found(projectId), true, 'runs have ended')
  assert.equal((await look(projectId)).started, 0)
  assert.equal(await found(projectId), false, 'it waits for the off switch')
  const halted = await getListed(pool, projectId, id)
  assert.deepEqual([halted.status, halted.progress.done], ['running', 5])
  await pool.query('update projects set halted_at = null where id = $1', [projectId])
  assert.equal(await found(projectId), true, 'there is room')
  assert.equal((await look(projectId)).started, 5)
  assert.equal(await found(projectId), false, 'there is none')
})

test('a deleted project is left alone', async () => {
  const projectId = await insertProject(pool)
  await make(projectId, 1)
  assert.equal(await found(projectId), true)
  await pool.query('update projects set deleted_at = muster.now() where id = $1', [projectId])
  assert.deepEqual(await look(projectId), { started: 0, toCancel: [], isBusy: false })
  assert.equal(await found(projectId), null)
})

test('a cancelled eval starts no run, and is over when its runs are', async () => {
  const projectId = await insertProject(pool)
  const { id } = await make(projectId, 4)
  await look(projectId)
  const [first, ...others] = await openRuns(projectId)
  await end([first?.id ?? ''])
  const cancelled = await inTransaction(pool, (tx) => cancelEval(tx, projectId, id, systemActor))
  assert.equal(cancelled.status, 'cancelled')
  const { started, toCancel } = await look(projectId)
  assert.equal(started, 0)
  assert.deepEqual(new Set(toCancel), new Set(others.map((run) => run.id)))
  assert.equal(await found(projectId), true)
  await end(toCancel, { status: 'cancelled' })
  assert.deepEqual((await look(projectId)).toCancel, [])
  assert.equal(await found(projectId), null)
  const read = await getEval(pool, projectId, id)
  const results = Object.values(read.variants).flatMap((variant) => variant.cases)
  assert.ok(results.every(({ passed }) => passed === null))
  assert.equal(results.filter(({ reason }) => reason?.includes('stopped')).length, 5)
  assert.equal(results.filter(({ run_id: runId }) => runId === null).length, 3)
  assert.deepEqual(read.deltas, { pass_rate: null, latency: null, tokens: null })
  const again = await inTransaction(pool, (tx) => cancelEval(tx, projectId, id, systemActor))
  assert.deepEqual(again, cancelled, 'a second cancel changes nothing')
  assert.equal(await count(`select from audit_log where action = 'eval.cancel' and target_id = $1`, [id]), 1)
})

test('a variant stays as it was when the eval was made', async () => {
  const projectId = await insertProject(pool)
  await make(projectId, 1)
  await pool.query(`insert into systems (project_id, variant, config, traffic) values ($1, 'green', '{}', 0)`, [
    projectId,
  ])
  await look(projectId)
  const { rows } = await pool.query<{ names: string[] }>(
    `select array(select s->>'name' from jsonb_array_elements(part->'config'->'specialists') s) as names
     from agent_runs where project_id = $1`,
    [projectId],
  )
  assert.deepEqual(rows, [
    { names: ['research_agent', 'transform_agent'] },
    { names: ['research_agent', 'transform_agent'] },
  ])
})

test('the tokens of a result include the run and all runs below it', async () => {
  const projectId = await insertProject(pool)
  const { id } = await make(projectId, 1)
  await look(projectId)
  const runs = await openRuns(projectId)
  const insertBelow = async (parentId: string, tokens: number): Promise<string> => {
    const { rows } = await pool.query<{ id: string }>(
      `insert into agent_runs (id, project_id, trigger, input, parent_run_id, input_tokens, output_tokens, completed_at)
       values (gen_random_uuid(), $1, '{"type":"supervisor"}', '""', $2, $3, 1, muster.now()) returning id`,
      [projectId, parentId, tokens],
    )
    return rows[0]?.id ?? assert.fail()
  }
  await insertBelow(await insertBelow(runs[0]?.id ?? '', 100), 1_000)
  await end(runs.map((run) => run.id))
  await look(projectId)
  const { variants } = await getEval(pool, projectId, id)
  assert.deepEqual([variants.blue?.tokens, variants.green?.tokens], [11 + 101 + 1_001, 11])
})

test('a removed run counts as failed, and an eval that cannot go on fails with a reason', async () => {
  const projectId = await insertProject(pool)
  const { id } = await make(projectId, 3)
  await look(projectId)
  const [gone] = await openRuns(projectId)
  await pool.query('delete from agent_runs where id = $1', [gone?.id])
  await look(projectId)
  const read = await getEval(pool, projectId, id)
  const { status, reason, latency, tokens } = read.variants.blue?.cases[0] ?? assert.fail()
  assert.deepEqual([status, reason], ['FAILED', 'The run was removed before its outcome was read.'])
  assert.deepEqual([latency, tokens], [null, null])
  assert.equal(read.progress.done, 1)
  await end((await openRuns(projectId)).map((run) => run.id))
  await look(projectId)
  const { status: ended, variants } = await getEval(pool, projectId, id)
  assert.deepEqual([ended, variants.blue?.latency, variants.blue?.tokens], ['completed', 7, 11])

  const broken = await make(projectId, 3)
  const sound = await make(projectId, 1)
  await pool.query(`update evals set systems = '[]' where id = $1`, [broken.id])
  const { log, lines } = recordLog()
  assert.equal((await look(projectId, log)).started, 2, 'the next eval goes on')
  assert.ok(lines.some((line) => JSON.stringify(line).includes('an eval failed in our own code')))
  const failed = await getListed(pool, projectId, broken.id)
  assert.equal(failed.status, 'failed')
  assert.match(failed.error_message ?? '', /no configuration/)
  assert.equal((await getListed(pool, projectId, sound.id)).status, 'running')
})

test('a database that does not answer fails no eval', async () => {
  const projectId = await insertProject(pool)
  const { id } = await make(projectId, 1)
  const away = createPool({ url: 'postgres://127.0.0.1:1/nobody', max: 1, log: silentLog })
  await assert.rejects(advanceEvals(away, silentLog, projectId))
  await away.end()
  // The statement that inserts a run is cut off, as by a restart of the database.
  await pool.query(`
    create function pg_temp_cut() returns trigger language plpgsql as
      $$ begin raise exception 'the database is going down' using errcode = '57P01'; end $$;
    create trigger cut before insert on agent_runs for each row when (new.project_id = '${projectId}')
      execute function pg_temp_cut()`)
  await assert.rejects(look(projectId), /going down/)
  await pool.query('drop trigger cut on agent_runs')
  assert.equal((await getListed(pool, projectId, id)).status, 'running')
  assert.equal((await look(projectId)).started, 2)
})

test('texts of a large eval are cut, so that the answer stays bounded', async () => {
  const projectId = await insertProject(pool)
  const { id } = await inTransaction(pool, (tx) =>
    createEval(
      tx,
      projectId,
      {
        name: 'large',
        variants: ['blue', 'green'],
        cases: [{ task: 'x'.repeat(1_000_000), expect: {} }, ...cases(999)],
      },
      systemActor,
    ),
  )
  await pool.query(
    `update eval_results set run_id = $2, ended_at = muster.now(), passed = true, output = repeat('y', 20000)
    where eval_id = $1`,
    [id, id],
  )
  const read = await getEval(pool, projectId, id)
  const size = JSON.stringify(read).length
  assert.ok(size < 6_000_000, `${size} characters`)
  assert.match(read.variants.blue?.cases[0]?.task ?? '', /^x{1000,} \[cut\]$/)
  assert.match(read.variants.blue?.cases[0]?.output ?? '', /^y{1000,} \[cut\]$/)
})
