import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestFlows } from '../../../test/kit/flows.ts'
import { createScriptedModel } from '../../../test/kit/scripted-model.ts'
import { setHalted } from '../../identity/projects.ts'
import type { Alert } from '../../kernel/alert.ts'
import { newId } from '../../kernel/id.ts'
import { silentLog } from '../../kernel/log.ts'
import { systemActor } from '../../kernel/principal.ts'
import { createFlow } from '../definition/flows.ts'
import { cancelFlow } from '../execution/cancel.ts'
import { createFlowJournal } from '../execution/journal.ts'
import { type BuiltInNode, builtInPatterns } from '../machine/built-in-patterns.ts'
import { ackAlert, listAlerts } from './alerts.ts'
import { checkAlerts } from './check-alerts.ts'

const gates = new Map<string, PromiseWithResolvers<unknown>>()
const gate = (name: string): PromiseWithResolvers<unknown> => {
  const known = gates.get(name) ?? Promise.withResolvers<unknown>()
  gates.set(name, known)
  return known
}
const flows = await createTestFlows({
  functions: {
    quick: () => 'done',
    wait: (name: string) => gate(name).promise,
  },
})
const { pool, clock, projectId } = flows
const journal = createFlowJournal({ db: pool, log: silentLog })
const check = (): Promise<number> => checkAlerts({ pool, journal, patterns: builtInPatterns })
const quick = (id: string): BuiltInNode => ({ type: 'task', id, function: 'quick' })
const wait = (id: string, more: object = {}): BuiltInNode => ({ type: 'task', id, function: 'wait', args: id, ...more })

async function alertsOf(flowRunId: string): Promise<Alert[]> {
  return (await listAlerts(pool, projectId, { flow_run_id: flowRunId }, { limit: 200 })).items
}

/** Waits until the journal says that these leaves have begun. */
async function begun(flowRunId: string, ...leaves: string[]): Promise<void> {
  for (;;) {
    const { rows } = await pool.query<{ id: string }>(
      `select data->>'task_id' as id from flow_events where run_id = $1 and kind = 'task.started'`,
      [flowRunId],
    )
    if (leaves.every((leaf) => rows.some((row) => row.id === leaf))) return
    await new Promise(setImmediate)
  }
}

/** Lets the leaves end, so that the next test is about its own flow alone. */
async function finish(flowRunId: string, ...leaves: string[]): Promise<void> {
  for (const leaf of leaves) gate(leaf).resolve(leaf)
  await flows.ended(flowRunId)
}

test('Flow alerting', async () => {
  const root: BuiltInNode = { type: 'sequential', steps: [quick('fetch'), wait('review'), quick('report')] }
  const id = await flows.startFlow(root)
  await begun(id, 'review')
  assert.equal(await check(), 0, 'the flow run has only just begun')
  // Three functions are expected to take a second each. The expectation is raised here, so that a slow machine does not
  // matter.
  const { rows: stored } = await pool.query('select expected from flow_runs where id = $1', [id])
  assert.deepEqual(stored, [{ expected: 3_000 }])
  await pool.query('update flow_runs set expected = 100000 where id = $1', [id])
  await clock.advance(140_000)
  assert.equal(await check(), 0, 'the flow run is not late enough')
  await clock.advance(61_000)
  assert.equal(await check(), 1)
  const [alert, ...others] = await alertsOf(id)
  assert.ok(alert && others.length === 0)
  assert.deepEqual([alert.flow_run_id, alert.kind, alert.acked_at], [id, 'slow', null])
  assert.deepEqual(alert.progress, { total: 3, pending: 1, running: 1, completed: 1, failed: 0, skipped: 0 })
  assert.match(
    alert.suspected_cause,
    /^2\d\d s so far, where 100 s were expected\. review has been under way for 2\d\d s\.$/,
  )
  // A third of it took a third of the time it has, so more time would help.
  assert.deepEqual(alert.actions, ['cancel', 'add_workers', 'adjust'])
  assert.deepEqual(Object.keys(alert.adjust ?? {}), ['timeout'])

  const { rows } = await pool.query<{ data: object }>(
    `select data from flow_events where run_id = $1 and kind = 'alert'`,
    [id],
  )
  const { suspected_cause } = alert
  assert.deepEqual(rows, [{ data: { alert_id: alert.id, kind: 'slow', suspected_cause } }])
  // The user can intervene, and the flow goes on as if there were no alert.
  assert.equal(await cancelFlow(pool, projectId, id, systemActor), true)
  await finish(id, 'review')
  assert.equal((await flows.read(id)).status, 'cancelled')
})

