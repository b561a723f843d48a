// A rate limit is an everyday case: nothing fails because of it, and nobody waits long.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startBusyProvider } from '../kit/busy-provider.ts'
import { made } from '../kit/made.ts'
import { startMuster } from '../kit/process.ts'
import { until } from '../kit/until.ts'

const RUNS = 60
const CASES = [
  { what: 'short calls', callMs: 300, headers: {} },
  { what: 'long calls', callMs: 2_000, headers: {} },
  { what: 'short calls and Retry-After', callMs: 300, headers: { 'retry-after': '1' } },
]

for (const { what, callMs, headers } of CASES) {
  test(`${RUNS} runs against a provider that takes 5 calls at once all complete: ${what}`, async (t) => {
    const provider = await startBusyProvider(t, { atOnce: 5, callMs, headers })
    const server = await startMuster(t, { env: { MUSTER_DEMO: 'off' } })
    const row = { name: 'busy', kind: 'openai-compatible', base_url: provider.url, api_key: 'any' }
    await made(server, 'POST /api/providers', row)
    const project = await made(server, 'POST /api/projects', { name: 'many' })
    const model = { provider: 'busy', name: 'm' }
    const agent = await made(server, `POST /api/projects/${project}/agents`, { name: 'worker', model })
    const began = performance.now()
    const trigger = `POST /api/projects/${project}/agents/${agent}/trigger`
    const async_ = { body: { input: 'Go.' }, headers: { prefer: 'respond-async' } }
    for (let left = RUNS; left > 0; left -= 10) {
      const answers = await Promise.all(Array.from({ length: 10 }, () => server.call(trigger, async_)))
      for (const { status, text } of answers) assert.equal(status, 202, text)
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
