// The sums of each day, as appends write them and as people read them.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase, migrationsFolder } from '../../test/kit/database.ts'
import { insertProject } from '../../test/kit/runs.ts'
import { databaseTime } from '../db/database-time.ts'
import { loadMigrations } from '../db/migrate.ts'
import { createJournal } from '../journal/append.ts'
import type { RunChange } from '../journal/run-change.ts'
import { newId } from '../kernel/id.ts'
import { silentLog } from '../kernel/log.ts'
import type { UsageReport } from '../kernel/usage.ts'
import { readUsage } from './usage.ts'

const { pool, clock } = await createTestDatabase()
const journal = createJournal({ db: pool, log: silentLog })
const DAY_MS = 24 * 60 * 60_000
const page = { limit: 200 }

const today = async (): Promise<string> => (await databaseTime(pool)).toISOString().slice(0, 10)
const daysAgo = async (days: number): Promise<string> =>
  new Date((await databaseTime(pool)).getTime() - days * DAY_MS).toISOString().slice(0, 10)

async function insertAgent(projectId: string, name: string): Promise<string> {
  const id = newId()
  await pool.query(`insert into agents (id, project_id, name, capabilities) values ($1, $2, $3, '{}')`, [
    id,
    projectId,
    name,
  ])
  return id
}

async function insertRun(projectId: string, agentId: string | null, payers: string[] = []): Promise<string> {
  const id = newId()
  await pool.query(
    `insert into agent_runs (id, project_id, agent_id, trigger, input, rights, fence, status, ready_at, payers)
     values ($1, $2, $3, '{"type":"manual"}', '"hello"', '{}', 1, 'running', null, $4)`,
    [id, projectId, agentId, payers],
  )
  return id
}

const call = async (runId: string, change: RunChange): Promise<void> => {
  const event = { kind: 'note', data: {} } as const
  const { status } = await journal.append({ runId, fence: 1, events: [event as never], change }) // any event will do
  assert.notEqual(status, 'lost')
}
const tokens = (input: number, output: number, costUsd?: number): RunChange => ({
  steps: 1,
  inputTokens: input,
  outputTokens: output,
  ...(costUsd === undefined ? {} : { costUsd }),
})
const amounts = (input: number, output: number, cost: number | null = null) => ({
  input_tokens: input,
  output_tokens: output,
  total_tokens: input + output,
  cost_usd: cost,
})
const read = async (projectId: string, days = 30): Promise<UsageReport> =>
  readUsage(pool, projectId, { from: await daysAgo(days - 1), to: await today() }, page)

test('calls count for the day on which they are made, not for the day of their run', async () => {
  const project = await insertProject(pool)
  const writer = await insertAgent(project, 'Writer')
  const run = await insertRun(project, writer)
  await call(run, tokens(100, 20, 0.25))
  await call(run, tokens(10, 2))
  await clock.advance(DAY_MS)
  await call(run, tokens(1_000, 1, 0.5))
  await clock.advance(DAY_MS)
  const days = [await daysAgo(1), await daysAgo(2)]
  const made = { agent_id: writer, name: 'Writer', source: 'agent' }
  const report = await read(project, 4)
  assert.deepEqual(report.items, [
    { day: days[0], ...made, ...amounts(1_000, 1, 0.5) },
    { day: days[1], ...made, ...amounts(110, 22, 0.25) },
  ])
  assert.deepEqual(report.totals, amounts(1_110, 23, 0.75))
  assert.deepEqual(report.agents, [{ ...made, ...amounts(1_110, 23, 0.75) }])
  assert.deepEqual(report.days, [
    { day: await today(), ...amounts(0, 0) },
    { day: days[0], ...amounts(1_000, 1, 0.5) },
    { day: days[1], ...amounts(110, 22, 0.25) },
    { day: await daysAgo(3), ...amounts(0, 0) },
  ])
})

test('a day that was moved is counted on when the clock of the database goes back', async () => {
  const project = await insertProject(pool)
  const run = await insertRun(project, await insertAgent(project, 'Writer'))
  await call(run, tokens(1, 0))
  await clock.advance(DAY_MS)
  await call(run, tokens(10, 0))
  await clock.advance(-DAY_MS)
  await call(run, tokens(100, 0))
  await clock.advance(DAY_MS)
  const { items } = await read(project)
  assert.deepEqual(
    items.map(({ day, input_tokens }) => [day, input_tokens]),
    [
      [await today(), 10],
      [await daysAgo(1), 101],
    ],
  )
})

test('calls of runs without an agent stand under the supervisor, across months too', async () => {
  const project = await insertProject(pool)
  const run = await insertRun(project, null)
  for (let day = 0; day < 40; day++) {
    await call(run, tokens(10, 1, 0.125))
    await clock.advance(DAY_MS)
  }
  const report = await read(project, 41)
  const made = { agent_id: null, name: null, source: 'supervisor' }
  assert.deepEqual(report.agents, [{ ...made, ...amounts(400, 40, 5) }])
  assert.equal(report.items.length, 40)
  assert.ok(report.items.every((item) => item.total_tokens === 11))
})

