// Servers are killed while they work on flows of every pattern, at random instants and right after leaves were settled.
// The next owner goes on from the end of the journal: finished work is not repeated, and the flow ends as if no server
// had died.
import assert from 'node:assert/strict'
import { describe } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { atEnd } from '../kit/at-end.ts'
import {
  checkFlow,
  countRepeated,
  findWrongCalls,
  findWrongQuestions,
  readUndisturbed,
  type Whole,
} from '../kit/check-flows.ts'
import { type CrashFlowName, crashFlows, manyAgents, crashFlowNames as names, oneOfEach } from '../kit/crash-flows.ts'
import { createUnusedDatabase } from '../kit/database.ts'
import { type Begun, createFlowWorld, type FlowWorld, isInTheMiddle, type Kill } from '../kit/flow-harness.ts'
import { howMany } from '../kit/how-many.ts'
import type { Muster } from '../kit/process.ts'
import { inBoth, inSystem, isUsual, inTest as test } from '../kit/tiers.ts'
import { until } from '../kit/until.ts'

const wholeFile = { after: atEnd }
const SEEDS = howMany(10, 40)
/** After this share of a flow most flows are over, and a kill would interrupt none. */
const LATEST = 0.9
/** A flow whose servers die five times is given up, and so is a run. */
const MOST_CRASHES = 4
/** The default lease. */
const LEASE_MS = 10_000

/**
 * The flows that are killed one at a time. Items of a pipeline are written together as they come: the number of writes
 * is not known, so the pipeline is the last.
 */
const midFlows: readonly CrashFlowName[] = isUsual
  ? ['hierarchical', 'nested', 'pipeline']
  : [...names.filter((each) => each !== 'pipeline'), 'pipeline']

type Flows = Record<CrashFlowName, Begun>

/** The undisturbed ends of the flows are found once, in the first world. */
const first = createFlowWorld(wholeFile).then(async ({ world, server }) => {
  const undisturbed = await playUndisturbed(world, server)
  // A server that is not killed leaves its compiled code behind, which halves the time of the many starts to come.
  await server.stop()
  return { world, undisturbed }
})

