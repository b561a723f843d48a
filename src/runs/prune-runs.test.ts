import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase } from '../../test/kit/database.ts'
import { insertProject, insertRuns } from '../../test/kit/runs.ts'
import { takeTurn } from '../db/in-batches.ts'
import { createJournal } from '../journal/append.ts'
import { newId } from '../kernel/id.ts'
import { silentLog } from '../kernel/log.ts'
import { pruneTasks } from '../tasks/prune-tasks.ts'
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

/** Sets fields of a run's row. */
const set = async (runId: string, fields: Record<string, unknown>): Promise<void> => {
  const names = Object.keys(fields)
  await pool.query(
    `update agent_runs set ${names.map((name, place) => `${name} = $${place + 2}`).join(', ')} where id = $1`,
    [runId, ...Object.values(fields)],
  )
}

/** A project that keeps runs for ten days and has this many runs under way. */
async function forgetful(count: number): Promise<{ project: string; ids: string[] }> {
  const project = await insertProject(pool, 'keeps ten days')
  await pool.query(`update projects set settings = '{"run_retention_days": 10}' where id = $1`, [project])
  return { project, ids: await insertRuns(pool, project, count) }
}

test('runs that ended longer ago than their project keeps them are removed whole; other runs stay', async () => {
  const keeper = await insertProject(pool, 'keeps everything')
  const kept = await insertRuns(pool, keeper, 2)
  const { ids } = await forgetful(6)
  const [old = '', continued = '', parent = '', under = '', continuing = '', child = ''] = ids
  await set(continuing, { base_run_id: continued })
  await set(child, { parent_run_id: parent })
  for (const id of [...kept, old, continued, parent]) await end(id)
  await clock.advance(11 * DAY_MS)
  await end(child)
  assert.equal(await pruneRuns(pool), 1)
  const all = [...kept, ...ids]
  assert.deepEqual((await left(all)).toSorted(), all.filter((id) => id !== old).toSorted())
  assert.equal(await eventsLeft([old]), 0)
  assert.equal(await eventsLeft([continued]), 1)
  await end(continuing)
  await clock.advance(11 * DAY_MS)
  assert.equal(await pruneRuns(pool), 4)
  assert.deepEqual((await left(all)).toSorted(), [...kept, under].toSorted())
})

test('a sub-run stays while anything in its tree is open or young', async () => {
  const { ids } = await forgetful(3)
  const [root = '', child = '', grandchild = ''] = ids
  await set(child, { parent_run_id: root })
  await set(grandchild, { parent_run_id: child })
  await end(grandchild)
  await end(child)
  await clock.advance(11 * DAY_MS)
  assert.equal(await pruneRuns(pool), 0, 'the root is open and would start the sub-run again')
  await end(root)
  await clock.advance(9 * DAY_MS)
  assert.equal(await pruneRuns(pool), 0, 'the root is young')
  await clock.advance(2 * DAY_MS)
  assert.equal(await pruneRuns(pool), 3)
  assert.deepEqual(await left(ids), [])
})

test('a run whose call has an unknown outcome stays until somebody has decided', async () => {
  const { ids } = await forgetful(4)
  const [undecided = '', parent = '', below = '', continuation = ''] = ids
  await set(below, { parent_run_id: parent })
  for (const id of [undecided, parent, below]) await end(id)
  for (const id of [undecided, below]) await set(id, { status: 'paused', pause_reason: 'outcome_unknown' })
  await set(continuation, { base_run_id: undecided, resumed_from: undecided })
  await end(continuation)
  await clock.advance(11 * DAY_MS)
  // The first call was decided by the run that continued its run; in the second tree a sub-run is undecided.
  assert.equal(await pruneRuns(pool), 2)
  assert.deepEqual((await left(ids)).toSorted(), [parent, below].toSorted())
})

test('a specialist whose call has an unknown outcome stays until the question about it is answered', async () => {
  const { project, ids } = await forgetful(2)
  const [supervisor = '', specialist = ''] = ids
  await set(specialist, { parent_run_id: supervisor })
  for (const id of ids) {
    await set(id, { agent_id: null, part: '{}' })
    await end(id)
  }
  await set(specialist, { status: 'paused', pause_reason: 'outcome_unknown' })
  const task = newId()
  await pool.query(
    `insert into tasks (id, project_id, kind, title, created_by, run_id) values ($1, $2, 'escalation', 'x', '{}', $3)`,
    [task, project, specialist],
  )
  await clock.advance(11 * DAY_MS)
  assert.equal(await pruneRuns(pool), 0)
  await pool.query(`update tasks set status = 'completed', completed_at = muster.now() where id = $1`, [task])
  assert.equal(await pruneRuns(pool), 2)
  assert.deepEqual(await left(ids), [])
})

test('a run stays while people have to decide about its suggestions', async () => {
  const { project, ids } = await forgetful(1)
  const [run = ''] = ids
  const task = newId()
  await pool.query(
    `insert into tasks (id, project_id, kind, title, created_by, run_id) values ($1, $2, 'suggestion', 'x', '{}', $3)`,
    [task, project, run],
  )
  await end(run)
  await clock.advance(11 * DAY_MS)
  assert.equal(await pruneRuns(pool), 0)
  await pool.query(`update tasks set status = 'rejected', completed_at = muster.now() where id = $1`, [task])
  assert.equal(await pruneTasks(pool, { projectId: project, days: 10 }), 0, 'a task stays as long as its run')
  assert.equal(await pruneRuns(pool), 1)
  await clock.advance(11 * DAY_MS)
  assert.equal(await pruneTasks(pool, { projectId: project, days: 10 }), 1)
})

