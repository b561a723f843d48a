// The feed of changes: every kind of thing, the promise of its ids, and who may read what.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { insertAlert } from '../../../test/kit/alerts.ts'
import { ADMIN_TOKEN, createTestApp } from '../../../test/kit/app.ts'
import { type FeedStream, openFeed } from '../../../test/kit/feed-stream.ts'
import { signInByLink } from '../../../test/kit/people.ts'
import { insertRuns } from '../../../test/kit/runs.ts'
import { createScriptedModel, type ScriptedAnswer } from '../../../test/kit/scripted-model.ts'
import { until } from '../../../test/kit/until.ts'
import type { FlowRun } from '../../kernel/flow-run.ts'
import { newId } from '../../kernel/id.ts'
import type { Model } from '../../kernel/model-call.ts'
import type { Project } from '../../kernel/project.ts'
import type { Run } from '../../kernel/run.ts'

const models = new Map<string, Model>()
const gate = Promise.withResolvers<void>()
const kit = await createTestApp({
  models,
  functions: { one: () => 1, wait: () => gate.promise.then(() => 1) },
  waits: { recheckMs: 20, heartbeatMs: 50 },
})
const project = await kit.createProject()
const base = `/api/projects/${project.id}`
const address = await kit.app.listen({ port: 0, host: '127.0.0.1' })
const streams: FeedStream[] = []

interface Options {
  token?: string
  cookie?: string
  lastEventId?: string
}
async function open(path = `${base}/events`, { token = ADMIN_TOKEN, cookie, lastEventId }: Options = {}) {
  const stream = await openFeed(`${address}${path}`, {
    ...(cookie === undefined ? { authorization: `Bearer ${token}` } : { cookie }),
    ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
  })
  streams.push(stream)
  return stream
}
test.afterEach(() => {
  for (const stream of streams.splice(0)) stream.leave()
})

const made = async (what: string, body: object, projectId = project.id): Promise<string> => {
  const answer = await kit.call<{ id: string }>(`POST /api/projects/${projectId}/${what}`, { body })
  assert.ok(answer.status < 300, answer.text)
  return answer.body.id
}
const newTask = (title = 'a task', projectId = project.id): Promise<string> => made('tasks', { title }, projectId)
const endTask = (id: string, projectId = project.id) =>
  kit.call(`PATCH /api/projects/${projectId}/tasks/${id}`, { body: { status: 'completed', result: 'ok' } })
/** Gives a thing that must not be told its chance: something that changed later is told. */
async function andNothingElse(stream: FeedStream, before: number): Promise<void> {
  const last = await newTask()
  await stream.sees(last, 'pending')
  assert.deepEqual(
    stream.events.slice(before).map(({ data }) => data.id),
    [last],
  )
}
const trigger = async (agentId: string): Promise<string> => {
  const headers = { prefer: 'respond-async' }
  return (await kit.call<Run>(`POST ${base}/agents/${agentId}/trigger`, { body: { input: 'x' }, headers })).body.id
}
const readRun = async (id: string): Promise<Run> => (await kit.call<Run>(`GET ${base}/runs/${id}`)).body
const lastEventAt = async (runId: string): Promise<string | undefined> => {
  const { rows } = await kit.pool.query<{ at: Date }>(
    'select at from run_events where run_id = $1 order by seq desc limit 1',
    [runId],
  )
  return rows[0]?.at.toISOString()
}
function answering(...answers: ScriptedAnswer[]): void {
  models.set('script', createScriptedModel(answers))
}

test('a task is told in each status, with the fields of the contract and an id', async () => {
  const stream = await open()
  assert.equal(stream.headers['content-type'], 'text/event-stream; charset=utf-8')
  const task = await newTask()
  const { id, event, data } = await stream.sees(task, 'pending')
  assert.equal(event, 'change')
  assert.deepEqual(Object.keys(data), ['kind', 'id', 'status', 'at'])
  assert.equal(data.kind, 'task')
  assert.ok(Math.abs(Date.parse(data.at) - Date.now()) < 60_000)
  assert.match(id, /^[0-9a-z-]+$/)
  await endTask(task)
  await stream.sees(task, 'completed')
})

