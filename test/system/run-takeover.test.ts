// Two servers over one PostgreSQL: one dies, sleeps, is full or loses its connections, and the other goes on with its
// runs. No living server is declared dead, no effect happens twice, and a client may ask either server.
import assert from 'node:assert/strict'
import { before, describe } from 'node:test'
import pg from 'pg'
import { createEmbeddedServer } from '../../src/db/embedded/embedded-server.ts'
import { silentLog } from '../../src/kernel/log.ts'
import { atEnd } from '../kit/at-end.ts'
import { createUnusedDatabase } from '../kit/database.ts'
import { createDatabaseProxy } from '../kit/database-proxy.ts'
import { makeFolder } from '../kit/embedded-kit.ts'
import type { Plan } from '../kit/fake-model.ts'
import { freePort } from '../kit/free-port.ts'
import { isLong } from '../kit/how-many.ts'
import { type Muster, postmasterPid } from '../kit/process.ts'
import {
  accept,
  cancel,
  createWorld,
  effect,
  fullWork,
  planned,
  times,
  untilEnded,
  type World,
} from '../kit/run-harness.ts'
import { type RunStream, readStream } from '../kit/run-stream.ts'
import { inSystem, inTest as test } from '../kit/tiers.ts'
import { until } from '../kit/until.ts'

const wholeFile = { after: atEnd }
const done = { say: 'It is done.' }

/** Each pair of servers has a database of its own. */
async function createSharedWorld(t = wholeFile): Promise<World> {
  return createWorld(t, { databaseUrl: await createUnusedDatabase() })
}

