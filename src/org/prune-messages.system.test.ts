import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase } from '../../test/kit/database.ts'
import { measureStatements } from '../../test/kit/query-plans.ts'
import { insertProject } from '../../test/kit/runs.ts'
import { newId } from '../kernel/id.ts'
import { pruneMessages } from './prune-messages.ts'

const { pool, clock } = await createTestDatabase()
const DAY_MS = 86_400_000

const send = async (projectId: string, count: number, taskId: string | null = null): Promise<void> => {
  await pool.query(
    `insert into agent_messages (id, project_id, from_agent, to_agent, kind, body, task_id)
     select gen_random_uuid(), $1, $2, $2, 'delegation', 'x', $3 from generate_series(1, $4::int)`,
    [projectId, newId(), taskId, count],
  )
}
const left = async (projectId: string): Promise<number> =>
  (await pool.query('select from agent_messages where project_id = $1', [projectId])).rowCount ?? 0

test('messages older than the project keeps runs are removed in batches; other messages stay', async () => {
  const [project, other] = [await insertProject(pool), await insertProject(pool)]
  await send(project, 1_200)
  await send(other, 10)
  await clock.advance(11 * DAY_MS)
  await send(project, 3)
  const { measured, stop } = measureStatements(pool, { large: ['agent_messages'] })
  assert.equal(await pruneMessages(pool, { projectId: project, days: 10 }), 1_200)
  stop()
  assert.equal(measured.filter(({ text }) => text.startsWith('delete')).length, 3)
  assert.equal(await left(project), 3)
  assert.equal(await left(other), 10)
})

test('a message about a task stays while the task is open', async () => {
  const project = await insertProject(pool)
  const task = newId()
  await pool.query(`insert into tasks (id, project_id, kind, title, created_by) values ($1, $2, 'work', 'x', '{}')`, [
    task,
    project,
  ])
  await send(project, 2, task)
  await send(project, 1, newId())
  await clock.advance(11 * DAY_MS)
  assert.equal(await pruneMessages(pool, { projectId: project, days: 10 }), 1, 'the task of one is gone')
  await pool.query(`update tasks set status = 'completed', completed_at = muster.now() where id = $1`, [task])
  assert.equal(await pruneMessages(pool, { projectId: project, days: 10 }), 2)
})

test('old messages are found by index, however many others there are', async () => {
  const [project, other] = [await insertProject(pool), await insertProject(pool)]
  await send(project, 2)
  await clock.advance(11 * DAY_MS)
  await send(project, 5_000)
  await send(other, 20_000)
  await pool.query('analyze agent_messages')
  const { measured, stop } = measureStatements(pool, { large: ['agent_messages'] })
  assert.equal(await pruneMessages(pool, { projectId: project, days: 10 }), 2)
  stop()
  assert.deepEqual(
    measured.flatMap(({ sequentialScans }) => sequentialScans),
    [],
  )
  for (const { text, buffers } of measured) assert.ok(buffers < 100, `${buffers} buffers: ${text}`)
})
