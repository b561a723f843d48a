import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { sealAudit } from '../src/audit/seal.ts'
import { readConfig } from '../src/bin/config.ts'
import { offerProviders } from '../src/bin/environment-providers.ts'
import { startEvals } from '../src/bin/eval-services.ts'
import { startFlows } from '../src/bin/flow-services.ts'
import { startHousekeeping } from '../src/bin/housekeeping.ts'
import { startOrg } from '../src/bin/org-services.ts'
import { startRuns } from '../src/bin/run-services.ts'
import { inTransaction } from '../src/db/transaction.ts'
import { createEgress } from '../src/egress/egress.ts'
import { createEval } from '../src/evals/create-eval.ts'
import { createBuiltInFunctions } from '../src/flows/definition/built-in-functions.ts'
import { type BuiltInNode, builtInPatterns } from '../src/flows/machine/built-in-patterns.ts'
import { newId } from '../src/kernel/id.ts'
import { silentLog } from '../src/kernel/log.ts'
import { systemActor } from '../src/kernel/principal.ts'
import { createMetrics } from '../src/observe/metrics.ts'
import { noTracing } from '../src/observe/tracing.ts'
import { createCipher } from '../src/secrets/cipher.ts'
import { startSupervisor } from '../src/supervisor/start.ts'
import { startScheduler } from '../src/triggers/scheduler.ts'
import { createTestPool } from './kit/database.ts'
import { createLargeDatabase } from './kit/large-database.ts'
import { LARGE_TABLES } from './kit/large-tables.ts'
import { measureStatements, readPlans, recordStatements } from './kit/query-plans.ts'
import { until } from './kit/until.ts'
import { fillWaiting, TENANT_TABLES } from './kit/waiting-work.ts'

const LARGE = [...LARGE_TABLES, ...TENANT_TABLES]

/**
 * A written row has entries in up to two dozen indexes; a value stands for a row that was asked for. The other reads of
 * a statement do not depend on the size of the tables: the planner reads each index of each table in the statement.
 */
const BUFFERS_AT_REST = 250
const BUFFERS_PER_ROW = 60

/** Parts of statements that may read a large table, each with the reason. */
const EXCEPTIONS: ReadonlyMap<string, string> = new Map([
  ['not exists (select from schedules s where s.agent_id = a.id)', 'once at each start: agents without a schedule row'],
])

// An instance that is years old, with much waiting work.
const { pool: outside, url, large: past } = await createLargeDatabase()
await sealAudit(outside)
await fillWaiting(outside, past)
const [project = '', other = '', third = ''] = past.projects
const [agent = '', agentOfOther = ''] = past.agents

const count = async (sql: string, values: readonly unknown[] = []): Promise<number> =>
  (await outside.query(`select ${sql}`, [...values])).rowCount ?? 0

