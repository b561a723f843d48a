// kill -9 of a server at every named point of a run's life, with one run and with fifty, on the embedded database as
// for a newcomer. The next start goes on from the end of the journal, and the promise holds.
import assert from 'node:assert/strict'
import { describe, type TestContext } from 'node:test'
import { atEnd } from '../kit/at-end.ts'
import type { Plan } from '../kit/fake-model.ts'
import type { RunPoint } from '../kit/fault-lists.ts'
import { isLong } from '../kit/how-many.ts'
import type { Muster } from '../kit/process.ts'
import {
  accept,
  cancel,
  createWorldPool,
  effect,
  fullWork,
  labelsOf,
  offer,
  planned,
  runOf,
  spawning,
  times,
  untilEnded,
  untilKilled,
  type World,
} from '../kit/run-harness.ts'
import type { RunRecord } from '../kit/run-record.ts'
import { inBoth, inSystem, inTier, isUsual } from '../kit/tiers.ts'
import { until } from '../kit/until.ts'

/** The busiest points are tried with fifty runs in `test:system`; the other points in `test:long`. */
const BUSIEST: ReadonlySet<string> = new Set(['claim.after', 'llm.mid_stream', 'tool.after_effect_before_commit'])
/** One point of each kind: before and after a commit, in the middle of a stream, around an effect, with sub-runs. */
const STANDS_FOR_ITS_KIND: ReadonlySet<string> = new Set([...BUSIEST, 'step.after_commit', 'spawn.after_insert'])
const LANES = 2
const MANY = 50

const inWorld = createWorldPool({ after: atEnd }, LANES)

interface Exercise {
  /** The work of the single run. */
  alone: (world: World) => Plan
  /** The work of each of the fifty. */
  many?: (world: World) => Plan
  /**
   * The server with fifty runs is killed when it passes the point this many times; a single run passes it less often.
   */
  at: number
  /** True if the recovered run passes the same point, so that the second server is killed there too. */
  recurs: boolean
  /** The course of the first server; by default it is started with the fault, gets the run and is killed. */
  firstLife?: (world: World, single: Plan) => Promise<void>
  /** The environment of the server with fifty runs. */
  env?: Record<string, string>
  /** The cost of the single run: deaths of processes that owned it, and model calls beyond its steps. */
  costs: { crashes: number; modelCalls: number; payCalls: number }
}

const payOnce = (world: World): Plan =>
  planned({ say: 'I pay for it now. ', calls: [effect(world, 'pay')] }, { say: 'It is paid for.' })

const parent = (world: World): Plan =>
  planned({ say: 'Somebody else shall pay. ', calls: spawning(payOnce(world)) }, { say: 'It was paid by another.' })

const exercises: Record<Exclude<RunPoint, 'cancel.mid' | 'api.after_commit_before_reply'>, Exercise> = {
  'claim.before': {
    alone: payOnce,
    at: 12,
    recurs: true,
    firstLife: queueUp,
    env: { MUSTER_CONCURRENCY: '5' },
    costs: { crashes: 0, modelCalls: 0, payCalls: 1 },
  },
  'claim.after': { alone: payOnce, at: 20, recurs: true, costs: { crashes: 2, modelCalls: 0, payCalls: 1 } },
  'llm.mid_stream': { alone: payOnce, at: 60, recurs: true, costs: { crashes: 2, modelCalls: 2, payCalls: 1 } },
  'llm.after_reply_before_commit': {
    alone: payOnce,
    at: 20,
    recurs: true,
    costs: { crashes: 2, modelCalls: 2, payCalls: 1 },
  },
  'tool.before': { alone: payOnce, at: 20, recurs: true, costs: { crashes: 2, modelCalls: 0, payCalls: 1 } },
  'tool.after_effect_before_commit': {
    alone: payOnce,
    at: 20,
    recurs: true,
    costs: { crashes: 2, modelCalls: 0, payCalls: 3 },
  },
  'step.after_commit': { alone: payOnce, at: 20, recurs: false, costs: { crashes: 1, modelCalls: 0, payCalls: 1 } },
  'final.after_commit': { alone: payOnce, at: 20, recurs: false, costs: { crashes: 0, modelCalls: 0, payCalls: 1 } },
  'spawn.after_insert': {
    alone: parent,
    many: parent,
    at: 20,
    recurs: false,
    costs: { crashes: 1, modelCalls: 0, payCalls: 0 },
  },
  'park.after_commit': {
    alone: parent,
    many: parent,
    at: 20,
    recurs: false,
    costs: { crashes: 0, modelCalls: 0, payCalls: 0 },
  },
}

