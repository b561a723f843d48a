// A process dies again and again with long runs in flight. Meanwhile runs of other projects are served at once, a run
// that makes progress between the deaths is not given up, and runs that make no progress are tried one at a time.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { atEnd } from '../kit/at-end.ts'
import { createUnusedDatabase } from '../kit/database.ts'
import type { Plan } from '../kit/fake-model.ts'
import type { Muster } from '../kit/process.ts'
import { accept, createWorld, planned, times, untilEnded, type World } from '../kit/run-harness.ts'
import { until } from '../kit/until.ts'

const LONG = 4
const done = { say: 'It is done.' }

test('after six deaths other projects are served at once and no run that makes progress is given up', async () => {
  const world = await createWorld({ after: atEnd }, { databaseUrl: await createUnusedDatabase() })
  const { model } = world
  const long = times(LONG, (): Plan => planned({ say: 'I think for long. ', gate: 'long' }, done))
  // Each death finds the run in another step, like a run of a month that sees many restarts.
  const steps = Array.from({ length: 7 }, (_, index) => ({
    say: `Step ${index}. `,
    gate: `step ${index}`,
    calls: [look(world)],
  }))
  const month: Plan = planned(...steps, done)
  model.hold('long')
  for (const index of steps.keys()) model.hold(`step ${index}`)
  let server = await world.start({ env: { MUSTER_LEASE: '3000' } })
  const neighbour = await makeNeighbour(server)
  const ids = await accept(world, server, [...long, month])
  for (let death = 1; death <= 6; death++) {
    await until(() => model.held(`step ${death - 1}`) > 0, 'the run of a month is in its next step')
    const before = await world.query<{ id: string }>('select id from workers')
    await server.kill('SIGKILL')
    server = await world.start({ env: { MUSTER_LEASE: '3000' } })
    await until(async () => {
      const ghosts = before.map(({ id }) => id)
      return (await world.query('select from workers where id = any($1)', [ghosts])).length === 0
    }, 'the dead process was found')
    const answer = await server.call<{ status: string }>(neighbour.trigger, { body: { input: neighbour.plan } })
    assert.deepEqual([answer.status, answer.body.status], [200, 'completed'], answer.text)
    model.release(`step ${death - 1}`)
    const suspects = await world.query<{ under_way: number }>(
      'select count(*)::int as under_way from agent_runs where owner is not null and crashes >= 2',
    )
    assert.ok((suspects[0]?.under_way ?? 9) <= 1, 'one suspect is under way')
  }
  model.release('long')
  model.release('step 6')
  await untilEnded(world, ids)
  const runs = await world.check(server, ids)
  const ofMonth = runs.get(ids.at(-1) ?? '')
  assert.equal(ofMonth?.status, 'completed', `${ofMonth?.error_code}`)
  for (const id of ids.slice(0, LONG)) {
    const run = runs.get(id)
    // The bystanders made no progress while six processes died: each counted two deaths, then one suspect at a time
    // counted the others.
    assert.ok(run?.status === 'completed' || run?.error_code === 'CRASH_LOOP', `${run?.status} ${run?.error_code}`)
  }
  const givenUp = ids.filter((id) => runs.get(id)?.error_code === 'CRASH_LOOP')
  assert.ok(givenUp.length <= 1, `${givenUp.length} of ${LONG} bystanders were given up`)
})

const look = (world: World) => ({ name: 'look', args: { url: world.ledger.url, label: crypto.randomUUID() } })

async function makeNeighbour(server: Muster): Promise<{ trigger: string; plan: Plan }> {
  const project = await server.call<{ id: string }>('POST /api/projects', { body: { name: 'a neighbour' } })
  const agent = await server.call<{ id: string }>(`POST /api/projects/${project.body.id}/agents`, {
    body: { name: 'neighbour', model: { provider: 'planned', name: 'planned' } },
  })
  assert.equal(agent.status, 201, agent.text)
  const trigger = `POST /api/projects/${project.body.id}/agents/${agent.body.id}/trigger`
  return { trigger, plan: planned({ say: 'Good day.' }) }
}