test('a call that counts for several agents is in the report once, with its maker', async () => {
  const project = await insertProject(pool)
  const flow = await insertAgent(project, 'is a flow')
  const leaf = await insertAgent(project, 'leaf')
  await call(await insertRun(project, leaf, [flow]), tokens(30, 3))
  const { agents, totals } = await read(project)
  assert.deepEqual(agents, [{ agent_id: leaf, name: 'leaf', source: 'agent', ...amounts(30, 3) }])
  assert.deepEqual(totals, amounts(30, 3))
  const { rows } = await pool.query('select used from agent_tokens where agent_id = $1', [flow])
  assert.deepEqual(rows, [{ used: 33 }])
})

test('appends without tokens charge nobody, beside appends with tokens and alone', async () => {
  const project = await insertProject(pool)
  const agent = await insertAgent(project, 'Writer')
  const runs = await Promise.all([insertRun(project, agent), insertRun(project, agent), insertRun(project, null)])
  await Promise.all(runs.map((run, place) => call(run, place === 0 ? tokens(7, 1) : {})))
  await Promise.all(runs.map((run) => call(run, {})))
  assert.deepEqual((await read(project)).totals, amounts(7, 1))
  const { rows } = await pool.query('select last_seq, input_tokens from agent_runs where id = any($1) order by 2', [
    runs,
  ])
  assert.deepEqual(rows, [
    { last_seq: 2, input_tokens: 0 },
    { last_seq: 2, input_tokens: 0 },
    { last_seq: 2, input_tokens: 7 },
  ])
})

test('another project’s tokens are not in the report, and a deleted agent keeps its name', async () => {
  const [project, other] = [await insertProject(pool), await insertProject(pool)]
  const agent = await insertAgent(project, 'Gone')
  await call(await insertRun(project, agent), tokens(5, 5))
  await call(await insertRun(other, await insertAgent(other, 'Theirs')), tokens(900, 9))
  await pool.query('update agents set deleted_at = muster.now() where id = $1', [agent])
  await pool.query('delete from agent_runs where project_id = $1', [project])
  const report = await read(project)
  assert.deepEqual(report.agents, [{ agent_id: agent, name: 'Gone', source: 'agent', ...amounts(5, 5) }])
  assert.deepEqual(report.totals, amounts(5, 5))
})

test('a long report is read page by page, each entry once', async () => {
  const project = await insertProject(pool)
  const agents = await Promise.all(['a', 'b', 'c'].map((name) => insertAgent(project, name)))
  for (let day = 0; day < 3; day++) {
    for (const agent of [...agents, null]) await call(await insertRun(project, agent), tokens(1, 0))
    await clock.advance(DAY_MS)
  }
  const whole = (await read(project)).items
  assert.equal(whole.length, 12)
  const span = { from: await daysAgo(9), to: await today() }
  const seen: UsageReport['items'] = []
  for (let cursor: string | undefined, pages = 0; ; pages++) {
    const part = await readUsage(pool, project, span, { limit: 5, cursor })
    assert.deepEqual(part.totals, amounts(12, 0), 'the sums are those of all pages')
    seen.push(...part.items)
    if (part.next_cursor === null) {
      assert.equal(pages, 2)
      break
    }
    cursor = part.next_cursor
  }
  assert.deepEqual(seen, whole)
})

test('usage from before the table counts for the day of its run', async () => {
  const project = await insertProject(pool)
  const agent = await insertAgent(project, 'Old')
  const flowRun = newId()
  await pool.query(
    `insert into agent_runs (id, project_id, agent_id, trigger, input, status, input_tokens, output_tokens, cost_usd,
       created_at, started_flow_run_id)
     values (gen_random_uuid(), $1, $2, '{}', '""', 'completed', 10, 1, 0.5, muster.now() - interval '2 days', null),
       (gen_random_uuid(), $1, $2, '{}', '""', 'completed', 20, 2, null, muster.now() - interval '2 days', null),
       (gen_random_uuid(), $1, null, '{}', '""', 'completed', 40, 4, null, muster.now() - interval '1 day', null),
       (gen_random_uuid(), $1, $2, '{}', '""', 'completed', 30, 3, null, muster.now() - interval '1 day', $3)`,
    [project, agent, flowRun],
  )
  await pool.query(
    `insert into flow_runs (id, project_id, root, input, progress, timeout, asked_input_tokens, asked_output_tokens)
     values ($1, $2, '{}', '""', '{}', 1, 80, 8)`,
    [flowRun, project],
  )
  const migration = (await loadMigrations(migrationsFolder)).find(({ name }) => name.endsWith('_usage_before'))
  await pool.query('delete from usage_days')
  for (const statement of migration?.sql.match(/^insert into usage_days\nselect [^;]*/gm) ?? [])
    await pool.query(statement)
  const { items } = await read(project)
  assert.deepEqual(
    items.map(({ day, source, total_tokens, cost_usd }) => [day, source, total_tokens, cost_usd]),
    [
      [await today(), 'function', 88, null],
      [await daysAgo(1), 'supervisor', 44, null],
      [await daysAgo(2), 'agent', 33, 0.5],
    ],
  )
})
