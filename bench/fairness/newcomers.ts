import { setTimeout as sleep } from 'node:timers/promises'
import { withClient } from '../kit/database.ts'
import { post, type Started, startMuster } from '../kit/muster.ts'
import { percentile } from '../kit/rounds.ts'
import { atMost, type Verdict } from '../kit/verdict.ts'

export type Kind = 'run' | 'flow run'

const QUEUED = 10_000
const TRIES = 40
const WARM_UP = 5
const REQUIRED = 2
const HELD_WITHIN_MS = 60_000
const ENDS_WITHIN_MS = 120_000

export async function tryNewcomers(
  databases: { busy: string; idle: string },
  { kind, slots }: { kind: Kind; slots: number },
): Promise<Verdict[]> {
  const settings = {
    MUSTER_APP: 'bench/fairness/hanging-app.ts',
    MUSTER_CONCURRENCY: String(slots),
    // The stop does not wait for calls that hang.
    MUSTER_DRAIN: '0',
  }
  await using busy = await startMuster(databases.busy, settings)
  await using idle = await startMuster(databases.idle, settings)
  const measure = kind === 'run' ? timeRun : timeFlowRun
  for (let warm = 0; warm < WARM_UP; warm++) for (const server of [busy, idle]) await measure(server)
  await queueHanging(busy, kind)
  await untilHeld(busy, kind)
  const times: { busy: number[]; idle: number[] } = { busy: [], idle: [] }
  for (let tried = 0; tried < TRIES; tried++) {
    times.busy.push(await measure(busy))
    times.idle.push(await measure(idle))
  }
  const what = `a newcomer's ${kind} beside ${QUEUED.toLocaleString('en')} that hang, ${slots} slots`
  return [
    compare(`${what}, median`, percentile(times.busy, 0.5), percentile(times.idle, 0.5)),
    compare(`${what}, p95 of ${TRIES}`, percentile(times.busy, 0.95), percentile(times.idle, 0.95)),
  ]
}

const compare = (what: string, busyMs: number, idleMs: number): Verdict => ({
  what,
  ours: `${busyMs.toFixed(1)} ms`,
  peer: `${idleMs.toFixed(1)} ms`,
  ...atMost(busyMs / idleMs, REQUIRED),
})

/**
 * The time of a run in a new project: from before the request until its answer, which comes with the end of the run.
 */
async function timeRun(server: Started): Promise<number> {
  const { url, agentId } = await createProject(server)
  const began = performance.now()
  const run = await post(`${url}/agents/${agentId}/trigger`, { input: 'Hello' }, 200)
  const tookMs = performance.now() - began
  if (run.status !== 'completed') throw new Error(`a newcomer's run is ${run.status}`)
  return tookMs
}

/** The time of a flow run in a new project: from its acceptance until its end, by the database's clock. */
async function timeFlowRun(server: Started): Promise<number> {
  const { url } = await createProject(server)
  const root = { type: 'task', function: 'answer' }
  const { id } = await post(`${url}/flow-runs`, { root }, 202)
  const deadline = performance.now() + ENDS_WITHIN_MS
  return withClient(server.databaseUrl, async (client) => {
    while (performance.now() < deadline) {
      const { rows } = await client.query<{ status: string; took_ms: number }>(
        `select status, (extract(epoch from completed_at - created_at) * 1000)::float8 as took_ms
         from flow_runs where id = $1 and completed_at is not null`,
        [id],
      )
      const [end] = rows
      if (end?.status === 'completed') return end.took_ms
      if (end) throw new Error(`a newcomer's flow run is ${end.status}`)
      await sleep(5)
    }
    throw new Error(`a newcomer's flow run did not end within ${ENDS_WITHIN_MS} ms`)
  })
}

async function createProject({ address }: Started): Promise<{ id: string; url: string; agentId: string }> {
  const project = await post(`${address}/api/projects`, { name: 'A project' })
  const url = `${address}/api/projects/${project.id}`
  const agent = await post(`${url}/agents`, { name: 'worker', tools: ['hang'] })
  return { id: String(project.id), url, agentId: String(agent.id) }
}

/**
 * Inserts the rows of started runs by one statement, because ten thousand requests would take longer than a run hangs.
 */
async function queueHanging(server: Started, kind: Kind): Promise<void> {
  const { id, agentId } = await createProject(server)
  await withClient(server.databaseUrl, async (client) => {
    if (kind === 'run') {
      await client.query(
        `insert into agent_runs (id, project_id, agent_id, trigger, input, ready_at)
         select gen_random_uuid(), $1, $2, '{"type":"manual"}', '"Please hang."', now() from generate_series(1, $3::int)`,
        [id, agentId, QUEUED],
      )
    } else {
      await client.query(
        `insert into flow_runs (id, project_id, root, input, progress, timeout, needs, ready_at)
         select gen_random_uuid(), $1, '{"type":"task","function":"hang"}', 'null', '{}', 3600000, '{hang}', now()
         from generate_series(1, $2::int)`,
        [id, QUEUED],
      )
    }
  })
}

/** Waits until the project of the hanging runs has all the slots that it can get. */
async function untilHeld(server: Started, kind: Kind): Promise<void> {
  const table = kind === 'run' ? 'agent_runs' : 'flow_runs'
  const deadline = performance.now() + HELD_WITHIN_MS
  await withClient(server.databaseUrl, async (client) => {
    for (let before = 0; performance.now() < deadline; ) {
      await sleep(2_000)
      const { rows } = await client.query<{ count: number }>(
        `select count(*)::int as count from ${table} where owner is not null`,
      )
      const held = rows[0]?.count ?? 0
      if (held > 0 && held === before) return
      before = held
    }
    throw new Error('nothing hangs')
  })
}
