// kill -9 of a server at every point of a call that a person approved: between the suggestion and the approval, between
// the approval and the call, and between the call and its record. The call is made once, or a person is asked about it.
import assert from 'node:assert/strict'
import { describe } from 'node:test'
import type { FaultPoint } from '../../src/kernel/fault.ts'
import { atEnd } from '../kit/at-end.ts'
import type { ApprovalPoint } from '../kit/fault-lists.ts'
import { howMany } from '../kit/how-many.ts'
import type { Muster } from '../kit/process.ts'
import {
  accept,
  createWorldPool,
  effect,
  planned,
  times,
  untilEnded,
  untilKilled,
  type World,
} from '../kit/run-harness.ts'
import { eventsOf } from '../kit/run-record.ts'
import { inSystem, inTier } from '../kit/tiers.ts'
import { until } from '../kit/until.ts'

const LANES = 2
const ROUNDS = howMany(1, 100)
const inWorld = createWorldPool({ after: atEnd }, LANES)

type Point =
  | ApprovalPoint
  | Extract<
      FaultPoint,
      'park.after_commit' | 'approval.after_decision_before_apply' | 'tool.before' | 'tool.after_effect_before_commit'
    >

/** The requests that reach the ledger, the effects that they have, and the end of the run. */
interface Outcome {
  calls: number
  effects: number
  end: 'completed' | 'outcome_unknown'
}

/** A call that had not begun is made; a keyed one that had begun is made again; an unsafe one is left to a person. */
const exercises: Record<Point, Record<'pay' | 'post', Outcome>> = {
  'park.after_commit': { pay: once(), post: once() },
  'approval.after_decision_before_apply': { pay: once(), post: once() },
  'approval.after_decision': { pay: once(), post: once() },
  'approval.before_call': { pay: once(), post: { calls: 0, effects: 0, end: 'outcome_unknown' } },
  'tool.before': { pay: once(), post: { calls: 0, effects: 0, end: 'outcome_unknown' } },
  'tool.after_effect_before_commit': {
    pay: { calls: 2, effects: 1, end: 'completed' },
    post: { calls: 1, effects: 1, end: 'outcome_unknown' },
  },
}

describe('kill -9 around an approved call', { concurrency: LANES }, () => {
  for (const [point, outcomes] of Object.entries(exercises)) {
    for (const [tool, expected] of Object.entries(outcomes)) {
      const register = inTier(point === 'approval.after_decision' && tool === 'post')
      register(`kill -9 at ${point} of an approved call of ${tool}: ${JSON.stringify(expected)}`, () =>
        inWorld(async (world) => {
          for (const _ of times(ROUNDS, () => null)) await exercise(world, point, tool, expected)
        }),
      )
    }
  }

  inSystem('an unsafe call that was approved and may have begun is decided by a person, and not made again', () =>
    inWorld(async (world) => {
      const { id, label } = await approveAndKill(world, 'tool.after_effect_before_commit', 'post')
      const server = await world.start()
      await untilEnded(world, [id])
      const route = `POST /api/projects/${world.projectId}/runs/${id}/resume`
      const resumed = await server.call<{ id: string; status: string }>(route, { body: { outcome: 'done' } })
      assert.deepEqual([resumed.status, resumed.body.status], [200, 'completed'], resumed.text)
      assert.equal(world.ledger.callsOf(label).length, 1)
      const asked = await world.query(`select from tasks where kind = 'suggestion' and run_id = $1`, [resumed.body.id])
      assert.equal(asked.length, 0, 'the call was put before people once more')
      await world.check(server, [id, resumed.body.id])
      await server.stop()
    }),
  )
})

function once(): Outcome {
  return { calls: 1, effects: 1, end: 'completed' }
}

async function exercise(world: World, point: string, tool: string, expected: Outcome): Promise<void> {
  const { id, label } = await approveAndKill(world, point, tool)
  const server = await world.start()
  // The server may have died before the approval was committed.
  const [open] = await suggestionsOf(world, id)
  if (open?.status === 'pending') assert.equal(await approve(world, server, open.id), 200)
  await untilEnded(world, [id])
  const run = (await world.check(server, [id])).get(id) ?? assert.fail()
  const { ledger } = world
  assert.deepEqual(
    { calls: ledger.callsOf(label).length, effects: ledger.effects(label), end: run.pause_reason ?? run.status },
    expected,
  )
  assert.equal((await suggestionsOf(world, id)).length, 1, 'people were asked twice')
  assert.equal(eventsOf(run, 'tool.decided').length, 1)
  await server.kill('SIGKILL')
}

/** A run waits with its call, the call is approved, and the server dies at the point. */
async function approveAndKill(world: World, point: string, tool: string): Promise<{ id: string; label: string }> {
  const call = effect(world, tool)
  const plan = planned({ say: 'I do it if I may. ', calls: [call] }, { say: 'It is done.' })
  const killed = await world.start({ faults: `${point}=kill` })
  await requireApproval(world, killed, tool)
  const [id = ''] = await accept(world, killed, [plan])
  await until(async () => (await suggestionsOf(world, id)).length === 1, 'the call is put before people', 30_000)
  const [suggestion] = await suggestionsOf(world, id)
  // The answer may be lost with the server.
  await approve(world, killed, suggestion?.id ?? assert.fail()).catch(() => {})
  await untilKilled(killed)
  return { id, label: String(call.args.label) }
}

async function requireApproval(world: World, server: Muster, tool: string): Promise<void> {
  const route = `PATCH /api/projects/${world.projectId}/agents/${world.agentId}`
  const { status, text } = await server.call(route, { body: { require_approval: [tool] } })
  assert.equal(status, 200, text)
}

const suggestionsOf = (world: World, runId: string) =>
  world.query<{ id: string; status: string }>(
    `select id, status from tasks where kind = 'suggestion' and run_id = $1`,
    [runId],
  )

const approve = async (world: World, server: Muster, taskId: string): Promise<number> =>
  (await server.call(`POST /api/projects/${world.projectId}/tasks/${taskId}/approve`, { body: {} })).status
