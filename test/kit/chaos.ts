// Three servers over one PostgreSQL, under load, with random failures: listening connections that only the database's
// side loses, cut connections, restarts of the database, stops and kills of two of the servers. Meanwhile people halt
// the project, cancel runs and answer questions. The acts and their times depend only on the seed; their effect on the
// servers depends on the machine.
import assert from 'node:assert/strict'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { createEmbeddedServer } from '../../src/db/embedded/embedded-server.ts'
import { silentLog } from '../../src/kernel/log.ts'
import { createDatabaseProxy, type DatabaseProxy } from './database-proxy.ts'
import type { Plan } from './fake-model.ts'
import { freePort } from './free-port.ts'
import type { Gates } from './gates.ts'
import { type Cleanup, isReady, type Muster, makeFolder } from './process.ts'
import { createRandom, type Random } from './random.ts'
import { createWorld, effect, planned, spawning, type World } from './run-harness.ts'
import { until } from './until.ts'

export interface ChaosReport {
  world: World
  /** The server that is never stopped or killed. */
  server: Muster
  servers: readonly Muster[]
  accepted: readonly string[]
  /** The number of times each act was begun. A kill of a server that is down does nothing. */
  acts: ReadonlyMap<string, number>
  /** The acts, with their times in seconds. */
  story: readonly string[]
}

const OPEN_AT_ONCE = 12
const QUIET_WITHIN_MS = 120_000
const env = { MUSTER_LEASE: '2000', MUSTER_DRAIN: '3000', MUSTER_RATE_LIMIT: '0', MUSTER_POOL: '10' }

interface Place {
  proxy: DatabaseProxy
  /** Null from the kill until the new server is ready. */
  server: Muster | null
}

/**
 * The acts go on for `forMs`. If fewer than `fewest` runs were accepted by then, or no run was recovered after a crash,
 * they go on for up to three times as long: half a minute may be too short on a busy machine.
 */
