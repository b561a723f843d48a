// The search of one project beside large tenants: the rows that it reads are bounded, whatever others have.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLargeDatabase } from '../../../test/kit/large-database.ts'
import { fill, LARGE_TABLES } from '../../../test/kit/large-tables.ts'
import { readPlans, recordStatements } from '../../../test/kit/query-plans.ts'
import { searchAgents } from '../../agents/search-agents.ts'
import { searchFlows } from '../../flows/definition/search-flows.ts'
import { searchFlowRuns } from '../../flows/history/search-flow-runs.ts'
import { newId } from '../../kernel/id.ts'
import { type RankedHit, readSought, type Sought } from '../../kernel/search.ts'
import { searchObjects } from '../../objects/search-objects.ts'
import { listRuns } from '../../runs/list-runs.ts'
import { searchRuns } from '../../runs/search-runs.ts'
import { searchTasks } from '../../tasks/search-tasks.ts'

const LIMIT = 5
/** The texts of a thousand rows are read, of tasks also those of each open status; each row may be a block of its own. */
const MOST_BLOCKS = 4_000
/** Of a list also the rows of a thousand runs of each agent with the name, of each status, and all that is found. */
const MOST_LISTED = 2 * MOST_BLOCKS

const { pool, large } = await createLargeDatabase()
const [busy = '', otherBusy = ''] = large.projects
const [busyAgent = ''] = large.agents
const small = newId()
const [agent, run, flow, flowRun, object, task] = [newId(), newId(), newId(), newId(), newId(), newId()]
await fill(pool, async (client) => {
  await client.query(`insert into projects (id, name) values ($1, 'Small')`, [small])
  await client.query(
    `insert into agents (id, project_id, name, capabilities)
     select gen_random_uuid(), $1, 'Common agent ' || n, '{}' from generate_series(1, 20000) n`,
    [busy],
  )
  await client.query(
    `insert into objects (id, project_id, type, key, properties, actor_type, words)
     select gen_random_uuid(), case when n % 2 = 0 then $1::uuid else $2::uuid end, 'page', 'page ' || n,
       '{"title":"A common word"}', 'user', '''common'':1 ''word'':2' from generate_series(1, 100000) n`,
    [busy, otherBusy],
  )
  await client.query(
    `insert into tasks (id, project_id, kind, title, status, created_by)
     select gen_random_uuid(), $1, 'work', 'A common task ' || n, 'pending', '{}' from generate_series(1, 20000) n`,
    [busy],
  )
  await client.query(`insert into agents (id, project_id, name, capabilities) values ($1, $2, 'Common', '{}')`, [
    agent,
    small,
  ])
  await client.query(
    `insert into agent_runs (id, project_id, agent_id, trigger, input, status)
     values ($1, $2, $3, '{"type":"manual"}', '"a common input"', 'completed')`,
    [run, small, agent],
  )
  await client.query(
    `insert into flows (id, project_id, name, root) values ($1, $2, 'Common flow', '{"type":"task"}')`,
    [flow, small],
  )
  await client.query(
    `insert into flow_runs (id, project_id, flow_id, root, input, progress, timeout, status)
     values ($1, $2, $3, '{"type":"task"}', '"common"', '{}', 1, 'completed')`,
    [flowRun, small, flow],
  )
  await client.query(
    `insert into objects (id, project_id, type, key, properties, actor_type, words)
     values ($1, $2, 'page', 'mine', '{"title":"A common word"}', 'user', '''common'':1 ''word'':2')`,
    [object, small],
  )
  await client.query(
    `insert into tasks (id, project_id, kind, title, status, created_by)
     values ($1, $2, 'work', 'A common task', 'completed', '{}')`,
    [task, small],
  )
})

type Search = (projectId: string, sought: Sought) => Promise<RankedHit[]>
const searches: Record<string, Search> = {
  agents: (projectId, sought) => searchAgents(pool, { projectId, sought, limit: LIMIT }),
  runs: (projectId, sought) =>
    searchRuns(pool, { projectId, sought, limit: LIMIT }, [projectId === small ? agent : busyAgent]),
  flows: (projectId, sought) => searchFlows(pool, { projectId, sought, limit: LIMIT }),
  flowRuns: (projectId, sought) => searchFlowRuns(pool, { projectId, sought, limit: LIMIT }, [flow]),
  objects: (projectId, sought) => searchObjects(pool, { projectId, sought, limit: LIMIT }),
  tasks: (projectId, sought) => searchTasks(pool, { projectId, sought, limit: LIMIT }),
}
const soughtOf = (q: string): Sought => {
  const sought = readSought(q)
  assert.ok(sought)
  return sought
}

async function measure<Found>(search: () => Promise<Found>): Promise<{ hits: Found; most: number; plans: string }> {
  const recording = recordStatements(pool)
  const hits = await search()
  recording.stop()
  const plans = await readPlans(pool, recording.statements, { large: LARGE_TABLES })
  for (const { sequentialScans, explained } of plans) assert.deepEqual(sequentialScans, [], explained)
  return {
    hits,
    most: Math.max(...plans.map(({ buffers }) => buffers)),
    plans: plans.map(({ explained }) => explained).join('\n'),
  }
}

test('of twenty thousand tasks the one with this title comes first', async () => {
  const [first] = (await searches.tasks?.(busy, soughtOf('a common task 17'))) ?? []
  assert.deepEqual([first?.title, first?.rank], ['A common task 17', 0])
})

const ids: Record<string, string> = {
  agents: agent,
  runs: run,
  flows: flow,
  flowRuns: flowRun,
  objects: object,
  tasks: task,
}
for (const [kind, search] of Object.entries(searches)) {
  test(`${kind} of a small project are found, and hardly more is read than there is`, async () => {
    const { hits, most, plans } = await measure(() => search(small, soughtOf('common')))
    assert.deepEqual(
      hits.map(({ id }) => id),
      [ids[kind]],
    )
    assert.ok(most < 400, `${most} blocks\n${plans}`)
  })

  for (const q of ['common', 'hello', 'a common task 17', 'nothing has this', '0190aaaa', '0190cccc-0000', newId()]) {
    test(`${kind} of a large project: "${q.slice(0, 16)}" reads a bounded number of rows`, async () => {
      const { most, plans } = await measure(() => search(busy, soughtOf(q)))
      assert.ok(most < MOST_BLOCKS, `${most} blocks\n${plans}`)
    })
  }
}

test('the list of runs reads a bounded number of rows for each text', async () => {
  for (const projectId of [busy, otherBusy]) {
    for (const filter of [{}, { parent_run_id: 'none' }, { agent_id: busyAgent }, { status: 'failed' as const }]) {
      for (const q of ['common', 'hello', 'large agent', 'nothing has this', '0190aaaa', newId()]) {
        const { most, plans } = await measure(() => listRuns(pool, projectId, { ...filter, q }, { limit: LIMIT }))
        assert.ok(most < MOST_LISTED, `${JSON.stringify({ ...filter, q })}: ${most} blocks\n${plans}`)
      }
    }
  }
  const { items } = await listRuns(pool, otherBusy, { q: 'large agent', status: 'failed' }, { limit: LIMIT })
  assert.equal(items.length, LIMIT)
})