describe('kill -9 at every point of a run', { concurrency: LANES }, () => {
  for (const [point, exercise] of Object.entries(exercises)) {
    const { alone, many = fullWork, at, recurs, firstLife, env = {}, costs } = exercise
    const isBusiest = BUSIEST.has(point)
    const isAlone = isUsual || !(isLong || isBusiest)
    const register = isBusiest ? inBoth : inTier(STANDS_FOR_ITS_KIND.has(point))
    register(
      `kill -9 at ${point}, with one run${isAlone ? '' : ` and with ${MANY}`}: no run is lost, no effect is doubled`,
      async (t) => {
        await inWorld(async (world) => {
          const single = alone(world)
          if (firstLife) {
            await firstLife(world, single)
          } else {
            const killed = await world.start({ faults: `${point}=kill` })
            await offer(world, killed, [single])
            await untilKilled(killed)
          }
          if (recurs) await untilKilled(await world.spawn({ faults: `${point}=kill` }))

          const next = await world.start({ faults: `${point}=kill@${at}`, env })
          const [id = ''] = await accept(world, next, [single])
          await untilEnded(world, [id])
          if (isAlone) {
            await untilEnded(world, await allRuns(world))
            return checkSingle(await world.check(next, [id]), next)
          }
          const plans = times(MANY, () => many(world))
          await offer(world, next, plans)
          await untilKilled(next)

          const server = await world.start()
          const ids = await accept(world, server, plans)
          await untilEnded(world, ids)
          const runs = await world.check(server, [id, ...ids])
          requireHit(t, runs, plans)
          await checkSingle(runs, server)

          async function checkSingle(runs: ReadonlyMap<string, RunRecord>, server: Muster): Promise<void> {
            const run = runs.get(id) ?? assert.fail()
            assert.equal(run.status, 'completed', run.error_code ?? '')
            assert.deepEqual(costOf(world, run), costs)
            await server.kill('SIGKILL')
          }
        })
      },
    )
  }

  inSystem(
    `kill -9 at cancel.mid, with one run and with ${MANY}: the requested runs are cancelled, and no others`,
    async () => {
      await inWorld(async (world) => {
        const single = fullWork(world, 'cancel')
        const killed = await world.start({ faults: 'cancel.mid=kill' })
        await cancelUnderWay(world, killed, [single])

        const plans = times(MANY, () => fullWork(world, 'cancel'))
        // The server has slots for all of them beside the slots that are kept for other projects.
        const next = await world.start({ faults: 'cancel.mid=kill@20', env: { MUSTER_CONCURRENCY: `${2 * MANY}` } })
        const first = await accept(world, next, [single])
        await untilEnded(world, first)
        await cancelUnderWay(world, next, plans)

        // Runs whose cancel did not reach the server in time are cancelled again; a second cancel changes nothing.
        world.model.hold('cancel')
        const server = await world.start()
        const ids = await accept(world, server, plans)
        for (const id of ids) assert.equal((await cancel(world, server, id)).status, 200)
        await untilEnded(world, ids)
        world.model.release('cancel')
        const runs = await world.check(server, [...first, ...ids])
        for (const plan of [single, ...plans]) {
          assert.equal(runs.get(await runOf(world, plan))?.status, 'cancelled')
          for (const label of [...labelsOf(plan, 'pay'), ...labelsOf(plan, 'post')]) {
            assert.equal(world.ledger.callsOf(label).length, 0, 'a tool was called after the cancel')
          }
        }
        await server.kill('SIGKILL')
      })
    },
  )

  inSystem('kill -9 at api.after_commit_before_reply of a trigger: the same key gives the same run, once', async () => {
    await inWorld(async (world) => {
      const single = fullWork(world)
      const killed = await world.start({ faults: 'api.after_commit_before_reply=kill' })
      await offer(world, killed, [single])
      await untilKilled(killed)
      const id = await runOf(world, single)

      const next = await world.start({ faults: 'api.after_commit_before_reply=kill@20' })
      assert.deepEqual(await accept(world, next, [single]), [id])
      const plans = times(MANY, () => fullWork(world))
      await offer(world, next, plans)
      await untilKilled(next)

      const server = await world.start()
      const ids = await accept(world, server, plans)
      await untilEnded(world, [id, ...ids])
      await world.check(server, [id, ...ids])
      await server.kill('SIGKILL')
    })
  })

  inSystem('kill -9 between the claim of a sub-run and its first event: the sub-run keeps its input', async () => {
    await inWorld(async (world) => {
      const plan = parent(world)
      const killed = await world.start({ faults: 'claim.after=kill@2' })
      await offer(world, killed, [plan])
      await untilKilled(killed)
      const server = await world.start()
      const ids = await accept(world, server, [plan])
      await untilEnded(world, ids)
      const runs = await world.check(server, ids)
      const family = [...runs.values()].filter((run) => run.id === ids[0] || run.parent_run_id === ids[0])
      assert.deepEqual(
        family.map(({ status }) => status),
        ['completed', 'completed'],
      )
      await server.kill('SIGKILL')
    })
  })
})

