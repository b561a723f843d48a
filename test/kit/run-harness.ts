// An environment in which servers are killed: a provider and a ledger that live in the test process, a project with one
// agent, and servers that are started, killed and started again over the same database.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { runningUrl } from '../../src/db/embedded/running-url.ts'
import { checkInvariants } from './check-invariants.ts'
import { type FakeModel, type Plan, startFakeModel } from './fake-model.ts'
import { type Ledger, startLedger } from './ledger-server.ts'
import { made, ONE_FOR_ALL_SERVERS } from './made.ts'
import {
  type Cleanup,
  type Muster,
  type MusterOptions,
  makeFolder,
  repository,
  spawnMuster,
  startMuster,
} from './process.ts'
import type { RunRecord } from './run-record.ts'
import { withClient } from './test-server.ts'
import { until } from './until.ts'

export interface World {
  readonly model: FakeModel
  readonly ledger: Ledger
  readonly projectId: string
  readonly agentId: string
  /** Starts another server over this database. */
  start(options?: LifeOptions): Promise<Muster>
  /** Starts a server without waiting, so that it may be killed before it is ready. */
  spawn(options?: LifeOptions): Promise<Muster>
  databaseUrl(): Promise<string>
  query<Row extends object>(sql: string, values?: unknown[]): Promise<Row[]>
  /** Checks the promise after all runs have ended. */
  check(server: Muster, accepted: readonly string[]): Promise<Map<string, RunRecord>>
}

export interface LifeOptions {
  faults?: string
  env?: Record<string, string>
  databaseUrl?: string
}

const tools = [
  'pay',
  'pay_without_key',
  'post',
  'look',
  'die',
  'throw_later',
  'reject_unseen',
  'spawn_agent',
  'ask_human',
  'object_create',
  'object_update',
]

/**
 * Without `databaseUrl` each server uses the embedded database of one data folder, as for a newcomer; with
 * `databaseUrl` each server has a data folder of its own.
 */
export async function createWorld(t: Cleanup, external?: { databaseUrl: string }): Promise<World> {
  const dataDir = external ? null : join(await makeFolder(t), 'data')
  const model = await startFakeModel(t)
  const ledger = await startLedger(t)
  const base = { MUSTER_APP: join(repository, 'test/fixtures/ledger-app.ts'), MUSTER_DEMO: 'off' }

  const life = ({ faults, env = {}, databaseUrl }: LifeOptions = {}): MusterOptions => ({
    ...(dataDir === null ? {} : { dataDir }),
    ...(external ? { databaseUrl: databaseUrl ?? external.databaseUrl } : {}),
    env: {
      ...base,
      ...(external ? ONE_FOR_ALL_SERVERS : {}),
      ...env,
      ...(faults === undefined ? {} : { MUSTER_FAULTS: faults }),
    },
  })
  const start: World['start'] = (options) => startMuster(t, life(options))
  const databaseUrl = async (): Promise<string> => {
    if (external) return external.databaseUrl
    return (await runningUrl(dataDir ?? '')) ?? assert.fail('the database does not answer')
  }

  const first = await start()
  const provider = { name: 'planned', kind: 'openai-compatible', base_url: model.url, api_key: 'any' }
  await made(first, 'POST /api/providers', provider)
  const projectId = await made(first, 'POST /api/projects', { name: 'a world' })
  const agent = { name: 'worker', model: { provider: 'planned', name: 'planned' }, tools }
  const agentId = await made(first, `POST /api/projects/${projectId}/agents`, agent)
  await first.kill('SIGKILL')

  return {
    model,
    ledger,
    projectId,
    agentId,
    start,
    spawn: (options) => spawnMuster(t, ['start'], life(options)),
    databaseUrl,
    query: async <Row extends object>(sql: string, values: unknown[] = []) =>
      withClient(await databaseUrl(), async (db) => (await db.query<Row>(sql, values)).rows),
    check: async (server, accepted) =>
      checkInvariants({ databaseUrl: await databaseUrl(), server, projectId, accepted, ledger, model }),
  }
}

