// An environment in which servers are killed while they work on flows. The journal at each kill is kept, and in the end
// compared with the real calls of the functions and the model.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { runningUrl } from '../../src/db/embedded/running-url.ts'
import type { CrashFlow } from './crash-flows.ts'
import { createTestPool } from './database.ts'
import { type FlowLedger, startFlowLedger } from './flow-ledger.ts'
import { type FlowModel, startFlowModel } from './flow-model.ts'
import { made, ONE_FOR_ALL_SERVERS } from './made.ts'
import { type Cleanup, type Muster, makeFolder, repository, startMuster } from './process.ts'
import { type LifeOptions, untilKilled } from './run-harness.ts'
import { until } from './until.ts'

/** A flow run that was accepted. */
export interface Begun {
  id: string
  /** The name of the flow run in messages of failures. */
  tag: string
}

/** The journal's state when a server was killed. */
export interface Kill {
  pid: number
  /** The instant at which the kill was over, by performance.now() and by the database's clock. */
  at: number
  readAt: Date
  /** Flow runs that had ended. */
  ended: ReadonlySet<string>
  /** The owners of the other flow runs. */
  owners: ReadonlyMap<string, string>
  /** Leaves, and items of pipelines, whose completion was on record. */
  done: ReadonlySet<string>
  /** Agents' runs by id: whether the run had ended, and how often the model had been asked for it. */
  runs: ReadonlyMap<string, { hasEnded: boolean; asked: number }>
}

export interface FlowWorld {
  readonly projectId: string
  readonly ledger: FlowLedger
  readonly model: FlowModel
  readonly kills: ReadonlyMap<number, Kill>
  /** Starts another server over this database. */
  start(options?: LifeOptions): Promise<Muster>
  begin(server: Muster, flow: CrashFlow, tag: string): Promise<Begun>
  query<Row extends object>(sql: string, values?: unknown[]): Promise<Row[]>
  untilEnded(flows: readonly Begun[]): Promise<void>
  kill(server: Muster): Promise<Kill>
  /** Resolves when a fault has killed the server. */
  untilKilled(server: Muster): Promise<Kill>
}

/** The first server is left running. */
export interface MadeWorld {
  world: FlowWorld
  server: Muster
}

/** Without `databaseUrl` all servers use the embedded database of one data folder, as for a newcomer. */
export async function createFlowWorld(t: Cleanup, external?: { databaseUrl: string }): Promise<MadeWorld> {
  const dataDir = external ? null : join(await makeFolder(t), 'data')
  const ledger = await startFlowLedger(t)
  const model = await startFlowModel(t)
  const kills = new Map<number, Kill>()
  const base = {
    MUSTER_APP: join(repository, 'test/fixtures/flow-app.ts'),
    FLOW_LEDGER_URL: ledger.url,
    MUSTER_DEMO: 'off',
    ...(external ? ONE_FOR_ALL_SERVERS : {}),
  }
  let latest: Muster | null = null
  const start: FlowWorld['start'] = async ({ faults, env = {} } = {}) => {
    // A data folder is for one server. A server that still runs was left by a failed test.
    if (dataDir !== null && latest?.isRunning()) await latest.kill('SIGKILL')
    latest = await startMuster(t, {
      ...(dataDir === null ? {} : { dataDir }),
      ...external,
      env: { ...base, ...env, ...(faults === undefined ? {} : { MUSTER_FAULTS: faults }) },
    })
    return latest
  }

  const server = await start()
  const projectId = await made(server, 'POST /api/projects', { name: 'flows' })
  await made(server, 'POST /api/providers', {
    name: 'flows',
    kind: 'openai-compatible',
    base_url: model.url,
    api_key: 'any',
  })
  for (const name of ['queen', 'worker', 'helper']) {
    await made(server, `POST /api/projects/${projectId}/agents`, { name, model: { provider: 'flows', name: 'any' } })
  }
  const url = external?.databaseUrl ?? (await runningUrl(dataDir ?? '')) ?? assert.fail('the database does not answer')
  const pool = createTestPool(url, 2)
  t.after(() => pool.end())
  const query: FlowWorld['query'] = async (sql, values) => (await pool.query(sql, values)).rows

  const noted = async ({ pid }: Muster): Promise<Kill> => {
    const kill = await readKill({ query, model }, pid)
    kills.set(pid, kill)
    return kill
  }
  const world: FlowWorld = {
    projectId,
    ledger,
    model,
    kills,
    start,
    query,
    begin: async (at, { root, workers }, tag) => {
      const body = { root, input: tag, ...(workers === undefined ? {} : { workers }) }
      for (let tries = 1; ; tries++) {
        const answer = await at.call<{ id: string }>(`POST /api/projects/${projectId}/flow-runs`, { body })
        if (answer.status === 202) return { id: answer.body.id, tag }
        // The client tries again when it is told to: a server that has just started may be busy.
        assert.ok(answer.status === 503 && tries < 10, answer.text)
        const sql = 'select id from flow_runs where input = to_jsonb($1::text)'
        const [made] = await query<{ id: string }>(sql, [tag])
        if (made) return { id: made.id, tag }
      }
    },
    untilEnded: async (flows) => {
      const sql = 'select id, status, owner, progress from flow_runs where completed_at is null and id = any($1)'
      let open: object[] = []
      const hasEnded = async (): Promise<boolean> => {
        open = await query(sql, [flows.map(({ id }) => id)])
        return open.length === 0
      }
      await until(hasEnded, 'all flows have ended', 60_000).catch((cause: unknown) => {
        throw new Error(`These flows have not ended: ${JSON.stringify(open)}`, { cause })
      })
    },
    kill: async (victim) => {
      await victim.kill('SIGKILL')
      return noted(victim)
    },
    untilKilled: async (victim) => {
      await untilKilled(victim)
      return noted(victim)
    },
  }
  return { world, server }
}

