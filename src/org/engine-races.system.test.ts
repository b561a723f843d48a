// Requests and rounds that meet. Each test holds one of them in the middle, lets the other go, and checks the outcome.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { QueryResultRow } from 'pg'
import { atEnd } from '../../test/kit/at-end.ts'
import { createOrganisation, untilTrue } from '../../test/kit/organisation.ts'
import { testTool } from '../../test/kit/run-worker.ts'
import { insertRuns } from '../../test/kit/runs.ts'
import { startOrg } from '../bin/org-services.ts'
import type { Db, PreparedSql } from '../db/pool.ts'
import { inTransaction } from '../db/transaction.ts'
import { reserveTokens } from '../journal/reserve.ts'
import type { Agent } from '../kernel/agent.ts'
import { silentLog } from '../kernel/log.ts'
import type { Task } from '../kernel/task.ts'
import { allocationChanged, noteExhausted } from './budget.ts'

const send = testTool('send', async () => assert.fail('a call that may have been made is not made again'), {
  effect: 'unsafe',
})
const org = await createOrganisation({ poll_interval: 100 }, { tools: [send] })

const isAbout = (title: string, prompt: unknown): boolean => JSON.stringify(prompt).includes(`Task: ${title}`)
const isSettled = (promise: Promise<unknown>): Promise<boolean> =>
  Promise.race([promise.then(() => true), new Promise<boolean>((resolve) => setImmediate(resolve, false))])

