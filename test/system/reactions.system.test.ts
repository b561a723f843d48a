// Changes of the graph and their reactions, on servers that are killed: every acknowledged change has exactly the
// expected entries and runs, and every decision is carried out once.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe } from 'node:test'
import { atEnd } from '../kit/at-end.ts'
import { createUnusedDatabase } from '../kit/database.ts'
import type { ChangePoint } from '../kit/fault-lists.ts'
import { isLong } from '../kit/how-many.ts'
import type { Muster } from '../kit/process.ts'
import { accept, createWorld, offer, planned, times, untilEnded, untilKilled, type World } from '../kit/run-harness.ts'
import { inBoth, inSystem, isUsual, inTest as test } from '../kit/tiers.ts'
import { until } from '../kit/until.ts'

const wholeFile = { after: atEnd }
const OBJECTS = isUsual ? 60 : 1_000
const UPDATED = isUsual ? 6 : 100
const AT_ONCE = isUsual ? 10 : 40

interface Reactors {
  all: string
  created: string
  updated: string
}

/** One agent reacts to every type, one to created objects, one to updated objects, and one to none of these changes. */
async function createReactors(world: World, server: Muster): Promise<Reactors> {
  const create = async (name: string, config: object): Promise<string> => {
    const agent = {
      name,
      model: { provider: 'offline', name: 'offline' },
      trigger_type: 'reaction',
      reaction_config: config,
    }
    const answer = await server.call<{ id: string }>(`POST /api/projects/${world.projectId}/agents`, { body: agent })
    assert.equal(answer.status, 201, answer.text)
    return answer.body.id
  }
  await create('unconcerned', { objectTypes: ['Other'] })
  return {
    all: await create('all', { objectTypes: ['*'] }),
    created: await create('created', { objectTypes: ['Burst', 'Rare'], events: ['created'] }),
    updated: await create('updated', { objectTypes: ['Burst'], events: ['updated'], concurrencyStrategy: 'parallel' }),
  }
}

/** Acts like a client that repeats unanswered requests, under the same key, to any server that lives. */
async function createObjects(world: World, servers: readonly Muster[], names: readonly string[]): Promise<string[]> {
  const ids = new Map<string, string>()
  const queue = [...names]
  const sender = async (place: number): Promise<void> => {
    for (let name = queue.shift(); name !== undefined; name = queue.shift()) {
      const server = servers[place % servers.length] ?? assert.fail()
      const body = { type: 'Burst', key: name, properties: { name } }
      const answer = await server
        .call<{ id: string }>(`POST /api/projects/${world.projectId}/objects`, {
          body,
          headers: { 'idempotency-key': name },
        })
        .catch(() => null)
      if (answer?.status === 201) ids.set(name, answer.body.id)
    }
  }
  await Promise.all(times(AT_ONCE, () => null).map((_, place) => sender(place)))
  return names.flatMap((name) => ids.get(name) ?? [])
}

async function updateObjects(world: World, server: Muster, ids: readonly string[]): Promise<void> {
  for (const id of ids) {
    const path = `PATCH /api/projects/${world.projectId}/objects/${id}`
    const answer = await server.call(path, { body: { properties: { touched: true } } })
    assert.equal(answer.status, 200, answer.text)
  }
}

/** Asserts that each entry exists once, with one completed run, and that there are no other runs. */
async function requireExactly(world: World, { all, created, updated }: Reactors): Promise<void> {
  await until(
    async () => {
      const rows = await world.query(`select from processing_log where status in ('pending', 'processing') limit 1`)
      return rows.length === 0
    },
    'every entry is settled',
    120_000,
  )
  const counted = await world.query<{ agent_id: string; event_type: string; status: string; count: number }>(
    `select agent_id, event_type, status, count(*)::int as count from processing_log group by 1, 2, 3 order by 2, 4, 1`,
  )
  const found = new Map(counted.map((row) => [`${row.agent_id} ${row.event_type} ${row.status}`, row.count]))
  const expected = new Map([
    [`${all} created completed`, OBJECTS],
    [`${created} created completed`, OBJECTS],
    [`${all} updated completed`, UPDATED],
    [`${updated} updated completed`, UPDATED],
  ])
  assert.deepEqual(new Map([...found].toSorted()), new Map([...expected].toSorted()))
  const [facts] = await world.query<Record<string, number>>(
    `select
       (select count(*)::int from objects) as objects,
       (select count(*)::int from object_versions) as versions,
       (select count(*)::int from audit_log where action in ('object.create', 'object.update')) as audited,
       (select count(*)::int from agent_runs where trigger->>'type' = 'reaction') as runs,
       (select count(distinct (agent_id, graph_object_id, object_version))::int from processing_log) as distinct_entries,
       (select count(*)::int from processing_log l join agent_runs r on r.id = l.run_id and r.entry_id = l.id
          and r.agent_id = l.agent_id and r.status = 'completed'
          and (r.input->'object'->>'id')::uuid = l.graph_object_id
          and (r.input->'object'->>'version')::int = l.object_version) as matching`,
  )
  const runs = 2 * OBJECTS + 2 * UPDATED
  const versions = OBJECTS + UPDATED
  assert.deepEqual(facts, {
    objects: OBJECTS,
    versions,
    audited: versions,
    runs,
    distinct_entries: runs,
    matching: runs,
  })
}

const namesFrom = (count: number): string[] => times(count, () => randomUUID())

