// A director, two leads and five specialists reach a goal on the offline model, over HTTP on a real server. On the way
// one agent runs out of tokens, one is stuck and one is bored. The tests read only data that clients can see.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { before, test } from 'node:test'
import type { Agent } from '../../src/kernel/agent.ts'
import type { AgentMessage } from '../../src/kernel/agent-message.ts'
import type { FlowRun } from '../../src/kernel/flow-run.ts'
import type { OrgAgent } from '../../src/kernel/org.ts'
import type { Run, Step } from '../../src/kernel/run.ts'
import type { Task } from '../../src/kernel/task.ts'
import { atEnd } from '../kit/at-end.ts'
import { createUnusedDatabase } from '../kit/database.ts'
import { type Muster, repository, startMuster } from '../kit/process.ts'
import { until } from '../kit/until.ts'

const wholeFile = { after: atEnd }
const DONE_WITHIN_MS = 60_000
const RETRIES = 2
/** Fay's tokens run out before the last of its three calls. */
const ALLOCATION = { Rita: 100_000, Fay: 86 }
const OFFLINE = /\(Written by the offline model\.\)$/

const team: Record<string, { senior: string | null } & Record<string, unknown>> = {
  Dora: { senior: null, role: 'the director' },
  Rita: {
    senior: 'Dora',
    competencies: ['research'],
    token_allocation: ALLOCATION.Rita,
    tools: ['unlock_archive'],
    prompt: 'You lead the research. If somebody of your team is stuck, the archive may be locked: call unlock_archive.',
  },
  Carl: { senior: 'Dora', competencies: ['leaflets'] },
  Fay: { senior: 'Rita', competencies: ['figures'], tools: ['read_figures'], token_allocation: ALLOCATION.Fay },
  Otto: { senior: 'Rita', competencies: ['orders'], tools: ['count_orders'] },
  Iris: { senior: 'Rita', competencies: ['interviews'] },
  Dan: { senior: 'Carl', competencies: ['draft'] },
  Pia: { senior: 'Carl', competencies: ['proofread'] },
}

const GOAL = {
  title: 'The autumn sale',
  description: [
    'Please see to this:',
    '- Research for the sale. First collect the figures with read_figures, then count the orders with count_orders until it works.',
    '- Leaflets for the sale. First draft a text, then proofread the text.',
  ].join('\n'),
}

let muster: Muster
let base: string
const ids = new Map<string, string>()
let goal: Task
let tasks: Task[]

before(async () => {
  muster = await startMuster(wholeFile, {
    databaseUrl: await createUnusedDatabase(),
    env: { MUSTER_DEMO: 'off', MUSTER_APP: join(repository, 'test/fixtures/archive-app.ts') },
  })
  base = `/api/projects/${(await made<{ id: string }>('/api/projects', { name: 'A shop' })).id}`
  // The retries of the stuck agent take longer than the time after which other agents are bored.
  const settings = { stuck_retry_limit: RETRIES, boredom_threshold: 400, poll_interval: 100 }
  assert.equal((await muster.call(`PATCH ${base}/settings`, { body: settings })).status, 200)
  for (const [name, { senior, ...fields }] of Object.entries(team)) {
    const senior_id = senior === null ? null : idOf(senior)
    const agent = { name, model: { provider: 'offline', name: 'offline' }, senior_id, ...fields }
    ids.set(name, (await made<Agent>(`${base}/agents`, agent)).id)
  }
  const { id } = await made<Task>(`${base}/tasks`, { ...GOAL, assigned_to: idOf('Dora') })
  const isOver = async (): Promise<boolean> => (await read<Task>(`/tasks/${id}`)).completed_at !== null
  await until(isOver, 'the goal is reached', DONE_WITHIN_MS)
  goal = await read<Task>(`/tasks/${id}`)
  tasks = await list<Task>('/tasks')
})

async function made<Body>(path: string, body: object): Promise<Body> {
  const answer = await muster.call<Body>(`POST ${path}`, { body })
  assert.equal(answer.status, 201, answer.text)
  return answer.body
}

async function read<Body>(path: string): Promise<Body> {
  const answer = await muster.call<Body>(`GET ${base}${path}`)
  assert.equal(answer.status, 200, answer.text)
  return answer.body
}