async function readKill({ query, model }: Pick<FlowWorld, 'query' | 'model'>, pid: number): Promise<Kill> {
  const at = performance.now()
  const [now] = await query<{ at: Date }>('select clock_timestamp() as at')
  const flows = await query<{ id: string; has_ended: boolean; owner: string | null; progress: Record<string, number> }>(
    'select id, completed_at is not null as has_ended, owner, progress from flow_runs',
  )
  for (const { id, progress } of flows) requireSum(progress, `the progress of ${id} at the kill`)
  // All work of ended flow runs is done; only the other flow runs are read.
  const events = await query<{
    run_id: string
    kind: string
    data: { task_id: string; stage: number; results: [number, unknown][] }
  }>(
    `select e.run_id, e.kind, e.data from flow_events e join flow_runs r on r.id = e.run_id and r.completed_at is null
     where e.kind in ('task.completed', 'items.completed')`,
  )
  const runs = await query<{ id: string; input: string; has_ended: boolean }>(
    'select id, input, completed_at is not null as has_ended from agent_runs where flow_run_id is not null',
  )
  return {
    pid,
    at,
    readAt: now?.at ?? assert.fail(),
    owners: new Map(flows.flatMap(({ id, owner }) => (owner === null ? [] : [[id, owner]]))),
    ended: new Set(flows.flatMap(({ id, has_ended }) => (has_ended ? [id] : []))),
    done: new Set(
      events.flatMap(({ run_id, kind, data }) => {
        const leaf = `${run_id}:${data.task_id}`
        return kind === 'task.completed' ? [leaf] : data.results.map(([index]) => `${leaf}:${data.stage}:${index}`)
      }),
    ),
    runs: new Map(runs.map(({ id, input, has_ended }) => [id, { hasEnded: has_ended, asked: model.asked(input) }])),
  }
}

export function requireSum(progress: Readonly<Record<string, number>>, what: string): void {
  const { total, pending = 0, running = 0, completed = 0, failed = 0, skipped = 0 } = progress
  assert.equal(pending + running + completed + failed + skipped, total, `${what}: ${JSON.stringify(progress)}`)
}

/** True if the flow was in progress, with recorded work that must not be done again. */
export function isInTheMiddle({ ended, done }: Kill, { id }: Begun): boolean {
  return !ended.has(id) && [...done].some((unit) => unit.startsWith(id))
}