/** Environments that are made once and lent to one test at a time. The runs of earlier tests are checked every time. */
export function createWorldPool(t: Cleanup, size: number): (use: (world: World) => Promise<void>) => Promise<void> {
  const free = times(size, () => createWorld(t))
  return async (use) => {
    const taken = free.pop() ?? createWorld(t)
    await use(await taken)
    free.push(taken)
  }
}

export interface Call {
  name: string
  args: Record<string, unknown>
}

/** A tool call of a plan. Its label is unique in the environment. */
export function effect(world: World, name: string, label: string = randomUUID()): Call {
  return { name, args: { url: world.ledger.url, label } }
}

/** Pays, looks and posts in three steps, and says that it has. */
export function fullWork(world: World, gate?: string): Plan {
  return planned(
    { say: 'First I pay and look. ', calls: [effect(world, 'pay'), effect(world, 'look')], ...(gate ? { gate } : {}) },
    { say: 'Now I post a letter. ', calls: [effect(world, 'post')] },
    { say: 'All of it is done.' },
  )
}

export const planned = (...steps: Plan['steps']): Plan => ({ tag: randomUUID(), steps })

export const spawning = (...children: Plan[]): Call[] =>
  children.map((child) => ({ name: 'spawn_agent', args: { agent: 'worker', input: child } }))

export const labelsOf = (plan: Plan, tool: string): string[] =>
  plan.steps.flatMap(({ calls = [] }) => calls.flatMap(({ name, args }) => (name === tool ? [String(args.label)] : [])))

export const times = <Value>(count: number, make: () => Value): Value[] => Array.from({ length: count }, make)

/**
 * Requests the runs, each under its own Idempotency-Key, and ignores the answers, because the server may die meanwhile.
 */
export async function offer(world: World, muster: Muster, plans: readonly Plan[]): Promise<void> {
  await Promise.allSettled(plans.map((plan) => ask(world, muster, plan)))
}

/** Requests the same runs, which may exist already, and keeps the answers for the checks. */
export async function accept(world: World, muster: Muster, plans: readonly Plan[]): Promise<string[]> {
  const answers = await Promise.all(plans.map((plan) => askPatiently(world, muster, plan)))
  for (const { status, text } of answers) assert.equal(status, 202, text)
  const ids = answers.map(({ body }) => body.id)
  assert.equal(new Set(ids).size, plans.length, 'two requests were answered with the same run')
  return ids
}

const ask = (world: World, muster: Muster, plan: Plan) =>
  muster.call<{ id: string }>(`POST /api/projects/${world.projectId}/agents/${world.agentId}/trigger`, {
    body: { input: plan },
    headers: { prefer: 'respond-async', 'idempotency-key': plan.tag },
  })

/**
 * Tries again like a client that is told to: fifty requests at once may be too many for a server that has just started.
 */
async function askPatiently(world: World, muster: Muster, plan: Plan) {
  let answer = await ask(world, muster, plan)
  await until(async () => {
    if (answer.status === 503) answer = await ask(world, muster, plan)
    return answer.status !== 503
  }, 'the request is taken')
  return answer
}

export async function untilKilled(muster: Muster): Promise<void> {
  await until(() => !muster.isRunning(), `it was killed:\n${muster.stderr()}`, 45_000)
  assert.deepEqual(await muster.exited, { code: null, signal: 'SIGKILL' }, muster.stderr())
}

/** Waits until these runs, and all runs below them, have ended. */
export async function untilEnded(world: World, ids: readonly string[], withinMs = 60_000): Promise<void> {
  const url = await world.databaseUrl()
  const open = 'select from agent_runs where completed_at is null and (id = any($1) or ancestors && $1::uuid[])'
  await withClient(url, (db) =>
    until(async () => (await db.query(open, [ids])).rowCount === 0, 'all runs have ended', withinMs),
  )
}

export async function runOf(world: World, plan: Plan): Promise<string> {
  const rows = await world.query<{ id: string }>(`select id from agent_runs where input->>'tag' = $1`, [plan.tag])
  assert.equal(rows.length, 1, 'there is not exactly one run of the plan')
  return rows[0]?.id ?? assert.fail()
}

export const cancel = (world: World, muster: Muster, runId: string) =>
  muster.call<{ id: string; status: string; summary: string | null }>(
    `POST /api/projects/${world.projectId}/runs/${runId}/cancel`,
    { body: {} },
  )