const list = async <Item>(path: string): Promise<Item[]> =>
  (await read<{ items: Item[] }>(`${path}${path.includes('?') ? '&' : '?'}limit=200`)).items

const idOf = (name: string): string => ids.get(name) ?? assert.fail(`nobody is called ${name}`)
const nameOf = (id: string | null): string => [...ids].find(([, known]) => known === id)?.[0] ?? 'people'

/** The agent's task with this title. */
const taskOf = (name: string, title: RegExp): Task =>
  tasks.find((task) => nameOf(task.assigned_to) === name && title.test(task.title)) ??
  assert.fail(
    `${name} has no such task: ${tasks.map((task) => `${nameOf(task.assigned_to)}: ${task.title}`).join('; ')}`,
  )

/** The agent's runs that attempted the task, oldest first. */
const attemptsAt = async (task: Task): Promise<Run[]> =>
  (await list<Run>(`/runs?agent_id=${task.assigned_to}`))
    .filter(({ trigger }) => trigger.type === 'task' && trigger.task_id === task.id)
    .reverse()

const callsOf = async (run: Run): Promise<Extract<Step, { kind: 'tool' }>[]> =>
  (await list<Step>(`/runs/${run.id}/steps`)).filter((step) => step.kind === 'tool')

const messages = async (from: string, to: string, kind: AgentMessage['kind']): Promise<string[]> =>
  (await list<AgentMessage>(`/agents/${idOf(from)}/messages`))
    .filter((message) => message.from === idOf(from) && message.to === idOf(to) && message.kind === kind)
    .map(({ body }) => body)
    .reverse()

