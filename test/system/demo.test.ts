// The project that a newcomer finds after the first start: a small team that has reached a goal without help, on the
// offline model, and is idle afterwards, also after a second start; and a shop whose work can be watched.
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import type { FlowTask } from '../../src/flows/history/trace.ts'
import type { Agent } from '../../src/kernel/agent.ts'
import type { AgentMessage } from '../../src/kernel/agent-message.ts'
import type { FlowRun } from '../../src/kernel/flow-run.ts'
import type { OrgAgent } from '../../src/kernel/org.ts'
import type { Run, Step } from '../../src/kernel/run.ts'
import type { Task } from '../../src/kernel/task.ts'
import { atEnd } from '../kit/at-end.ts'
import { createUnusedDatabase } from '../kit/database.ts'
import { isLong } from '../kit/how-many.ts'
import { type Muster, startMuster } from '../kit/process.ts'
import { withClient } from '../kit/test-server.ts'
import { until } from '../kit/until.ts'

const wholeFile = { after: atEnd }
const env = { MUSTER_ADMIN_TOKEN: 'one-token-for-both-lives', MUSTER_SECRET_KEY: 'one-key-for-both-of-the-lives' }
const GOAL = 'Tell our customers about the export'

let databaseUrl: string
let muster: Muster
let base: string
let agents: Map<string, Agent>
let tasks: Task[]
let reachedInMs: number

before(async () => {
  databaseUrl = await createUnusedDatabase()
  muster = await startMuster(wholeFile, { databaseUrl, env })
  const began = performance.now()
  const { body } = await muster.call<{ items: { id: string }[] }>('GET /api/projects')
  base = `/api/projects/${body.items[0]?.id}`
  const isReached = async (): Promise<boolean> =>
    (await list<Task>('/tasks')).some(({ title, completed_at }) => title === GOAL && completed_at !== null)
  await until(isReached, 'the goal is reached', 60_000)
  reachedInMs = performance.now() - began
  await until(isAtRest, 'the team has nothing to do any more')
  agents = new Map((await list<Agent>('/agents')).map((agent) => [agent.name, agent]))
  tasks = await list<Task>('/tasks')
})

async function list<Item>(path: string): Promise<Item[]> {
  const answer = await muster.call<{ items: Item[] }>(`GET ${base}${path}${path.includes('?') ? '&' : '?'}limit=200`)
  assert.equal(answer.status, 200, answer.text)
  return answer.body.items
}

const query = <Row extends object>(sql: string): Promise<Row[]> =>
  withClient(databaseUrl, async (db) => (await db.query<Row>(sql)).rows)

const TEAM = `(select id from agents where name in ('Director', 'Scout', 'Writer', 'Checker'))`

/** True if the team has no open run and no task to start. */
async function isAtRest(): Promise<boolean> {
  const [row] = await query<{ is_busy: boolean }>(
    `select exists (select from agent_runs where completed_at is null and agent_id in ${TEAM})
       or exists (select from task_queues where due_at is not null and agent_id in ${TEAM}) as is_busy`,
  )
  return row?.is_busy === false
}

const agentCalled = (name: string): Agent => agents.get(name) ?? assert.fail(`nobody is called ${name}`)
const nameOf = (id: string | null): string => [...agents.values()].find((agent) => agent.id === id)?.name ?? 'people'

/** The steps of the one run that attempted the task. */
async function stepsFor(task: Task): Promise<Step[]> {
  const runs = (await list<Run>(`/runs?agent_id=${task.assigned_to}`)).filter(
    ({ trigger }) => trigger.type === 'task' && trigger.task_id === task.id,
  )
  assert.deepEqual(
    runs.map(({ status }) => status),
    ['completed'],
    task.title,
  )
  return list<Step>(`/runs/${runs[0]?.id}/steps`)
}

const callsIn = (steps: readonly Step[]) => steps.filter((step) => step.kind === 'tool')

