// One flow, started by a schedule, a webhook, a change of an object and a task, by agents that are this flow. The server is
// killed at each place of such a run. Each start ends once: one run, one flow run, and no finished leaf is done again.
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { atEnd } from '../kit/at-end.ts'
import { createFlowWorld, type FlowWorld } from '../kit/flow-harness.ts'
import type { Muster } from '../kit/process.ts'
import { until } from '../kit/until.ts'

interface Started {
  id: string
  agent: string
  status: string
  summary: string | null
  flow_run_id: string | null
}

let world: FlowWorld
let server: Muster
let hook = { id: '', secret: '' }
let taskAgent = ''
const names = ['by cron', 'by webhook', 'by reaction', 'by task']

const call = async <Body extends object>(route: string, body?: object): Promise<Body> => {
  const [method, path] = route.split(' ')
  const answer = await server.call<Body>(`${method} /api/projects/${world.projectId}${path}`, body ? { body } : {})
  assert.ok(answer.status < 300, answer.text)
  return answer.body
}

before(async () => {
  const made = await createFlowWorld({ after: atEnd })
  world = made.world
  server = made.server
  const steps = [
    { type: 'task', id: 'gather', function: 'grow', args: 'a seed' },
    {
      type: 'parallel',
      branches: [1, 2, 3].map((place) => ({ type: 'task', id: `look-${place}`, function: 'ponder' })),
    },
    { type: 'task', id: 'write', agent: 'worker', input: '<research> Write.' },
  ]
  await call('POST /flows', { name: 'nightly research', root: { type: 'sequential', steps } })
  const agent = { flow_type: 'flow', flow: 'nightly research' }
  const yearly = { trigger_type: 'schedule', cron_schedule: '0 0 1 1 *' }
  await call('POST /agents', { name: 'by cron', ...agent, ...yearly })
  const hooked = await call<{ id: string }>('POST /agents', { name: 'by webhook', ...agent, trigger_type: 'webhook' })
  const reaction = { trigger_type: 'reaction', reaction_config: { objectTypes: ['topic'] } }
  await call('POST /agents', { name: 'by reaction', ...agent, ...reaction })
  taskAgent = (await call<{ id: string }>('POST /agents', { name: 'by task', ...agent })).id
  hook = await call(`POST /agents/${hooked.id}/hooks`, { name: 'hook' })
})

/** All starts are accepted before any of them begins. */
async function startAll(tag: string): Promise<void> {
  await call('POST /halt')
  const delivered = await server.call(`POST /hooks/${hook.id}`, { body: { tag }, token: hook.secret })
  assert.ok(delivered.status < 300, delivered.text)
  await call('POST /objects', { type: 'topic', properties: { tag } })
  await call('POST /tasks', { title: tag, assigned_to: taskAgent })
  await call('POST /unhalt')
  // A tick of a halted project is passed over.
  await world.query('update schedules set next_run_at = now()')
}

const startedRuns = (): Promise<Started[]> =>
  world.query<Started>(
    `select r.id, a.name as agent, r.status, r.summary, r.started_flow_run_id as flow_run_id
     from agent_runs r join agents a on a.id = r.agent_id where a.name = any($1) order by r.created_at`,
    [names],
  )

/** Each agent has ended so many runs, each with a flow run of its own that ended once. */
async function requireOnce(rounds: number): Promise<void> {
  await until(
    async () => {
      const runs = await startedRuns()
      return runs.length >= names.length * rounds && runs.every(({ status }) => status === 'completed')
    },
    `${names.length * rounds} runs have completed`,
    90_000,
  ).catch(async (cause) => {
    throw new Error(JSON.stringify(await startedRuns()), { cause })
  })
  const runs = await startedRuns()
  for (const name of names) assert.equal(runs.filter(({ agent }) => agent === name).length, rounds, name)
  const flowRuns = new Set(runs.map(({ flow_run_id: id }) => id))
  assert.equal(flowRuns.size, runs.length)
  const known = await world.query<{ id: string; status: string }>('select id, status from flow_runs')
  assert.deepEqual(new Set(known.map(({ id }) => id)), flowRuns)
  assert.ok(known.every(({ status }) => status === 'completed'))
  for (const { flow_run_id: id, summary } of runs) {
    assert.ok(summary)
    const leaves = await world.query<{ count: number }>(
      'select count(*)::int as count from agent_runs where flow_run_id = $1',
      [id],
    )
    assert.deepEqual(leaves, [{ count: 1 }])
    const done = await world.query<{ id: string; count: number }>(
      `select data->>'task_id' as id, count(*)::int as count from flow_events
       where run_id = $1 and kind = 'task.completed' group by 1`,
      [id],
    )
    assert.ok(done.every(({ count }) => count === 1))
    assert.equal(done.length, 5)
  }
  for (const kill of world.kills.values()) {
    for (const { flow_run_id: id } of runs)
      for (const { key, at } of world.ledger.callsOf(id ?? ''))
        assert.ok(at < kill.at || !kill.done.has(key.split(':').slice(0, 2).join(':')), `${key} was done again`)
  }
}

test('the nightly research flow by cron, by webhook, by a reaction and by a task: each start ends once', async () => {
  await startAll('undisturbed')
  await requireOnce(1)
})

let rounds = 1
for (const [place, faults] of [
  ['while the leaves are under way', 'flow.mid=kill@6'],
  ['right after a flow run was started and its run parked', 'park.after_commit=kill@2'],
  ['right after runs of leaves and flow runs had ended', 'final.after_commit=kill@5'],
] as const) {
  test(`kill -9 ${place}: each start ends once`, async () => {
    await server.kill('SIGKILL')
    server = await world.start({ faults })
    await startAll(place)
    await world.untilKilled(server)
    server = await world.start()
    await requireOnce(++rounds)
  })
}