describe('a burst of changes', { concurrency: 1 }, () => {
  inBoth(
    `${OBJECTS} objects, three reacting agents and kill -9 in the middle give every entry exactly once`,
    async () => {
      const world = await createWorld(wholeFile)
      const first = await world.start()
      const reactors = await createReactors(world, first)
      const names = namesFrom(OBJECTS)
      const sending = createObjects(world, [first], names)
      await until(async () => (await count(world, 'objects')) >= OBJECTS / 10, 'a tenth is there', 60_000)
      await first.kill('SIGKILL')
      const acknowledged = await sending
      assert.ok(acknowledged.length < OBJECTS, 'it was killed after everything was done')
      const second = await world.start()
      const ids = await createObjects(world, [second], names)
      assert.equal(ids.length, OBJECTS)
      assert.ok(acknowledged.every((id) => ids.includes(id)))
      await updateObjects(world, second, ids.slice(0, UPDATED))
      await requireExactly(world, reactors)
      await second.stop()
    },
  )

  inSystem('two servers, one of which is killed, give every entry exactly once', async () => {
    const world = await createWorld(wholeFile, { databaseUrl: await createUnusedDatabase() })
    const [first, second] = await Promise.all([world.start(), world.start()])
    const reactors = await createReactors(world, first)
    const names = namesFrom(OBJECTS)
    const sending = createObjects(world, [first, second], names)
    await until(async () => (await count(world, 'objects')) >= OBJECTS / 10, 'a tenth is there', 60_000)
    await first.kill('SIGKILL')
    await sending
    const ids = await createObjects(world, [second], names)
    assert.equal(ids.length, OBJECTS)
    await updateObjects(world, second, ids.slice(-UPDATED))
    await requireExactly(world, reactors)
    await second.stop()
  })
})

async function count(world: World, table: 'objects' | 'object_versions'): Promise<number> {
  const [row] = await world.query<{ count: number }>(`select count(*)::int as count from ${table}`)
  return row?.count ?? 0
}

describe('changes that agents make', { concurrency: 2 }, () => {
  for (const point of isLong
    ? ['tool.before', 'tool.after_effect_before_commit']
    : ['tool.after_effect_before_commit']) {
    inSystem(
      `kill -9 at ${point}, with one run and with 20: each change is made once, and starts each reaction once`,
      async () => {
        const world = await createWorld(wholeFile)
        const make = () => {
          const calls = [1, 2, 3].map((n) => ({ name: 'object_create', args: { type: 'Burst', properties: { n } } }))
          return planned({ say: 'I write it down. ', calls }, { say: 'It is written.' })
        }
        const alone = make()
        const killed = await world.start({ faults: `${point}=kill@2` })
        const { created } = await createReactors(world, killed)
        await offer(world, killed, [alone])
        await untilKilled(killed)
        const many = times(20, make)
        const again = await world.start({ faults: `${point}=kill@17` })
        await offer(world, again, [alone, ...many])
        await untilKilled(again)
        const last = await world.start()
        const ids = await accept(world, last, [alone, ...many])
        await untilEnded(world, ids)
        await until(
          async () => (await world.query(`select from agent_runs where completed_at is null limit 1`)).length === 0,
          'everything has ended',
        )
        assert.equal(await count(world, 'objects'), 63)
        const rows = await world.query<{ count: number }>(
          `select count(*)::int as count from object_versions where actor_type = 'agent' group by run_id`,
        )
        assert.deepEqual(
          rows.map((row) => row.count),
          times(21, () => 3),
        )
        const entries = await world.query(`select status from processing_log where agent_id = $1`, [created])
        assert.equal(entries.length, 63)
        await last.stop()
      },
    )
  }
})

const exercises: Record<ChangePoint, (world: World, server: Muster, taskId: string) => Promise<number>> = {
  'approval.after_decision_before_apply': async (world, server, taskId) =>
    (await server.call(`POST /api/projects/${world.projectId}/tasks/${taskId}/approve`, { body: {} })).status,
}

for (const [point, decide] of Object.entries(exercises)) {
  test(`kill -9 at ${point}: after the restart the suggestion is decided anew and applied once`, async () => {
    const world = await createWorld(wholeFile)
    const killed = await world.start({ faults: `${point}=kill` })
    const objects = `/api/projects/${world.projectId}/objects`
    const body = { type: 'Person', properties: { name: 'old' } }
    const { body: object } = await killed.call<{ id: string }>(`POST ${objects}`, { body })
    await killed.call(`PATCH /api/projects/${world.projectId}/agents/${world.agentId}`, {
      body: { execution_mode: 'suggest' },
    })
    const args = { id: object.id, properties: { name: 'new' }, reasoning: 'It is better.' }
    const plan = planned({ say: 'I suggest it. ', calls: [{ name: 'object_update', args }] }, { say: 'Suggested.' })
    const [runId = ''] = await accept(world, killed, [plan])
    await untilEnded(world, [runId])
    const [task] = await world.query<{ id: string }>(`select id from tasks where run_id = $1`, [runId])
    const taskId = task?.id ?? assert.fail('nothing was suggested')
    await decide(world, killed, taskId).catch(() => {})
    await untilKilled(killed)
    const server = await world.start()
    const versions = await world.query(`select from object_versions where object_id = $1`, [object.id])
    assert.equal(versions.length, 1, 'half a decision was kept')
    const answers = [await decide(world, server, taskId), await decide(world, server, taskId)]
    assert.deepEqual(answers, [200, 409])
    const [newest] = await world.query(`select version, properties, actor_type, actor_id from objects where id = $1`, [
      object.id,
    ])
    assert.deepEqual(newest, { version: 2, properties: { name: 'new' }, actor_type: 'agent', actor_id: world.agentId })
    await server.stop()
  })
}
