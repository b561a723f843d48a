// Tasks are started and settled while other transactions hold locks, while limits are reached, and while one project
// asks all the time.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createTestDatabase } from '../../test/kit/database.ts'
import { until } from '../../test/kit/until.ts'
import { inTransaction } from '../db/transaction.ts'
import { createProject } from '../identity/projects.ts'
import { newId } from '../kernel/id.ts'
import { type Log, silentLog } from '../kernel/log.ts'
import { systemActor } from '../kernel/principal.ts'
import { makeDue } from '../tasks/task-queue.ts'
import { createSettling } from './settle.ts'
import { takeUpTasks } from './take-up.ts'
import { startOrgWorker } from './worker.ts'

const { pool } = await createTestDatabase()

/** A project in which each of the agents has a task and is due. */
async function project({ agents = 1, settings = {} }: { agents?: number; settings?: object } = {}) {
  const { id: projectId } = await createProject(pool, { name: newId() }, systemActor)
  await pool.query('update projects set settings = settings || $2 where id = $1', [projectId, settings])
  const { rows } = await pool.query<{ id: string }>(
    `insert into agents (id, project_id, name, capabilities)
     select gen_random_uuid(), $1, 'agent ' || n, '{}' from generate_series(1, $2::int) n returning id`,
    [projectId, agents],
  )
  const agentIds = rows.map((row) => row.id)
  await pool.query(
    `insert into tasks (id, project_id, kind, title, assigned_to, created_by)
     select gen_random_uuid(), $1, 'work', 'x', id, '{"type": "user", "id": null}' from unnest($2::uuid[]) id`,
    [projectId, agentIds],
  )
  await makeDue(pool, projectId, agentIds)
  return { projectId, agentId: agentIds[0] ?? '' }
}

const takeUp = (projectId: string) => takeUpTasks(pool, silentLog, projectId)
const taskOf = async (projectId: string) =>
  (await pool.query('select * from tasks where project_id = $1', [projectId])).rows[0]
const runsOf = async (projectId: string) =>
  (await pool.query('select * from agent_runs where project_id = $1', [projectId])).rows

test('an attempt that goes on after a top-up is not handed back before a worker claims it', async () => {
  const settle = createSettling(pool, silentLog)
  const { projectId } = await project({ settings: { max_concurrent_agents: 1, task_batch_size: 1 } })
  assert.equal((await takeUp(projectId)).started, 1)
  const [run] = await runsOf(projectId)
  await pool.query(
    `update agent_runs set status = 'paused', pause_reason = 'budget', waits_for = 'allocation', ready_at = null, fence = 1
     where id = $1`,
    [run.id],
  )
  assert.equal((await settle()).settled.length, 1)
  assert.equal((await taskOf(projectId)).status, 'pending')
  assert.equal((await takeUp(projectId)).started, 1)
  assert.equal((await taskOf(projectId)).status, 'in-progress')

  assert.deepEqual(await settle(), { settled: [], isBusy: false })
  const [again, ...others] = await runsOf(projectId)
  assert.equal(others.length, 0)
  assert.deepEqual([again.id, again.is_task_open, again.ready_at !== null], [run.id, true, true])
  assert.equal((await taskOf(projectId)).status, 'in-progress')

  // The attempt counts as work: its agent may start no other task, and the project's limit lets no other agent start.
  await pool.query(
    `insert into tasks (id, project_id, kind, title, assigned_to, created_by)
     select gen_random_uuid(), $1, 'work', 'another', assigned_to, created_by from tasks where project_id = $1`,
    [projectId],
  )
  await makeDue(pool, projectId, [run.agent_id])
  assert.equal((await takeUp(projectId)).started, 0)
})

test('agents that wait for a place are not read again and again, however many they are', async () => {
  const { projectId } = await project({ agents: 700, settings: { max_concurrent_agents: 2 } })
  assert.equal((await takeUp(projectId)).started, 2)
  for (let pass = 0; pass < 3; pass++) assert.deepEqual(await takeUp(projectId), { started: 0, againInMs: null })
})

test('an agent whose queue is locked by another transaction is checked again in a moment', async () => {
  const { projectId, agentId } = await project()
  await inTransaction(pool, async (tx) => {
    await tx.query('update task_queues set check_at = muster.now() where agent_id = $1', [agentId])
    const { started, againInMs } = await takeUp(projectId)
    assert.deepEqual([started, againInMs !== null && againInMs <= 100], [0, true])
  })
  assert.equal((await takeUp(projectId)).started, 1)
})