test('a run is told from its start to its end', async () => {
  const go = Promise.withResolvers<void>()
  answering({ text: 'done', waitFor: go.promise })
  const stream = await open()
  const agent = await kit.createAgent(project.id)
  const run = await trigger(agent.id)
  await stream.sees(run, 'running')
  go.resolve()
  const { data } = await stream.sees(run, 'completed')
  assert.equal(data.kind, 'run')
  assert.equal(data.at, (await readRun(run)).completed_at)
})

test('a run that pauses and goes on is told each time', async () => {
  answering({ calls: [{ name: 'ask_human', args: { question: 'Go on?' } }] }, { text: 'done' })
  const stream = await open()
  const agent = await kit.createAgent(project.id, { tools: ['ask_human'] })
  const { body: run } = await kit.call<Run>(`POST ${base}/agents/${agent.id}/trigger`, { body: { input: 'x' } })
  assert.equal(run.status, 'paused')
  await stream.sees(run.id, 'paused')
  const { body } = await kit.call<{ items: { id: string }[] }>(`GET ${base}/tasks?kind=escalation&status=pending`)
  const question = body.items[0]?.id ?? assert.fail()
  await stream.sees(question, 'pending')
  await kit.call(`PATCH ${base}/tasks/${question}`, { body: { status: 'completed', result: 'yes' } })
  await stream.sees(question, 'completed')
  await stream.sees(run.id, 'completed')
})

test('a cancelled run is told', async () => {
  const go = Promise.withResolvers<void>()
  answering({ text: 'done', waitFor: go.promise })
  const agent = await kit.createAgent(project.id)
  const run = await trigger(agent.id)
  const stream = await open()
  await kit.call(`POST ${base}/runs/${run}/cancel`)
  await stream.sees(run, 'cancelled')
  go.resolve()
})

test('a run at work is told about once a second, although its status stays the same', async () => {
  const go = Promise.withResolvers<void>()
  let isLast = false
  models.set(
    'script',
    createScriptedModel(async (_request, number) => {
      await sleep(20)
      if (isLast) return { text: 'done', waitFor: go.promise }
      return { calls: [{ name: 'object_search', args: { q: `q${number}` } }] }
    }),
  )
  const agent = await kit.createAgent(project.id, { tools: ['object_search'] })
  const stream = await open()
  const run = await trigger(agent.id)
  const steps = async (): Promise<number> => (await readRun(run)).step_count
  const began = performance.now()
  await until(() => stream.of(run).length >= 4, 'the run is told a few times')
  const tookMs = performance.now() - began
  assert.ok(stream.of(run).length <= tookMs / 900 + 3, 'it is not told at every step')
  assert.ok((await steps()) > 6, 'it has made more steps than it was told')
  isLast = true
  // The step before the last call is told, too, although the run waits for its model then.
  await until(async () => (await lastEventAt(run)) === stream.of(run).at(-1)?.data.at, 'the last step is told')
  const { length } = stream.of(run)
  await sleep(1_300)
  assert.equal(stream.of(run).length, length, 'a run without a new step is not told again')
  go.resolve()
  await stream.sees(run, 'completed')
})

test('flow runs, their alerts and their acks are told', async () => {
  const stream = await open()
  const { body: flow } = await kit.call<FlowRun>(`POST ${base}/flow-runs`, {
    body: { root: { type: 'task', function: 'wait' } },
  })
  await stream.sees(flow.id, 'running')
  const alert = await insertAlert(kit.pool, project.id, flow.id)
  assert.equal((await stream.sees(alert, 'open')).data.kind, 'alert')
  await kit.call(`POST ${base}/alerts/${alert}/ack`)
  await stream.sees(alert, 'acked')
  const before = stream.of(flow.id).length
  await kit.call(`POST ${base}/flow-runs/${flow.id}/workers`, { body: { add: 1 } })
  await until(() => stream.of(flow.id).length > before, 'the adjusted flow run is told')
  gate.resolve()
  assert.equal((await stream.sees(flow.id, 'completed')).data.kind, 'flow_run')
})

