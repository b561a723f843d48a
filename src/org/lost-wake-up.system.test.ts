// An agent may work again at the very moment when its tasks are being started: the organisation must check it once
// more.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createTestDatabase } from '../../test/kit/database.ts'
import { createAgent } from '../agents/agents.ts'
import { inTransaction } from '../db/transaction.ts'
import { createProject } from '../identity/projects.ts'
import { newId } from '../kernel/id.ts'
import { silentLog } from '../kernel/log.ts'
import { systemActor } from '../kernel/principal.ts'
import { makeDue } from '../tasks/task-queue.ts'
import { changeStatus } from './statuses.ts'
import { sweepProjects } from './sweep.ts'
import { takeUpTasks } from './take-up.ts'

/** An agent that is paused for tokens, has a pending task, and is due. */
async function world() {
  const { pool } = await createTestDatabase()
  const { id: projectId } = await createProject(pool, { name: 'p' }, systemActor)
  const write = { actor: systemActor, checkNames: async () => null, onChanged: async () => {} }
  const { id: agentId } = await inTransaction(pool, (tx) => createAgent(tx, projectId, { name: 'a' }, write))
  await pool.query(
    `insert into tasks (id, project_id, kind, title, assigned_to, created_by)
     values ($1, $2, 'work', 'x', $3, '{"type": "user", "id": null}')`,
    [newId(), projectId, agentId],
  )
  await changeStatus(pool, silentLog, { agentId, event: 'exhausted', why: '' })
  await makeDue(pool, projectId, [agentId])
  const fund = async (meanwhile: () => Promise<void>) =>
    inTransaction(pool, async (tx) => {
      await changeStatus(tx, silentLog, { agentId, event: 'funded', why: '' })
      await makeDue(tx, projectId, [agentId])
      await meanwhile()
    })
  const isForgotten = async (): Promise<boolean> => {
    const { rows } = await pool.query<{ lost: boolean }>(
      `select q.due_at is null and t.status = 'pending' as lost from task_queues q join tasks t on t.assigned_to = q.agent_id`,
    )
    return rows[0]?.lost ?? true
  }
  return { pool, projectId, fund, isForgotten }
}

test('given tokens in a transaction that commits while the take-up waits for the row of its queue', async () => {
  const { pool, projectId, fund, isForgotten } = await world()
  let taken: Promise<unknown> = Promise.resolve()
  await fund(async () => {
    taken = takeUpTasks(pool, silentLog, projectId)
    // This is long enough for the take-up to reach the row, or to pass it over.
    await Promise.race([taken, sleep(500)])
  })
  await taken
  assert.equal(await isForgotten(), false)
})

// The statement reads the clock before it locks the row. The clock is slow here, so that the change is committed
// between snapshot and lock.
for (const ms of [600, 900]) {
  test(`given tokens ${ms} ms after the take-up began, after its snapshot and before it locks the row`, async () => {
    const { pool, projectId, isForgotten } = await world()
    await pool.query(
      `create or replace function muster.now() returns timestamptz language plpgsql stable as
       $$ begin perform pg_sleep(0.4); return clock_timestamp(); end $$`,
    )
    const taken = takeUpTasks(pool, silentLog, projectId)
    await sleep(ms)
    await pool.query(
      `with funded as (update agents set status = 'active', paused_for = null)
       update task_queues set due_at = clock_timestamp()`,
    )
    await taken
    assert.equal(await isForgotten(), false)
  })
}

for (const ms of [600, 900]) {
  test(`an attempt that ends ${ms} ms after the take-up began, between its snapshot and its lock`, async () => {
    const { pool, projectId, isForgotten } = await world()
    await pool.query(`update agents set status = 'active', paused_for = null`)
    await pool.query(
      `insert into agent_runs (id, project_id, agent_id, trigger, input, task_id, status)
       select gen_random_uuid(), project_id, id, '{"type": "task"}', '"x"', gen_random_uuid(), 'running' from agents`,
    )
    await pool.query(
      `create or replace function muster.now() returns timestamptz language plpgsql stable as
       $$ begin perform pg_sleep(0.4); return clock_timestamp(); end $$`,
    )
    const taken = takeUpTasks(pool, silentLog, projectId)
    await sleep(ms)
    await pool.query(
      `with ended as (update agent_runs set status = 'completed', completed_at = clock_timestamp())
       update task_queues set due_at = clock_timestamp()`,
    )
    await taken
    assert.equal(await isForgotten(), false)
  })
}

for (const ms of [600, 900]) {
  test(`a task that arrives ${ms} ms after the take-up began, between its snapshot and its lock`, async () => {
    const { pool, projectId, isForgotten } = await world()
    await pool.query(`update agents set status = 'active', paused_for = null`)
    await pool.query(
      `create or replace function muster.now() returns timestamptz language plpgsql stable as
       $$ begin perform pg_sleep(0.4); return clock_timestamp(); end $$`,
    )
    await pool.query('delete from tasks')
    const taken = takeUpTasks(pool, silentLog, projectId)
    await sleep(ms)
    await pool.query(
      `with given as (
         insert into tasks (id, project_id, kind, title, assigned_to, created_by, created_at)
         select gen_random_uuid(), project_id, 'work', 'x', id, '{"type": "user", "id": null}', clock_timestamp() from agents
       )
       update task_queues set due_at = clock_timestamp()`,
    )
    await taken
    assert.equal(await isForgotten(), false)
  })
}

for (const { what, isOpen, warnings } of [
  { what: 'an agent that nobody made due is started, with a warning', isOpen: false, warnings: 1 },
  { what: 'an agent whose attempt has just ended is started without a warning', isOpen: true, warnings: 0 },
]) {
  test(what, async () => {
    const { pool, isForgotten } = await world()
    await pool.query(`update agents set status = 'active', paused_for = null`)
    await pool.query(`update tasks set created_at = muster.now() - interval '1 minute'`)
    await pool.query(`update task_queues set due_at = null, check_at = muster.now()`)
    await pool.query(
      `insert into agent_runs (id, project_id, agent_id, trigger, input, task_id, status, is_task_open, completed_at)
       select gen_random_uuid(), project_id, id, '{"type": "task"}', '"x"', gen_random_uuid(), 'completed', $1,
         muster.now() from agents`,
      [isOpen],
    )
    const told: string[] = []
    await sweepProjects(pool, { ...silentLog, warn: (_fields, message) => void told.push(message) })
    assert.equal(told.length, warnings, told.join())
    assert.equal(await isForgotten(), false)
  })
}
