// Proves that no body stalls the process for others: while a tenant sends the largest accepted body of each kind, a
// second process asks the same server for /healthz every 50 ms, and another project's agent runs.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startChild } from './kit/child.ts'
import { startBenchServer } from './kit/database.ts'
import { type Side, startSide } from './kit/side.ts'
import { printVerdicts, type Verdict } from './kit/verdict.ts'
import { type Attack, bodies } from './stall/bodies.ts'
import { startHostileMcp } from './stall/hostile-mcp.ts'

const ADMIN_TOKEN = 'the-admin-token-of-this-bench'
/** The server accepts a mebibyte, of which the fields around the text take a part. */
const LARGE_BYTES = 1_020_000
const SMALL_BYTES = 1_024
const ROUNDS = 3
const LOOK_EVERY_MS = 100
const REQUIRED_RATIO = 5
/** A latency below this is not noticed, even if it is more than the allowed ratio on an idle machine. */
const UNNOTICED_MS = 250

export async function benchStall(): Promise<boolean> {
  const only = process.argv[3]
  await using database = await startBenchServer()
  const dataDir = await mkdtemp(join(tmpdir(), 'muster-bench-'))
  const url = await database.createDatabase('stall')
  await using muster = await startChild(['src/bin/muster.ts', 'start'], {
    DATABASE_URL: url,
    MUSTER_DATA_DIR: dataDir,
    MUSTER_ADMIN_TOKEN: ADMIN_TOKEN,
    MUSTER_RATE_LIMIT: '0',
    MUSTER_DEMO: 'off',
    MUSTER_FIND_OLLAMA: 'off',
  })
  await using mcp = await startHostileMcp()
  await using probe = startSide('bench/stall/probe.ts', [])
  const sender = await createTenant(muster.address, 'sender')
  const neighbour = await createTenant(muster.address, 'neighbour')
  const worstBeside = async (attack: () => Attack): Promise<{ worstMs: number; isServed: boolean }> => {
    let worstMs = 0
    let isServed = true
    for (let round = 0; round < ROUNDS; round++) {
      const { took, isNeighbourDone } = await besides(probe, muster.address, neighbour, () => sender.carryOut(attack()))
      worstMs = Math.max(worstMs, ...took)
      isServed &&= isNeighbourDone
    }
    return { worstMs, isServed }
  }
  const verdicts: Verdict[] = []
  // The first call compiles the code, so it is not measured.
  await worstBeside(() => ({ kind: 'message', text: 'warm up' }))
  for (const { what, of } of bodies(mcp).filter((body) => only === undefined || body.what.includes(only))) {
    const small = await worstBeside(() => of(SMALL_BYTES))
    const large = await worstBeside(() => of(LARGE_BYTES))
    const ratio = large.worstMs / small.worstMs
    const isKept = large.isServed && (ratio <= REQUIRED_RATIO || large.worstMs <= UNNOTICED_MS)
    verdicts.push({
      what,
      ours: `${large.worstMs.toFixed(0)} ms`,
      peer: `${small.worstMs.toFixed(0)} ms`,
      isKept,
      value: `${ratio.toFixed(1)}x${large.isServed ? '' : ', and the neighbour was not served'}`,
      required: `<= ${REQUIRED_RATIO}x or ${UNNOTICED_MS} ms`,
    })
    printVerdicts(verdicts.slice(-1))
  }
  await rm(dataDir, { recursive: true, force: true })
  console.log('\nThe slowest answer of /healthz beside the largest body (muster) and beside a body of 1 KB (peer):')
  printVerdicts(verdicts)
  return verdicts.every((verdict) => verdict.isKept)
}

async function besides(
  probe: Side,
  address: string,
  neighbour: Tenant,
  work: () => Promise<void>,
): Promise<{ took: number[]; isNeighbourDone: boolean }> {
  await probe.ask({ begin: address })
  const [isNeighbourDone] = await Promise.all([neighbour.isServed(), work()])
  return { took: await probe.ask<number[]>({ end: true }), isNeighbourDone }
}

interface Tenant {
  /** Resolves when all runs and requests of the attack have ended. */
  carryOut(attack: Attack): Promise<void>
  /** True if a run of another tenant completes. */
  isServed(): Promise<boolean>
}

interface Ended {
  id: string
  status: string
  completed_at: string | null
}

async function createTenant(address: string, name: string): Promise<Tenant> {
  const send = (path: string, body?: unknown): Promise<Response> =>
    fetch(`${address}/api/projects${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
  const call = async <Answer>(path: string, body?: unknown): Promise<Answer> => {
    const answer = await send(path, body)
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${(await answer.text()).slice(0, 300)}`)
    return (await answer.json()) as Answer // our own API
  }
  const model = { provider: 'offline', name: 'offline' }
  const { id } = await call<Ended>('', { name })
  const agent = await call<Ended>(`/${id}/agents`, { name: 'agent', model })
  const trigger = (agentId: string, input: string): Promise<Ended> =>
    call(`/${id}/agents/${agentId}/trigger`, { input })
  let servers = 0
  return {
    isServed: async () => (await trigger(agent.id, 'Good morning')).status === 'completed',
    carryOut: async (attack) => {
      switch (attack.kind) {
        case 'object':
          await call(`/${id}/objects`, { type: 'thing', properties: attack.properties })
          break
        case 'message':
          await trigger(agent.id, attack.text)
          break
        case 'flow': {
          const { root, input } = attack
          let run = await call<Ended>(`/${id}/flow-runs`, { root, input })
          while (run.completed_at === null) {
            await sleep(LOOK_EVERY_MS)
            run = await call<Ended>(`/${id}/flow-runs/${run.id}`)
          }
          break
        }
        case 'request': {
          const { status } = await send(`/${id}${attack.path}`, attack.body)
          if (status >= 500) throw new Error(`${attack.path.slice(0, 40)}: ${status}`)
          break
        }
        case 'tool': {
          const server = `s${++servers}`
          await call(`/${id}/mcp-servers`, { name: server, url: attack.url })
          const tools = [`mcp:${server}/go`]
          const { id: callerId } = await call<Ended>(`/${id}/agents`, { name: server, model, tools, max_steps: 3 })
          await trigger(callerId, attack.message)
          break
        }
      }
    },
  }
}