test('agents are told when they are made, changed, stopped and deleted', async () => {
  const stream = await open()
  const { id } = await kit.createAgent(project.id)
  assert.equal((await stream.sees(id, 'active')).data.kind, 'agent')
  await kit.call(`PATCH ${base}/agents/${id}`, { body: { role: 'another' } })
  await until(() => stream.of(id).length > 1, 'the changed agent is told')
  await kit.call(`POST ${base}/agents/${id}/stop`)
  await stream.sees(id, 'paused')
  await kit.call(`DELETE ${base}/agents/${id}`)
  await stream.sees(id, 'deleted')
})

test('objects are told when they are made, changed and deleted', async () => {
  const stream = await open()
  const id = await made('objects', { type: 'T', properties: { a: 1 } })
  assert.equal((await stream.sees(id, 'created')).data.kind, 'object')
  await kit.call(`PATCH ${base}/objects/${id}`, { body: { properties: { a: 2 } } })
  await stream.sees(id, 'updated')
  await kit.call(`DELETE ${base}/objects/${id}`)
  await stream.sees(id, 'deleted')
})

test('messages between agents are told', async () => {
  const stream = await open()
  const senior = await kit.createAgent(project.id)
  const junior = await kit.createAgent(project.id, { senior_id: senior.id })
  await kit.call(`POST ${base}/agents/${junior.id}/stop`)
  const { body } = await kit.call<{ items: { id: string }[] }>(`GET ${base}/agents/${senior.id}/messages`)
  const message = body.items[0]?.id ?? assert.fail('no message')
  assert.equal((await stream.sees(message, 'sent')).data.kind, 'message')
})

test('a status that a statement changed without a mark is told', async () => {
  const [run = ''] = await insertRuns(kit.pool, project.id, 1)
  const { body: flow } = await kit.call<FlowRun>(`POST ${base}/flow-runs`, {
    body: { root: { type: 'task', function: 'one' } },
  })
  const stream = await open()
  await kit.pool.query(`update agent_runs set status = 'paused', pause_reason = 'human' where id = $1`, [run])
  await stream.sees(run, 'paused')
  await until(
    async () => (await kit.call<FlowRun>(`GET ${base}/flow-runs/${flow.id}`)).body.status === 'completed',
    'it ends',
  )
  await kit.pool.query(`update flow_runs set status = 'partial' where id = $1`, [flow.id])
  await stream.sees(flow.id, 'partial')
})

test('a thing that changes all the time is told at most once in a tenth of a second, and its last state always', async () => {
  const task = await newTask()
  const stream = await open()
  const began = performance.now()
  let changes = 0
  while (performance.now() - began < 1_500) {
    await kit.pool.query('update tasks set title = $2 where id = $1', [task, `title ${++changes}`])
  }
  const tookMs = performance.now() - began
  await kit.pool.query(`update tasks set status = 'cancelled' where id = $1`, [task])
  await stream.sees(task, 'cancelled')
  const told = stream.of(task)
  assert.ok(changes > 20, `${changes} changes`)
  assert.ok(told.length > 2 && told.length <= tookMs / 100 + 2, `${told.length} events in ${tookMs} ms`)
  assert.equal(told.at(-1)?.data.status, 'cancelled')
})

test('a reader that comes back is told once of each thing that changed meanwhile, in its last state', async () => {
  const [before, changed, twice] = [await newTask('before'), await newTask('changed'), await newTask('twice')]
  const first = await open()
  await endTask(before)
  await first.sees(before, 'completed')
  const lastEventId = first.lastId()
  first.leave()
  await endTask(changed)
  await kit.call(`PATCH ${base}/tasks/${twice}`, { body: { title: 'again' } })
  await endTask(twice)
  const late = await newTask('late')
  const second = await open(undefined, { lastEventId })
  await second.sees(late, 'pending')
  assert.deepEqual(
    second.events.map(({ data }) => [data.id, data.status]),
    [
      [changed, 'completed'],
      [twice, 'completed'],
      [late, 'pending'],
    ],
  )
  await andNothingElse(second, 3)
})

