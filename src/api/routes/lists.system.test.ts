import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLargeDatabase } from '../../../test/kit/large-database.ts'
import { LARGE_TABLES } from '../../../test/kit/large-tables.ts'
import { readPlans, recordStatements } from '../../../test/kit/query-plans.ts'
import { guessAgent } from '../../agents/agent-names.ts'
import { readUsage } from '../../agents/usage.ts'
import { type AuditQuery, listAudit } from '../../audit/list.ts'
import { listEvals } from '../../evals/read-evals.ts'
import { listAlerts } from '../../flows/alerts/alerts.ts'
import { readExpectations } from '../../flows/history/expectation.ts'
import { getFlowRun, listFlowRuns } from '../../flows/history/flow-runs.ts'
import { readRecord } from '../../flows/history/record.ts'
import { builtInPatterns } from '../../flows/machine/built-in-patterns.ts'
import { countReady } from '../../journal/claim.ts'
import { flowRunStatuses } from '../../kernel/flow-run.ts'
import { newId } from '../../kernel/id.ts'
import { processingStatuses } from '../../kernel/object.ts'
import { runStatuses } from '../../kernel/run.ts'
import { taskKinds, taskStatuses } from '../../kernel/task.ts'
import { findByKey, listObjects } from '../../objects/objects.ts'
import { listPrompts, listVersions } from '../../prompts/prompts.ts'
import { loadShippedPrompts } from '../../prompts/shipped-prompts.ts'
import { listRuns } from '../../runs/list-runs.ts'
import { chooseSystem } from '../../supervisor/systems.ts'
import { listTasks } from '../../tasks/tasks.ts'
import { listEntries } from '../../triggers/processing-log.ts'
import { nameTargets } from './audit-targets.ts'

const { pool, large } = await createLargeDatabase()
const [project = '', otherProject = ''] = large.projects
const [agent = '', otherAgent = ''] = large.agents
const [parent = ''] = large.parents
const [flowRun = ''] = large.flowRuns
const LIMIT = 20
const page = { limit: LIMIT }

// A new agent whose runs all wait, and a flow that was never run. Both have few rows, though the statistics may say
// otherwise.
const newcomer = newId()
await pool.query(
  `insert into agent_runs (id, project_id, agent_id, trigger, input)
   select gen_random_uuid(), $1, $2, '{"type":"manual"}', '"x"' from generate_series(1, 5)`,
  [project, newcomer],
)

/**
 * For each statement: the tables that it reads from end to end, and the blocks that it reads beyond the number its page
 * explains.
 */