/** The server dies while the run waits for a slot, before any process has claimed it. */
async function queueUp(world: World, single: Plan): Promise<void> {
  world.model.hold('slot')
  const server = await world.start({ env: { MUSTER_CONCURRENCY: '1' } })
  await accept(world, server, [fullWork(world, 'slot')])
  await until(() => world.model.held('slot') === 1, 'the only slot is taken')
  await accept(world, server, [single])
  await server.kill('SIGKILL')
  world.model.release('slot')
}

/** All runs, also those that only kept a slot busy. */
async function allRuns(world: World): Promise<string[]> {
  return (await world.query<{ id: string }>('select id from agent_runs')).map(({ id }) => id)
}

/** Lets the runs get to the middle of their first answer, cancels them, and waits for the server's death. */
async function cancelUnderWay(world: World, muster: Muster, plans: readonly Plan[]): Promise<void> {
  world.model.hold('cancel')
  const ids = await accept(world, muster, plans)
  await until(() => world.model.held('cancel') === plans.length, 'all runs are in mid-answer', 30_000)
  await Promise.allSettled(ids.map((id) => cancel(world, muster, id)))
  await untilKilled(muster)
  world.model.release('cancel')
}

function costOf(world: World, run: RunRecord) {
  const calls = labelsOf(run.plan, 'pay').map((label) => world.ledger.callsOf(label).length)
  return {
    crashes: run.crashes,
    modelCalls: world.model.requestsOf(run.plan.tag).length - run.step_count,
    payCalls: calls.reduce((sum, count) => sum + count, 0),
  }
}

/** Asserts that runs were in progress at the kill; otherwise the test would prove nothing. */
function requireHit(t: TestContext, runs: ReadonlyMap<string, RunRecord>, plans: readonly Plan[]): void {
  const tags = new Set(plans.map(({ tag }) => tag))
  const mine = [...runs.values()].filter((run) => tags.has(run.plan.tag))
  const count = (status: string): number => mine.filter((run) => run.status === status).length
  const hit = mine.filter((run) => run.crashes > 0).length
  t.diagnostic(`${hit} of ${mine.length} were under way; ${count('completed')} completed, ${count('paused')} paused`)
  assert.equal(count('completed') + count('paused'), plans.length)
  assert.ok(count('completed') >= plans.length / 2, 'hardly any run completed')
}