/** The number of statements of this database that wait for a lock. */
const waiting = async (): Promise<number> =>
  (
    await org.pool.query<{ count: number }>(
      `select count(*)::int as count from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    )
  ).rows[0]?.count ?? 0

type Query = (sql: string, values: unknown[]) => Promise<unknown>

/**
 * Runs in one transaction the statements that `work` gives to its argument. All other statements of `work` run outside
 * of it.
 */
async function inOneTransaction(work: (query: Query) => Promise<void>): Promise<void> {
  const client = await org.pool.connect()
  try {
    await client.query('begin')
    await work((sql, values) => client.query(sql, values))
    await client.query('commit')
  } finally {
    client.release()
  }
}

/** Writes of rows with this name wait in the middle until `release`. */
async function holdWrites(table: 'agents' | 'tasks', column: 'name' | 'title') {
  await org.pool.query(
    `create or replace function hold() returns trigger language plpgsql as $$
       begin perform pg_advisory_xact_lock_shared(4711); return new; end $$;
     create trigger hold before insert or update on ${table} for each row when (new.${column} like 'held%') execute function hold()`,
  )
  const client = await org.pool.connect()
  await client.query('select pg_advisory_lock(4711)')
  return async (): Promise<void> => {
    await client.query('select pg_advisory_unlock(4711)')
    client.release()
  }
}
const dropHold = (table: 'agents' | 'tasks') => org.pool.query(`drop trigger hold on ${table}`)

/** Holds a write in the middle, deletes the agent meanwhile, and waits for both. */
async function whileDeleting(
  table: 'agents' | 'tasks',
  column: 'name' | 'title',
  agent: Agent,
  write: () => Promise<{ status: number }>,
) {
  const release = await holdWrites(table, column)
  const writing = write()
  await untilTrue(async () => (await waiting()) === 1, 'the write is held')
  const deleting = org.call(`DELETE ${org.base}/agents/${agent.id}`)
  await untilTrue(async () => (await waiting()) > 1 || isSettled(deleting), 'the deletion is done or waits')
  await release()
  const [answer, deletion] = await Promise.all([writing, deleting])
  await dropHold(table)
  assert.equal(deletion.status, 204)
  return answer
}

test('an agent that is started while the organisation looks at it is not overlooked', async () => {
  await org.patchSettings({ poll_interval: 1_000_000 })
  const agent = await org.agent({})
  await org.post(`/agents/${agent.id}/stop`)
  const given = await org.give({ title: 'Waits', assigned_to: agent.id })
  const queue = (fields: string) =>
    org.pool
      .query(`select from task_queues where agent_id = $1 and ${fields}`, [agent.id])
      .then(({ rowCount }) => rowCount)
  await untilTrue(() => queue('due_at is null'), 'the organisation has looked')
  await org.pool.query('update task_queues set due_at = muster.now() where agent_id = $1', [agent.id])
  // The test writes like a start: first the agent, then its queue.
  await inOneTransaction(async (query) => {
    await query(`update agents set status = 'active', paused_for = null where id = $1`, [agent.id])
    await query('update task_queues set due_at = muster.now() where agent_id = $1', [agent.id])
    org.services.org.poke(org.project.id)
    // The organisation must look again, even if it has looked by then.
    await sleep(50)
  })
  org.services.org.poke(org.project.id)
  await untilTrue(() => queue('due_at is null'), 'the organisation has looked again')
  const { status } = await org.task(given.id)
  await org.patchSettings({ poll_interval: 100 })
  await org.pool.query('update task_queues set due_at = muster.now() where agent_id = $1', [agent.id])
  await org.until(given.id, 'completed')
  assert.notEqual(status, 'pending')
})

test('an agent that is stopped while it is given a task does not work on it', async () => {
  const agent = await org.agent(
    {},
    { work: ({ prompt }) => ({ text: 'so far', ...(isAbout('Now', prompt) ? { waitFor: 'abort' as const } : {}) }) },
  )
  await org.until((await org.give({ title: 'Before', assigned_to: agent.id })).id, 'completed')
  await org.rounds()
  const stopping: Promise<{ status: number }>[] = []
  const tasks: Task[] = []
  await inOneTransaction(async (query) => {
    await query('select from agent_tokens where agent_id = $1 for update', [agent.id])
    tasks.push(await org.give({ title: 'Now', assigned_to: agent.id }))
    await untilTrue(async () => (await waiting()) > 0, 'the task is being taken up')
    const stop = org.post(`/agents/${agent.id}/stop`)
    stopping.push(stop)
    await untilTrue(async () => (await waiting()) > 1 || isSettled(stop), 'the stop is done or waits')
  })
  for (const { status } of await Promise.all(stopping)) assert.equal(status, 200)
  const id = tasks[0]?.id ?? ''
  await org.rounds(4)
  const { status } = await org.task(id)
  await org.patch(`/tasks/${id}`, { status: 'cancelled' })
  assert.equal(status, 'pending')
})

test('a boredom_threshold that is changed while the organisation looks at an agent counts for it', async () => {
  const senior = await org.agent({ enabled: false })
  const agent = await org.agent({ senior_id: senior.id })
  await org.rounds()
  // The test writes like a change of the settings, with a look at the agent in the middle.
  await inOneTransaction(async (query) => {
    const look = 'update task_queues set check_at = muster.now() where agent_id = $1'
    await org.pool.query(look, [agent.id])
    await query(look, [agent.id])
    await query(`update projects set settings = settings || '{"boredom_threshold": 100}' where id = $1`, [
      org.project.id,
    ])
    await untilTrue(async () => (await waiting()) > 0, 'the organisation looks')
  })
  await org.rounds(4)
  const { status } = await org.agentNow(agent.id)
  await org.patchSettings({ boredom_threshold: 900_000 })
  assert.equal(status, 'bored')
})

test('a task that cannot be put into the queue of its agent is not made at all', async () => {
  const agent = await org.agent({})
  await org.pool.query(
    `create function refuse() returns trigger language plpgsql as $$ begin raise exception 'no room'; end $$;
     create trigger refuse before insert or update on task_queues for each row execute function refuse()`,
  )
  const answer = await org.post('/tasks', { title: 'All or nothing', assigned_to: agent.id })
  await org.pool.query('drop trigger refuse on task_queues')
  assert.equal(answer.status, 500)
  assert.deepEqual(await org.tasksOf(agent.id), [])
})

/** A task that is done keeps its agent, so the agents of these tests never get done. */
const endless = { work: { text: 'so far', waitFor: 'abort' as const } }

test('a task that is made while its agent is deleted is not orphaned', async () => {
  const agent = await org.agent({}, endless)
  const answer = await whileDeleting('tasks', 'title', agent, () =>
    org.post('/tasks', { title: 'held', assigned_to: agent.id }),
  )
  const { rows } = await org.pool.query('select from tasks where assigned_to = $1', [agent.id])
  assert.deepEqual([rows.length, [201, 400].includes(answer.status)], [0, true])
})

test('a task that is handed to an agent during its deletion is not orphaned', async () => {
  const agent = await org.agent({}, endless)
  const task = await org.give({ title: 'Given later' })
  const answer = await whileDeleting('tasks', 'title', agent, () =>
    org.patch(`/tasks/${task.id}`, { title: 'held', assigned_to: agent.id }),
  )
  const after = await org.task(task.id)
  assert.deepEqual([after.assigned_to, [200, 400].includes(answer.status)], [null, true])
})

test('an agent that gets a senior during the deletion of that senior has no deleted senior', async () => {
  const senior = await org.agent({})
  const agent = await org.agent({})
  await whileDeleting('agents', 'name', senior, () =>
    org.patch(`/agents/${agent.id}`, { name: 'held for a while', senior_id: senior.id }),
  )
  assert.equal((await org.agentNow(agent.id)).senior_id, null)
})

test('an agent that is created during the deletion of its senior has no deleted senior', async () => {
  const senior = await org.agent({})
  const answer = await whileDeleting('agents', 'name', senior, () =>
    org.post('/agents', { name: 'held at birth', senior_id: senior.id }),
  )
  assert.ok([201, 400].includes(answer.status))
  const { rows } = await org.pool.query('select from agents where senior_id = $1 and deleted_at is null', [senior.id])
  assert.equal(rows.length, 0)
})

const ROUNDS = 30

test('two organisations over one database claim a task once, and never lock each other out', async () => {
  const second = startOrg({
    role: 'all',
    pool: org.pool,
    worker: { join: () => {}, onReady: () => org.services.onReady() },
    log: silentLog,
  })
  atEnd(() => second.stop())
  await org.patchSettings({ max_concurrent_agents: 100, task_batch_size: 3 })
  const agents = []
  for (let number = 0; number < 8; number++) agents.push(await org.agent({}))
  const given: Task[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const tasks = agents.map(({ id }) => org.give({ title: `Task ${round}`, assigned_to: id }))
    for (let poke = 0; poke < 5; poke++) second.services.poke(org.project.id)
    given.push(...(await Promise.all(tasks)))
    second.services.sweep()
  }
  for (const { id } of given) await org.until(id, 'completed')
  for (const { id, requests } of agents) {
    const runs = await org.runsOf(id)
    assert.equal(new Set(runs.map(({ trigger }) => trigger.task_id)).size, ROUNDS)
    assert.deepEqual([runs.length, requests.length], [ROUNDS, 2 * ROUNDS])
  }
  await org.patchSettings({ max_concurrent_agents: 10, task_batch_size: 1 })
  await requireNoDeadlocks()
})

test('a task whose run has a call with an unknown outcome stays in progress, and goes on when a person decides', async () => {
  const agent = await org.agent({ tools: ['send'] }, { work: 'I see.' })
  await org.post(`/agents/${agent.id}/stop`)
  const task = await org.give({ title: 'Send it', assigned_to: agent.id })
  const [runId = ''] = await insertRuns(org.pool, org.project.id, 1)
  // The journal is as a process leaves it that died in the middle of the call.
  await org.pool.query(
    `with run as (
       update agent_runs set agent_id = $2, task_id = $3, is_task_open = true,
         trigger = jsonb_build_object('type', 'task', 'task_id', $3::uuid) where id = $1
     )
     update tasks set status = 'in-progress', attempt_run_id = $1, is_decided = true where id = $3`,
    [runId, agent.id, task.id],
  )
  await org.post(`/agents/${agent.id}/start`)
  const usage = { input_tokens: 1, output_tokens: 1, estimated: false, cost_usd: null }
  const call = { id: 'call_1_1', name: 'send', args: {} }
  const step = { step: 1, text: 'I send it.', tool_calls: [call], finish_reason: 'tool-calls', usage, duration: 1 }
  await org.services.journal.append({
    runId,
    fence: 1,
    events: [
      { kind: 'run.started', data: { agent_id: agent.id, input: 'Send it.' } },
      { kind: 'step.completed', data: { ...step, started_at: new Date().toISOString() } },
      {
        kind: 'tool.started',
        data: { step: 1, call_id: call.id, name: 'send', args: {}, key: `${runId}:1:1`, effect: 'unsafe' },
      },
      { kind: 'run.recovered', data: { crashes: 1, charged: true } },
    ],
    change: { steps: 1, set: { release: true, ready_in_ms: 0 } },
  })
  org.services.onReady()
  const asked = await untilTrue(
    async () => (await org.list<Task>('/tasks?kind=escalation&status=pending')).find(({ run_id }) => run_id === runId),
    'a person is asked',
  )
  await org.rounds()
  assert.equal((await org.task(task.id)).status, 'in-progress')
  assert.equal((await org.agentNow(agent.id)).status, 'active')
  await org.patch(`/tasks/${asked.id}`, { status: 'completed', result: 'done' })
  assert.equal((await org.until(task.id, 'completed')).result, 'I see.')
  assert.equal((await org.runsOf(agent.id))[0]?.resumed_from, runId)
})

test('an agent that is stopped, started, switched and deleted at once makes nobody wait for the deadlock detector', async () => {
  const agent = await org.agent({})
  const repeatedly = async (act: (round: number) => Promise<unknown>): Promise<void> => {
    for (let round = 0; round < 30; round++) await act(round)
  }
  await Promise.all([
    repeatedly((round) => org.patch(`/agents/${agent.id}`, { enabled: round % 2 === 1 })),
    repeatedly(() => org.post(`/agents/${agent.id}/stop`)),
    repeatedly(() => org.post(`/agents/${agent.id}/start`)),
    repeatedly(async () => {
      const { id } = await org.agent({})
      await org.post(`/agents/${id}/stop`)
      await org.call(`DELETE ${org.base}/agents/${id}`)
    }),
  ])
  await requireNoDeadlocks()
})

/** A deadlock stops both sides for a second before one of them may try again. */
async function requireNoDeadlocks(): Promise<void> {
  const { rows } = await org.pool.query('select deadlocks from pg_stat_database where datname = current_database()')
  assert.deepEqual(rows, [{ deadlocks: 0 }])
}

test('an agent that is given tokens while its run is refused some is not told again that it has none', async () => {
  const senior = await org.agent({ enabled: false })
  const agent = await org.agent({ senior_id: senior.id, token_allocation: 86 })
  await org.pool.query('insert into agent_tokens (agent_id, used) values ($1, 93)', [agent.id])
  const noteRefusal = () => inTransaction(org.pool, (tx) => noteExhausted(tx, silentLog, agent.id))
  const told = async () => (await org.messagesOf(agent.id)).filter(({ kind }) => kind === 'budget').length
  await noteRefusal()
  assert.equal(await told(), 3)
  const refusals: Promise<void>[] = []
  await inTransaction(org.pool, async (tx) => {
    await tx.query('update agents set token_allocation = 172 where id = $1', [agent.id])
    await allocationChanged(tx, silentLog, agent.id)
    refusals.push(noteRefusal())
    await untilTrue(async () => (await waiting()) > 0, 'the refusal waits')
  })
  await Promise.all(refusals)
  assert.equal(await told(), 3)
  assert.notEqual((await org.agentNow(agent.id)).status, 'paused')
  assert.equal((await org.tasksOf(senior.id)).filter((task) => task.completed_at === null).length, 0)
})

test('a call that asks for tokens while some are given is not refused', async () => {
  const agent = await org.agent({ token_allocation: 86 })
  await org.pool.query('insert into agent_tokens (agent_id, used) values ($1, 93)', [agent.id])
  const [runId = ''] = await insertRuns(org.pool, org.project.id, 1)
  const wanted = { agentIds: [agent.id], bound: 10, runId, fence: 1 }
  assert.equal((await reserveTokens(org.pool, wanted))?.isAdmitted, false)
  const isReserving = (sql: string | PreparedSql): boolean => typeof sql === 'object' && sql.name === 'tokens_reserve'
  let isGiven = false
  const pool: Db = org.pool
  /** The tokens are given when the call asks for them, and committed once the call waits. */
  const query: Db['query'] = async <Row extends QueryResultRow>(
    sql: string | PreparedSql,
    values?: readonly unknown[],
  ) => {
    if (isGiven || !isReserving(sql)) return pool.query<Row>(sql, values)
    isGiven = true
    const asking: ReturnType<typeof pool.query<Row>>[] = []
    await inTransaction(org.pool, async (tx) => {
      await tx.query('update agents set token_allocation = 172 where id = $1', [agent.id])
      await allocationChanged(tx, silentLog, agent.id)
      asking.push(pool.query<Row>(sql, values))
      await untilTrue(async () => (await waiting()) > 0, 'the call waits')
    })
    return asking[0] ?? assert.fail()
  }
  const answer = await reserveTokens({ query }, wanted)
  assert.deepEqual([answer?.isAdmitted, answer?.allocation], [true, 172])
})
