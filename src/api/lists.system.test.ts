import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase } from '../../test/kit/database.ts'
import { fillLargeTables, LARGE_TABLES } from '../../test/kit/large-tables.ts'
import { readPlans, recordStatements } from '../../test/kit/query-plans.ts'
import { listAudit } from '../audit/list.ts'
import { listEvals } from '../evals/read-evals.ts'
import { listAlerts } from '../flows/alerts.ts'
import { listFlowRuns } from '../flows/flow-runs.ts'
import { countReady } from '../journal/claim.ts'
import { flowRunStatuses } from '../kernel/flow-run.ts'
import { newId } from '../kernel/id.ts'
import { processingStatuses } from '../kernel/object.ts'
import { runStatuses } from '../kernel/run.ts'
import { taskKinds, taskStatuses } from '../kernel/task.ts'
import { listPrompts, listVersions } from '../prompts/prompts.ts'
import { loadShippedPrompts } from '../prompts/shipped-prompts.ts'
import { listRuns } from '../runs/read-runs.ts'
import { chooseSystem } from '../supervisor/systems.ts'
import { listTasks } from '../tasks/tasks.ts'
import { listEntries } from '../triggers/processing-log.ts'

const { pool } = await createTestDatabase()
const large = await fillLargeTables(pool)
const [project = '', otherProject = ''] = large.projects
const [agent = '', otherAgent = ''] = large.agents
const [parent = ''] = large.parents
const [flowRun = ''] = large.flowRuns
const LIMIT = 20
const page = { limit: LIMIT }

// A new agent whose runs all wait, and a flow that was never run: both have few rows, whatever the statistics say.
const newcomer = newId()
await pool.query(
  `insert into agent_runs (id, project_id, agent_id, trigger, input)
   select gen_random_uuid(), $1, $2, '{"type":"manual"}', '"x"' from generate_series(1, 5)`,
  [project, newcomer],
)

/** For each statement: the tables it reads from end to end, and the blocks it reads beyond those its page explains. */
async function problemsOf(list: () => Promise<unknown>, name: string): Promise<string[]> {
  const recording = recordStatements(pool)
  await list()
  recording.stop()
  const plans = await readPlans(pool, recording.statements, { large: LARGE_TABLES })
  assert.ok(plans.length > 0)
  return plans.flatMap(({ text, buffers, sequentialScans, explained }) => {
    const parts = text.split('union all').length
    // Each part of the list is a way down an index, and gives a page at most; a row is one block of the table.
    const most = 30 + 2 * LIMIT + parts * (LIMIT + 8)
    if (sequentialScans.length === 0 && buffers <= most) return []
    return [`${name}: ${buffers} buffers where ${most} are explained, ${JSON.stringify(sequentialScans)}\n${explained}`]
  })
}

async function requireCheap(lists: Record<string, () => Promise<unknown>>): Promise<void> {
  const problems: string[] = []
  for (const [name, list] of Object.entries(lists)) problems.push(...(await problemsOf(list, name)))
  assert.deepEqual(problems, [], problems.join('\n\n'))
}

const each = <Value extends string>(
  values: readonly Value[],
  list: (value: Value) => Promise<unknown>,
): Record<string, () => Promise<unknown>> => Object.fromEntries(values.map((value) => [value, () => list(value)]))

test('runs are listed by index, whatever they are filtered by', async () => {
  for (const filter of [
    {},
    { agent_id: agent },
    { agent_id: otherAgent },
    { agent_id: newcomer },
    { agent_id: newId() },
    { parent_run_id: parent },
    { parent_run_id: newId() },
    { flow_run_id: flowRun },
    { agent_id: agent, parent_run_id: parent },
    { agent_id: agent, flow_run_id: flowRun },
  ]) {
    await requireCheap({
      [`runs ${JSON.stringify(filter)}`]: () => listRuns(pool, project, filter, page),
      ...each(runStatuses, (status) => listRuns(pool, project, { ...filter, status }, page)),
    })
  }
})