test('a reader that comes back with any id misses nothing', async () => {
  const stream = await open()
  const start = stream.lastId()
  const tasks: string[] = []
  for (let number = 0; number < 12; number++) tasks.push(await newTask(`task ${number}`))
  await stream.sees(tasks.at(-1) ?? '', 'pending')
  const told = stream.events.map(({ data }) => data.id)
  assert.deepEqual(told, tasks)
  const places = [start, ...stream.events.map(({ id }) => id)]
  for (const [taken, lastEventId] of places.entries()) {
    const again = await open(undefined, { lastEventId })
    if (taken < tasks.length) await again.sees(tasks.at(-1) ?? '', 'pending')
    assert.deepEqual(
      again.events.map(({ data }) => data.id),
      tasks.slice(taken),
      `after ${taken} events`,
    )
    again.leave()
  }
})

test('changes of one transaction are all told again to a reader that was cut between them', async () => {
  const stream = await open()
  const ids = (
    await kit.pool.query<{ id: string }>(
      `insert into tasks (id, project_id, kind, title, created_by)
     select gen_random_uuid(), $1, 'work', 'one of five', '{}' from generate_series(1, 5) returning id`,
      [project.id],
    )
  ).rows.map((row) => row.id)
  for (const id of ids) await stream.sees(id, 'pending')
  const [first] = stream.events
  const again = await open(undefined, { lastEventId: first?.id ?? '' })
  for (const id of ids) await again.sees(id, 'pending')
  const last = await open(undefined, { lastEventId: stream.events.at(-1)?.id ?? '' })
  await andNothingElse(last, 0)
})

test('a transaction that commits late is told, also to a reader that was cut before its commit', async () => {
  const [slow, quick] = [await newTask('slow'), await newTask('quick')]
  const stream = await open()
  const tx = await kit.pool.connect()
  try {
    await tx.query('begin')
    await tx.query(`update tasks set status = 'blocked' where id = $1`, [slow])
    await endTask(quick)
    await stream.sees(quick, 'completed')
    const lastEventId = stream.lastId()
    const away = await open(undefined, { lastEventId })
    away.leave()
    assert.deepEqual(stream.of(slow), [])
    await tx.query('commit')
    await stream.sees(slow, 'blocked')
    const back = await open(undefined, { lastEventId })
    await back.sees(slow, 'blocked')
    assert.deepEqual(back.of(quick), [], 'the change that was told is not told again')
    assert.equal(stream.of(slow).length, 1)
    assert.equal(stream.of(quick).length, 1)
  } finally {
    tx.release()
  }
})

test('a stream begins with an id, so that a reader that has seen nothing can come back', async () => {
  const first = await open()
  first.leave()
  const task = await newTask()
  const second = await open(undefined, { lastEventId: first.lastId() })
  await second.sees(task, 'pending')
})

test('an id that is too old gives one reset, and then the changes that follow', async () => {
  const first = await open()
  const lastEventId = first.lastId()
  first.leave()
  const missed = await newTask()
  await kit.clock.advance(5 * 60_000)
  const inTime = await open(undefined, { lastEventId })
  await inTime.sees(missed, 'pending')
  assert.ok(inTime.events.every(({ event }) => event === 'change'))
  await kit.clock.advance(60_000)
  const late = await open(undefined, { lastEventId })
  await until(() => late.events.length > 0, 'there is an event')
  const next = await newTask()
  await late.sees(next, 'pending')
  assert.deepEqual(
    late.events.map(({ event }) => event),
    ['reset', 'change'],
  )
  const [reset] = late.events
  assert.ok(reset?.id, 'a reset has an id to go on from')
  const again = await open(undefined, { lastEventId: reset?.id ?? '' })
  await again.sees(next, 'pending')
})

