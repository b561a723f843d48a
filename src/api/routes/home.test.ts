// GET /home: all projects of a caller in one answer.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { insertAlert } from '../../../test/kit/alerts.ts'
import { type Call, createTestApp } from '../../../test/kit/app.ts'
import { signInByLink } from '../../../test/kit/people.ts'
import { withClient } from '../../../test/kit/test-server.ts'
import type { Home, RunItem, WaitItem } from '../../kernel/home.ts'
import { newId } from '../../kernel/id.ts'

type Refusal = { error: { code: string; message: string } }

const kit = await createTestApp()
const HOUR_MS = 60 * 60_000
const ago = (hours: number): string => new Date(Date.now() - hours * HOUR_MS).toISOString()

async function read(credentials: Call, query = ''): Promise<Home> {
  const { status, body, text } = await kit.call<Home>(`GET /api/home${query}`, credentials)
  assert.equal(status, 200, text)
  return body
}
const keyOf = async (projectId: string): Promise<Call> => ({ token: (await kit.createKey(projectId, 'viewer')).key })

interface Written {
  agentId?: string | null
  status?: string
  /** Hours ago. */
  began?: number
  ended?: number | null
  [column: string]: unknown
}

async function insert(table: string, columns: Record<string, unknown>): Promise<string> {
  const id = newId()
  const names = ['id', ...Object.keys(columns)]
  await kit.pool.query(
    `insert into ${table} (${names.join(', ')}) values (${names.map((_, place) => `$${place + 1}`).join(', ')})`,
    [id, ...Object.values(columns)],
  )
  return id
}

function insertRun(
  projectId: string,
  { agentId = newId(), began = 1, ended = 0.5, ...more }: Written,
): Promise<string> {
  return insert('agent_runs', {
    project_id: projectId,
    agent_id: agentId,
    status: 'failed',
    trigger: { type: 'manual' },
    input: JSON.stringify('Dig.'),
    created_at: ago(began),
    started_at: ago(began),
    completed_at: ended === null ? null : ago(ended),
    ready_at: null,
    ...more,
  })
}

function insertFlowRun(projectId: string, { began = 1, ended = 0.5, ...more }: Written): Promise<string> {
  return insert('flow_runs', {
    project_id: projectId,
    root: { type: 'map_reduce' },
    input: 'null',
    status: 'failed',
    progress: { total: 4, pending: 1, running: 1, completed: 2, failed: 0, skipped: 0 },
    timeout: 600_000,
    created_at: ago(began),
    started_at: ago(began),
    completed_at: ended === null ? null : ago(ended),
    ready_at: null,
    ...more,
  })
}

const insertTask = (projectId: string, more: Record<string, unknown> = {}): Promise<string> =>
  insert('tasks', {
    project_id: projectId,
    kind: 'work',
    title: 'Decide',
    status: 'pending',
    created_by: { type: 'user', id: null },
    ...more,
  })

const idOf = (item: WaitItem | RunItem): string => {
  switch (item.kind) {
    case 'task':
      return item.task.id
    case 'alert':
      return item.alert.id
    case 'agent':
      return item.agent.id
    case 'run':
      return item.run.id
    case 'flow_run':
      return item.flow_run.id
  }
}
const idsOf = ({ items }: { items: (WaitItem | RunItem)[] }): string[] => items.map(idOf)