test('the goal is split and delegated by competency, down two levels', async () => {
  const tree = tasks
    .filter((task) => task.parent_task_id !== null)
    .map((task) => {
      const parent = tasks.find(({ id }) => id === task.parent_task_id)
      return `${nameOf(parent?.assigned_to ?? null)} > ${nameOf(task.assigned_to)}: ${task.title}`
    })
  assert.deepEqual(tree.sort(), [
    'Carl > Dan: Draft a text',
    'Carl > Pia: Proofread the text',
    'Dora > Carl: Leaflets for the sale',
    'Dora > Rita: Research for the sale',
    'Rita > Fay: Collect the figures with read_figures',
    'Rita > Otto: Count the orders with count_orders until it works',
  ])
  for (const [name, title, knows] of [
    ['Rita', /Research/, /knows research/],
    ['Otto', /Count/, /knows orders/],
  ] as const) {
    const { metadata, assigned_to: assignee } = taskOf(name, title)
    assert.match(String(metadata.reasoning), knows)
    const senior = String(metadata.delegated_by)
    assert.deepEqual(await messages(nameOf(senior), nameOf(assignee), 'delegation'), [
      `You were given the task "${taskOf(name, title).title}".`,
    ])
  }
  const [split] = await attemptsAt(goal)
  const decisions = (await list<Step>(`/runs/${split?.id}/steps`)).filter((step) => step.kind === 'model')
  assert.match(decisions[0]?.text ?? '', /"delegate":false.*things that different subordinates know/)
  assert.match(decisions[1]?.text ?? '', /"subtasks":\[\{/)
  assert.equal(split?.summary, 'Split into 2 subtasks.')
})

test('the results roll up to the goal, and every answer says that the offline model wrote it', async () => {
  assert.equal(goal.status, 'completed')
  assert.deepEqual(goal.progress, { done: 2, total: 2, note: null })
  interface Part {
    title: string
    status: string
    result: string | Part[]
  }
  const leaves = (parts: readonly Part[]): Part[] =>
    parts.flatMap((part) => (typeof part.result === 'string' ? [part] : leaves(part.result)))
  // The result of a task is any JSON; these are the results of its subtasks.
  const found = leaves(goal.result as Part[])
  assert.deepEqual(
    found.map(({ status }) => status),
    ['completed', 'completed', 'completed', 'completed'],
  )
  for (const { title, result } of found) {
    assert.match(String(result), OFFLINE)
    assert.ok(String(result).includes(`"${title}"`), 'the answer is about its task')
  }
  const [figures, orders, , proofread] = found.map(({ result }) => String(result))
  assert.match(figures ?? '', /read_figures gave "\{"sold":2300,"times_read":1\}"/)
  assert.match(orders ?? '', /I built on "Collect the figures.*count_orders gave "\{"orders":417\}"/)
  assert.match(proofread ?? '', /I built on "Draft a text"/)
  const reported = await messages('Rita', 'Dora', 'completion')
  assert.ok(reported.some((body) => body.startsWith('Rita: "Research for the sale" is completed.')))
})

test('the agent that ran out of tokens was warned, paused, given more by its senior, and went on', async () => {
  const work = taskOf('Fay', /figures/)
  const told = await messages('Fay', 'Rita', 'budget')
  assert.deepEqual(told.map((body) => /90 %|95 %|used up/.exec(body)?.[0]).sort(), ['90 %', '95 %', 'used up'])
  const statuses = await messages('Fay', 'Rita', 'status')
  assert.ok(
    statuses.some((body) => /paused \(it was active\): it has used up its tokens/.test(body)),
    statuses.join(),
  )
  assert.ok(
    statuses.some((body) => /active \(it was paused\): it has tokens again/.test(body)),
    statuses.join(),
  )
  assert.match((await messages('Fay', 'Rita', 'delegation')).join(), /Fay has used up its tokens: the task .* waits/)

  const asked = taskOf('Rita', /^Agent Fay has used up its tokens$/)
  assert.equal(asked.metadata.exhaustedAgentId, idOf('Fay'))
  assert.deepEqual([asked.status, asked.priority, asked.progress.note], ['completed', 'high', null])
  assert.equal(tasks.filter((task) => task.metadata.exhaustedAgentId === idOf('Fay')).length, 1)
  const [funding] = await attemptsAt(asked)
  assert.ok(funding)
  assert.deepEqual(
    (await callsOf(funding)).map(({ name, args, is_error }) => [name, args, is_error]),
    [['budget_add', { agent: 'Fay', tokens: ALLOCATION.Fay }, false]],
  )
  const [fay, rita] = [await read<Agent>(`/agents/${idOf('Fay')}`), await read<Agent>(`/agents/${idOf('Rita')}`)]
  assert.equal(fay.token_allocation, 2 * ALLOCATION.Fay)
  assert.equal(rita.token_allocation, ALLOCATION.Rita - ALLOCATION.Fay)
  interface Entry {
    action: string
    actor: { type: string; id: string | null }
    target: { id: string | null } | null
    details: Record<string, unknown>
  }
  const given = (await list<Entry>('/audit')).filter(({ action, details }) => action === 'agent.budget' && details.add)
  assert.deepEqual(
    given.map(({ actor, target, details }) => [actor, target?.id, details]),
    [[{ type: 'agent', id: idOf('Rita') }, idOf('Fay'), { add: ALLOCATION.Fay, run_id: funding.id }]],
  )
  const attempts = await attemptsAt(work)
  assert.equal(attempts.length, 1, 'the same run goes on')
  const steps = await list<Step>(`/runs/${attempts[0]?.id}/steps`)
  const [plan, call, reading, end, ...more] = steps
  assert.deepEqual([plan?.kind, call?.kind, reading?.kind, end?.kind, more], ['model', 'model', 'tool', 'model', []])
  assert.deepEqual(reading?.kind === 'tool' && reading.result, { sold: 2_300, times_read: 1 })
  const [gift] = await callsOf(funding)
  assert.ok((call?.started_at ?? '') < (gift?.started_at ?? ''), 'it ran out before the task began')
  assert.ok((gift?.started_at ?? '') < (end?.started_at ?? ''), 'it ran out after the task')
})

test('the stuck agent was helped by its senior, saw the answer, and succeeded', async () => {
  const work = taskOf('Otto', /orders/)
  const attempts = await attemptsAt(work)
  const failures = attempts.slice(0, RETRIES + 1)
  assert.deepEqual(
    attempts.map(({ status }) => status),
    [...failures.map(() => 'failed'), 'completed'],
  )
  for (const failure of failures) {
    assert.equal(failure.error_code, 'DOOM_LOOP')
    const [first] = await callsOf(failure)
    assert.deepEqual(first?.result, { error: 'The archive is locked.' })
  }
  assert.match((await messages('Otto', 'Rita', 'escalation')).join(), /^Otto is stuck on "Count the orders/)
  const statuses = (await messages('Otto', 'Rita', 'status')).join()
  assert.match(statuses, /Otto is stuck \(it was active\)/)
  assert.match(statuses, /Otto is active \(it was stuck\): its escalation was completed/)

  const asked = taskOf('Rita', /^Agent Otto is stuck$/)
  assert.deepEqual(asked.metadata, { blockedTaskId: work.id, blockedAgentId: idOf('Otto') })
  assert.deepEqual([asked.status, asked.priority], ['completed', 'high'])
  const [help] = await attemptsAt(asked)
  assert.deepEqual(
    (await callsOf(help ?? assert.fail())).map(({ name }) => name),
    ['unlock_archive'],
  )
  assert.match(
    String(asked.result),
    /^I looked at what keeps Otto from the task "Count the orders.*unlock_archive gave "The archive is open"/,
  )
  assert.match(String(asked.result), OFFLINE)
  const last = attempts.at(-1) ?? assert.fail()
  const input = String((await read<Run>(`/runs/${last.id}`)).input)
  assert.ok(input.includes(`This was answered:\n- Rita: ${asked.result}`), input)
  assert.match(last.summary ?? '', /I went by the answer of Rita\. count_orders gave/)
})

test('the agent without a task was bored on the way, and its senior was told', async () => {
  const bored = (await list<AgentMessage>(`/agents/${idOf('Iris')}/messages`)).filter(({ kind }) => kind === 'status')
  assert.deepEqual(
    bored.map(({ to, body }) => [nameOf(to), body]),
    [['Rita', 'Iris is bored (it was active): it had no task for 0.4 seconds.']],
  )
  assert.ok((bored[0]?.created_at ?? '') < (goal.completed_at ?? ''), 'the others were still at work')
  const told = tasks.filter(({ metadata }) => (metadata.boredAgentIds as string[] | undefined)?.includes(idOf('Iris')))
  assert.deepEqual(
    told.map(({ assigned_to, priority }) => [nameOf(assigned_to), priority]),
    [['Rita', 'low']],
  )
  assert.deepEqual(await list<Run>(`/runs?agent_id=${idOf('Iris')}`), [])
})

test('in the end all agents are idle, no task is open, and the tree shows who reports to whom', async () => {
  const everybody = (nodes: readonly OrgAgent[]): OrgAgent[] =>
    nodes.flatMap((node) => [node, ...everybody(node.subordinates)])
  let top: OrgAgent[] = []
  const isQuiet = async (): Promise<boolean> => {
    top = (await read<{ items: OrgAgent[] }>('/org')).items
    return everybody(top).every(({ status, load }) => status === 'bored' && load === 0)
  }
  await until(isQuiet, () => `everybody is idle: ${JSON.stringify(top)}`, DONE_WITHIN_MS)
  const shape = (nodes: readonly OrgAgent[]): unknown[] =>
    nodes.map(({ name, subordinates }) => (subordinates.length > 0 ? { [name]: shape(subordinates) } : name))
  assert.deepEqual(shape(top), [{ Dora: [{ Carl: ['Dan', 'Pia'] }, { Rita: ['Fay', 'Iris', 'Otto'] }] }])
  const open = (await list<Task>('/tasks')).filter(({ completed_at }) => completed_at === null)
  assert.deepEqual(open, [])
})

test('a hierarchical flow on the offline model completes with at least two subtasks', async () => {
  const root = { type: 'hierarchical', queen: 'Dora', workers: ['Dan', 'Pia'], goal: 'Find out why sales fell' }
  const started = await muster.call<FlowRun>(`POST ${base}/flow-runs`, { body: { root } })
  assert.equal(started.status, 202, started.text)
  const { id } = started.body
  const isOver = async (): Promise<boolean> => (await read<FlowRun>(`/flow-runs/${id}`)).completed_at !== null
  await until(isOver, 'the flow has ended', DONE_WITHIN_MS)
  const { status, output, error } = await read<FlowRun>(`/flow-runs/${id}`)
  assert.equal(status, 'completed', String(error))
  const found = await list<{ id: string; status: string }>(`/flow-runs/${id}/tasks`)
  const subtasks = found.filter((task) => task.id.startsWith('root/do '))
  assert.ok(subtasks.length >= 2, JSON.stringify(found))
  for (const subtask of subtasks) assert.equal(subtask.status, 'completed')
  assert.match(String(output), OFFLINE)
})