test('this test starts every service that a process starts', async () => {
  const source = await readFile(new URL('../src/bin/serve.ts', import.meta.url), 'utf8')
  const started = [...source.matchAll(/\bstart([A-Z]\w+)\(/g)].map(([, name]) => name)
  assert.deepEqual(new Set(started), new Set(['Runs', 'Flows', 'Org', 'Evals', 'Scheduler', 'Housekeeping']))
})

test('background services read no more rows than their work, whatever has ended and whatever waits', async () => {
  const config = readConfig({ DATABASE_URL: url, MUSTER_LEASE: '2000' })
  const { concurrency, drainMs, role } = config
  const pool = createTestPool(url, config.pool)
  const { measured, stop: stopMeasuring } = measureStatements(pool, { large: LARGE })
  const recording = recordStatements(pool)
  const cipher = createCipher('test-secret-key')
  await offerProviders(outside, cipher, config.providers)
  await outside.query(`update projects set settings = '{"run_retention_days": 59.99}' where id = $1`, [other])
  await leaveUnavailable()
  const metrics = createMetrics()
  const egress = createEgress({ allow: [] })
  const tracing = noTracing
  const startOf = { app: null, beforeWork: async () => {} }
  const runs = await startRuns({
    ...startOf,
    config,
    databaseUrl: url,
    pool,
    cipher,
    egress,
    metrics,
    tracing,
    log: silentLog,
  })
  const { worker, services } = runs
  const functions = new Map([...createBuiltInFunctions({ ask: runs.ask }), ['f', () => 'done'] as const])
  const flows = startFlows({
    role,
    patterns: builtInPatterns,
    concurrency,
    drainMs,
    pool,
    worker,
    runs: services,
    functions,
    log: silentLog,
  })
  const org = startOrg({ role, pool, worker, log: silentLog })
  const evals = startEvals({ role, pool, journal: services.journal, worker, log: silentLog })
  const housekeeping = startHousekeeping({ pool, journal: services.journal, log: silentLog })
  const scheduler = startScheduler({ pool, log: silentLog, onReady: services.onReady })
  /** Resolves when each kind of round has passed this many times. */
  const rounds = async (times: number): Promise<void> => {
    const passed = (part: string): number => recording.statements.filter(({ text }) => text.includes(part)).length
    const parts = [
      'max_concurrent_runs',
      'from audit_blocks order by number',
      'working_since <',
      'from workers where id <>',
      'check_at <=',
    ]
    const before = parts.map(passed)
    await until(() => parts.every((part, place) => passed(part) >= (before[place] ?? 0) + times), 'they pass', 60_000)
  }
  try {
    await rounds(3)
    const watching = [...past.parents.slice(0, 2), ...past.flowRuns.slice(0, 1)].map((id) =>
      services.hub.watch(id, { onEvents: () => {}, onText: () => {}, onPoke: () => {}, onGone: () => {} }),
    )
    const dead = await leaveWorkBehind()
    const root: BuiltInNode = {
      type: 'sequential',
      steps: [
        { type: 'task', id: 'ask', agent: 'Large agent' },
        { type: 'adaptive', switch: true, workers: 2, tasks: [{ type: 'task', id: 'one', function: 'f' }] },
      ],
    }
    await flows.services.start(
      {
        projectId: third,
        flowId: null,
        input: null,
        timeoutMs: 60_000,
        workers: null,
        root,
      },
      systemActor,
    )
    await until(() => isTakenUp(dead), 'all work is started', 90_000)
    await metrics.render()
    // Other processes declare this process dead, and it goes on under a new name.
    await outside.query('delete from workers')
    await rounds(6)
    for (const stop of watching) stop()
  } finally {
    await scheduler.stop()
    await housekeeping.stop()
    await flows.stop()
    await org.stop()
    await evals.stop()
    await runs.stop()
    stopMeasuring()
    recording.stop()
    await pool.end()
    await egress.close()
  }

  const sent = recording.statements.map(({ text }) => text)
  assert.ok(sent.some((text) => text.includes('delete from evals')))
  const most = new Map<string, number>()
  for (const { text, rows } of measured) most.set(text, Math.max(rows, most.get(text) ?? 0))
  const plans = await readPlans(outside, recording.statements, { large: LARGE })
  assert.ok(plans.length > 80, `${plans.length} plans were read`)
  const costly = [...measured.map((each) => ({ ...each, mode: 'sent', explained: '' })), ...plans].flatMap((each) => {
    const { text, values, buffers, sequentialScans, mode, explained } = each
    const work = Math.max(each.rows, most.get(text) ?? 0) + values.flat().length
    if (EXCEPTIONS.keys().some((part) => text.includes(part))) return []
    if (sequentialScans.length === 0 && buffers <= BUFFERS_AT_REST + BUFFERS_PER_ROW * work) return []
    const scans = sequentialScans.map(({ table, rows }) => `all ${rows} rows of ${table}`).join(', ')
    return [`${mode}: ${buffers} buffers for ${work} rows and values, ${scans}\n${text}\n${explained}`]
  })
  assert.deepEqual([...new Set(costly)], [])
})

/** Makes unavailable runs that nobody continued for longer than their project keeps runs. */
async function leaveUnavailable(): Promise<void> {
  const ago = new Date(Date.now() - 61 * 86_400_000)
  const fields = { status: 'paused', pause_reason: 'unavailable', waits_for: 'human', created_at: ago, last_seq: 1 }
  for (const id of await insert('agent_runs', { ...fields, project_id: other, agent_id: agentOfOther })) {
    await outside.query(
      `insert into run_events (run_id, seq, id, kind, data, at) values ($1, 1, $2, 'run.paused', '{}', $3)`,
      [id, newId(), ago],
    )
  }
}

/** Makes work of every kind that a process does without a request. Returns the worker that died. */
async function leaveWorkBehind(): Promise<string> {
  const [dead, nobody, ago] = [newId(), newId(), new Date(Date.now() - 3_600_000)]
  await outside.query(
    `insert into workers (id, slots, lease_until, lock_key, locked_on, beat_ms)
     values ($1, 1, muster.now() - interval '1 s', 1, pg_postmaster_start_time(), 1000)`,
    [dead],
  )
  const [parent = ''] = await insert('agent_runs', { waits_for: 'children', open_children: 1, status: 'running' })
  await insert('agent_runs', { owner: dead, parent_run_id: parent, ancestors: [parent], depth: 1, status: 'running' })
  for (const owner of [dead, nobody]) {
    await insert('agent_runs', { owner, status: 'running' })
    const [flowRun = ''] = await insert('flow_runs', { owner, status: 'running', started_at: ago })
    await insert('flow_handouts', { owner, run_id: flowRun, function: 'f' })
  }
  await insert('agent_runs', { crashes: 2, ready_at: ago })
  await insert('agent_runs', { wake_at: ago, waits_for: 'backoff', status: 'running' })
  await insert('agent_runs', { waits_for: 'children', open_children: 0, status: 'running' })
  await insert('agent_runs', { waits_for: 'human', status: 'paused', pause_reason: 'human', cancel_requested_at: ago })
  await insert('agent_runs', { waits_for: 'halt', status: 'paused', pause_reason: 'halted' })
  const [answered = ''] = await insert('agent_runs', { waits_for: 'human', status: 'paused', pause_reason: 'human' })
  await outside.query(
    `insert into tasks (id, project_id, kind, title, status, created_by, run_id, completed_at)
     values ($1, $2, 'escalation', 'A question', 'completed', '{"type":"user","id":null}', $3, muster.now())`,
    [newId(), project, answered],
  )
  const [stuck = ''] = await insert('agent_runs', { waits_for: 'human', status: 'running', created_at: ago })
  await outside.query(
    `update processing_log set status = 'processing', completed_at = null, run_id = $2, working_since = $1
     where id = (select id from processing_log where project_id = $3 order by id desc limit 1)`,
    [ago, stuck, project],
  )
  // Some projects are halted, and some limit their runs.
  const idle = `select id from projects where name like 'Idle %' order by id`
  await outside.query(`update projects set halted_at = muster.now() where id in (${idle} limit 20)`)
  await outside.query(`update projects set settings = '{"max_concurrent_runs": 1}' where id = $1`, [other])
  await insert('agent_runs', { ready_at: ago, project_id: other, agent_id: agentOfOther })
  await insert('agent_runs', { ready_at: ago })

  await insert('flow_runs', { crashes: 2, ready_at: ago })
  await insert('flow_runs', { wake_at: ago, status: 'running', started_at: ago })
  const late = { wake_at: new Date(Date.now() + 3_600_000), expected: 1, check_at: ago, last_seq: 1 }
  const [slow = ''] = await insert('flow_runs', { ...late, status: 'running', started_at: ago })
  await outside.query(
    `insert into flow_events (run_id, seq, id, kind, data) values ($1, 1, $2, 'flow.started', '{"input": null}')`,
    [slow, newId()],
  )
  await insert('flow_handouts', { run_id: slow, function: 'f', task_id: 'waits' })
  await insert('flow_handouts', { run_id: slow, function: 'f', task_id: 'suspect', crashes: 2 })
  await outside.query(
    `update schedules set next_run_at = muster.now() where agent_id in (
       select s.agent_id from schedules s join projects p on p.id = s.project_id and p.halted_at is null limit 3)`,
  )
  const compared = { name: 'left behind', variants: ['blue', 'green'], cases: [{ task: 'Work.', expect: {} }] }
  await inTransaction(outside, (tx) => createEval(tx, third, compared, systemActor))
  const start = { task: 'Work.', metadata: {}, contextId: 'left behind', requested: null, ofProcess: null }
  await startSupervisor(outside, third, start)
  return dead
}

async function isTakenUp(dead: string): Promise<boolean> {
  const open = await Promise.all([
    count('from workers where id = $1', [dead]),
    count('from agent_runs where owner is not null and not exists (select from workers w where w.id = owner)'),
    count('from flow_runs where owner is not null and not exists (select from workers w where w.id = owner)'),
    count('from agent_runs where ready_at is not null or wake_at < muster.now()'),
    count('from flow_runs where ready_at is not null or wake_at < muster.now() or check_at < muster.now()'),
    count('from flow_handouts where outcome is null'),
    count('from processing_log where working_since is not null'),
    count('from schedules where next_run_at < muster.now()'),
    count('from suspect_under_way'),
    count('from evals where is_open'),
    count(`from agent_runs where pause_reason = 'unavailable' and created_at < muster.now() - interval '60 days'`),
    count(`from agent_runs where part is not null and completed_at is null`),
  ])
  return open.every((each) => each === 0)
}

const GIVEN = {
  agent_runs: { project_id: project, agent_id: agent, trigger: { type: 'manual' }, input: '"hello"', ready_at: null },
  flow_runs: {
    project_id: project,
    input: 'null',
    progress: '{}',
    timeout: 7_200_000,
    expected: 1_000_000,
    ready_at: null,
    root: { type: 'task', id: 'root', function: 'f' },
  },
  flow_handouts: {
    project_id: project,
    task_id: 'root',
    attempt: 1,
    call: { leaf: { type: 'task', id: 'root', function: 'f' }, argument: null, isEach: false },
  },
}

/** Two runs are two rows; a leaf that is handed out is one row. */
async function insert(table: keyof typeof GIVEN, fields: Record<string, unknown>): Promise<string[]> {
  const given: Record<string, unknown> = { ...GIVEN[table], ...fields }
  const columns = Object.keys(given)
  const ids = table === 'flow_handouts' ? [newId()] : [newId(), newId()]
  for (const id of ids) {
    await outside.query(
      `insert into ${table} (id, ${columns.join(', ')}) values ($1, ${columns.map((_, place) => `$${place + 2}`).join(', ')})`,
      [id, ...columns.map((column) => given[column])],
    )
  }
  return ids
}
