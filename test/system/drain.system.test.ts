// Calls that run when a server is asked to stop get MUSTER_DRAIN, the whole stop gets 5 s more, and a call that had not
// begun is not taken for a call that may have happened.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { atEnd } from '../kit/at-end.ts'
import type { Muster } from '../kit/process.ts'
import { accept, createWorldPool, effect, planned, times, untilEnded, type World } from '../kit/run-harness.ts'
import { eventsOf } from '../kit/run-record.ts'
import { until } from '../kit/until.ts'

const LANES = 2
const inWorld = createWorldPool({ after: atEnd }, LANES)
const done = { say: 'It is done.' }
const cleanExit = { code: 0, signal: null }
/** A time longer than an earlier release waited, in spite of its promise. */
const LONG_CALL_MS = 9_000

describe('calls under way at a stop', { concurrency: LANES }, () => {
  test('a long call of a run and a long function of a flow may end during the stop, and are made once', () =>
    inWorld(async (world) => {
      const { ledger } = world
      ledger.hold('long post')
      ledger.hold('long note')
      const server = await world.start()
      const flowRunId = await startNote(world, server, 'long note')
      const ids = await accept(world, server, [
        planned({ say: 'I post it now. ', calls: [effect(world, 'post', 'long post')] }, done),
      ])
      await until(() => ledger.held('long post') + ledger.held('long note') === 2, 'both calls are under way')
      server.signal('SIGTERM')
      await sleep(LONG_CALL_MS)
      assert.ok(server.isRunning(), 'it ended before its calls had')
      ledger.release('long post')
      ledger.release('long note')
      assert.deepEqual(await server.exited, cleanExit, server.stderr())

      const next = await world.start()
      await untilEnded(world, ids)
      const run = (await world.check(next, ids)).get(ids[0] ?? '')
      assert.deepEqual([run?.status, run?.crashes], ['completed', 0])
      assert.equal(ledger.callsOf('long post').length, 1)
      await untilFlowEnded(world, flowRunId)
      assert.equal(ledger.callsOf('long note').length, 1)
      await next.stop()
    }))

  test('calls that hang are cut off after MUSTER_DRAIN, and the whole stop takes 5 s more at most', (t) =>
    inWorld(async (world) => {
      const { ledger } = world
      const drainMs = 1_000
      for (const label of ['hanging post', 'hanging pay', 'hanging note']) ledger.hold(label)
      const server = await world.start({ env: { MUSTER_DRAIN: String(drainMs) } })
      const flowRunId = await startNote(world, server, 'hanging note')
      const plans = ['post', 'pay'].map((name) =>
        planned({ say: 'I do it now. ', calls: [effect(world, name, `hanging ${name}`)] }, done),
      )
      const ids = await accept(world, server, plans)
      await until(() => ['post', 'pay', 'note'].every((name) => ledger.held(`hanging ${name}`) === 1), 'all three hang')
      const askedAt = performance.now()
      await server.stop()
      const tookMs = performance.now() - askedAt
      t.diagnostic(`stopped after ${Math.round(tookMs)} ms`)
      assert.ok(tookMs >= drainMs, 'it did not wait')
      assert.ok(tookMs < drainMs + 5_000, `it took ${tookMs} ms`)
      for (const label of ['hanging post', 'hanging pay', 'hanging note']) ledger.release(label)

      const next = await world.start()
      await untilEnded(world, ids)
      const runs = await world.check(next, ids)
      const [posted, paid] = ids.map((id) => runs.get(id))
      assert.deepEqual([posted?.status, posted?.pause_reason], ['paused', 'outcome_unknown'])
      const lines = next.stderr().split('\n')
      assert.equal(lines.filter((line) => /a run paused/.test(line) && line.includes(posted?.id ?? '')).length, 1)
      assert.deepEqual([paid?.status, ledger.effects('hanging pay'), paid?.crashes], ['completed', 1, 0])
      await untilFlowEnded(world, flowRunId)
      await next.stop()
    }))

  test('calls that were announced and not begun are made by the next server, without a question to people', () =>
    inWorld(async (world) => {
      const { ledger } = world
      // There are more calls than are made at once; the calls that have begun hang.
      const calls = times(20, () => effect(world, 'post'))
      const labels = calls.map(({ args }) => String(args.label))
      for (const label of labels) ledger.hold(label)
      const heldOf = (): string[] => labels.filter((label) => ledger.held(label) > 0)
      const server = await world.start({ env: { MUSTER_DRAIN: '10000' } })
      const ids = await accept(world, server, [planned({ say: 'I post them now. ', calls }, done)])
      await until(() => heldOf().length === 16, 'as many are under way as may be')
      server.signal('SIGTERM')
      await until(() => /stopping/.test(server.stderr()), 'it has heard')
      for (const label of heldOf()) ledger.release(label)
      assert.deepEqual(await server.exited, cleanExit, server.stderr())
      assert.equal(ledger.calls.filter(({ label }) => labels.includes(label)).length, 16)
      for (const label of labels) ledger.release(label)

      const next = await world.start()
      await untilEnded(world, ids)
      const run = (await world.check(next, ids)).get(ids[0] ?? '')
      assert.deepEqual([run?.status, run?.crashes], ['completed', 0])
      assert.deepEqual(
        labels.map((label) => ledger.callsOf(label).length),
        labels.map(() => 1),
      )
      await next.stop()
    }))

  test('a second SIGTERM cuts calls off at once; their runs are handed back and no crash is counted', () =>
    inWorld(async (world) => {
      const { ledger } = world
      ledger.hold('hurried pay')
      const server = await world.start()
      const ids = await accept(world, server, [
        planned({ say: 'I pay it now. ', calls: [effect(world, 'pay', 'hurried pay')] }, done),
      ])
      await until(() => ledger.held('hurried pay') === 1, 'the call is under way')
      const askedAt = performance.now()
      server.signal('SIGTERM')
      await until(() => {
        server.signal('SIGTERM')
        return !server.isRunning()
      }, 'the server has ended')
      assert.deepEqual(await server.exited, cleanExit, server.stderr())
      assert.ok(performance.now() - askedAt < 10_000, 'it waited for the call')
      ledger.release('hurried pay')
      const next = await world.start()
      await untilEnded(world, ids)
      const run = (await world.check(next, ids)).get(ids[0] ?? '') ?? assert.fail()
      assert.deepEqual([run.status, run.crashes], ['completed', 0])
      assert.equal(eventsOf(run, 'run.parked').length, 1, 'it was not handed back')
      await next.stop()
    }))
})

async function startNote(world: World, server: Muster, label: string): Promise<string> {
  const root = { type: 'task', function: 'note', args: { url: world.ledger.url, label } }
  const answer = await server.call<{ id: string }>(`POST /api/projects/${world.projectId}/flow-runs`, {
    body: { root },
  })
  assert.equal(answer.status, 202, answer.text)
  return answer.body.id
}

async function untilFlowEnded(world: World, flowRunId: string): Promise<void> {
  await until(async () => {
    const [row] = await world.query<{ status: string }>('select status from flow_runs where id = $1', [flowRunId])
    return row?.status === 'completed'
  }, 'the flow has completed')
}