test('tasks for people, open alerts and agents whose tokens run short wait, the newest first', async () => {
  const { id } = await kit.createProject()
  const clerk = await kit.createAgent(id, { name: 'Clerk', token_allocation: 100 })
  const saver = await kit.createAgent(id, { name: 'Saver', token_allocation: 100 })
  const spent = await kit.createAgent(id, { name: 'Spent', token_allocation: 100 })
  const gone = await kit.createAgent(id, { name: 'Gone', token_allocation: 100 })
  for (const [agent, mark] of [
    [saver, 90],
    [spent, 100],
    [gone, 95],
  ] as const) {
    await kit.pool.query(
      `insert into agent_tokens (agent_id, used, mark, last_worked_at) values ($1, $2::int, $2::int, $3)
       on conflict (agent_id) do update set used = $2::int, mark = $2::int, last_worked_at = $3`,
      [agent.id, mark, ago(3)],
    )
  }
  await kit.call(`DELETE /api/projects/${id}/agents/${gone.id}`)
  const flowId = await insert('flows', { project_id: id, name: 'Launch', root: { type: 'map_reduce' } })
  const flowRun = await insertFlowRun(id, { flow_id: flowId, status: 'completed' })
  const alert = await insertAlert(kit.pool, id, flowRun)
  const seen = await insertAlert(kit.pool, id, await insertFlowRun(id, { status: 'completed' }))
  await kit.pool.query('update flow_alerts set acked_at = now() where id = $1', [seen])
  await kit.pool.query('update flow_alerts set created_at = $2 where id = $1', [alert, ago(2)])
  const question = await insertTask(id, { kind: 'escalation', created_at: ago(1) })
  const suggestion = await insertTask(id, { kind: 'suggestion', created_at: ago(4), assigned_to: null })
  const work = await insertTask(id, { created_at: ago(5) })
  await insertTask(id, { assigned_to: clerk.id })
  await insertTask(id, { status: 'completed', completed_at: ago(1) })

  const { waits, projects } = await read(await keyOf(id))
  assert.deepEqual(idsOf(waits), [question, alert, saver.id, suggestion, work])
  assert.deepEqual([waits.count, waits.has_more], [5, false])
  assert.deepEqual(projects.items[0]?.waits, { count: 5, has_more: false })
  assert.deepEqual(projects.items[0]?.agents, { count: 3, has_more: false })
  const [first, second, third] = waits.items
  assert.ok(first?.kind === 'task' && second?.kind === 'alert' && third?.kind === 'agent')
  assert.deepEqual([first.project_id, first.task.kind, first.task.title], [id, 'escalation', 'Decide'])
  assert.deepEqual([second.alert.flow_run_id, second.alert.flow_name], [flowRun, 'Launch'])
  assert.deepEqual([third.agent.name, third.agent.token_used, third.agent.token_allocation], ['Saver', 90, 100])
})

test('flow runs and runs at the top run now; parts of other work and runs that a flow run shows do not', async () => {
  const { id } = await kit.createProject()
  const agent = await kit.createAgent(id, { name: 'Digger' })
  const running = { status: 'running', ended: null }
  const flowId = await insert('flows', { project_id: id, name: 'Launch', root: { type: 'map_reduce' } })
  const flowRun = await insertFlowRun(id, { ...running, began: 1, flow_id: flowId })
  const nameless = await insertFlowRun(id, { ...running, began: 4 })
  await insertFlowRun(id, { ...running, status: 'queued' })
  const run = await insertRun(id, { ...running, began: 2, agentId: agent.id })
  const bySchedule = await insertRun(id, { ...running, began: 3, trigger: { type: 'schedule' } })
  const ofSupervisor = await insertRun(id, { ...running, began: 5, agentId: null, trigger: { type: 'supervisor' } })
  const waitsForFlow = await insertRun(id, {
    ...running,
    began: 6,
    started_flow_run_id: await insertFlowRun(id, { status: 'queued', ended: null }),
  })
  await insertRun(id, { ...running, parent_run_id: run })
  await insertRun(id, { ...running, flow_run_id: flowRun, trigger: { type: 'flow' } })
  await insertRun(id, { ...running, started_flow_run_id: flowRun })
  await insertRun(id, { status: 'queued', ended: null })

  const { runs, fails, projects } = await read(await keyOf(id))
  assert.deepEqual(idsOf(runs), [flowRun, run, bySchedule, nameless, ofSupervisor, waitsForFlow])
  assert.deepEqual([runs.count, runs.has_more, fails.count], [6, false, 0])
  assert.deepEqual(projects.items[0]?.runs, { count: 6, has_more: false })
  const [first, second, third, fourth, fifth] = runs.items
  assert.ok(first?.kind === 'flow_run' && second?.kind === 'run' && third?.kind === 'run')
  assert.deepEqual([first.flow_run.flow_name, first.flow_run.pattern], ['Launch', 'map_reduce'])
  assert.equal(first.flow_run.progress.completed, 2)
  assert.ok(Date.parse(first.flow_run.eta ?? '') > Date.now(), 'half of the work is done')
  assert.deepEqual([second.run.agent_name, second.run.input_line], ['Digger', 'Dig.'])
  assert.deepEqual([third.run.agent_name, third.run.trigger_type], [null, 'schedule'])
  assert.ok(fourth?.kind === 'flow_run' && fifth?.kind === 'run')
  assert.deepEqual([fourth.flow_run.flow_name, fifth.run.agent_id], [null, null])
})

