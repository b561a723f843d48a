// A thousand agents with five tasks each, and two servers over one database, one of which is killed on the way: every
// task is done once.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { atEnd } from '../kit/at-end.ts'
import { createUnusedDatabase } from '../kit/database.ts'
import { startMuster } from '../kit/process.ts'
import { withClient } from '../kit/test-server.ts'
import { until } from '../kit/until.ts'

const AGENTS = 1_000
const TASKS_EACH = 5
const wholeFile = { after: atEnd }
const env = {
  MUSTER_ADMIN_TOKEN: 'one-token-for-all-servers',
  MUSTER_SECRET_KEY: 'one-key-for-all-of-the-servers',
  MUSTER_DEMO: 'off',
}

test('1,000 agents, 5,000 tasks, two processes, one killed on the way: every task done once', async (t) => {
  const databaseUrl = await createUnusedDatabase()
  const start = () => startMuster(wholeFile, { databaseUrl, env })
  const [first, second] = [await start(), await start()]
  const query = async <Row extends object>(sql: string, values: unknown[] = []): Promise<Row[]> =>
    withClient(databaseUrl, async (db) => (await db.query<Row>(sql, values)).rows)
  const { body: project } = await first.call<{ id: string }>('POST /api/projects', { body: { name: 'large' } })
  const base = `/api/projects/${project.id}`
  const settings = { max_concurrent_agents: AGENTS }
  assert.equal((await first.call(`PATCH ${base}/settings`, { body: settings })).status, 200)
  // The agents and their tasks are written straight into the database, because requests for each of them would take
  // longer than the work.
  await query(
    `with made as (
       insert into agents (id, project_id, name, capabilities)
       select gen_random_uuid(), $1, 'agent ' || n, '{"canCreateObjects": true, "canUpdateObjects": true, "canDeleteObjects": true}'
       from generate_series(1, ${AGENTS}) n returning id
     ), given as (
       insert into tasks (id, project_id, kind, title, assigned_to, created_by)
       select gen_random_uuid(), $1, 'work', 'Task ' || n, made.id, '{"type": "user", "id": null}'
       from made, generate_series(1, ${TASKS_EACH}) n
     )
     insert into task_queues (agent_id, project_id, due_at) select id, $1, muster.now() from made`,
    [project.id],
  )
  const began = performance.now()
  await first.call(`POST ${base}/tasks`, { body: { title: 'One more, so that they look.' } })
  const done = async (): Promise<number> =>
    (await query<{ count: number }>(`select count(*)::int as count from tasks where status = 'completed'`))[0]?.count ??
    0
  await until(async () => (await done()) > (AGENTS * TASKS_EACH) / 5, 'a fifth is done', 120_000)
  await second.kill('SIGKILL')
  await until(async () => (await done()) === AGENTS * TASKS_EACH, 'all is done', 240_000)
  t.diagnostic(`${AGENTS * TASKS_EACH} tasks in ${Math.round((performance.now() - began) / 1_000)} s`)
  const [wrong] = await query<{ count: number }>(
    `select count(*)::int as count from (
       select t.id from tasks t left join agent_runs r on r.task_id = t.id and r.status = 'completed'
       where t.assigned_to is not null group by t.id having count(r.id) <> 1
     ) w`,
  )
  assert.equal(wrong?.count, 0, 'tasks that were not done exactly once')
  const [failed] = await query<{ count: number }>(
    `select count(*)::int as count from agent_runs where status = 'failed'`,
  )
  assert.equal(failed?.count, 0)
})