test('many processes that look at once make one alert', async () => {
  const id = await flows.startFlow(wait('crowd'))
  await begun(id, 'crowd')
  await clock.advance(60_000)
  const made = await Promise.all(Array.from({ length: 8 }, check))
  assert.equal(
    made.reduce((sum, each) => sum + each),
    1,
  )
  assert.equal((await alertsOf(id)).length, 1)
  assert.equal((await flows.flowKinds(id)).filter((kind) => kind === 'alert').length, 1)
  await finish(id, 'crowd')
})

test('an acked alert is repeated when the run has taken twice as long, not before', async () => {
  const id = await flows.startFlow(wait('seen'))
  await begun(id, 'seen')
  await clock.advance(100_000)
  assert.equal(await check(), 1)
  const [first] = await alertsOf(id)
  assert.ok(first)
  await ackAlert(pool, projectId, first.id, systemActor)
  await clock.advance(60_000)
  assert.equal(await check(), 0)
  await clock.advance(60_000)
  assert.equal(await check(), 1)
  assert.equal((await listAlerts(pool, projectId, { flow_run_id: id, acked: false }, { limit: 9 })).items.length, 1)
  await finish(id, 'seen')
})

test('the median of three completed runs of a flow counts in place of the estimate from its tree', async () => {
  const { id: flowId } = await createFlow(
    pool,
    projectId,
    { name: 'measured', root: wait('measured') },
    { actor: systemActor, functions: flows.functions, patterns: builtInPatterns },
  )
  const id = await flows.startFlow(wait('measured'))
  await pool.query('update flow_runs set flow_id = $2 where id = $1', [id, flowId])
  await begun(id, 'measured')
  // The tree says one second; the completed runs say twenty.
  for (const duration of [19_000, 20_000, 90_000]) await insertCompleted(flowId, duration)
  await clock.advance(20_000)
  assert.equal(await check(), 0)
  await clock.advance(30_000)
  assert.equal(await check(), 1)
  assert.match((await alertsOf(id))[0]?.suspected_cause ?? '', /where 20 s were expected/)
  await finish(id, 'measured')
})

test('two completed runs, or failed runs, do not count in place of the estimate', async () => {
  const { id: flowId } = await createFlow(
    pool,
    projectId,
    { name: 'unmeasured', root: wait('unmeasured') },
    { actor: systemActor, functions: flows.functions, patterns: builtInPatterns },
  )
  const id = await flows.startFlow(wait('unmeasured'))
  await pool.query('update flow_runs set flow_id = $2 where id = $1', [id, flowId])
  await begun(id, 'unmeasured')
  for (const duration of [90_000, 90_000]) await insertCompleted(flowId, duration)
  await insertCompleted(flowId, 90_000, 'failed')
  await clock.advance(60_000)
  assert.equal(await check(), 1)
  await finish(id, 'unmeasured')
})

test('the alert factor is a setting of the project', async () => {
  const id = await flows.startFlow(wait('factor'))
  await begun(id, 'factor')
  await flows.set({ alert_factor: 100 })
  await clock.advance(60_000)
  assert.equal(await check(), 0)
  await clock.advance(60_000)
  assert.equal(await check(), 1)
  await flows.set({ alert_factor: 2 })
  await finish(id, 'factor')
})

test('a flow run that has ended, is being cancelled, waits in the queue or is halted gets no alert', async () => {
  const [ended, cancelled, halted] = await Promise.all([
    flows.play(quick('ended')).then(({ id }) => id),
    flows.startFlow(wait('cancelled')),
    flows.startFlow(wait('halted')),
  ])
  await begun(cancelled, 'cancelled')
  await begun(halted, 'halted')
  await cancelFlow(pool, projectId, cancelled, systemActor)
  await setHalted(pool, projectId, true, systemActor)
  await clock.advance(60_000)
  assert.equal(await check(), 0)
  await setHalted(pool, projectId, false, systemActor)
  assert.equal(await check(), 1)
  assert.deepEqual([await alertsOf(ended), await alertsOf(cancelled)], [[], []])
  await finish(cancelled, 'cancelled')
  await finish(halted, 'halted')
})

test('the release of the off switch brings forward the checks of a bounded number of flows, the oldest', async () => {
  const own = newId()
  await pool.query(`insert into projects (id, name, halted_at) values ($1, 'Large', muster.now())`, [own])
  await pool.query(
    `insert into flow_runs (id, project_id, root, input, progress, timeout, expected, status, ready_at, created_at, check_at)
     select gen_random_uuid(), $1, '{}', 'null', '{}', 1000, 1, 'running', null, muster.now() + n * interval '1 ms',
       'infinity' from generate_series(1, 1500) n`,
    [own],
  )
  await setHalted(pool, own, false, systemActor)
  const { rows } = await pool.query(
    `select check_at < 'infinity' as is_early, count(*)::int from flow_runs where project_id = $1
     group by 1 order by min(created_at)`,
    [own],
  )
  assert.deepEqual(rows, [
    { is_early: true, count: 1000 },
    { is_early: false, count: 500 },
  ])
  await pool.query('delete from projects where id = $1', [own])
})

