// Effects outside of Muster, made by processes that are killed in the middle of a call, killed by a call again and
// again, asked to stop, or asleep for longer than their lease. The tests use the embedded database and one server at a
// time.
import assert from 'node:assert/strict'
import { describe } from 'node:test'
import { atEnd } from '../kit/at-end.ts'
import type { Plan } from '../kit/fake-model.ts'
import { isLong } from '../kit/how-many.ts'
import { isReady } from '../kit/process.ts'
import {
  accept,
  createWorld,
  createWorldPool,
  effect,
  fullWork,
  offer,
  planned,
  spawning,
  times,
  untilEnded,
  untilKilled,
  type World,
} from '../kit/run-harness.ts'
import { eventsOf, type RunRecord } from '../kit/run-record.ts'
import { inSystem, inTest as test } from '../kit/tiers.ts'
import { until } from '../kit/until.ts'

const LANES = 2
const inWorld = createWorldPool({ after: atEnd }, LANES)
const done = { say: 'It is done.' }

describe('effects of servers that die', { concurrency: LANES }, () => {
  test('after kill -9 a keyed call is made again under its key, and an unsafe call is left to people', () =>
    inWorld(async (world) => {
      const { ledger } = world
      const plans = ['pay', 'post', 'look'].map((name) =>
        planned({ say: 'I do it now. ', calls: [effect(world, name, name)] }, done),
      )
      for (const label of ['pay', 'post', 'look']) ledger.hold(label)
      const killed = await world.start()
      const ids = await accept(world, killed, plans)
      await until(() => ['pay', 'post', 'look'].every((label) => ledger.held(label) === 1), 'all three hang')
      await killed.kill('SIGKILL')
      for (const label of ['pay', 'post', 'look']) ledger.release(label)

      const server = await world.start()
      await untilEnded(world, ids)
      const runs = await world.check(server, ids)
      const [paid, posted, looked] = ids.map((id) => runs.get(id))
      assert.deepEqual([paid?.status, ledger.callsOf('pay').length, ledger.effects('pay')], ['completed', 2, 1])
      assert.equal(looked?.status, 'completed')
      assert.deepEqual([posted?.status, posted?.pause_reason], ['paused', 'outcome_unknown'])
      assert.deepEqual([ledger.callsOf('post').length, posted?.crashes], [1, 1])

      // A person has looked, and says so; the letter is not posted again.
      const route = `POST /api/projects/${world.projectId}/runs/${posted?.id}/resume`
      assert.equal((await server.call(route, { body: {} })).status, 400)
      const resumed = await server.call<{ id: string; status: string }>(route, { body: { outcome: 'done' } })
      assert.deepEqual([resumed.status, resumed.body.status], [200, 'completed'], resumed.text)
      assert.equal(ledger.callsOf('post').length, 1)
      await world.check(server, [...ids, resumed.body.id])
      await server.stop()
    }))

  inSystem('after kill -9 around an unsafe call its effect exists at most once, and a person is asked', () =>
    inWorld(async (world) => {
      const outcomes: number[] = []
      for (const point of ['tool.before', 'tool.after_effect_before_commit']) {
        const plan = planned({ say: 'I post it now. ', calls: [effect(world, 'post', point)] }, done)
        const killed = await world.start({ faults: `${point}=kill` })
        await offer(world, killed, [plan])
        await untilKilled(killed)
        const server = await world.start()
        const [id = ''] = await accept(world, server, [plan])
        await untilEnded(world, [id])
        const run = (await world.check(server, [id])).get(id)
        assert.deepEqual([run?.status, run?.pause_reason], ['paused', 'outcome_unknown'])
        outcomes.push(world.ledger.effects(point))
        await server.kill('SIGKILL')
      }
      assert.deepEqual(outcomes, [0, 1])
    }),
  )

  inSystem(
    'the check fails for a tool that ignores its key, because the key is what keeps effects single',
    async (t) => {
      const world = await createWorld(t)
      const plan = planned({ say: 'I pay it now. ', calls: [effect(world, 'pay_without_key')] }, done)
      const killed = await world.start({ faults: 'tool.after_effect_before_commit=kill' })
      await offer(world, killed, [plan])
      await untilKilled(killed)
      const server = await world.start()
      const ids = await accept(world, server, [plan])
      await untilEnded(world, ids)
      await assert.rejects(world.check(server, ids), /pay_without_key had 2 effects under 2 calls/)
      await server.kill('SIGKILL')
    },
  )

  for (const tool of isLong ? ['die', 'throw_later'] : ['die']) {
    inSystem(
      `a run that brings its process down every time (${tool}) fails after five, and its neighbours complete`,
      (t) =>
        inWorld(async (world) => {
          const poison = planned({ say: 'This is the end. ', calls: [effect(world, tool)] }, done)
          const neighbours = times(5, () => fullWork(world))
          const plans = [poison, ...neighbours]
          let lives = 0
          let ids: string[] = []
          for (let isOver = false; !isOver; ) {
            assert.ok(++lives <= 12, 'it is started again and again')
            const server = await world.spawn()
            // The server is started again as long as it dies, as by a process supervisor.
            await until(async () => {
              if (!server.isRunning()) return true
              if (ids.length === 0) ids = await accept(world, server, plans).catch(() => [])
              if (ids.length === 0) return false
              // A server that stops on its own also stops its database.
              isOver = (await openRuns(world).catch(() => null)) === 0
              return isOver
            }, 'it died, or has nothing left to do')
            if (!isOver) continue
            await until(() => isReady(server), 'it is ready')
            const runs = await world.check(server, ids)
            const [poisoned, ...others] = ids.map((id) => runs.get(id) ?? assert.fail())
            assert.deepEqual([poisoned?.status, poisoned?.error_code, poisoned?.crashes], ['failed', 'CRASH_LOOP', 5])
            for (const run of others) requireHonestEnd(run)
            t.diagnostic(`${lives} lives; crashes of the neighbours: ${others.map(({ crashes }) => crashes)}`)
            await server.stop()
          }
        }),
    )
  }

  test('a rejected promise that a tool leaves behind stops no run', () =>
    inWorld(async (world) => {
      const server = await world.start()
      const plan = planned({ say: 'I leave something. ', calls: [effect(world, 'reject_unseen')] }, done)
      const ids = await accept(world, server, [plan])
      await untilEnded(world, ids)
      const runs = await world.check(server, ids)
      assert.equal(runs.get(ids[0] ?? '')?.status, 'completed')
      assert.match(server.stderr(), /nobody waits for this/)
      await server.stop()
    }))

  test('SIGTERM with 20 runs in flight exits with 0 and hands all runs back, and the next start completes them', (t) =>
    inWorld(async (world) => {
      const { model, ledger } = world
      const server = await world.start({ env: { MUSTER_DRAIN: '1000' } })
      for (const gate of ['answer', 'keyed']) (gate === 'answer' ? model : ledger).hold(gate)
      const inAnswer = times(10, () => fullWork(world, 'answer'))
      const inTool = times(10, () => planned({ say: 'I look now. ', calls: [effect(world, 'look', 'keyed')] }, done))
      const ids = await accept(world, server, [...inAnswer, ...inTool])
      await until(
        () => model.held('answer') === 10 && ledger.held('keyed') === 10,
        'all are in the middle of something',
      )
      const askedAt = performance.now()
      await server.stop()
      t.diagnostic(`stopped after ${Math.round(performance.now() - askedAt)} ms`)
      model.release('answer')
      ledger.release('keyed')

      const next = await world.start()
      await untilEnded(world, ids)
      const runs = await world.check(next, ids)
      for (const run of ids.map((id) => runs.get(id) ?? assert.fail())) {
        assert.deepEqual([run.status, run.crashes], ['completed', 0])
        assert.equal(eventsOf(run, 'run.parked').length, 1, 'it was not handed back')
      }
      await next.stop()
    }))

  inSystem('agents that spawn agents five levels deep, and 60 parents with a child each, complete in one slot', (t) =>
    inWorld(async (world) => {
      const server = await world.start({ env: { MUSTER_CONCURRENCY: '1' } })
      const chain = times(5, () => 0).reduce(
        (below) => planned({ say: 'Somebody below me does it. ', calls: spawning(below) }, done),
        planned({ say: 'I do it myself. ', calls: [effect(world, 'pay')] }, done),
      )
      const parents = times(60, () =>
        planned(
          {
            say: 'A child does it. ',
            calls: spawning(planned({ say: 'I pay. ', calls: [effect(world, 'pay')] }, done)),
          },
          done,
        ),
      )
      const tags = new Set([chain, ...parents].flatMap(tagsOf))
      const startedAt = performance.now()
      const ids = await accept(world, server, [chain, ...parents])
      await untilEnded(world, ids)
      t.diagnostic(`126 runs in one slot: ${Math.round(performance.now() - startedAt)} ms`)
      const all = await world.check(server, ids)
      const runs = [...all.values()].filter(({ plan }) => tags.has(plan.tag))
      assert.equal(runs.length, 6 + 120)
      for (const run of runs) assert.deepEqual([run.status, run.crashes], ['completed', 0])
      await server.stop()
    }),
  )

  inSystem('a server asleep for longer than its lease repeats no unsafe call when it wakes', () =>
    inWorld(async (world) => {
      const { ledger } = world
      ledger.hold('post in sleep')
      ledger.hold('pay in sleep')
      const server = await world.start({ env: { MUSTER_LEASE: '2000' } })
      const plans = ['post', 'pay'].map((name) =>
        planned({ say: 'I do it now. ', calls: [effect(world, name, `${name} in sleep`)] }, done),
      )
      const ids = await accept(world, server, plans)
      await until(() => ledger.held('post in sleep') + ledger.held('pay in sleep') === 2, 'both calls hang')
      server.signal('SIGSTOP')
      await untilLapsed(world)
      server.signal('SIGCONT')
      await until(() => /the lease could not be renewed in time/.test(server.stderr()), 'it noticed')
      ledger.release('post in sleep')
      ledger.release('pay in sleep')
      await untilEnded(world, ids)
      const runs = await world.check(server, ids)
      const [posted, paid] = ids.map((id) => runs.get(id))
      assert.deepEqual([posted?.status, posted?.pause_reason], ['paused', 'outcome_unknown'])
      assert.deepEqual([paid?.status, paid?.crashes], ['completed', 0])
      await server.stop()
    }),
  )
})

/** The tags of a plan and of all plans below it. */
function tagsOf(plan: Plan): string[] {
  const children = plan.steps.flatMap(({ calls = [] }) => calls.flatMap(({ args }) => (args.input ? [args.input] : [])))
  return [plan.tag, ...children.flatMap((child) => tagsOf(child as Plan))] // only spawns have an input, and it is a plan
}

async function openRuns(world: World): Promise<number> {
  const rows = await world.query<{ open: number }>(
    'select count(*)::int as open from agent_runs where completed_at is null',
  )
  return rows[0]?.open ?? -1
}

/** Waits until the run is done, or a person is asked about the letter that may have been posted. */
function requireHonestEnd(run: RunRecord): void {
  if (run.status === 'paused') assert.equal(run.pause_reason, 'outcome_unknown')
  else assert.equal(run.status, 'completed', `${run.error_code}`)
}

async function untilLapsed(world: World): Promise<void> {
  await until(async () => {
    const rows = await world.query<{ lapsed: boolean }>('select lease_until < muster.now() as lapsed from workers')
    return rows.length > 0 && rows.every(({ lapsed }) => lapsed)
  }, 'the lease has passed')
}
