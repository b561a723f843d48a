// A rate limit is an everyday case: nothing fails because of it, and nobody waits long.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { startBusyProvider } from '../kit/busy-provider.ts'
import { made } from '../kit/made.ts'
import { type Muster, makeFolder, startMuster } from '../kit/process.ts'
import { until } from '../kit/until.ts'

const RUNS = 60
const CASES = [
  { what: 'short calls', callMs: 300, headers: {} },
  { what: 'long calls', callMs: 2_000, headers: {} },
  { what: 'short calls and Retry-After', callMs: 300, headers: { 'retry-after': '1' } },
]

test('runs that wait for a provider survive the death of their server, and complete when it is back', async (t) => {
  const provider = await startBusyProvider(t, { atOnce: 50, callMs: 10 })
  provider.isDown = true
  const dataDir = join(await makeFolder(t), 'data')
  const first = await startMuster(t, { dataDir, env: { MUSTER_DEMO: 'off' } })
  const { project, agent } = await makeAgent(first, provider.url)
  const ids = await Promise.all(Array.from({ length: 5 }, () => trigger(first, project, agent)))
  const count = async (server: Muster, query: string): Promise<number> =>
    (await server.call<{ items: unknown[] }>(`GET /api/projects/${project}/runs?${query}`)).body.items.length
  await until(async () => (await count(first, 'pause_reason=unavailable')) === ids.length, 'all runs wait', 60_000)
  await first.kill('SIGKILL')
  provider.isDown = false
  const second = await startMuster(t, { dataDir, env: { MUSTER_DEMO: 'off' } })
  await until(async () => (await count(second, 'status=completed')) === ids.length, 'all runs completed', 60_000)
})

async function makeAgent(server: Muster, url: string): Promise<{ project: string; agent: string }> {
  await made(server, 'POST /api/providers', { name: 'busy', kind: 'openai-compatible', base_url: url, api_key: 'any' })
  const project = await made(server, 'POST /api/projects', { name: 'many' })
  const model = { provider: 'busy', name: 'm' }
  return { project, agent: await made(server, `POST /api/projects/${project}/agents`, { name: 'worker', model }) }
}

async function trigger(server: Muster, project: string, agent: string): Promise<string> {
  const body = { body: { input: 'Go.' }, headers: { prefer: 'respond-async' } }
  const answer = await server.call<{ id: string }>(`POST /api/projects/${project}/agents/${agent}/trigger`, body)
  assert.equal(answer.status, 202, answer.text)
  return answer.body.id
}

for (const { what, callMs, headers } of CASES) {
  test(`${RUNS} runs against a provider that takes 5 calls at once all complete: ${what}`, async (t) => {
    const provider = await startBusyProvider(t, { atOnce: 5, callMs, headers })
    const server = await startMuster(t, { env: { MUSTER_DEMO: 'off' } })
    const { project, agent } = await makeAgent(server, provider.url)
    const began = performance.now()
    for (let left = RUNS; left > 0; left -= 10) {
      await Promise.all(Array.from({ length: 10 }, () => trigger(server, project, agent)))
    }
    const count = async (status: string): Promise<number> => {
      const list = `GET /api/projects/${project}/runs?status=${status}&limit=200`
      return (await server.call<{ items: unknown[] }>(list)).body.items.length
    }
    let failed = 0
    await until(
      async () => {
        failed = await count('failed')
        return failed > 0 || (await count('completed')) === RUNS
      },
      'all runs have ended',
      180_000,
    )
    const tookMs = performance.now() - began
    const leastMs = (RUNS / 5) * callMs
    t.diagnostic(`${what}: ${Math.round(tookMs)} ms, at least ${leastMs} ms; ${provider.refused} calls were refused`)
    assert.equal(failed, 0)
    assert.ok(tookMs < 3 * leastMs + 15_000, `${tookMs} ms`)
  })
}