test('the goal of the demo is split, done by competent agents, and reported', async (t) => {
  t.diagnostic(`reached ${Math.round(reachedInMs)} ms after the server was ready`)
  const goal = tasks.find(({ title }) => title === GOAL) ?? assert.fail()
  assert.deepEqual([nameOf(goal.assigned_to), goal.status], ['Director', 'completed'])
  const parts = tasks.filter((task) => task.parent_task_id === goal.id).reverse()
  assert.deepEqual(
    parts.map(({ assigned_to, title, status }) => [nameOf(assigned_to), title, status]),
    [
      ['Scout', 'Research who reported trouble with the export', 'completed'],
      ['Writer', 'Draft a note to these customers', 'completed'],
      ['Checker', 'Proofread the note', 'completed'],
    ],
  )
  const results = (goal.result as { result: string }[]).map(({ result }) => result) // of its subtasks
  for (const result of results) assert.match(result, /\(Written by the offline model\.\)$/)
  assert.match(results[0] ?? '', /object_search gave 1 item \("The monthly export is empty"\)/)
  assert.match(results[2] ?? '', /I built on "Draft a note/)
  const { items } = (await muster.call<{ items: OrgAgent[] }>(`GET ${base}/org`)).body
  const team = items.find(({ name }) => name === 'Director')?.subordinates ?? []
  assert.deepEqual(
    team.map(({ name }) => name),
    ['Checker', 'Scout', 'Writer'],
  )
})

test('its scout ran out of tokens in mid-task, once, and the director gave it more', async () => {
  const scout = agentCalled('Scout')
  const told = (await list<AgentMessage>(`/agents/${scout.id}/messages`)).filter(({ from }) => from === scout.id)
  const bodies = (kind: AgentMessage['kind']): string[] =>
    told.filter((message) => message.kind === kind && nameOf(message.to) === 'Director').map(({ body }) => body)
  assert.deepEqual(
    bodies('budget')
      .map((body) => /90 %|95 %|used up/.exec(body)?.[0])
      .sort(),
    ['90 %', '95 %', 'used up'],
  )
  const [again, paused] = bodies('status')
  assert.match(paused ?? '', /^Scout is paused \(it was active\)/)
  assert.match(again ?? '', /^Scout is active \(it was paused\)/)
  const asked = tasks.filter(({ title }) => title === 'Agent Scout has used up its tokens')
  assert.deepEqual(
    asked.map(({ assigned_to, status }) => [nameOf(assigned_to), status]),
    [['Director', 'completed']],
  )
  const before = (scout.token_allocation ?? 0) / 2
  const [gift, ...more] = callsIn(await stepsFor(asked[0] ?? assert.fail()))
  assert.deepEqual([gift?.name, gift?.args, more], ['budget_add', { agent: 'Scout', tokens: before }, []])
  const work = await stepsFor(tasks.find(({ title }) => title.startsWith('Research')) ?? assert.fail())
  assert.deepEqual(
    callsIn(work).map(({ name, args }) => [name, args]),
    [['object_search', { type: 'Ticket' }]],
    'the same run went on',
  )
  assert.ok((callsIn(work)[0]?.started_at ?? '') < (gift?.started_at ?? ''), 'it ran out before the task began')
  assert.ok((gift?.started_at ?? '') < (work.at(-1)?.started_at ?? ''), 'it ran out after the task')
  const logged = muster
    .stderr()
    .split('\n')
    .filter((line) => line.includes('"mark":') && line.includes(scout.id))
  assert.deepEqual(
    logged.map((line) => /"mark":100,.*"msg":"(.*)"/.exec(line)?.[1]),
    ['an agent has used a part of its allocation'],
  )
})

const PARTS = 12
/** The plan, the parts, and the judgement of the queen. */
const LEAVES = PARTS + 2

/** Newest first. */
const launches = async (): Promise<FlowRun[]> =>
  (await list<FlowRun>('/flow-runs')).filter(({ pattern }) => pattern === 'hierarchical')

const hasPlan = ({ status, eta, progress }: FlowRun): boolean =>
  status === 'running' && eta !== null && progress.total === LEAVES

test('the shop is at work at once: a plan with its workers, a loop that was stopped, a budget, a question', async () => {
  await until(async () => (await launches()).some(hasPlan), `a launch of ${PARTS} parts runs, with an ETA`, 30_000)
  const runOf = async (name: string): Promise<string> => {
    const [run] = await list<Run>(`/runs?agent_id=${agentCalled(name).id}`)
    return `${run?.status} ${run?.error_code ?? run?.pause_reason}`
  }
  await until(async () => (await runOf('Stock watcher')) === 'failed DOOM_LOOP', 'the loop was stopped', 30_000)
  await until(async () => (await runOf('Buyer')) === 'paused human', 'the buyer asks', 30_000)
  const inbox = (await list<Task>('/tasks?status=pending')).filter(({ assigned_to }) => assigned_to === null)
  assert.deepEqual(inbox.map(({ kind }) => kind).sort(), ['escalation', 'suggestion'])
  await until(async () => (await usedPart('Bookkeeper')) >= 0.9, 'the bookkeeper has used its tokens', 30_000)
  assert.ok((await usedPart('Bookkeeper')) < 1)
})

async function usedPart(name: string): Promise<number> {
  const { token_used: used, token_allocation: all } = (
    await muster.call<Agent>(`GET ${base}/agents/${agentCalled(name).id}`)
  ).body
  return used / (all ?? 1)
}

const MINUTE_MS = 60_000
const msOf = (instant: string | null): number => Date.parse(instant ?? assert.fail('there is no instant'))

interface Part extends Pick<FlowTask, 'id' | 'kind' | 'status' | 'start_at' | 'end_at' | 'depends_on'> {}

/** The tasks of a launch, without the plan and the judgement of the queen. */
async function partsOf({ id }: FlowRun): Promise<Part[]> {
  const { body } = await muster.call<{ tasks: Part[] }>(`GET ${base}/flow-runs/${id}/trace`)
  return body.tasks.filter((task) => task.id.includes('/do '))
}

test('the launch can be watched for a minute: its plan, its pace and its ETA say so', async (t) => {
  const first = (await launches()).at(-1) ?? assert.fail('there is no launch')
  const read = async (): Promise<FlowRun> => (await muster.call<FlowRun>(`GET ${base}/flow-runs/${first.id}`)).body
  await until(async () => (await read()).progress.total === LEAVES, `the plan has ${PARTS} parts`, 30_000)
  const ended = async (): Promise<Part[]> => (await partsOf(first)).filter(({ end_at }) => end_at !== null)
  await until(async () => (await ended()).length >= 3, 'three parts are done', MINUTE_MS)
  const took = (await ended()).map(({ start_at, end_at }) => msOf(end_at) - msOf(start_at))
  // All parts but the first two wait for the part before.
  const expectedMs = Math.min(...took) * (PARTS - 1)
  t.diagnostic(`parts take ${Math.min(...took)} to ${Math.max(...took)} ms`)
  assert.ok(expectedMs >= MINUTE_MS, `the launch lasts ${expectedMs} ms`)
  const { eta, started_at, status } = await read()
  if (status === 'running') assert.ok(msOf(eta) - msOf(started_at) >= 0.75 * MINUTE_MS, `the ETA is ${eta}`)
})

test('the launch starts again by its schedule, every four minutes', async () => {
  const { body } = await muster.call<{ items: { name: string; next_run_at: string; cron_schedule: string }[] }>(
    `GET ${base}/schedule`,
  )
  const planner = body.items.find(({ name }) => name === 'Launch planner') ?? assert.fail('nobody plans launches')
  const wait = msOf(planner.next_run_at) - Date.now()
  assert.ok(wait > -MINUTE_MS && wait <= 4 * MINUTE_MS, `the next launch is due at ${planner.next_run_at}`)
  const times = await muster.call<{ items: string[] }>(
    `GET ${base}/schedule/preview?${new URLSearchParams({ cron_schedule: planner.cron_schedule })}`,
  )
  const instants = times.body.items.map(msOf)
  for (const [place, at] of instants.slice(1).entries()) assert.equal(at - (instants[place] ?? 0), 4 * MINUTE_MS)
})

test('the team stays idle after a second start, although every agent is checked', async () => {
  const count = (): Promise<object[]> =>
    query(
      `select (select count(*) from tasks where assigned_to in ${TEAM}) as tasks,
         (select count(*) from agent_runs where agent_id in ${TEAM}) as runs,
         (select count(*) from agent_messages where from_agent in ${TEAM}) as messages,
         (select count(*) from agents) as agents, (select count(*) from objects) as objects`,
    )
  const found = await count()
  await muster.stop()
  const [stopped] = await query<{ at: string }>('select now()::text as at')
  muster = await startMuster(wholeFile, { databaseUrl, env })
  const hasLooked = async (): Promise<boolean> => {
    const rows = await query(
      `select from org_rounds where at > '${stopped?.at}'
         and not exists (select from task_queues where check_at < now() + interval '5 minutes')`,
    )
    return rows.length === 1
  }
  await until(hasLooked, 'every agent was checked, and is checked next when it would be bored')
  assert.ok(await isAtRest())
  assert.deepEqual(await count(), found)
})

const inLong = isLong ? test : () => {}

// The schedule starts the next launch after four minutes.
inLong('the first launch lasts a minute, no alert is made of it, and the next one comes by itself', async (t) => {
  const first = (await launches()).at(-1) ?? assert.fail('there is no launch')
  const read = async (): Promise<FlowRun> => (await muster.call<FlowRun>(`GET ${base}/flow-runs/${first.id}`)).body
  await until(async () => (await read()).completed_at !== null, 'the first launch ends', 3 * MINUTE_MS)
  const { status, duration, progress } = await read()
  t.diagnostic(`the launch took ${duration} ms`)
  assert.deepEqual([status, progress.completed], ['completed', LEAVES])
  assert.ok((duration ?? 0) >= MINUTE_MS, `the launch took ${duration} ms`)
  assert.deepEqual(await list('/alerts'), [])
  await until(async () => (await launches()).length >= 2, 'the launch is started again', 5 * MINUTE_MS)
  const again = (await list<Run>('/runs')).find(({ trigger }) => trigger.type === 'schedule')
  assert.ok(again, 'the schedule started it')
})