describe('kill -9 in the middle of flows', { concurrency: 2 }, () => {
  inSystem(
    `at ${SEEDS} random instants, with a flow of every pattern: recorded work is not repeated, and each flow ends well`,
    async (t) => {
      const { world, undisturbed } = await first
      let server = await world.start()
      const rounds: Flows[] = []
      const hits = new Map<CrashFlowName, number>(names.map((name) => [name, 0]))
      for (let seed = 1; seed <= SEEDS; seed++) {
        const random = createRandom(seed)
        const flows = await beginAll(world, server, String(seed))
        rounds.push(flows)
        // The kills cover every part of a flow's length, early and late parts mixed.
        const share = ((((seed * 7) % SEEDS) + random()) / SEEDS) * LATEST
        await untilShareIsDone(world, flows, undisturbed, share)
        await until(() => isBearable(world), `seed ${seed}: nothing was interrupted too often`, 30_000)
        await sleep(random() * 50)
        const kill = await world.kill(server)
        const hit = namesAmid(kill, flows)
        for (const name of hit) hits.set(name, (hits.get(name) ?? 0) + 1)
        t.diagnostic(`seed ${seed}: killed at ${Math.round(share * 100)} %, amid ${hit.join(', ')}`)
        server = await world.start()
      }
      await world.untilEnded(rounds.flatMap((flows) => Object.values(flows)))
      for (const flows of rounds) await checkAll(world, server, flows, undisturbed)
      t.diagnostic(`hit in the middle: ${[...hits].map(([name, times]) => `${name} ${times}`).join(', ')}`)
      for (const [name, times] of hits) assert.ok(times >= SEEDS / 4, `${name} was hit ${times} times only`)
      const all = [...hits.values()].reduce((sum, times) => sum + times, 0)
      assert.ok(all >= (SEEDS * names.length) / 2, `${all} flows were hit in the middle`)
      await server.kill('SIGKILL')
    },
  )

  describe('of one flow at a time', { concurrency: 1 }, () => {
    const second = first.then(async () => await createFlowWorld(wholeFile))

    inBoth(`at flow.mid in ${midFlows.join(', ')}: recorded work is not repeated`, async (t) => {
      const { undisturbed } = await first
      const { world, server: maker } = await second
      await maker.kill('SIGKILL')
      const killed: [CrashFlowName, Begun][] = []
      let passesLeft = 0
      for (const name of midFlows) {
        const leaves = undisturbed.wholes[name].tasks.length
        const passes = name === 'pipeline' ? 6 : Math.ceil((leaves * 2) / 3)
        const server = await world.start({ faults: `flow.mid=kill@${passesLeft + passes}` })
        // The flow before this one passes the same point for the rest of its leaves.
        await world.untilEnded(killed.map(([, flow]) => flow))
        // One leaf runs at a time, so that each leaf is settled separately.
        const flow = await world.begin(server, { ...crashFlows[name], workers: 1 }, `mid.${name}`)
        const kill = await world.untilKilled(server)
        assert.ok(isInTheMiddle(kill, flow), name)
        killed.push([name, flow])
        passesLeft = leaves - passes
      }
      const server = await world.start()
      await world.untilEnded(killed.map(([, flow]) => flow))
      for (const [name, flow] of killed) {
        await checkFlow(world, server, flow, undisturbed.wholes[name])
        const repeated = countRepeated(world, flow)
        t.diagnostic(`${name}: ${repeated} calls were made again`)
        // No other call was running, except in a pipeline, whose stages do not wait for a write.
        if (name !== 'pipeline') assert.equal(repeated, 0, name)
      }
      await server.kill('SIGKILL')
    })

    test('with a journal that was lost meanwhile: the check sees every kind of work that is done again', async () => {
      const { world } = await second
      // A leaf, an agent, and the fourth time that items of the pipeline are settled.
      const killed = await world.start({ faults: 'flow.mid=kill@6' })
      const flow = await world.begin(killed, oneOfEach, 'control')
      await world.untilKilled(killed)
      await world.query('delete from flow_events where run_id = $1', [flow.id])
      await world.query('delete from agent_runs where flow_run_id = $1', [flow.id])
      const server = await world.start()
      await world.untilEnded([flow])
      const calls = findWrongCalls(world, flow).join('\n')
      assert.match(calls, /^grow root\/0 was called again, though it was done on record$/m)
      assert.match(calls, /^grow root\/2:0:0 was called again, though it was done on record$/m)
      const questions = (await findWrongQuestions(world, flow)).join('\n')
      assert.match(questions, /^"<control> Go on\." was asked again, though its run had ended$/m)
      await server.kill('SIGKILL')
    })

    inSystem('with one slot: agents within agents of flows get their turn, also after a kill', async () => {
      const { world } = await second
      const env = { MUSTER_CONCURRENCY: '1' }
      const killed = await world.start({ env })
      const alone = await world.begin(killed, manyAgents, 'alone')
      await world.untilEnded([alone])
      const whole = await readUndisturbed(world, killed, alone)
      const flows = await Promise.all([1, 2].map((place) => world.begin(killed, manyAgents, `slot.${place}`)))
      const half = Math.floor(whole.agentRuns / 2)
      await until(async () => (await countEndedAgents(world, flows)) >= half, 'some agents have ended', 30_000)
      const kill = await world.kill(killed)
      assert.ok(flows.some((flow) => isInTheMiddle(kill, flow)))
      const server = await world.start({ env })
      await world.untilEnded(flows)
      for (const flow of flows) await checkFlow(world, server, flow, whole)
      await server.kill('SIGKILL')
    })

    inSystem('with a second server: it has the flows of the first going again within the lease', async (t) => {
      const { undisturbed } = await first
      const { world, server: dying } = await createFlowWorld(wholeFile, { databaseUrl: await createUnusedDatabase() })
      const [worker] = await world.query<{ id: string }>('select id from workers')
      const other = await world.start()
      const flows = await beginAll(world, dying, 'pair')
      await untilShareIsDone(world, flows, undisturbed, 0.4)
      const kill = await world.kill(dying)
      const hit = namesAmid(kill, flows).filter((name) => kill.owners.get(flows[name].id) === worker?.id)
      assert.ok(hit.length >= names.length / 2, `it was killed amid ${hit.join(', ')} only`)
      await world.untilEnded(Object.values(flows))
      const hitIds = hit.map((name) => flows[name].id)
      const ms = await takenOverAfter(world, hitIds, kill)
      t.diagnostic(`${hit.length} flows were going again ${ms} ms after the kill`)
      assert.ok(ms < LEASE_MS, `it took ${ms} ms`)
      await checkAll(world, other, flows, undisturbed)
      await other.kill('SIGKILL')
    })
  })
})