async function problemsOf(list: () => Promise<unknown>, name: string): Promise<string[]> {
  const recording = recordStatements(pool)
  await list()
  recording.stop()
  const plans = await readPlans(pool, recording.statements, { large: LARGE_TABLES })
  assert.ok(plans.length > 0)
  return plans.flatMap(({ text, buffers, sequentialScans, explained }) => {
    const parts = text.split('union all').length
    // Each part of the list is one search in an index, and gives a page at most; a row is one block of the table. The
    // planner reads a block of each index of the table, for each part.
    const most = 30 + 2 * LIMIT + parts * (LIMIT + 12)
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

test('runs are listed by index with every filter', async () => {
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

test('runs are listed by index within a period, and behind any number of leaves and sub-runs', async () => {
  // The newest runs of the project are leaves and sub-runs, and so are all that failed.
  const flooded = `select gen_random_uuid(), $1::uuid, $2::uuid, '{"type":"flow"}'::jsonb, '"leaf"'::jsonb, status,
      muster.now() + n * interval '1 ms'`
  for (const [column, value] of [
    ['flow_run_id', flowRun],
    ['parent_run_id', parent],
  ]) {
    await pool.query(
      `insert into agent_runs (id, project_id, agent_id, trigger, input, status, created_at, ${column})
       ${flooded}, $3::uuid from generate_series(1, 30000) n, unnest('{completed,failed}'::text[]) status`,
      [large.projects[2], large.agents[2], value],
    )
  }
  await pool.query('analyze agent_runs')
  const days = (count: number): string => new Date(Date.now() - count * 86_400_000).toISOString()
  const flooding = large.projects[2] ?? ''
  for (const filter of [
    { parent_run_id: 'none' },
    { parent_run_id: 'none', created_after: days(58) },
    { parent_run_id: 'none', created_before: days(58) },
    { parent_run_id: 'none', created_after: days(1) },
    { created_after: days(1) },
    { created_before: days(59) },
    { created_before: days(400) },
    { created_after: days(59), created_before: days(58) },
    { agent_id: large.agents[2], created_before: days(59) },
    { id: '01234567', parent_run_id: 'none', created_before: days(59) },
  ]) {
    await requireCheap({
      [`runs ${JSON.stringify(filter)}`]: () => listRuns(pool, flooding, filter, page),
      ...each(runStatuses, (status) => listRuns(pool, flooding, { ...filter, status }, page)),
    })
  }
  const top = await listRuns(pool, flooding, { parent_run_id: 'none' }, page)
  assert.equal(top.items.length, LIMIT)
  assert.ok(top.items.every((run) => run.parent_run_id === null && run.input === 'hello'))
  const next = { limit: LIMIT, cursor: top.next_cursor ?? '' }
  await requireCheap({ next: () => listRuns(pool, flooding, { parent_run_id: 'none' }, next) })
})

test('runs and flow runs are found by the first letters of their ids, by index', async () => {
  const { rows } = await pool.query<{ run: string; flow_run: string }>(
    `select (select id from agent_runs where project_id = $1 and agent_id = $2 limit 1) as run,
       (select id from flow_runs where project_id = $1 limit 1) as flow_run`,
    [project, newcomer],
  )
  const run = { id: (rows[0]?.run ?? '').slice(0, 8) }
  // The ids of these flow runs differ in their last letters.
  const flow = { id: (rows[0]?.flow_run ?? '').replaceAll('-', '').slice(0, 31) }
  assert.equal((await listRuns(pool, project, run, page)).items.length, 1)
  assert.deepEqual((await listRuns(pool, otherProject, run, page)).items, [])
  await requireCheap({
    run: () => listRuns(pool, project, run, page),
    ofAgent: () => listRuns(pool, project, { ...run, agent_id: agent, status: 'failed' }, page),
    noRun: () => listRuns(pool, project, { id: '01234567' }, page),
    flowRun: () => listFlowRuns(pool, project, flow, page, 1),
    noFlowRun: () => listFlowRuns(pool, project, { id: '01234567', status: 'failed' }, page, 1),
  })
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

test('a list that is merged from the lists of each status is in order and whole', async () => {
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

test('tasks are listed by index with every filter', async () => {
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

test('the targets of a page of the audit are named by index', async () => {
  const ids = [project, agent, parent, flowRun, newId()]
  const types = 'agent run flow flow_run object relationship task eval hook key member user project'.split(' ')
  const { items } = await listAudit(pool, { projectId: project, limit: 1 })
  const entry = { ...(items[0] ?? assert.fail()), actor_name: null }
  const entries = types.flatMap((type) => ids.map((id) => ({ ...entry, target: { type, id } })))
  await requireCheap({ targets: () => nameTargets(pool, entries) })
})

test('the audit is filtered by index, whether many entries fit, one, or none', async () => {
  const key = newId()
  await pool.query(
    `insert into audit_log (id, project_id, action, actor_type, actor_id)
     values (gen_random_uuid(), $1, 'rare.once', 'user', $2), (gen_random_uuid(), $1, 'rare.twice', 'key', $3)`,
    [project, agent, key],
  )
  const nobody = { people: [], others: [] }
  const filters: Pick<AuditQuery, 'action' | 'actors'>[] = [
    { action: 'task' },
    { action: 'task.create' },
    { action: 'rare' },
    { action: 'never' },
    { actors: nobody },
    { actors: { people: [agent], others: [] } },
    { actors: { people: [otherAgent], others: [] } },
    { actors: { people: [], others: [key, newId()] } },
    { action: 'rare', actors: { people: [agent], others: [key] } },
    { action: 'task', actors: { people: [agent], others: [] } },
    { action: 'never', actors: { people: [agent], others: [] } },
  ]
  for (const projectId of [project, newId(), null]) {
    for (const filter of filters) {
      const list = () => listAudit(pool, { projectId, ...filter, limit: LIMIT })
      await requireCheap({ [`${projectId} ${JSON.stringify(filter)}`]: list })
    }
  }
  const rare = await listAudit(pool, { projectId: project, ...filters[8], limit: LIMIT })
  assert.deepEqual(
    rare.items.map((entry) => entry.action),
    ['rare.twice', 'rare.once'],
  )
})

test('a flow run, the runs and the usage of its leaves, and the expectation of it are read by index', async () => {
  const { rows } = await pool.query<{ id: string }>('select id from flow_runs where project_id = $1 limit 1', [project])
  const own = rows[0]?.id ?? ''
  await requireCheap({
    run: () => getFlowRun(pool, project, own, 1),
    leaves: () => readRecord(pool, project, own, builtInPatterns),
    expectation: () => readExpectations(pool, [{ flow_id: newId(), expected: null }]),
  })
})

test('a question to a person and its answer cost the same, whatever the flow run has written before', async () => {
  const { rows } = await pool.query<{ id: string; run_id: string }>(
    `select f.id, r.id as run_id from flow_runs f join agent_runs r on r.flow_run_id = f.id where f.project_id = $1 limit 1`,
    [project],
  )
  const [own] = rows
  await pool.query(
    `insert into flow_events (run_id, seq, id, kind, data)
     select $1, 1000 + n, gen_random_uuid(), 'task.' || (array['started', 'completed', 'waiting', 'continued'])[1 + n % 4],
       jsonb_build_object('task_id', 'leaf ' || n / 4) from generate_series(1, 50000) n`,
    [own?.id],
  )
  await pool.query(
    `update flow_runs set status = 'running', completed_at = null, last_seq = 60000, check_at = muster.now() where id = $1`,
    [own?.id],
  )
  await pool.query(
    `update agent_runs set status = 'running', completed_at = null, trigger = trigger || '{"task_id": "root"}' where id = $1`,
    [own?.run_id],
  )
  // A statement is measured when it is executed once more: after the question the answer, and after that a question.
  const toggle = () =>
    pool.query(
      `update agent_runs set pause_reason = case when status = 'running' then 'human' end,
         status = case when status = 'running' then 'paused' else 'running' end where id = $1`,
      [own?.run_id],
    )
  for (const _ of ['question', 'answer']) {
    const recording = recordStatements(pool)
    await toggle()
    recording.stop()
    // Some rows are written, each with its entries in indexes; the 50,000 events take thousands of blocks.
    for (const plan of await readPlans(pool, recording.statements, { large: LARGE_TABLES })) {
      assert.ok(plan.buffers < 300 && plan.sequentialScans.length === 0, `${plan.text}: ${plan.buffers}`)
    }
  }
  const { rows: told } = await pool.query(
    'select kind from flow_events where run_id = $1 and seq > 60000 order by seq',
    [own?.id],
  )
  assert.deepEqual(told, [{ kind: 'task.waiting' }, { kind: 'task.continued' }])
})

test('B9: objects are found by key, and names of agents are guessed, by index', async () => {
  const { rows } = await pool.query<{ key: string }>('select key from objects where project_id = $1 limit 1', [project])
  const key = rows[0]?.key ?? ''
  assert.equal((await listObjects(pool, project, { key }, page)).items.length, 1)
  const capabilities = { canCreateObjects: true, canUpdateObjects: true, canDeleteObjects: true }
  await pool.query(
    `insert into agents (id, project_id, name, capabilities)
     select gen_random_uuid(), $1, 'agent ' || n, $2 from generate_series(1, 20000) n`,
    [project, capabilities],
  )
  // So many types that the index of types and keys does not lead to a key alone.
  await pool.query(
    `insert into objects (id, project_id, type, key, properties, actor_type, words)
     select gen_random_uuid(), $1, 'type ' || n, 'key of type ' || n, '{}', 'user', '' from generate_series(1, 20000) n`,
    [project],
  )
  await pool.query('analyze agents, objects')
  await requireCheap({
    ofKey: () => listObjects(pool, project, { key }, page),
    ofTypeAndKey: () => listObjects(pool, project, { type: 'note', key }, page),
    ofNoKey: () => listObjects(pool, project, { key: 'nobody has this' }, page),
    byKey: () => findByKey(pool, project, 'note', key),
  })
  const recording = recordStatements(pool)
  await guessAgent(pool, project, 'agnet 77')
  recording.stop()
  // 250 names on either side, each a row that may lie in a block of its own.
  for (const { text, buffers, explained } of await readPlans(pool, recording.statements, { large: ['agents'] })) {
    assert.ok(buffers < 700 && !/Seq Scan/.test(explained), `${text}: ${buffers}\n${explained}`)
  }
})

test('evals, prompts and their versions are listed by index', async () => {
  const shipped = await loadShippedPrompts()
  await requireCheap({
    evals: () => listEvals(pool, project, page),
    evalsOfNobody: () => listEvals(pool, newId(), page),
    prompts: () => listPrompts(pool, shipped, project, page),
    deletedPrompts: () => listPrompts(pool, shipped, project, { ...page, withDeleted: true }),
    promptsOfNobody: () => listPrompts(pool, shipped, newId(), page),
    versions: () => listVersions(pool, shipped, { projectId: project, promptId: 'prompt-0', variantId: 'blue' }, page),
    variantOfContext: () => chooseSystem(pool, project, { contextId: 'chat-27', requested: null, ofProcess: null }),
  })
})

test('a count of the backlog does not read all of it', async () => {
  await pool.query(
    `insert into agent_runs (id, project_id, agent_id, trigger, input)
     select gen_random_uuid(), $1, $2, '{"type":"manual"}', '"x"' from generate_series(1, 12000)`,
    [project, newcomer],
  )
  assert.equal(await countReady(pool), 10_000)
})

test('the usage of a project is read by index, without its runs', async () => {
  // The first and the last day of the data may be short.
  const { rows } = await pool.query<{ day: string }>(
    `select to_char(day, $2) as day from usage_days where project_id = $1
     group by usage_days.day order by count(*) desc limit 1`,
    [project, 'YYYY-MM-DD'],
  )
  const day = rows[0]?.day ?? ''
  await pool.query(
    `insert into usage_days (project_id, day, agent_id, source, input_tokens, output_tokens)
     select $1, date '2030-01-01' + d, $2, 'agent', 10, 1 from generate_series(0, 29) d`,
    [project, agent],
  )
  const recording = recordStatements(pool)
  const quiet = await readUsage(pool, project, { from: '2030-01-01', to: '2030-01-30' }, page)
  const busy = await readUsage(pool, project, { from: day, to: day }, page)
  recording.stop()
  assert.deepEqual([quiet.totals.total_tokens, quiet.items.length, busy.items.length], [330, LIMIT, LIMIT])
  const [plan] = await readPlans(pool, recording.statements.slice(0, 1), { large: LARGE_TABLES })
  assert.deepEqual(plan?.sequentialScans, [], plan?.explained)
  assert.ok((plan?.buffers ?? Infinity) < 100, `${plan?.buffers} buffers\n${plan?.explained}`)
  assert.doesNotMatch(plan?.explained ?? '', /agent_runs|run_events/)
})