test('the pages after the first are read by index as well', async () => {
  const first = await listRuns(pool, project, {}, page)
  const failed = await listRuns(pool, project, { agent_id: agent, status: 'failed' }, page)
  assert.equal(failed.items.length, LIMIT)
  await requireCheap({
    all: () => listRuns(pool, project, {}, { limit: LIMIT, cursor: first.next_cursor ?? '' }),
    failed: () =>
      listRuns(
        pool,
        project,
        { agent_id: agent, status: 'failed' },
        { limit: LIMIT, cursor: failed.next_cursor ?? '' },
      ),
  })
})

test('a list that is merged from those of each status is in order and whole', async () => {
  const { rows } = await pool.query<{ id: string }>(
    'select id from agent_runs where agent_id = $1 order by created_at desc, id desc limit 250',
    [agent],
  )
  const listed: string[] = []
  for (let cursor: string | undefined; listed.length < 250; ) {
    const some = await listRuns(pool, project, { agent_id: agent }, { limit: 50, cursor })
    listed.push(...some.items.map((run) => run.id))
    cursor = some.next_cursor ?? undefined
  }
  assert.deepEqual(
    listed,
    rows.map((row) => row.id),
  )
  assert.deepEqual((await listRuns(pool, otherProject, { agent_id: agent }, page)).items, [])
})

test('tasks are listed by index, whatever they are filtered by', async () => {
  for (const assigned of [{}, { assigned_to: agent }, { assigned_to: newId() }]) {
    await requireCheap({
      all: () => listTasks(pool, project, assigned, page),
      ...each(taskKinds, (kind) => listTasks(pool, project, { ...assigned, kind }, page)),
      ...each(taskStatuses, (status) => listTasks(pool, project, { ...assigned, status }, page)),
      both: () => listTasks(pool, project, { ...assigned, kind: 'escalation', status: 'pending' }, page),
    })
  }
})

test('flow runs, alerts, the processing log and the audit are listed by index', async () => {
  await requireCheap({
    flowRuns: () => listFlowRuns(pool, project, {}, page, 1),
    ...each(flowRunStatuses, (status) => listFlowRuns(pool, project, { status }, page, 1)),
    ofFlow: () => listFlowRuns(pool, project, { flow_id: newId() }, page, 1),
    alerts: () => listAlerts(pool, project, {}, page),
    acked: () => listAlerts(pool, project, { acked: true }, page),
    unseen: () => listAlerts(pool, project, { acked: false }, page),
    ofRun: () => listAlerts(pool, project, { flow_run_id: flowRun }, page),
    ofRunUnseen: () => listAlerts(pool, project, { flow_run_id: flowRun, acked: false }, page),
  })
  await requireCheap({
    entries: () => listEntries(pool, agent, {}, page),
    ...each(processingStatuses, (status) => listEntries(pool, agent, { status }, page)),
    ofProject: () => listAudit(pool, { projectId: project, limit: LIMIT }),
    ofInstance: () => listAudit(pool, { projectId: null, limit: LIMIT }),
    ofNobody: () => listAudit(pool, { projectId: newId(), limit: LIMIT }),
  })
})

test('evals, prompts and their versions are listed by index', async () => {
  const shipped = await loadShippedPrompts()
  await requireCheap({
    evals: () => listEvals(pool, project, page),
    evalsOfNobody: () => listEvals(pool, newId(), page),
    prompts: () => listPrompts(pool, shipped, project, page),
    promptsOfNobody: () => listPrompts(pool, shipped, newId(), page),
    versions: () => listVersions(pool, shipped, { projectId: project, promptId: 'prompt-0', variantId: 'blue' }, page),
    variantOfContext: () => chooseSystem(pool, project, { contextId: 'chat-27', requested: null, ofProcess: null }),
  })
})

test('whoever counts the backlog does not read all of it', async () => {
  await pool.query(
    `insert into agent_runs (id, project_id, agent_id, trigger, input)
     select gen_random_uuid(), $1, $2, '{"type":"manual"}', '"x"' from generate_series(1, 12000)`,
    [project, newcomer],
  )
  assert.equal(await countReady(pool), 10_000)
})