export async function playChaos(
  t: Cleanup,
  { seed, forMs, fewest }: { seed: number; forMs: number; fewest: number },
): Promise<ChaosReport> {
  const ofLoad = createRandom(seed)
  const ofPeople = createRandom(seed + 1)
  const ofActs = createRandom(seed + 2)
  // The kit's sweep finds this server in the folder if the test process ends early.
  const dataDir = join(await makeFolder(t), 'data')
  await mkdir(dataDir)
  const database = createEmbeddedServer({ dataDir, log: silentLog })
  t.after(() => database.stop())
  await database.start()
  const world = await createWorld(t, { databaseUrl: database.url() })
  const places: Place[] = []
  for (let n = 0; n < 3; n++) {
    const proxy = createDatabaseProxy(t, database.url(), await freePort())
    await proxy.listen()
    places.push({ proxy, server: await world.start({ databaseUrl: proxy.url, env }) })
  }
  const [spared, ...others] = places as [Place, ...Place[]] // three were made
  const server = spared.server ?? assert.fail()
  const startedAt = performance.now()
  const story: string[] = []
  const acts = new Map<string, number>()
  const accepted: string[] = []
  const delays = createDelays(t)
  let isOver = false
  let hasFailed = false
  let isRestarting = false

  const tell = (what: string): void => {
    story.push(`${((performance.now() - startedAt) / 1_000).toFixed(1)} ${what}`)
  }
  const base = `/api/projects/${world.projectId}`

  /** Null if the request was refused, as by a server that is without its database at this moment. */
  async function ask<Body>(route: string, body?: object): Promise<Body | null> {
    const answer = await server.call<Body>(route, body ? { body } : {}).catch(() => null)
    if (!answer) return null
    assert.ok(answer.status < 500 || answer.status === 503, `${route}: ${answer.text}`)
    return answer.status < 300 ? answer.body : null
  }

  // Each act but `answer` has a random source of its own, so that its number of choices does not change another act.
  const doings: Record<string, (random: Random) => Promise<unknown>> = {
    silence: async (random) => random.pick(places).proxy.silence('muster-listener'),
    cut: async (random) => random.pick(places).proxy.cutAll(),
    restart: async (random) => {
      if (isRestarting) return
      isRestarting = true
      await database.stop()
      await wait(random.between(0, 1_500))
      await database.start()
      isRestarting = false
    },
    kill: (random) => end(random, random.pick(others), 'SIGKILL'),
    stop: (random) => end(random, random.pick(others), 'SIGTERM'),
    halt: async (random) => {
      await ask(`POST ${base}/halt`, {})
      await wait(random.between(100, 1_500))
      await unhalt()
    },
    cancel: async (random) => {
      const runs = await ask<{ items: { id: string; status: string }[] }>(`GET ${base}/runs?limit=50`)
      const open = runs?.items.filter(
        ({ status }) => status === 'running' || status === 'queued' || status === 'paused',
      )
      if (open && open.length > 0) await ask(`POST ${base}/runs/${random.pick(open).id}/cancel`, {})
    },
    answer: () => answerQuestions(0.6),
  }
  const weights = { silence: 3, cut: 2, restart: 1, kill: 3, stop: 2, halt: 2, cancel: 2, answer: 6 }
  const urn = Object.entries(weights).flatMap(([name, count]) => Array.from({ length: count }, () => name))

  async function end(random: Random, place: Place, signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    const { server: ended } = place
    if (!ended) return
    place.server = null
    const exit = await ended.kill(signal)
    if (signal === 'SIGTERM') assert.deepEqual(exit, { code: 0, signal: null }, ended.stderr())
    await wait(random.between(0, 1_500))
    place.server = await startAgain(place)
  }

  /** A start may fall into a restart of the database; its operator starts the server again. */
  async function startAgain({ proxy }: Place): Promise<Muster> {
    for (;;) {
      if (hasFailed) throw new Error('The test is over: no server is started again.')
      const started = await world.spawn({ databaseUrl: proxy.url, env })
      await until(async () => !started.isRunning() || (await isReady(started)), 'a server is ready', QUIET_WITHIN_MS)
      if (started.isRunning()) return started
    }
  }

  async function unhalt(): Promise<void> {
    await until(async () => (await ask(`POST ${base}/unhalt`, {})) !== null, 'the project goes on', QUIET_WITHIN_MS)
  }

  async function answerQuestions(share: number): Promise<void> {
    const tasks = await ask<{ items: { id: string; description: string }[] }>(
      `GET ${base}/tasks?kind=escalation&status=pending&limit=50`,
    )
    for (const { id, description } of tasks?.items ?? []) {
      if (!ofPeople.chance(share)) continue
      // A person who is asked about the outcome of a call looks into the ledger.
      const label = /"label": "([^"]+)"/.exec(description)?.[1]
      const word = label === undefined ? 'Yes.' : world.ledger.effects(label) > 0 ? 'done' : 'not_done'
      await ask(`PATCH ${base}/tasks/${id}`, { status: 'completed', result: word })
    }
  }

  /** Each request is repeated until it is answered, under one key. */
  async function keepBusy(): Promise<void> {
    const open = new Set<string>()
    while (!isOver) {
      const plan = randomPlan(world, ofLoad, delays)
      const path = `POST ${base}/agents/${world.agentId}/trigger`
      const call = { body: { input: plan }, headers: { prefer: 'respond-async', 'idempotency-key': plan.tag } }
      let id: string | undefined
      await until(
        async () => {
          const at = ofPeople.pick(places).server ?? server
          const answer = await at.call<{ id: string }>(path, call).catch(() => null)
          id = answer?.status === 202 ? answer.body.id : undefined
          return id !== undefined
        },
        'a run is accepted',
        QUIET_WITHIN_MS,
      )
      if (id === undefined) continue
      accepted.push(id)
      open.add(id)
      while (!isOver && open.size >= OPEN_AT_ONCE) {
        await wait(300)
        for (const known of open) {
          const run = await ask<{ completed_at: string | null }>(`GET ${base}/runs/${known}`)
          if (run?.completed_at) open.delete(known)
        }
      }
    }
  }

  async function goesOn(): Promise<boolean> {
    const lasted = performance.now() - startedAt
    if (lasted < forMs) return true
    if (lasted > 3 * forMs) return false
    return accepted.length < fewest || !(await wasRecovered())
  }

  /** False as well if the database is away at this moment. */
  const wasRecovered = (): Promise<boolean> =>
    world.query(`select from run_events where kind = 'run.recovered' limit 1`).then(
      (rows) => rows.length > 0,
      () => false,
    )

  try {
    return await play()
  } catch (error) {
    isOver = true
    hasFailed = true
    const said = places.map(({ server }) => server?.stderr().split('\n').slice(-15).join('\n')).join('\n\n')
    throw new Error(`${error instanceof Error ? error.message : error}\nIt was so:\n${story.join('\n')}\n${said}`, {
      cause: error,
    })
  }

  async function play(): Promise<ChaosReport> {
    const loading = keepBusy()
    const underWay: Promise<unknown>[] = []
    // Any failure ends the whole test at once.
    const { promise: failed, reject: fail } = Promise.withResolvers<never>()
    failed.catch(() => {})
    loading.catch(fail)
    while (await goesOn()) {
      await Promise.race([wait(ofActs.between(200, 1_800)), failed])
      const name = ofActs.pick(urn)
      const random = createRandom(ofActs.below(2 ** 31))
      tell(name)
      acts.set(name, (acts.get(name) ?? 0) + 1)
      const act = Promise.race([doings[name]?.(random), failed])
      act.catch(fail)
      underWay.push(act)
    }
    isOver = true
    await Promise.all([loading, ...underWay])
    tell('quiet')
    delays.stop()
    await unhalt()
    const quietSince = performance.now()
    for (let open = await openRuns(world); open.length > 0; open = await openRuns(world)) {
      const lasted = performance.now() - quietSince
      if (lasted > QUIET_WITHIN_MS) assert.fail(`these runs do not end: ${JSON.stringify(open, null, 1)}`)
      await answerQuestions(1)
      await wait(100)
    }
    const alive = places.flatMap((place) => place.server ?? [])
    return { world, server, servers: alive, accepted, acts, story }
  }
}

