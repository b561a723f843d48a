import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase } from '../../test/kit/database.ts'
import { fill } from '../../test/kit/large-tables.ts'
import { measureStatements } from '../../test/kit/query-plans.ts'
import { insertProject } from '../../test/kit/runs.ts'
import { noteTokensOfMonth, THIS_MONTH } from '../journal/month.ts'
import { newId } from '../kernel/id.ts'
import { countAgents, countMarked, countOpenTasks, MOST_TASKS, oldestTaskSeconds, sumLimitedMonths } from './figures.ts'

const { pool, clock } = await createTestDatabase()

async function agent(project: string, fields: Record<string, unknown> = {}): Promise<string> {
  const given: Record<string, unknown> = {
    id: newId(),
    project_id: project,
    name: newId(),
    capabilities: {},
    ...fields,
  }
  return insert('agents', given)
}
/** Makes a task that is this many seconds old. */
async function task(assignedTo: string | null, seconds: number, fields: Record<string, unknown> = {}): Promise<string> {
  const created_at = new Date((await nowMs()) - seconds * 1_000)
  const given = { id: newId(), project_id: project, kind: 'work', title: 'x', created_by: {}, created_at }
  return insert('tasks', { ...given, assigned_to: assignedTo, ...fields })
}
async function insert(table: string, fields: Record<string, unknown>): Promise<string> {
  const columns = Object.keys(fields)
  const places = columns.map((_, place) => `$${place + 1}`)
  await pool.query(`insert into ${table} (${columns}) values (${places})`, Object.values(fields))
  return String(fields.id)
}
const nowMs = async (): Promise<number> =>
  (await pool.query<{ at: Date }>('select muster.now() as at')).rows[0]?.at.getTime() ?? 0
/** Rounds to the nearest ten seconds. */
const oldest = async (): Promise<number> => Math.floor((await oldestTaskSeconds(pool)) / 10) * 10
const set = (table: string, id: string, change: string) =>
  pool.query(`update ${table} set ${change} where id = $1`, [id])

const project = await insertProject(pool)

test('the oldest task is the oldest that an agent could start now', async () => {
  assert.equal(await oldestTaskSeconds(pool), 0)
  const worker = await agent(project)
  const bored = await agent(project, { status: 'bored' })
  await task(worker, 100, { priority: 'urgent' })
  await task(bored, 200, { priority: 'low' })
  assert.equal(await oldest(), 200)
  const halted = await insertProject(pool)
  await set('projects', halted, 'halted_at = muster.now()')
  const cannot = [
    await agent(project, { status: 'paused' }),
    await agent(project, { status: 'stuck' }),
    await agent(project, { enabled: false }),
    await agent(project, { deleted_at: new Date() }),
    await agent(halted),
    null,
  ]
  for (const each of cannot) await task(each, 5_000)
  const later = new Date((await nowMs()) + 60_000)
  for (const fields of [
    { waits_for: 'dependencies' },
    { retry_at: later },
    { status: 'in-progress' },
    { status: 'blocked' },
    { status: 'completed', completed_at: new Date() },
    { kind: 'suggestion' },
  ]) {
    await task(worker, 6_000, fields)
  }
  assert.equal(await oldest(), 200)
  await task(worker, 300, { retry_at: new Date(Date.now() - 1_000) })
  assert.equal(await oldest(), 300)
  await clock.advance(61_000)
  assert.equal(await oldest(), 6_060, 'its time has come')
})

test('thousands of older tasks of agents that may not work do not hide the oldest one', async () => {
  const stopped = await agent(project, { status: 'paused' })
  await pool.query(
    `insert into tasks (id, project_id, kind, title, created_by, assigned_to, created_at)
     select gen_random_uuid(), $1, 'work', 'x', '{}', $2, muster.now() - interval '1 day' from generate_series(1, $3::int)`,
    [project, stopped, MOST_TASKS + 10],
  )
  assert.equal(await oldest(), 6_060)
  await set('agents', stopped, `status = 'active'`)
  assert.equal(await oldest(), 86_400)
  await pool.query('delete from tasks where assigned_to = $1', [stopped])
})

