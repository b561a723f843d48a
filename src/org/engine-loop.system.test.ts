// The engine's spec, task 2, the execution loop: an agent looks for its tasks, works on them while it has tokens, and
// is bored when there are none.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createOrganisation, untilTrue } from '../../test/kit/organisation.ts'
import { recordLog } from '../../test/kit/record-log.ts'
import { newId } from '../kernel/id.ts'
import type { Task, TaskStatus } from '../kernel/task.ts'
import { makeDue } from '../tasks/task-queue.ts'

const { log, lines } = recordLog()
const org = await createOrganisation({ poll_interval: 100, stuck_retry_limit: 2 }, { log })
const breaks = (message: string) => ({ fail: { message, isRetryable: false } })

/** Inserts a task without any notice. The row is older than any notice that may be under way. */
async function insertTask(agentId: string, status: TaskStatus = 'pending'): Promise<string> {
  const id = newId()
  await org.pool.query(
    `insert into tasks (id, project_id, kind, title, assigned_to, created_by, status, created_at, completed_at)
     values ($1, $2, 'work', 'Found', $3, '{"type": "user", "id": null}', $4, muster.now() - interval '1 minute',
       case when $4 in ('completed', 'failed', 'rejected', 'cancelled') then muster.now() end)`,
    [id, org.project.id, agentId, status],
  )
  return id
}

for (const [who, hadTasks] of [
  ['an agent that never had a task', false],
  ['an agent that was idle', true],
] as const) {
  const name = 'Poll task queue for agent’s tasks (every N seconds): a task without a notice is found by'
  test(`${name} ${who}`, async () => {
    const agent = await org.agent({})
    if (hadTasks) await org.until((await org.give({ title: 'Before', assigned_to: agent.id })).id, 'completed')
    await org.rounds()
    const id = await insertTask(agent.id)
    // A task is made together with its place in the queue. Only the notice to the processes may be lost.
    await makeDue(org.pool, org.project.id, [agent.id])
    await org.rounds(4)
    assert.notEqual((await org.task(id)).status, 'pending')
    await org.until(id, 'completed')
  })
}

test('completed, failed, rejected, cancelled, blocked and running tasks are never taken up again', async () => {
  const agent = await org.agent({})
  const given = await org.give({ title: 'Once', assigned_to: agent.id })
  const done = await org.until(given.id, 'completed')
  const statuses = ['completed', 'failed', 'rejected', 'cancelled', 'in-progress', 'blocked'] as const
  const ids = []
  for (const status of statuses) ids.push(await insertTask(agent.id, status))
  const next = await org.give({ title: 'Twice', assigned_to: agent.id })
  await org.until(next.id, 'completed')
  await org.rounds()
  assert.deepEqual(
    (await org.runsOf(agent.id)).map(({ trigger }) => trigger.task_id),
    [next.id, given.id],
  )
  assert.deepEqual(await org.task(given.id), done)
  for (const [index, id] of ids.entries()) assert.equal((await org.task(id)).status, statuses[index])
  await org.pool.query('delete from tasks where id = any($1)', [ids])
})

test('Check token budget before processing: without tokens no call is made, and nothing is used up', async () => {
  const agent = await org.agent({ token_allocation: 0 })
  const given = await org.give({ title: 'Not yet', assigned_to: agent.id })
  await org.untilAgent(agent.id, 'paused')
  await org.until(given.id, 'pending')
  await org.rounds()
  assert.deepEqual(agent.requests, [])
  assert.equal((await org.agentNow(agent.id)).token_used, 0)
  assert.equal((await org.runsOf(agent.id)).length, 1, 'a run per round')
})

test('Process task with LLM if budget allows: the model is asked and its tokens are counted', async () => {
  const agent = await org.agent({ token_allocation: 100_000 }, { work: 'The answer.' })
  const given = await org.give({ title: 'The question', assigned_to: agent.id })
  assert.equal((await org.until(given.id, 'completed')).result, 'The answer.')
  assert.match(JSON.stringify(agent.requests.at(-1)?.prompt), /The question/)
  // A plan and the work cost 15 tokens each.
  assert.equal((await org.agentNow(agent.id)).token_used, 30)
})