test('an agent whose task is locked by another transaction is checked again in a moment', async () => {
  const { projectId } = await project()
  await inTransaction(pool, async (tx) => {
    await tx.query(`update tasks set metadata = '{"a": 1}' where project_id = $1`, [projectId])
    const { started, againInMs } = await takeUp(projectId)
    assert.deepEqual([started, againInMs !== null && againInMs <= 100], [0, true])
  })
  await sleep(50)
  assert.equal((await takeUp(projectId)).started, 1)
})

test('a subtask that is being made does not lock its parent', async () => {
  const { projectId } = await project()
  const { id } = await taskOf(projectId)
  await inTransaction(pool, async (tx) => {
    await tx.query(
      `insert into tasks (id, project_id, kind, title, created_by, parent_task_id)
       values ($1, $2, 'work', 'x', '{"type": "user", "id": null}', $3)`,
      [newId(), projectId, id],
    )
    assert.equal((await takeUp(projectId)).started, 1)
  })
})

test('an attempt whose task is locked by another transaction stops no other attempt', async () => {
  const settle = createSettling(pool, silentLog)
  const [locked, free] = [await project(), await project()]
  for (const { projectId } of [locked, free]) await takeUp(projectId)
  const ended = `update agent_runs set status = 'completed', ready_at = null, completed_at = muster.now() where project_id = any($1)`
  await pool.query(ended, [[locked.projectId, free.projectId]])
  await inTransaction(pool, async (tx) => {
    await tx.query(`update tasks set metadata = '{"a": 1}' where project_id = $1`, [locked.projectId])
    const { settled, isBusy } = await settle()
    assert.deepEqual([settled.map((run) => run.project_id), isBusy], [[free.projectId], true])
  })
  assert.equal((await settle()).settled.length, 1)
  assert.equal((await taskOf(locked.projectId)).status, 'completed')
})

test('a project that asks all the time does not delay the second check of another project', async (t) => {
  const busy = await project()
  const { projectId } = await project()
  const lock = await pool.connect()
  await lock.query('begin')
  await lock.query('select from task_queues where project_id = $1 for update', [projectId])
  const worker = startOrgWorker({ pool, log: silentLog, onReady: () => {} })
  let isAsking = true
  const asking = (async () => {
    while (isAsking) {
      worker.arrived(busy.projectId)
      await new Promise(setImmediate)
    }
  })()
  t.after(() => worker.stop())
  await until(async () => (await runsOf(busy.projectId)).length === 1, 'the busy project was looked at')
  worker.arrived(projectId)
  await sleep(100)
  await lock.query('commit')
  lock.release()
  await until(async () => (await runsOf(projectId)).length === 1, 'the other project was looked at again', 3_000)
  isAsking = false
  await asking
})

test('a check in between does not forget an agent that will be due', async (t) => {
  const { projectId, agentId } = await project()
  await pool.query(
    `with retried as (update tasks set retry_at = muster.now() + interval '400 ms' where project_id = $1 returning assigned_to)
     update task_queues set due_at = muster.now() + interval '400 ms' where agent_id = $2`,
    [projectId, agentId],
  )
  const worker = startOrgWorker({ pool, log: silentLog, onReady: () => {} })
  t.after(() => worker.stop())
  for (let look = 0; look < 10; look++) {
    worker.arrived(projectId)
    await sleep(10)
  }
  await until(async () => (await runsOf(projectId)).length === 1, 'it was tried again in time', 3_000)
})

test('a project whose tasks cannot start leaves the process healthy, and is tried less and less often', async (t) => {
  const { projectId } = await project()
  await pool.query(
    `create function refuse() returns trigger language plpgsql as 'begin raise exception ''refused''; end'`,
  )
  await pool.query(
    `create trigger refuse before insert on agent_runs for each row when (new.project_id = '${projectId}') execute function refuse()`,
  )
  const lines: { at: number; fields: object; text: string }[] = []
  const note = (fields: object, text: string): void => void lines.push({ at: performance.now(), fields, text })
  const log: Log = { ...silentLog, error: note }
  const worker = startOrgWorker({ pool, log, onReady: () => {} })
  t.after(() => worker.stop())
  const asking = setInterval(worker.sweep, 20)
  t.after(() => clearInterval(asking))
  await until(() => lines.length === 3, 'it was tried three times')
  const waits = lines.slice(1).map((line, index) => line.at - (lines[index]?.at ?? 0))
  assert.ok((waits[0] ?? 0) >= 900 && (waits[1] ?? 0) >= 1_900, `it waited ${waits.map(Math.round)} ms`)
  assert.ok(lines.every(({ text }) => text === 'tasks of a project cannot be started yet'))
  assert.ok(lines.every(({ fields }) => JSON.stringify(fields).includes(projectId)))
})