test('open tasks are counted by kind and status, live agents by status', async () => {
  await pool.query('delete from tasks')
  await pool.query('delete from agents')
  await Promise.all([agent(project), agent(project), agent(project, { status: 'stuck' })])
  await agent(project, { deleted_at: new Date() })
  const counted = (await countAgents(pool)).map(({ status, count }) => `${status} ${count}`)
  assert.deepEqual(counted, ['active 2', 'bored 0', 'stuck 1', 'paused 0'])
  for (const status of ['pending', 'pending', 'in-progress', 'blocked']) await task(null, 1, { status })
  await task(null, 1, { kind: 'escalation' })
  await task(null, 1, { status: 'completed', completed_at: new Date() })
  const tasks = await countOpenTasks(pool)
  assert.equal(tasks.length, 9)
  assert.deepEqual(
    tasks.filter(({ count }) => count > 0).map(({ kind, status, count }) => `${kind} ${status} ${count}`),
    ['work pending 2', 'work in-progress 1', 'work blocked 1', 'escalation pending 1'],
  )
})

test('agents are counted by the mark of their allocation that they have passed', async () => {
  for (const [mark, fields] of [
    [0, {}],
    [90, {}],
    [100, {}],
    [100, { deleted_at: new Date() }],
  ] as const) {
    await pool.query('insert into agent_tokens (agent_id, mark) values ($1, $2)', [await agent(project, fields), mark])
  }
  assert.deepEqual(await countMarked(pool), [
    { mark: 90, count: 1 },
    { mark: 95, count: 0 },
    { mark: 100, count: 1 },
  ])
})

test('the month’s tokens are summed up for projects with a limit only', async () => {
  const limited = await insertProject(pool)
  await set('projects', limited, `settings = '{"monthly_token_limit": 100}'`)
  const other = await insertProject(pool)
  for (const [each, month, used] of [
    [limited, THIS_MONTH, 60],
    [limited, THIS_MONTH, 30],
    [limited, `'2020-01-01'`, 1_000],
    [other, THIS_MONTH, 1_000],
  ] as const) {
    await pool.query(`insert into agent_tokens (agent_id, month, month_used) values ($1, ${month}, $2)`, [
      await agent(each),
      used,
    ])
  }
  assert.deepEqual(await sumLimitedMonths(pool), { used: 90, limit: 100, spent: 0 })
  await noteTokensOfMonth(pool, limited, 10)
  assert.deepEqual(await sumLimitedMonths(pool), { used: 100, limit: 100, spent: 1 })
  await set('projects', limited, `settings = '{"monthly_token_limit": null}'`)
  assert.deepEqual(await sumLimitedMonths(pool), { used: 0, limit: 0, spent: 0 })
})

test('no figure reads ended tasks, nor every project and agent', async () => {
  await fill(pool, async (client) => {
    await client.query(`insert into projects (id, name) select gen_random_uuid(), 'Idle' from generate_series(1, 1000)`)
    await client.query(
      `insert into agents (id, project_id, name, prompt, capabilities)
       select gen_random_uuid(), id, 'Idle ' || i, repeat('Work. ', 100), '{}' from projects, generate_series(1, 3) i
       where name = 'Idle'`,
    )
    await client.query(`insert into agent_tokens (agent_id, used) select id, 5 from agents where name like 'Idle%'`)
    await client.query(
      `insert into tasks (id, project_id, kind, title, created_by, assigned_to, status, completed_at)
       select gen_random_uuid(), project_id, 'work', 'x', '{}', id, 'completed', now() from agents, generate_series(1, 10)`,
    )
    await client.query(
      `insert into tasks (id, project_id, kind, title, created_by, assigned_to)
       select gen_random_uuid(), project_id, 'work', 'x', '{}', id from agents where name like 'Idle%' order by id limit 20`,
    )
  })
  await pool.query(
    `update projects set settings = '{"monthly_token_limit": 7}' where id = (
       select id from projects where name = 'Idle' order by id limit 1)`,
  )
  const large = ['tasks', 'agents', 'projects', 'agent_tokens']
  const { measured, stop } = measureStatements(pool, { large })
  const figures = [oldestTaskSeconds, countOpenTasks, countAgents, countMarked, sumLimitedMonths]
  for (const read of figures) await read(pool)
  stop()
  assert.equal(measured.length, figures.length + 1)
  for (const { text, buffers, sequentialScans } of measured) {
    assert.deepEqual(sequentialScans, [], text)
    assert.ok(buffers < 150, `${buffers} buffers: ${text}`)
  }
})