interface Undisturbed {
  wholes: Record<CrashFlowName, Whole>
  /** The number of reports that all flows together send to the ledger. */
  words: number
}

async function playUndisturbed(world: FlowWorld, server: Muster): Promise<Undisturbed> {
  const flows = await beginAll(world, server, 'undisturbed')
  await world.untilEnded(Object.values(flows))
  const wholes = names.map(async (name) => [name, await readUndisturbed(world, server, flows[name])])
  return { wholes: Object.fromEntries(await Promise.all(wholes)), words: wordsOf(world, flows) }
}

async function beginAll(world: FlowWorld, server: Muster, tag: string): Promise<Flows> {
  const begun = names.map(async (name) => [name, await world.begin(server, crashFlows[name], `${tag}.${name}`)])
  return Object.fromEntries(await Promise.all(begun))
}

async function checkAll(world: FlowWorld, server: Muster, flows: Flows, { wholes }: Undisturbed): Promise<void> {
  for (const name of names) await checkFlow(world, server, flows[name], wholes[name])
}

const wordsOf = ({ ledger }: FlowWorld, flows: Flows): number =>
  Object.values(flows).reduce((all, { id }) => all + ledger.wordsOf(id), 0)

/** Waits by the ledger, not by the clock: on a busy machine a timed kill would come before any work was done. */
async function untilShareIsDone(world: FlowWorld, flows: Flows, { words }: Undisturbed, share: number): Promise<void> {
  const what = `${Math.round(share * 100)} % of the work is done`
  await until(() => wordsOf(world, flows) >= words * share, what, 30_000)
}

const namesAmid = (kill: Kill, flows: Flows): CrashFlowName[] =>
  names.filter((name) => isInTheMiddle(kill, flows[name]))

/** True if another kill would not make a server give up a flow. */
async function isBearable({ query }: FlowWorld): Promise<boolean> {
  const rows = await query(
    `select from flow_runs where completed_at is null and crashes >= $1
     union all select from agent_runs where completed_at is null and crashes >= $1`,
    [MOST_CRASHES],
  )
  return rows.length === 0
}

async function countEndedAgents({ query }: FlowWorld, flows: readonly Begun[]): Promise<number> {
  const ids = flows.map(({ id }) => id)
  return (await query('select from agent_runs where completed_at is not null and flow_run_id = any($1)', [ids])).length
}

/** The time until the last of the flows had a new event. */
async function takenOverAfter({ query }: FlowWorld, ids: readonly string[], { readAt }: Kill): Promise<number> {
  const rows = await query<{ ms: number }>(
    `select (extract(epoch from min(at) - $2::timestamptz) * 1000)::int as ms from flow_events
     where run_id = any($1) and at > $2 group by run_id`,
    [ids, readAt],
  )
  assert.equal(rows.length, ids.length)
  return Math.max(...rows.map(({ ms }) => ms))
}

/** The same for the same seed (mulberry32). */
function createRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