test('an id of another database gives a reset', async () => {
  const lastEventId = (await open()).lastId().replace(/^\w{8}/, '00000000')
  const stream = await open(undefined, { lastEventId })
  await until(() => stream.events[0]?.event === 'reset', 'it is reset')
})

for (const wrong of ['x', '17', '1-2-3', 'a, b', '']) {
  test(`the Last-Event-ID ${JSON.stringify(wrong)} is refused`, async () => {
    for (const path of [`${base}/events`, '/api/events']) {
      const answer = await kit.call(`GET ${path}`, { headers: { 'last-event-id': wrong } })
      assert.equal(answer.status, 400, path)
      assert.match(answer.text, /"INVALID_REQUEST"/)
    }
  })
}

test('a reader of a project sees nothing of another, whatever id it comes with', async () => {
  const other = await kit.createProject('other')
  const { key } = await kit.createKey(project.id, 'viewer')
  const ofOther = await open(`/api/projects/${other.id}/events`)
  const start = ofOther.lastId()
  const mine = [await open(undefined, { token: key }), await open('/api/events', { token: key })]
  const theirs = await newTask('theirs', other.id)
  await ofOther.sees(theirs, 'pending')
  mine.push(await open(undefined, { token: key, lastEventId: start }))
  mine.push(await open('/api/events', { token: key, lastEventId: start }))
  const own = await newTask('own')
  for (const stream of mine) await stream.sees(own, 'pending')
  assert.ok(mine.every((stream) => stream.of(theirs).length === 0))
  assert.deepEqual(ofOther.of(own), [])
  const foreign = await open(`/api/projects/${other.id}/events`, { token: key })
  const unknown = await open(`/api/projects/${newId()}/events`, { token: key })
  assert.deepEqual([foreign.status, unknown.status], [404, 404])
})

test('the feed of all projects names the project of each change', async () => {
  const other = await kit.createProject('other')
  const stream = await open('/api/events')
  const [here, there] = [await newTask('here'), await newTask('there', other.id)]
  assert.equal((await stream.sees(here, 'pending')).data.project_id, project.id)
  const { data } = await stream.sees(there, 'pending')
  assert.deepEqual(Object.keys(data), ['kind', 'id', 'project_id', 'status', 'at'])
  assert.equal(data.project_id, other.id)
})

test('the feed of all projects follows a project that is made, from its first change on', async () => {
  const stream = await open('/api/events')
  const fresh = await kit.createProject('fresh')
  const task = await newTask('first', fresh.id)
  assert.equal((await stream.sees(task, 'pending')).data.project_id, fresh.id)
  assert.ok(stream.events.every(({ event }) => event === 'change'))
})

test('a deleted project closes its feed, and the feed of all projects goes on with a reset', async () => {
  const doomed = await kit.createProject('doomed')
  const own = await open(`/api/projects/${doomed.id}/events`)
  const all = await open('/api/events')
  const task = await newTask('doomed', doomed.id)
  await all.sees(task, 'pending')
  assert.equal((await kit.call(`DELETE /api/projects/${doomed.id}`)).status, 204)
  await kit.pool.query(`update tasks set status = 'cancelled' where id = $1`, [task])
  await own.closes()
  await until(() => all.events.some(({ event }) => event === 'reset'), 'the lists must be read again')
  const here = await newTask()
  await all.sees(here, 'pending')
  assert.deepEqual(all.statuses(task), ['pending'])
  assert.deepEqual(own.statuses(task).slice(1), [])
})

