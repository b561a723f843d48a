// A provider that is down: 500 runs wait for it, and their cost is measured. Then the provider comes back and all runs
// complete. After that 60 runs meet a provider that takes 5 calls at once and answers 429 beyond: all of them complete.
// The peer of the waiting server is the same server before the runs.
import { setTimeout as sleep } from 'node:timers/promises'
import { type BusyProvider, startBusyProvider } from '../test/kit/busy-provider.ts'
import { measureCpu } from './kit/cpu.ts'
import { startBenchServer, withClient } from './kit/database.ts'
import { post, type Started, startMuster } from './kit/muster.ts'
import { printVerdicts, type Verdict } from './kit/verdict.ts'

const WAITING = 500
const LIMITED = 60
const AT_ONCE = 5
const CALL_MS = 300
const SECONDS = Number(process.env.BENCH_OUTAGE_SECONDS ?? 120)
const MAX_CPU = 0.02
const MAX_BACK_MS = 30_000
const MAX_LIMITED_MS = 30_000

export async function benchOutage(): Promise<boolean> {
  await using server = await startBenchServer()
  await using muster = await startMuster(await server.createDatabase('outage'))
  const closing: (() => unknown)[] = []
  const atEnd = { after: (close: () => unknown) => void closing.push(close) }
  try {
    return await measure(muster, atEnd)
  } finally {
    for (const close of closing) await close()
  }
}

async function measure(muster: Started, atEnd: Parameters<typeof startBusyProvider>[0]): Promise<boolean> {
  const provider = await startBusyProvider(atEnd, { atOnce: Number.POSITIVE_INFINITY, callMs: 20 })
  const limited = await startBusyProvider(atEnd, { atOnce: AT_ONCE, callMs: CALL_MS })
  const { trigger } = await makeAgents(muster, { provider, limited })
  const percent = (share: number): string => `${(share * 100).toFixed(2)} %`
  const idle = await measureCpu(muster, SECONDS / 3)
  provider.isDown = true
  await trigger('of provider', WAITING)
  await untilCount(muster, `pause_reason = 'unavailable'`, WAITING)
  const before = provider.refused
  const waiting = await measureCpu(muster, SECONDS)
  const tries = provider.refused - before
  provider.isDown = false
  // The next try may be some minutes away by now.
  await withClient(muster.databaseUrl, (client) =>
    client.query('update provider_outages set next_try_at = muster.now()'),
  )
  const backMs = await timed(() => untilCount(muster, `status = 'completed'`, WAITING))
  await trigger('of limited', LIMITED)
  const limitedMs = await timed(() => untilCount(muster, `status = 'completed'`, WAITING + LIMITED))
  const failed = await countRuns(muster, `status = 'failed'`)
  const [own, whole] = [waiting.server - idle.server, waiting.server + waiting.database - idle.server - idle.database]
  const verdicts: Verdict[] = [
    {
      what: `share of a core, ${tries} tries meanwhile`,
      ours: percent(waiting.server),
      peer: percent(idle.server),
      value: `${percent(own)} more`,
      required: `<= ${percent(MAX_CPU)}`,
      isKept: own <= MAX_CPU,
    },
    {
      what: 'share of a core, server and database',
      ours: percent(waiting.server + waiting.database),
      peer: percent(idle.server + idle.database),
      value: `${percent(whole)} more`,
      required: `<= ${percent(MAX_CPU)}`,
      isKept: whole <= MAX_CPU,
    },
    { ...within('all complete after the provider is back', backMs, MAX_BACK_MS), peer: '' },
    {
      ...within(`${LIMITED} runs, ${AT_ONCE} calls at once`, limitedMs, MAX_LIMITED_MS),
      peer: `${(LIMITED / AT_ONCE) * CALL_MS} ms at least`,
    },
    {
      ...{ what: 'failed runs', ours: `${failed}`, peer: '', value: `${failed}`, required: '0' },
      isKept: failed === 0,
    },
  ]
  printVerdicts(verdicts, { ours: `${WAITING} waiting`, peer: 'idle' })
  return verdicts.every((verdict) => verdict.isKept)
}

const within = (what: string, ms: number, mostMs: number) => ({
  what,
  ours: `${Math.round(ms)} ms`,
  value: `${Math.round(ms)} ms`,
  required: `<= ${mostMs} ms`,
  isKept: ms <= mostMs,
})

async function makeAgents(muster: Started, providers: Record<string, BusyProvider>) {
  const project = `${muster.address}/api/projects/${(await post(`${muster.address}/api/projects`, { name: 'bench' })).id}`
  const agents = new Map<string, string>()
  for (const [name, { url }] of Object.entries(providers)) {
    await post(`${muster.address}/api/providers`, { name, kind: 'openai-compatible', base_url: url, api_key: 'any' })
    const agent = await post(`${project}/agents`, { name: `of ${name}`, model: { provider: name, name: 'm' } })
    agents.set(`of ${name}`, String(agent.id))
  }
  const trigger = async (name: string, count: number): Promise<void> => {
    const sql = `insert into agent_runs (id, project_id, agent_id, trigger, input, rights)
      select gen_random_uuid(), a.project_id, a.id, '{"type":"manual"}', '"Go."', '{}'
      from agents a, generate_series(1, $2::int) where a.id = $1`
    await withClient(muster.databaseUrl, (client) => client.query(sql, [agents.get(name), count]))
  }
  return { trigger }
}

const countRuns = (muster: Started, condition: string): Promise<number> =>
  withClient(muster.databaseUrl, async (client) => {
    const { rows } = await client.query<{ count: number }>(
      `select count(*)::int as count from agent_runs where ${condition}`,
    )
    return rows[0]?.count ?? 0
  })

async function untilCount(muster: Started, condition: string, count: number): Promise<void> {
  const until = performance.now() + 180_000
  while ((await countRuns(muster, condition)) < count) {
    if (performance.now() > until) throw new Error(`${condition}: fewer than ${count} runs after three minutes`)
    await sleep(200)
  }
}

async function timed(work: () => Promise<void>): Promise<number> {
  const began = performance.now()
  await work()
  return performance.now() - began
}