test('Update agent lastActiveAt timestamp: each operation sets it, last_worked_at is set by work alone, and a round sets neither', async () => {
  const agent = await org.agent({})
  assert.deepEqual([agent.last_active_at, agent.last_worked_at], [null, null])
  const gate = Promise.withResolvers<void>()
  const worker = await org.agent({}, { work: { text: 'Done.', waitFor: gate.promise } })
  const given = await org.give({ title: 'Work', assigned_to: worker.id })
  await untilTrue(async () => worker.requests.length === 2, 'the work is under way')
  const during = await org.agentNow(worker.id)
  gate.resolve()
  await org.until(given.id, 'completed')
  const after = await org.agentNow(worker.id)
  assert.ok((during.last_active_at ?? '') >= given.created_at)
  assert.ok((after.last_active_at ?? '') > (during.last_active_at ?? ''))
  assert.ok((after.last_worked_at ?? '') > given.created_at)
  await org.rounds()
  const later = await org.agentNow(worker.id)
  assert.deepEqual([later.last_active_at, later.last_worked_at], [after.last_active_at, after.last_worked_at])
  assert.ok((later.last_polled_at ?? '') > (after.last_polled_at ?? ''))
  const idle = await org.agentNow(agent.id)
  assert.deepEqual([idle.last_active_at, idle.last_worked_at], [null, null])
})

test('Detect idle state (no tasks) → boredom: boredom fires although rounds go on, because rounds are no work', async () => {
  const senior = await org.agent({ enabled: false })
  const agent = await org.agent({ senior_id: senior.id })
  await org.until((await org.give({ title: 'Work', assigned_to: agent.id })).id, 'completed')
  // The threshold is 900 s. The rounds may take some of the minute that is left.
  await org.clock.advance(840_000)
  await org.patchSettings({ poll_interval: 100 })
  await org.rounds(3)
  assert.equal((await org.agentNow(agent.id)).status, 'active', 'a minute too early')
  await org.clock.advance(60_000)
  await org.untilAgent(agent.id, 'bored')
})