async function openRuns(world: World): Promise<object[]> {
  return world.query(
    `select id, status, pause_reason, waits_for, owner, ready_at, open_children, crashes, cancel_requested_at,
       (select string_agg(kind, ' ' order by seq) from run_events e where e.run_id = r.id) as kinds
     from agent_runs r where project_id = $1 and completed_at is null`,
    [world.projectId],
  )
}

interface Delays {
  /** Each request under this name waits for this time. */
  add(gates: Gates, name: string, ms: number): string
  /** No request waits from now on. */
  stop(): void
}

function createDelays(t: Cleanup): Delays {
  const held: { gates: Gates; name: string; ms: number; since: number | null }[] = []
  const timer = setInterval(() => {
    const now = performance.now()
    for (const one of held) {
      if (one.since === null && one.gates.held(one.name) > 0) one.since = now
      if (one.since !== null && now - one.since >= one.ms) one.gates.release(one.name)
    }
  }, 20)
  const stop = (): void => {
    clearInterval(timer)
    for (const { gates, name } of held) gates.release(name)
  }
  t.after(async () => stop())
  return {
    add: (gates, name, ms) => {
      gates.hold(name)
      held.push({ gates, name, ms, since: null })
      return name
    },
    stop,
  }
}

/** One to three steps with calls of every kind, some of them slow, questions, and sub-runs that do the same. */
function randomPlan(world: World, random: Random, delays: Delays, depth = 0): Plan {
  const plan = planned()
  const steps = 1 + random.below(3)
  for (let step = 1; step <= steps; step++) {
    const calls = Array.from({ length: 1 + random.below(2) }, () => randomCall(world, random, delays, depth))
    const isSlow = random.chance(0.4)
    plan.steps.push({
      say: `Step ${step} of many words, which come one after the other. `,
      calls: calls.flat(),
      ...(isSlow ? { gate: delays.add(world.model, `${plan.tag}/${step}`, random.between(50, 1_500)) } : {}),
    })
  }
  plan.steps.push({ say: 'All of it is done.' })
  return plan
}

function randomCall(world: World, random: Random, delays: Delays, depth: number) {
  const name = random.pick(['pay', 'pay', 'look', 'post', 'post', 'ask_human', 'spawn_agent'])
  // The same question three times in a row would be a doom loop.
  if (name === 'ask_human') return [{ name, args: { question: `May I go on with ${random.below(2 ** 31)}?` } }]
  if (name === 'spawn_agent') {
    return depth === 0 ? spawning(randomPlan(world, random, delays, depth + 1)) : [effect(world, 'look')]
  }
  const call = effect(world, name)
  if (random.chance(0.3)) delays.add(world.ledger, String(call.args.label), random.between(50, 1_500))
  return [call]
}
