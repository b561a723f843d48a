// The cost of Home in an instance that is years old, and over a thousand projects.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLargeDatabase } from '../../../test/kit/large-database.ts'
import { fill, LARGE_TABLES } from '../../../test/kit/large-tables.ts'
import { readPlans, recordStatements } from '../../../test/kit/query-plans.ts'
import { listProjects } from '../../identity/projects.ts'
import type { Home } from '../../kernel/home.ts'
import { newId } from '../../kernel/id.ts'
import { readHome } from './read-home.ts'

const { pool, large } = await createLargeDatabase()
const PROJECTS = 1_000
const LONG_AGO = new Date(0)
const now = new Date()
const aDayAgo = new Date(now.getTime() - 24 * 60 * 60_000)
const TIME_MS = 30_000

async function projectsOf(limit: number) {
  const { items } = await listProjects(pool, { type: 'instance_admin', id: newId() }, { limit })
  return items
}

/** Reads Home, and measures each of its statements once more. */
async function measure(projects: Awaited<ReturnType<typeof projectsOf>>, since: Date) {
  const recording = recordStatements(pool)
  const home = await readHome(pool, { projects, hasMore: false, since, now, timeMs: TIME_MS })
  recording.stop()
  assert.deepEqual(home.incomplete, [])
  const statements = recording.statements.filter(({ text }) => !text.startsWith('savepoint'))
  const plans = await readPlans(pool, statements, { large: LARGE_TABLES })
  return { home, plans }
}

/** Every statement is served by indexes, and its cost is that of the projects and of the rows that are counted. */
async function requireCheap(projects: Awaited<ReturnType<typeof projectsOf>>, since: Date): Promise<Home> {
  const { home, plans } = await measure(projects, since)
  assert.ok(plans.length >= 12, `only ${plans.length} statements`)
  // A part of a list searches an index once in each project. The large projects have as many rows as are counted: each
  // may be a block of the table, and the search for the continuation of a run takes three more.
  const most = 300 + 20 * projects.length + large.projects.length * 101 * 6
  const problems = plans
    .filter(({ buffers, sequentialScans }) => buffers > most || sequentialScans.length > 0)
    .map(({ text, buffers, sequentialScans, explained }) =>
      [`${buffers} buffers where ${most} are explained`, JSON.stringify(sequentialScans), text, explained].join('\n'),
    )
  assert.deepEqual(problems, [], problems.join('\n\n'))
  return home
}

test('Home over large projects is read by index, whatever the time since when it tells', async () => {
  const projects = await projectsOf(PROJECTS)
  const recent = await requireCheap(projects, aDayAgo)
  assert.deepEqual([recent.fails.count, recent.fails.has_more], [0, false])
  const all = await requireCheap(projects, LONG_AGO)
  assert.ok(all.fails.count >= 300 && all.fails.has_more && all.fails.items.length === 50)
})

test('Home over a thousand projects is read by index as well', async () => {
  await fill(pool, async (client) => {
    await client.query(
      `insert into projects (id, name, created_at) select gen_random_uuid(), 'Small ' || n, now() - interval '70 days'
       from generate_series(1, $1::int) n`,
      [PROJECTS - large.projects.length],
    )
    await client.query(
      `insert into agents (id, project_id, name, prompt, capabilities)
       select gen_random_uuid(), id, 'Worker', '', '{}' from projects where name like 'Small %'`,
    )
    await client.query('insert into agent_tokens (agent_id, used) select id, 1 from agents on conflict do nothing')
    // The flow run of an agent that is a flow, which shows the run.
    await client.query(
      `insert into flow_runs (id, project_id, root, input, status, progress, timeout, created_at, completed_at, ready_at)
       select gen_random_uuid(), project_id, '{"type":"task"}', 'null', s.status, '{}', 1000, now(),
         case when s.status = 'failed' then now() end, null
       from agents, (values ('failed'), ('running')) s (status) where name = 'Worker'`,
    )
    await client.query(
      `insert into agent_runs (id, project_id, status, trigger, input, created_at, completed_at, ready_at, started_flow_run_id)
       select gen_random_uuid(), project_id, status, '{"type":"manual"}', '"x"', created_at, completed_at, null, id
       from flow_runs where input = 'null' and created_at > now() - interval '1 day'`,
    )
    await client.query(
      `insert into agent_runs (id, project_id, agent_id, status, trigger, input, created_at, completed_at, ready_at)
       select gen_random_uuid(), project_id, id, s.status, '{"type":"manual"}', '"x"', now(),
         case when s.status = 'failed' then now() end, null
       from agents, (values ('failed'), ('running')) s (status) where name = 'Worker'`,
    )
    await client.query(
      `insert into tasks (id, project_id, kind, title, status, created_by)
       select gen_random_uuid(), id, 'work', 'Decide', 'pending', '{"type":"user","id":null}' from projects`,
    )
  })
  const projects = await projectsOf(PROJECTS)
  assert.equal(projects.length, PROJECTS)
  const { waits, runs, fails } = await requireCheap(projects, aDayAgo)
  const small = PROJECTS - large.projects.length
  assert.deepEqual([waits.count, runs.count, fails.count], [PROJECTS, 2 * small, 2 * small])
  await requireCheap(projects.slice(0, 3), LONG_AGO)
})