test('runs that failed or stopped since then, and flow runs that failed, are told; resumed ones are not', async () => {
  const { id } = await kit.createProject()
  const failed = await insertRun(id, { ended: 1, error_message: 'It\n broke.' })
  const stops = ['step_limit', 'timeout', 'context', 'budget', 'unavailable']
  const stopped: string[] = []
  for (const [place, reason] of stops.entries()) {
    stopped.push(await insertRun(id, { status: 'paused', pause_reason: reason, ended: 2 + place }))
  }
  const waitsForTokens = await insertRun(id, { status: 'paused', pause_reason: 'budget', began: 8, ended: null })
  const late = await insertFlowRun(id, { status: 'timed_out', began: 11, ended: 10 })
  const broken = await insertFlowRun(id, { ended: 9, error: 'A leaf failed.' })
  const old = await insertRun(id, { began: 30, ended: 26 })
  const oldFlow = await insertFlowRun(id, { began: 30, ended: 27 })
  for (const reason of ['human', 'halted', 'stopped', 'outcome_unknown']) {
    await insertRun(id, { status: 'paused', pause_reason: reason })
  }
  await insertRun(id, { status: 'completed' })
  await insertRun(id, { parent_run_id: failed })
  await insertRun(id, { flow_run_id: late, trigger: { type: 'flow' } })
  await insertRun(id, { ended: 9, started_flow_run_id: broken })
  await insertFlowRun(id, { status: 'cancelled' })
  const resumed = await insertRun(id, { status: 'paused', pause_reason: 'timeout', ended: 3 })
  const continues = (status: string) =>
    insertRun(id, { status, ended: null, base_run_id: resumed, base_seq: 1, resumed_from: resumed })
  await continues('queued')
  // The newest run of a chain stands for all of it, and a cancelled one needs nobody.
  const cancelled = await insertRun(id, { status: 'paused', pause_reason: 'timeout', began: 12, ended: 11 })
  await insertRun(id, { status: 'cancelled', base_run_id: cancelled, base_seq: 1, resumed_from: cancelled })

  const key = await keyOf(id)
  const { fails, projects, since } = await read(key)
  const expected = [failed, ...stopped, waitsForTokens, broken, late]
  assert.deepEqual(idsOf(fails), expected)
  assert.deepEqual([fails.count, fails.has_more], [expected.length, false])
  assert.deepEqual(projects.items[0]?.fails, { count: expected.length, has_more: false })
  assert.ok(Math.abs(Date.parse(since) - Date.parse(ago(24))) < 60_000, 'by default a day')
  const [first] = fails.items
  assert.ok(first?.kind === 'run')
  assert.equal(first.run.error_message, 'It broke.')
  assert.deepEqual(idsOf((await read(key, `?since=${ago(1.5)}`)).fails), [failed, waitsForTokens])
  assert.deepEqual(idsOf((await read(key, `?since=${ago(100)}`)).fails), [...expected, old, oldFlow])
  assert.deepEqual(idsOf((await read(key, `?since=${ago(-1)}`)).fails), [waitsForTokens])
})

test('a run that stands without an end is told whenever it began', async () => {
  const { id } = await kit.createProject()
  const waits = await insertRun(id, { status: 'paused', pause_reason: 'unavailable', began: 50, ended: null })
  await insertRun(id, { status: 'paused', pause_reason: 'step_limit', began: 50, ended: 49 })
  const { fails } = await read(await keyOf(id))
  assert.deepEqual([idsOf(fails), fails.count], [[waits], 1])
})