for (const [status, column] of [
  ['pending', 'attempt_run_id'],
  ['in-progress', 'attempt_run_id'],
  ['blocked', 'attempt_run_id'],
  ['pending', 'last_run_id'],
  ['blocked', 'last_run_id'],
] as const) {
  test(`the run in ${column} of a task stays while the task is ${status}, with everything in its tree`, async () => {
    const { project, ids } = await forgetful(3)
    const [earlier = '', attempt = '', child = ''] = ids
    await set(attempt, { base_run_id: earlier, resumed_from: earlier })
    await set(child, { parent_run_id: attempt })
    const task = newId()
    await pool.query(
      `insert into tasks (id, project_id, kind, title, status, created_by, assigned_to, ${column})
       values ($1, $2, 'work', 'x', $4, '{}', $1, $3)`,
      [task, project, attempt, status],
    )
    for (const id of ids) await end(id)
    await clock.advance(400 * DAY_MS)
    assert.equal(await pruneRuns(pool), 0)
    assert.equal((await left(ids)).length, 3)
    await pool.query(`update tasks set status = 'completed', completed_at = muster.now() where id = $1`, [task])
    assert.equal(await pruneRuns(pool), 3)
  })
}

test('a subtask stays while the task above it is open, which completes with its result', async () => {
  const { project } = await forgetful(0)
  const [parent, subtask] = [newId(), newId()]
  await pool.query(
    `insert into tasks (id, project_id, kind, title, status, created_by, parent_task_id, completed_at)
     values ($1, $3, 'work', 'x', 'in-progress', '{}', null, null), ($2, $3, 'work', 'x', 'completed', '{}', $1, muster.now())`,
    [parent, subtask, project],
  )
  await clock.advance(11 * DAY_MS)
  assert.equal(await pruneTasks(pool, { projectId: project, days: 10 }), 0)
  await pool.query(`update tasks set status = 'completed', completed_at = muster.now() where id = $1`, [parent])
  assert.equal(await pruneTasks(pool, { projectId: project, days: 10 }), 1)
  await clock.advance(11 * DAY_MS)
  assert.equal(await pruneTasks(pool, { projectId: project, days: 10 }), 1)
})

test('runs that stay do not block the removal of others', async () => {
  const { project } = await forgetful(0)
  const ids = await insertRuns(pool, project, 450)
  await pool.query(
    `update agent_runs set status = 'paused', pause_reason = 'outcome_unknown', completed_at = muster.now()
     where id = any($1)`,
    [ids],
  )
  const [old = ''] = await insertRuns(pool, project, 1)
  await end(old)
  await clock.advance(11 * DAY_MS)
  assert.equal(await pruneRuns(pool), 1)
  assert.deepEqual(await left([old]), [])
})

test('a tree that is too large for one batch is removed from the top down, whichever process dies meanwhile', async () => {
  const { project, ids } = await forgetful(1)
  const [root = ''] = ids
  const children = await insertRuns(pool, project, 1_700)
  await pool.query(
    `update agent_runs set parent_run_id = $2, status = 'completed', completed_at = muster.now() where id = any($1)`,
    [children, root],
  )
  await end(root)
  await clock.advance(11 * DAY_MS)
  const dying = new AbortController()
  const batches = pruneRuns(pool, dying.signal)
  while ((await left([root])).length > 0) await new Promise(setImmediate)
  dying.abort()
  await batches
  const rest = (await left(children)).length
  assert.ok(rest > 0 && rest < 1_700, `${rest} are left`)
  assert.equal(await pruneRuns(pool), rest)
  assert.equal((await pool.query('select from run_removals')).rowCount, 0)
})

test('a run that somebody continues stays, even if the retention had chosen it before', async () => {
  const { project, ids } = await forgetful(1)
  const [run = ''] = ids
  await end(run)
  await set(run, { status: 'paused', pause_reason: 'step_limit' })
  await clock.advance(11 * DAY_MS)
  // This is the order of a resume: it locks the run, and then inserts the run that goes on.
  const resuming = await pool.connect()
  await resuming.query('begin')
  await resuming.query('select from agent_runs where id = $1 for update', [run])
  assert.equal(await pruneRuns(pool), 0)
  const [continuation = ''] = await insertRuns(resuming, project, 1)
  await resuming.query('update agent_runs set base_run_id = $2, resumed_from = $2 where id = $1', [continuation, run])
  await resuming.query('commit')
  resuming.release()
  assert.equal(await pruneRuns(pool), 0)
  assert.deepEqual((await left([run, continuation])).toSorted(), [run, continuation].toSorted())
})

test('while one process removes runs, another does not', async () => {
  const { ids } = await forgetful(1)
  const [run = ''] = ids
  await end(run)
  await clock.advance(11 * DAY_MS)
  const other = await pool.connect()
  await other.query('begin')
  await takeTurn(other, 'retention')
  assert.equal(await pruneRuns(pool), 0)
  await other.query('rollback')
  other.release()
  assert.equal(await pruneRuns(pool), 1)
})

test('the removal of a project removes its runs and their journals', async () => {
  const project = await insertProject(pool, 'goes')
  const ids = await insertRuns(pool, project, 3)
  for (const id of ids) await end(id)
  assert.equal(await eventsLeft(ids), 3)
  await pool.query('delete from projects where id = $1', [project])
  assert.equal(await eventsLeft(ids), 0)
})