describe('two servers over one database', { concurrency: 2 }, () => {
  test('after one of two servers is killed, the other continues all its runs before their lease ends', async (t) => {
    const world = await createSharedWorld()
    const { model } = world
    const first = await world.start()
    model.hold('answer')
    const ids = await accept(world, first, plansOf(20, world, 'answer'))
    await until(() => model.held('answer') === 20, 'all are in mid-answer')
    const [dead] = await untilWorkers(world, 1)
    const second = await world.start()
    const killedAt = await now(world)
    await first.kill('SIGKILL')
    await until(() => model.requests.length === 40 && model.held('answer') === 20, 'all are in mid-answer again')
    const [row] = await world.query<{ seconds: number; runs: number }>(
      `select extract(epoch from max(at) - $2)::float8 as seconds, count(distinct run_id)::int as runs from run_events
       where run_id = any($1) and kind = 'step.restarted'`,
      [ids, killedAt],
    )
    assert.equal(row?.runs, 20)
    t.diagnostic(`20 runs were going again ${row?.seconds.toFixed(2)} s after the kill`)
    // The lease is 10 s. On a quiet machine it takes 3 s, beside other tests twice as long.
    assert.ok((row?.seconds ?? 10) < 10, `it took ${row?.seconds} s`)
    assert.ok(!(await workers(world)).includes(dead ?? ''))
    model.release('answer')
    await finishAndCheck(world, second, ids, { crashes: 1 })
  })

  inSystem('20 runs given to a server with one free slot start on the other server', async (t) => {
    const world = await createSharedWorld()
    const { model } = world
    const full = await world.start({ env: { MUSTER_CONCURRENCY: '5' } })
    model.hold('long')
    model.hold('short')
    const long = await accept(world, full, plansOf(4, world, 'long'))
    await until(() => model.held('long') === 4, 'four slots are taken')
    const other = await world.start()
    const short = await accept(world, full, plansOf(20, world, 'short'))
    // Five slots cannot hold 24 runs, so the other server has all but one of the 20.
    await until(() => model.held('short') === 20, 'all 20 are under way')
    const [row] = await world.query<{ ms: number }>(
      'select max(extract(epoch from started_at - created_at) * 1000)::int as ms from agent_runs where id = any($1)',
      [short],
    )
    t.diagnostic(`the last of 20 started ${row?.ms} ms after it was accepted`)
    model.release('short')
    await untilEnded(world, short)
    assert.equal(model.held('long'), 4, 'a long one has moved')
    model.release('long')
    await finishAndCheck(world, other, [...long, ...short], { crashes: 0 })
  })

  inSystem('the runs of a server that sleeps past its lease are taken over, and no effect happens twice', async () => {
    const world = await createSharedWorld()
    const { model, ledger } = world
    const env = { MUSTER_LEASE: '2000' }
    const sleeper = await world.start({ env })
    for (const name of ['pay', 'post']) ledger.hold(name)
    model.hold('answer')
    const plans = ['pay', 'post'].map((name) => single(world, name, name))
    const ids = await accept(world, sleeper, [...plans, fullWork(world, 'answer')])
    const isHanging = (): boolean => ledger.held('pay') + ledger.held('post') + model.held('answer') === 3
    await until(isHanging, 'all three hang')
    const other = await world.start({ env })
    const asleep = await workerOf(world, ids)
    sleeper.signal('SIGSTOP')
    await until(async () => !(await workers(world)).includes(asleep), 'it was declared dead', 30_000)
    await until(() => ledger.callsOf('pay').length === 2, 'the keyed call is made again')
    sleeper.signal('SIGCONT')
    await until(() => /goes on under a new name|could not be renewed/.test(sleeper.stderr()), 'it noticed')
    for (const name of ['pay', 'post']) ledger.release(name)
    model.release('answer')
    await untilEnded(world, ids)
    const runs = await world.check(other, ids)
    assert.deepEqual(
      ids.map((id) => [runs.get(id)?.status, runs.get(id)?.pause_reason, runs.get(id)?.crashes]),
      [
        ['completed', null, 1],
        ['paused', 'outcome_unknown', 1],
        ['completed', null, 1],
      ],
    )
    await requireWorking(world, sleeper)
    for (const server of [sleeper, other]) await server.stop()
  })

  const beforeCall = ['right before a call', 'tool.before'] as const
  const beforeCommit = ['between an answer and its commit', 'llm.after_reply_before_commit'] as const
  for (const [where, point] of isLong ? [beforeCall, beforeCommit] : [beforeCall]) {
    inSystem(`the work of a server that falls asleep ${where} is done once, by the other server`, async () => {
      const world = await createSharedWorld()
      const env = { MUSTER_LEASE: '2000' }
      const other = await world.start({ env: { ...env, MUSTER_CONCURRENCY: '1' } })
      // The other server is busy until the sleeper sleeps, so that the sleeper claims the run.
      world.model.hold('busy')
      const busy = await accept(world, other, [fullWork(world, 'busy')])
      await until(() => world.model.held('busy') === 1, 'the other is busy')
      const sleeper = await world.start({ env, faults: `${point}=stop` })
      const ids = await accept(world, other, [single(world, 'pay', 'pay')])
      await until(async () => (await ownersOf(world, ids))[0] !== null, 'the sleeper has it')
      const asleep = await workerOf(world, ids)
      await until(async () => !(await workers(world)).includes(asleep), 'it was declared dead', 30_000)
      world.model.release('busy')
      await untilEnded(world, ids)
      assert.equal(world.ledger.callsOf('pay').length, 1)
      sleeper.signal('SIGCONT')
      await until(() => /may belong to another process/.test(sleeper.stderr()), 'the sleeper has let go of it')
      await finishAndCheck(world, other, [...busy, ...ids], {})
      await requireWorking(world, sleeper)
      await sleeper.stop()
    })
  }

  inSystem('an owner that returns after its takeover while the new owner is killed goes on with its runs', async () => {
    const world = await createSharedWorld()
    const { ledger } = world
    const env = { MUSTER_LEASE: '2000' }
    const owner = await world.start({ env })
    ledger.hold('pay')
    const ids = await accept(world, owner, [single(world, 'pay', 'pay'), fullWork(world)])
    await until(() => ledger.held('pay') === 1, 'the call hangs')
    const heir = await world.start({ env })
    owner.signal('SIGSTOP')
    await until(() => ledger.held('pay') === 2, 'the heir makes the call again', 30_000)
    await heir.kill('SIGKILL')
    owner.signal('SIGCONT')
    await until(() => ledger.callsOf('pay').length === 3, 'the owner is back and makes it once more', 30_000)
    ledger.release('pay')
    await untilEnded(world, ids)
    const runs = await world.check(owner, ids)
    assert.deepEqual([runs.get(ids[0] ?? '')?.status, runs.get(ids[0] ?? '')?.crashes], ['completed', 2])
    await owner.stop()
  })

  inSystem(
    'after every connection to the database is cut, twice, no server is declared dead and all runs complete',
    async () => {
      const world = await createSharedWorld()
      const { model } = world
      const servers = [await world.start(), await world.start()] as const
      const known = await untilWorkers(world, 2)
      const ids: string[] = []
      for (const round of ['first', 'second']) {
        model.hold(round)
        const plans = plansOf(20, world, round)
        ids.push(...(await accept(world, servers[0], plans.slice(0, 10))))
        ids.push(...(await accept(world, servers[1], plans.slice(10))))
        await until(() => model.held(round) === 20, 'all are in mid-answer')
        await world.query(
          'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
        )
        model.release(round)
        await untilEnded(world, ids)
      }
      assert.deepEqual(await workers(world), known)
      await finishAndCheck(world, servers[1], ids, { crashes: 0 })
      for (const server of servers) for (const id of known) assert.equal(server.stderr().includes(id), false)
    },
  )

  inSystem(
    'after the database restarts under two servers no server is declared dead and all runs complete',
    async (t) => {
      const folder = await makeFolder(t)
      const database = createEmbeddedServer({ dataDir: folder.path, log: silentLog })
      folder.defer(() => database.stop())
      await database.start()
      const world = await createWorld(t, { databaseUrl: database.url() })
      const servers = [await world.start(), await world.start()] as const
      const known = await untilWorkers(world, 2)
      world.model.hold('answer')
      const ids = await accept(world, servers[0], plansOf(10, world, 'answer'))
      ids.push(...(await accept(world, servers[1], plansOf(10, world, 'answer'))))
      await until(() => world.model.held('answer') === 20, 'all are in mid-answer')
      await database.stop()
      world.model.release('answer')
      await database.start()
      await untilEnded(world, ids)
      assert.deepEqual(await workers(world), known)
      await finishAndCheck(world, servers[0], ids, { crashes: 0 })
      for (const server of servers) await server.kill('SIGKILL')
    },
  )

  inSystem('after one of two servers is stopped, the other continues its runs, which count no crash', async (t) => {
    const world = await createSharedWorld()
    const { model } = world
    const first = await world.start()
    model.hold('answer')
    const ids = await accept(world, first, plansOf(20, world, 'answer'))
    await until(() => model.held('answer') === 20, 'all are in mid-answer')
    const second = await world.start()
    first.signal('SIGTERM')
    // The calls have some time to end; then they are cut off and made again by the other server.
    await until(() => model.requests.length === 40, 'the other has made all calls again', 30_000)
    assert.deepEqual(await first.exited, { code: 0, signal: null })
    model.release('answer')
    t.diagnostic(`${model.requests.filter(({ state }) => state === 'cut').length} calls were cut off`)
    await finishAndCheck(world, second, ids, { crashes: 0 })
  })

  inSystem(
    'after the embedded database is killed and comes back, the server keeps its runs, and they complete',
    async (t) => {
      const world = await createWorld(t)
      const server = await world.start()
      world.model.hold('answer')
      const ids = await accept(world, server, plansOf(20, world, 'answer'))
      await until(() => world.model.held('answer') === 20, 'all are in mid-answer')
      const known = await untilWorkers(world, 1)
      const before = await startTime(world)
      process.kill(await postmasterPid(server), 'SIGKILL')
      await until(async () => (await startTime(world)) > before, 'another database was started', 30_000)
      world.model.release('answer')
      await untilEnded(world, ids)
      assert.deepEqual(await workers(world), known)
      await finishAndCheck(world, server, ids, { crashes: 0 })
    },
  )

  test('after the reply to an append or a claim is cut, its commit is found and not repeated', async (t) => {
    const world = await createSharedWorld()
    const proxy = createDatabaseProxy(t, await world.databaseUrl(), await freePort())
    await proxy.listen()
    const server = await world.start({ databaseUrl: proxy.url })
    proxy.cutAfter('journal_append')
    const ids = await accept(world, server, plansOf(10, world))
    await untilEnded(world, ids)
    const ofAppends = proxy.cuts()
    assert.ok(ofAppends >= 3, `only ${ofAppends} replies were cut`)
    t.diagnostic(`${ofAppends} replies were cut`)
    // Runs whose claim got no answer have no owner, and are claimed again.
    proxy.cutAfter('run_claim')
    const claimed = await accept(world, server, plansOf(10, world))
    await until(() => proxy.cuts() >= ofAppends + 2, 'two claims were cut')
    proxy.cutAfter(null)
    await finishAndCheck(world, server, [...ids, ...claimed], { crashes: 0 })
  })

  inSystem('after a connection is cut during an append, the retry waits and writes no event twice', async (t) => {
    const world = await createSharedWorld()
    const { model } = world
    const proxy = createDatabaseProxy(t, await world.databaseUrl(), await freePort())
    await proxy.listen()
    const server = await world.start({ databaseUrl: proxy.url })
    model.hold('answer')
    const ids = await accept(world, server, plansOf(1, world, 'answer'))
    await until(() => model.held('answer') === 1, 'it is in mid-answer')
    const lock = new pg.Client({ connectionString: await world.databaseUrl() })
    await lock.connect()
    t.after(() => lock.end())
    await lock.query('begin')
    await lock.query('select from agent_runs where id = $1 for update', ids)
    const waiting = async (): Promise<number> => {
      const rows = await world.query(
        `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      )
      return rows.length
    }
    model.release('answer')
    await until(async () => (await waiting()) === 1, 'the append waits for the lock')
    proxy.cutAll()
    await until(async () => (await waiting()) === 2, 'it is tried again')
    await lock.query('commit')
    await untilEnded(world, ids)
    await finishAndCheck(world, server, ids, { crashes: 0 })
  })
})

describe('two servers that live', () => {
  let world: World
  let one: Muster
  let other: Muster

  before(async () => {
    world = await createSharedWorld()
    one = await world.start()
  })

  test('a cancel on one server ends the model call of the other within a second, and keeps the text', async (t) => {
    const { model } = world
    model.hold('cancel')
    const [id = ''] = await accept(world, one, [fullWork(world, 'cancel')])
    await until(() => model.held('cancel') === 1, 'it is in mid-answer')
    other = await world.start()
    const askedAt = performance.now()
    const answer = await cancel(world, other, id)
    assert.deepEqual([answer.status, answer.body.status], [200, 'cancelled'], answer.text)
    await until(() => model.requests.at(-1)?.cutAt !== null, 'the model sees its connection closed')
    const tookMs = (model.requests.at(-1)?.cutAt ?? Number.POSITIVE_INFINITY) - askedAt
    t.diagnostic(`the model call was aborted after ${Math.round(tookMs)} ms`)
    assert.ok(tookMs < 1_000, `it took ${tookMs} ms`)
    assert.equal(answer.body.summary, 'First I pay ')
    model.release('cancel')
    await world.check(other, [id])
  })

  test('a stream on one server shows tokens and events of the other in order, and can go on at the other', async () => {
    const { model } = world
    const path = (id: string): string => `/api/projects/${world.projectId}/runs/${id}/events`
    model.hold('stream')
    const [id = ''] = await accept(world, one, [fullWork(world, 'stream')])
    await until(() => model.held('stream') === 1, 'it is in mid-answer')
    const live = readStream(other, path(id), { until: sawTokens })
    const seen = await live
    assert.deepEqual(
      seen.events.map(({ id: seq }) => seq),
      [1],
    )
    const rest = readStream(other, path(id), { after: 1 })
    const sawAgain = await readStream(other, path(id), { after: 1, until: sawTokens })
    assert.equal(textOf(sawAgain, 1), 'First I pay ', 'the text so far comes again from its start')
    model.release('stream')
    const all = [...seen.events, ...(await rest).events]
    const whole = await readStream(one, path(id))
    assert.deepEqual(all, whole.events)
    requireTokensInOrder(await rest)
    await untilEnded(world, [id])
    await world.check(one, [id])
  })
})

const sawTokens = (stream: RunStream): boolean => textOf(stream, 1) === 'First I pay '

function textOf({ all }: RunStream, step: number): string {
  return all.flatMap(({ event, data }) => (event === 'token' && data.step === step ? [String(data.text)] : [])).join('')
}

/** Asserts that the tokens of a step come before its end, without gap, and form the beginning of its text. */
function requireTokensInOrder({ all }: RunStream): void {
  const texts = new Map<unknown, string>()
  for (const { event, data } of all) {
    const text = texts.get(data.step) ?? ''
    if (event === 'token') {
      assert.equal(data.offset, text.length)
      texts.set(data.step, text + String(data.text))
    }
    if (event === 'step.completed') {
      assert.ok(String(data.text).startsWith(text), `"${text}" is no beginning of "${data.text}"`)
    }
  }
  assert.ok(texts.size > 0, 'there were no tokens')
}

const plansOf = (count: number, world: World, gate?: string): Plan[] => times(count, () => fullWork(world, gate))

const single = (world: World, tool: string, label: string): Plan =>
  planned({ say: 'I do it now. ', calls: [effect(world, tool, label)] }, done)

async function finishAndCheck(
  world: World,
  server: Muster,
  ids: readonly string[],
  expected: { crashes?: number },
): Promise<void> {
  await untilEnded(world, ids)
  const runs = await world.check(server, ids)
  for (const id of ids) {
    const run = runs.get(id)
    assert.equal(run?.status, 'completed', `${run?.error_code} ${run?.pause_reason}`)
    if (expected.crashes !== undefined) assert.equal(run?.crashes, expected.crashes)
  }
}

async function requireWorking(world: World, server: Muster): Promise<void> {
  const ids = await accept(world, server, [fullWork(world)])
  await untilEnded(world, ids)
}

async function workers(world: World): Promise<string[]> {
  const rows = await world.query<{ id: string }>('select id from workers order by id')
  return rows.map(({ id }) => id)
}

/** The live servers, after the servers of earlier tests are forgotten. */
async function untilWorkers(world: World, count: number): Promise<string[]> {
  await until(async () => (await workers(world)).length === count, `${count} servers live`)
  return workers(world)
}

async function ownersOf(world: World, ids: readonly string[]): Promise<(string | null)[]> {
  const sql = 'select distinct owner from agent_runs where id = any($1)'
  return (await world.query<{ owner: string | null }>(sql, [ids])).map(({ owner }) => owner)
}

/** The single owner of all these runs. */
async function workerOf(world: World, ids: readonly string[]): Promise<string> {
  const [owner, ...others] = await ownersOf(world, ids)
  assert.equal(others.length, 0, 'they have several owners')
  return owner ?? assert.fail('nobody owns them')
}

async function startTime(world: World): Promise<number> {
  const rows = await world.query<{ at: Date }>('select pg_postmaster_start_time() as at').catch(() => [])
  return rows[0]?.at.getTime() ?? 0
}

async function now(world: World): Promise<Date> {
  const [row] = await world.query<{ now: Date }>('select clock_timestamp() as now')
  return row?.now ?? assert.fail()
}
