// The project that a newcomer finds after the first start: a small team that has worked a goal to its end by itself, on the
// offline model, and is idle afterwards, also after a second start.
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import type { Agent } from '../../src/kernel/agent.ts'
import type { AgentMessage } from '../../src/kernel/agent-message.ts'
import type { OrgAgent } from '../../src/kernel/org.ts'
import type { Run, Step } from '../../src/kernel/run.ts'
import type { Task } from '../../src/kernel/task.ts'
import { atEnd } from '../kit/at-end.ts'
import { createEmptyDatabase } from '../kit/database.ts'
import { until } from '../kit/embedded-kit.ts'
import { type Muster, startMuster } from '../kit/process.ts'
import { withClient } from '../kit/test-server.ts'

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
  databaseUrl = await createEmptyDatabase()
  muster = await startMuster(wholeFile, { databaseUrl, env })
  const began = performance.now()
  const { body } = await muster.call<{ items: { id: string }[] }>('GET /api/projects')
  base = `/api/projects/${body.items[0]?.id}`
  const isReached = async (): Promise<boolean> =>
    (await list<Task>('/tasks')).some(({ title, completed_at }) => title === GOAL && completed_at !== null)
  await until(isReached, 'the goal is reached', 60_000)
  reachedInMs = performance.now() - began
  await until(isAtRest, 'nothing is under way any more')
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

/** No run and no flow is under way, and no agent has a task to take up. */
async function isAtRest(): Promise<boolean> {
  const [row] = await query<{ is_busy: boolean }>(
    `select exists (select from agent_runs where completed_at is null)
       or exists (select from flow_runs where completed_at is null)
       or exists (select from task_queues where due_at is not null) as is_busy`,
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

test('the goal of the demo is split, done by those who know it, and reported', async (t) => {
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
    'it went on where it stood',
  )
  assert.ok((callsIn(work)[0]?.started_at ?? '') < (gift?.started_at ?? ''), 'it ran out before the task began')
  assert.ok((gift?.started_at ?? '') < (work.at(-1)?.started_at ?? ''), 'it ran out after the task')
  const logged = muster.stderr().match(/.*"mark":.*/g) ?? []
  assert.deepEqual(
    logged.map((line) => /"mark":100,.*"msg":"(.*)"/.exec(line)?.[1]),
    ['an agent has used a part of its allocation'],
  )
})

test('the team stays idle: a second start and a look at everybody begin nothing anew', async () => {
  const count = (): Promise<object[]> =>
    query(
      `select (select count(*) from tasks) as tasks, (select count(*) from agent_runs) as runs,
         (select count(*) from agent_messages) as messages, (select count(*) from agents) as agents,
         (select count(*) from flow_runs) as flow_runs, (select count(*) from objects) as objects`,
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
  await until(hasLooked, 'every agent was looked at, and is looked at next when it would be bored')
  assert.ok(await isAtRest())
  assert.deepEqual(await count(), found)
})