test('Handle errors and retry logic: a failed attempt is tried again after 200 ms, then 400 ms, and shows the error', async () => {
  let calls = 0
  const agent = await org.agent({}, { work: () => (++calls <= 2 ? breaks(`Fault ${calls}.`) : { text: 'At last.' }) })
  const given = await org.give({ title: 'Try', assigned_to: agent.id })
  const waiting = await untilTrue(async () => {
    const task = await org.task(given.id)
    return task.status === 'pending' && task.error_message ? task : null
  }, 'the task waits for another try')
  assert.match(waiting.error_message ?? '', /Fault 1\./)
  assert.match(waiting.progress.note ?? '', /Attempt 1 failed/)
  const done = await org.until(given.id, 'completed')
  assert.deepEqual([done.result, done.error_message], ['At last.', null])
  const runs = (await org.runsOf(agent.id)).reverse()
  assert.deepEqual(
    runs.map(({ status }) => status),
    ['failed', 'failed', 'completed'],
  )
  const waitMs = (index: number): number =>
    Date.parse(runs[index + 1]?.created_at ?? '') - Date.parse(runs[index]?.completed_at ?? '')
  assert.ok(waitMs(0) >= 200 && waitMs(0) < 1_500, `${waitMs(0)} ms`)
  assert.ok(waitMs(1) >= 400 && waitMs(1) < 2_000, `${waitMs(1)} ms`)
  assert.match(JSON.stringify(agent.requests.at(-1)?.prompt), /The last attempt failed: [^"]*Fault 2\./)
  assert.equal((await org.agentNow(agent.id)).status, 'active')
})

test('an agent whose task waits for another try works on its other tasks meanwhile', async () => {
  let calls = 0
  const order: string[] = []
  const agent = await org.agent(
    {},
    {
      work: ({ prompt }) => {
        order.push(/Task: (\w+)/.exec(JSON.stringify(prompt))?.[1] ?? '')
        return ++calls === 1 ? breaks('Not now.') : { text: 'Done.' }
      },
    },
  )
  const first = await org.give({ title: 'First', assigned_to: agent.id, priority: 'urgent' })
  const second = await org.give({ title: 'Second', assigned_to: agent.id })
  await org.until(second.id, 'completed')
  await org.until(first.id, 'completed')
  assert.deepEqual(order, ['First', 'Second', 'First'])
})

test('Log all operations with agent context: every line has agent, task, run, project and the first task', async () => {
  lines.length = 0
  let calls = 0
  const agent = await org.agent({}, { work: () => (++calls === 1 ? breaks('Fault.') : { text: 'Done.' }) })
  const given = await org.give({ title: 'Logged', assigned_to: agent.id })
  await org.until(given.id, 'completed')
  const [second, first] = await org.runsOf(agent.id)
  const about = (run_id?: string) => ({
    agent_id: agent.id,
    task_id: given.id,
    run_id,
    project_id: org.project.id,
    correlation_id: given.id,
  })
  const expected = [
    ['debug', 'an agent took up a task', first?.id],
    ['debug', 'an agent made a decision about a task', first?.id],
    ['warn', 'an attempt at a task failed', first?.id],
    ['debug', 'an agent took up a task', second?.id],
    ['info', 'a task was completed', second?.id],
  ] as const
  for (const [level, message, runId] of expected) {
    const line = lines.find((each) => each.message === message && each.fields.run_id === runId)
    assert.ok(line, `${message} is not logged of ${runId}`)
    assert.equal(line.level, level, message)
    const { agent_id, task_id, run_id, project_id, correlation_id } = line.fields
    assert.deepEqual({ agent_id, task_id, run_id, project_id, correlation_id }, about(runId))
  }
})

test('task_batch_size: at most that many tasks of an agent are under way; a task that waits for its subtasks does not count', async () => {
  await org.patchSettings({ task_batch_size: 2 })
  const gate = Promise.withResolvers<void>()
  let atWork = 0
  let most = 0
  const agent = await org.agent(
    {},
    {
      task_plan: ({ prompt }: { prompt: unknown }) => ({
        subtasks: JSON.stringify(prompt).includes('Whole')
          ? [{ title: 'Part', description: '', competencies: [] }]
          : [],
      }),
      work: async () => {
        most = Math.max(most, ++atWork)
        await gate.promise
        atWork--
        return { text: 'Done.' }
      },
    },
  )
  const given: Task[] = [await org.give({ title: 'Whole', assigned_to: agent.id })]
  await untilTrue(async () => atWork === 1, 'the part is under way')
  for (const title of ['A', 'B', 'C']) given.push(await org.give({ title, assigned_to: agent.id }))
  await untilTrue(async () => atWork === 2, 'two are under way')
  await org.rounds()
  assert.equal(most, 2)
  gate.resolve()
  for (const { id } of given) await org.until(id, 'completed')
  assert.equal(most, 2)
  await org.patchSettings({ task_batch_size: 1 })
})

test('the most urgent task comes first, then the oldest; a changed priority counts', async () => {
  const gate = Promise.withResolvers<void>()
  const order: string[] = []
  const agent = await org.agent(
    {},
    {
      work: async ({ prompt }) => {
        order.push(/Task: (\w+)/.exec(JSON.stringify(prompt))?.[1] ?? '')
        await gate.promise
        return { text: 'Done.' }
      },
    },
  )
  const give = (title: string, priority: string) => org.give({ title, priority, assigned_to: agent.id })
  await give('first', 'low')
  await untilTrue(async () => order.length === 1, 'the first is under way')
  const given = []
  for (const priority of ['low', 'medium', 'high', 'urgent']) given.push(await give(priority, priority))
  given.push(await give('medium2', 'medium'), await give('raised', 'low'))
  await org.patch(`/tasks/${given.at(-1)?.id}`, { priority: 'urgent' })
  gate.resolve()
  for (const { id } of given) await org.until(id, 'completed')
  assert.deepEqual(order, ['first', 'urgent', 'raised', 'high', 'medium', 'medium2', 'low'])
})

test('a halted project takes up no task and loses none; it goes on after the release', async () => {
  const agent = await org.agent({})
  assert.equal((await org.post('/halt')).status, 200)
  const given = await org.give({ title: 'Halted', assigned_to: agent.id })
  await org.rounds()
  assert.equal((await org.task(given.id)).status, 'pending')
  assert.deepEqual(agent.requests, [])
  assert.equal((await org.post('/unhalt')).status, 200)
  await org.until(given.id, 'completed')
})

test('a task of a project that is halted meanwhile stays in progress, and the same run goes on later', async () => {
  let isHalted = true
  const agent = await org.agent(
    { tools: ['task_create'] },
    {
      work: async ({ prompt }) => {
        // The process may hear of the halt only after the call of the tool.
        if (prompt.some(({ role }) => role === 'tool'))
          return { text: 'Done.', ...(isHalted ? { waitFor: 'abort' as const } : {}) }
        await org.post('/halt')
        return { calls: [{ name: 'task_create', args: { title: 'Made after the halt' } }] }
      },
    },
  )
  const given = await org.give({ title: 'Halted in the middle', assigned_to: agent.id })
  await untilTrue(async () => (await org.runsOf(agent.id))[0]?.pause_reason === 'halted', 'the run is halted')
  assert.equal((await org.task(given.id)).status, 'in-progress')
  isHalted = false
  await org.post('/unhalt')
  await org.until(given.id, 'completed')
  assert.equal((await org.runsOf(agent.id)).length, 1)
  const made = (await org.list<Task>('/tasks')).filter(({ title }) => title === 'Made after the halt')
  assert.equal(made.length, 1)
})