test('a person who becomes a member, and is removed, sees the changes in between', async () => {
  const [mine, theirs] = [await kit.createProject('mine'), await kit.createProject('theirs')]
  const person = await signInByLink(kit, { member: { projectId: mine.id, role: 'viewer' } })
  const stream = await open('/api/events', { cookie: person.cookie })
  const membership = newId()
  await kit.pool.query(`insert into members (id, project_id, user_id, email, role) values ($1, $2, $3, $4, 'viewer')`, [
    membership,
    theirs.id,
    person.userId,
    person.email,
  ])
  await until(() => stream.events.some(({ event }) => event === 'reset'), 'the lists must be read again')
  const during = await newTask('during', theirs.id)
  await stream.sees(during, 'pending')
  const resets = stream.events.filter(({ event }) => event === 'reset').length
  await kit.pool.query('delete from members where id = $1', [membership])
  await until(() => stream.events.filter(({ event }) => event === 'reset').length > resets, 'they must again')
  const after = await newTask('after', theirs.id)
  const own = await newTask('own', mine.id)
  await stream.sees(own, 'pending')
  assert.deepEqual(stream.of(after), [])
})

test('a role that was taken away, a session that has ended and a revoked key end their streams', async () => {
  const home = await kit.createProject('home')
  const path = `/api/projects/${home.id}/events`
  const [removed, signedOut] = [
    await signInByLink(kit, { member: { projectId: home.id, role: 'member' } }),
    await signInByLink(kit, { member: { projectId: home.id, role: 'member' } }),
  ]
  const { id: keyId, key } = await kit.createKey(home.id, 'viewer')
  const ends = [
    await open(path, { cookie: removed.cookie }),
    await open(path, { cookie: signedOut.cookie }),
    await open('/api/events', { cookie: signedOut.cookie }),
    await open(path, { token: key }),
    await open('/api/events', { token: key }),
  ]
  const stays = await open(path)
  await kit.pool.query('delete from members where user_id = $1', [removed.userId])
  await kit.pool.query('delete from auth.sessions where user_id = $1', [signedOut.userId])
  await kit.call(`DELETE /api/projects/${home.id}/keys/${keyId}`)
  for (const stream of ends) await stream.closes()
  assert.equal(stays.isClosed(), false)
})

test('runs and flow runs tell the last event of their journal', async () => {
  answering({ text: 'done' })
  const agent = await kit.createAgent(project.id)
  const { body: run } = await kit.call<Run>(`POST ${base}/agents/${agent.id}/trigger`, { body: { input: 'x' } })
  const { body: flow } = await kit.call<FlowRun>(`POST ${base}/flow-runs`, {
    body: { root: { type: 'task', function: 'one' } },
    headers: { prefer: 'wait=20' },
  })
  for (const [list, id] of [
    ['runs', run.id],
    ['flow-runs', flow.id],
  ] as const) {
    const { body: one } = await kit.call<Run>(`GET ${base}/${list}/${id}`)
    const { body: all } = await kit.call<{ items: Run[] }>(`GET ${base}/${list}`)
    const events = await kit.call(`GET ${base}/${list}/${id}/events`)
    const last = [...events.text.matchAll(/^id: (\d+)$/gm)].at(-1)?.[1]
    assert.equal(one.last_seq, Number(last), list)
    assert.equal(all.items.find((item) => item.id === id)?.last_seq, Number(last), list)
    const after = await kit.call(`GET ${base}/${list}/${id}/events`, {
      headers: { 'last-event-id': String(one.last_seq) },
    })
    assert.equal(after.text, '', 'there is nothing after it')
  }
})

test('a feed answers HEAD without a stream', async () => {
  for (const path of [`${base}/events`, '/api/events']) {
    const answer = await kit.call(`HEAD ${path}`)
    assert.equal(answer.status, 200)
    assert.equal(answer.headers['content-type'], 'text/event-stream; charset=utf-8')
  }
})

test('the instance admin sees each project that it made', async () => {
  const { body } = await kit.call<{ items: Project[] }>('GET /api/projects?limit=200')
  const stream = await open('/api/events')
  const some = body.items.slice(0, 3)
  const tasks = await Promise.all(some.map(({ id }) => newTask('seen', id)))
  for (const task of tasks) await stream.sees(task, 'pending')
})