test('a run that tries its provider again by itself is told as waiting, and not as failed', async () => {
  const { id } = await kit.createProject()
  const agent = await kit.createAgent(id, { name: 'Digger' })
  const away = { status: 'paused', pause_reason: 'unavailable', ended: null }
  const wait = { ...away, waits_for: 'provider', waiting_for: 'provider openai', wait_message: 'Slow\n down.' }
  const older = await insertRun(id, { ...wait, began: 30, agentId: agent.id, wake_at: ago(-1) })
  const newer = await insertRun(id, { ...wait, began: 2 })
  const ofSupervisor = await insertRun(id, { ...away, agentId: null, waits_for: 'human' })
  await insertRun(id, { ...wait, parent_run_id: older })
  const { provider_waits: waits, fails, runs } = await read(await keyOf(id))
  assert.deepEqual([idsOf(waits), waits.count, waits.has_more], [[newer, older], 2, false])
  assert.deepEqual([idsOf(fails), runs.count], [[ofSupervisor], 0])
  const { run } = waits.items[1] ?? assert.fail()
  assert.deepEqual([run.agent_name, run.is_wait, run.waiting_for], ['Digger', true, 'provider openai'])
  assert.deepEqual([run.wait_message, run.next_try_at?.slice(0, 16)], ['Slow down.', ago(-1).slice(0, 16)])
})

test('the tokens of today and yesterday are those of the usage report', async () => {
  const { id } = await kit.createProject()
  const agent = await kit.createAgent(id, {})
  const days = [0, 1, 2].map((back) => ago(24 * back).slice(0, 10))
  for (const [place, day] of days.entries()) {
    await kit.pool.query(
      `insert into usage_days (project_id, day, agent_id, source, input_tokens, output_tokens, cost_usd)
       values ($1, $2, null, 'other', $3, 1, $4)`,
      [id, day, 10 ** place, place === 1 ? 0.5 : null],
    )
  }
  await kit.pool.query(
    `insert into agent_tokens (agent_id, day, day_input, day_output, day_cost) values ($1, $2, 7, 3, 0.25)
     on conflict (agent_id) do update set day = $2, day_input = 7, day_output = 3, day_cost = 0.25`,
    [agent.id, days[0]],
  )
  const { projects } = await read(await keyOf(id))
  assert.deepEqual(projects.items[0]?.usage, {
    today: { total_tokens: 12, cost_usd: 0.25 },
    yesterday: { total_tokens: 11, cost_usd: 0.5 },
  })
})

test('lists have the newest fifty of all projects, and counts end at a hundred of each kind and project', async () => {
  const full = await kit.createProject('Full')
  const other = await kit.createProject('Other')
  await kit.pool.query(
    `insert into tasks (id, project_id, kind, title, status, created_by, created_at)
     select gen_random_uuid(), $1, 'suggestion', 'Many ' || n, 'pending', '{"type":"agent","id":null}', now() - n * interval '1 min'
     from generate_series(2, 130) n`,
    [full.id],
  )
  await insertTask(full.id)
  const newest = await insertTask(other.id, { created_at: new Date(Date.now() + 1_000) })
  const oldest = await insertTask(other.id, { created_at: ago(50) })
  const person = await signInByLink(kit, { member: { projectId: full.id, role: 'viewer' } })
  await join(person.userId, other.id)
  const { waits, projects } = await read({ cookie: person.cookie })
  assert.deepEqual([waits.items.length, waits.count, waits.has_more], [50, 102, true])
  assert.equal(idsOf(waits)[0], newest)
  assert.ok(!idsOf(waits).includes(oldest))
  const times = waits.items.map(({ at }) => at)
  assert.deepEqual(times, times.toSorted().reverse())
  assert.deepEqual(
    projects.items.map((each) => [each.project_id, each.waits]),
    [
      [other.id, { count: 2, has_more: false }],
      [full.id, { count: 100, has_more: true }],
    ],
  )
  await kit.pool.query(
    `insert into agents (id, project_id, name, prompt, capabilities)
     select gen_random_uuid(), $1, 'Agent ' || n, '', '{}' from generate_series(1, 201) n`,
    [other.id],
  )
  assert.deepEqual((await read(await keyOf(other.id))).projects.items[0]?.agents, { count: 200, has_more: true })
})