test('a flow run that ends during the check gets no alert, and its journal ends with its end', async () => {
  const id = await flows.startFlow(wait('racing'))
  await begun(id, 'racing')
  await clock.advance(60_000)
  // The end is written and not committed yet: a check still finds the run running, and must wait.
  const other = await pool.connect()
  await other.query('begin')
  await journal.appendIn(other, {
    runId: id,
    fence: null,
    events: [{ kind: 'flow.completed', data: { output: null } }],
    change: { status: 'completed', ended: true },
  })
  const checking = check()
  for (;;) {
    const { rows } = await pool.query<{ waits: number }>(
      `select count(*)::int as waits from pg_locks where not granted and pid <> pg_backend_pid()`,
    )
    if ((rows[0]?.waits ?? 0) > 0) break
    await new Promise(setImmediate)
  }
  await other.query('commit')
  other.release()
  assert.equal(await checking, 0)
  assert.deepEqual(await alertsOf(id), [])
  assert.equal((await flows.flowKinds(id)).at(-1), 'flow.completed')
  gate('racing').resolve(null)
})

test('the next owner of a flow run goes on as if there were no alert', async () => {
  const id = await flows.startFlow({ type: 'sequential', steps: [quick('before'), wait('taken'), quick('after')] })
  await begun(id, 'taken')
  await clock.advance(60_000)
  assert.equal(await check(), 1)
  await pool.query('update flow_runs set owner = $2 where id = $1', [id, newId()])
  gate('taken').resolve('through')
  const { status, output } = await flows.ended(id)
  assert.deepEqual([status, output], ['completed', 'done'])
})

test('an alert about an adaptive flow offers a switch of the topology', async () => {
  const tasks = [wait('a1'), wait('a2')].filter((node) => node.type === 'task')
  const id = await flows.startFlow({ type: 'adaptive', topology: 'star', workers: 2, tasks, switch: true })
  await begun(id, 'a1', 'a2')
  await clock.advance(60_000)
  assert.equal(await check(), 1)
  assert.deepEqual((await alertsOf(id))[0]?.actions, ['cancel', 'add_workers', 'switch_topology'])
  await finish(id, 'a1', 'a2')
})

test('the suspected cause says what the run of an agent waits for', async () => {
  const answer = Promise.withResolvers<void>()
  const model = createScriptedModel(() => ({ text: 'done', waitFor: answer.promise }))
  flows.models.set('script', model)
  const { name } = await flows.createAgent()
  const id = await flows.startFlow({ type: 'task', id: 'ask', agent: name })
  while (model.requests.length === 0) await new Promise(setImmediate)
  await pool.query(`update agent_runs set status = 'paused', pause_reason = 'budget' where flow_run_id = $1`, [id])
  await clock.advance(60_000)
  assert.equal(await check(), 1)
  const [alert] = await alertsOf(id)
  assert.match(
    alert?.suspected_cause ?? '',
    /ask .*under way for 6\d s\. Its run [0-9a-f-]{36} is paused \(budget\)\.$/,
  )
  answer.resolve()
  await finish(id)
})

test('the suspected cause names the slowest stage of a pipeline', async () => {
  flows.functions.set('slow_stage', (item: number) => (item === 0 ? gate('stage').promise : item))
  const stages = ['quick', 'slow_stage', 'quick'].map((name, place) => ({
    type: 'task' as const,
    id: `stage_${place}`,
    function: name,
    ...(place === 1 ? { args: '{{item}}' } : {}),
  }))
  flows.functions.set('quick', (item: unknown) => item)
  const id = await flows.startFlow({ type: 'pipeline', source: [0, 1, 2, 3], stages, on_error: 'stop' })
  for (;;) {
    const { rowCount } = await pool.query(
      `select from flow_events where run_id = $1 and kind = 'items.completed' and data->>'stage' = '0'`,
      [id],
    )
    if (rowCount) break
    await new Promise(setImmediate)
  }
  await clock.advance(60_000)
  assert.equal(await check(), 1)
  assert.match((await alertsOf(id))[0]?.suspected_cause ?? '', /The others wait for its stage 1 \(stage_1\)/)
  await finish(id, 'stage')
})

async function insertCompleted(flowId: string, duration: number, status = 'completed'): Promise<void> {
  await pool.query(
    `insert into flow_runs (id, project_id, flow_id, root, input, status, progress, timeout, started_at, completed_at,
       duration, ready_at)
     values ($1, $2, $3, '{}', 'null', $4, '{}', 1, muster.now(), muster.now(), $5, null)`,
    [newId(), projectId, flowId, status, duration],
  )
}