const join = (userId: string, projectId: string): Promise<string> =>
  insert('members', { project_id: projectId, user_id: userId, email: `${newId()}@example.com`, role: 'viewer' })

test('the answer has the projects of the caller alone, as the list of projects does', async () => {
  const mine = await kit.createProject('Mine')
  const theirs = await kit.createProject('Theirs secret')
  const fill = async (projectId: string): Promise<void> => {
    const agent = await kit.createAgent(projectId, { name: `Agent of ${projectId}`, token_allocation: 100 })
    await kit.pool.query(
      `insert into agent_tokens (agent_id, used, mark, day, day_input) values ($1, 95, 95, $2, 95)
       on conflict (agent_id) do update set used = 95, mark = 95, day = $2, day_input = 95`,
      [agent.id, ago(0).slice(0, 10)],
    )
    await insertTask(projectId, { title: `Task of ${projectId}` })
    await insertRun(projectId, { agentId: agent.id })
    await insertRun(projectId, { agentId: agent.id, status: 'running', ended: null })
    await insertAlert(kit.pool, projectId, await insertFlowRun(projectId, {}))
    await insertFlowRun(projectId, { status: 'running', ended: null })
  }
  await fill(mine.id)
  await fill(theirs.id)
  const member = await signInByLink(kit, { member: { projectId: mine.id, role: 'member' } })
  for (const credentials of [await keyOf(mine.id), { cookie: member.cookie }]) {
    const { status, body, text } = await kit.call<Home>('GET /api/home', credentials)
    assert.equal(status, 200, text)
    assert.ok(!text.includes(theirs.id) && !text.includes('secret'), 'nothing of the other project')
    assert.deepEqual([body.waits.count, body.runs.count, body.fails.count], [3, 2, 2])
    assert.deepEqual(
      body.projects.items.map(({ project_id, usage }) => [project_id, usage?.today.total_tokens]),
      [[mine.id, 95]],
    )
  }
  const stranger = await signInByLink(kit)
  const nothing = await read({ cookie: stranger.cookie })
  assert.deepEqual([nothing.waits.items, nothing.runs.items, nothing.fails.items], [[], [], []])
  assert.deepEqual([nothing.waits.count, nothing.projects], [0, { items: [], has_more: false }])
  const all = (await read({})).projects.items.map(({ project_id }) => project_id)
  const { body: listed } = await kit.call<{ items: { id: string }[] }>('GET /api/projects?limit=200')
  assert.deepEqual(
    all,
    listed.items.map(({ id }) => id),
  )
  await kit.call(`POST /api/projects/${mine.id}/halt`)
  assert.notEqual((await read({ cookie: member.cookie })).projects.items[0]?.halted_at, null)
  await kit.call(`DELETE /api/projects/${mine.id}`)
  const after = await read({ cookie: member.cookie })
  assert.deepEqual([after.projects.items, after.waits.count, after.fails.items], [[], 0, []])
  assert.equal((await kit.call('GET /api/home', { token: null })).status, 401)
})

test('an instant that is none, and a parameter that is not known, are refused', async () => {
  const tooFar = '?since=9999-12-31T23:59:59-23:59'
  for (const query of ['?since=yesterday', '?since=', '?since=2026-01-01', tooFar, '?project=x']) {
    const { status, body } = await kit.call<Refusal>(`GET /api/home${query}`)
    assert.deepEqual([status, body.error.code], [400, 'INVALID_REQUEST'], query)
  }
})

test('a part whose time is up is left out and named, and the others are answered', async () => {
  const { id } = await kit.createProject()
  await insertTask(id)
  const failed = await insertRun(id, {})
  const key = await keyOf(id)
  await withClient(kit.url, async (client) => {
    await client.query('begin; lock table tasks in access exclusive mode')
    const home = await read(key)
    assert.deepEqual(home.incomplete, ['waits'])
    assert.deepEqual([home.waits, home.projects.items[0]?.waits], [{ items: [], count: 0, has_more: true }, null])
    assert.deepEqual(idsOf(home.fails), [failed])
    await client.query('rollback')
  })
  assert.deepEqual((await read(key)).incomplete, [])
})
