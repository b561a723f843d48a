import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createScriptedModel } from '../../../test/kit/scripted-model.ts'
import { createSupervisor, delegate, finish } from '../../../test/kit/supervisor.ts'
import type { Agent } from '../../kernel/agent.ts'
import type { Run } from '../../kernel/run.ts'
import type { UsageReport } from '../../kernel/usage.ts'

type Refusal = { error: { code: string; message: string } }

const price = { input: 3, output: 11 }
const script = createScriptedModel(() => ({ text: 'Done.', usage: { inputTokens: 120, outputTokens: 30 } }), { price })
const kit = await createSupervisor(
  { supervisor: [delegate('research_agent'), finish()] },
  { models: new Map([['script', script]]) },
)
const { base } = kit
const viewer = (await kit.createKey(kit.project.id, 'viewer')).key
const read = (query = '', token: string | null = viewer) =>
  kit.call<UsageReport>(`GET ${base}/usage${query}`, { token })
const refusal = async (query: string) => {
  const { status, body } = await kit.call<Refusal>(`GET ${base}/usage${query}`, { token: viewer })
  return [status, body.error.message] as const
}
const day = (ago: number): string => new Date(Date.now() - ago * 24 * 60 * 60_000).toISOString().slice(0, 10)
const sum = (items: { total_tokens: number }[]): number => items.reduce((total, item) => total + item.total_tokens, 0)

const trigger = async (agent: Agent): Promise<Run> => {
  const answer = await kit.call<Run>(`POST ${base}/agents/${agent.id}/trigger`, { body: { input: 'Go.' } })
  assert.equal(answer.body.status, 'completed', answer.text)
  return answer.body
}
const runsOf = async (): Promise<Run[]> => (await kit.call<{ items: Run[] }>(`GET ${base}/runs?limit=200`)).body.items

test('the report agrees with the runs and with the agents, also of a flow and of a supervisor', async () => {
  const writer = await kit.createAgent(kit.project.id, { name: 'Writer', model: { provider: 'test', name: 'script' } })
  const editor = await kit.createAgent(kit.project.id, { name: 'Editor', model: { provider: 'test', name: 'script' } })
  for (const agent of [writer, writer, editor]) await trigger(agent)
  const leaf = { type: 'task', agent: 'Writer', input: '{{input}}' }
  const flow = await kit.call<{ id: string }>(`POST ${base}/flows`, { body: { name: 'A flow', root: leaf } })
  assert.equal(flow.status, 201, flow.text)
  const asFlow = await kit.createAgent(kit.project.id, { name: 'Flow', flow_type: 'flow', flow: 'A flow', model: null })
  const flowing = await trigger(asFlow)
  assert.equal(flowing.usage.total_tokens, 150, 'the run of the flow shows the tokens of its leaf')
  const supervised = await kit.run('Find it out.')
  assert.equal(supervised.status, 200, supervised.text)

  const { status, body } = await read()
  assert.equal(status, 200)
  const runs = (await runsOf()).filter((run) => run.agent_id !== asFlow.id)
  const tokensOf = (agentId: string | null): number =>
    sum(runs.filter((run) => run.agent_id === agentId).map((run) => run.usage))
  const costOf = (agentId: string | null): number =>
    runs.filter((run) => run.agent_id === agentId).reduce((total, run) => total + (run.usage.cost_usd ?? 0), 0)
  assert.equal(body.totals.total_tokens, sum(runs.map((run) => run.usage)))
  assert.deepEqual(
    body.agents.map(({ name, source, total_tokens }) => [name, source, total_tokens]),
    [
      ['Writer', 'agent', 450],
      ['Editor', 'agent', 150],
      [null, 'supervisor', tokensOf(null)],
    ],
  )
  for (const { agent_id: agentId, total_tokens: total, cost_usd: cost } of body.agents) {
    assert.equal(total, tokensOf(agentId))
    if (agentId === null) continue
    assert.ok(Math.abs((cost ?? 0) - costOf(agentId)) < 1e-6, `the cost is ${cost}`)
    const agent = (await kit.call<Agent>(`GET ${base}/agents/${agentId}`)).body
    assert.equal(agent.token_used, total)
  }
  assert.equal(body.agents.at(-1)?.cost_usd, null, 'the models of the supervisor have no price')
  assert.equal(sum(body.items), body.totals.total_tokens)
  assert.equal(sum(body.days), body.totals.total_tokens)
})

test('the last thirty days are the default, and both ends may be chosen, as days or as instants', async () => {
  const usual = (await read()).body
  assert.deepEqual([usual.from, usual.to, usual.days.length], [day(29), day(0), 30])
  assert.deepEqual(usual.days[0]?.day, day(0))
  const past = (await read(`?to=${day(1)}`)).body
  assert.deepEqual([past.from, past.to, past.totals.total_tokens], [day(30), day(1), 0])
  const one = (await read(`?from=${day(0)}T01:02:03Z&to=${day(0)}T23:00:00Z`)).body
  assert.deepEqual([one.from, one.to, one.days.length], [day(0), day(0), 1])
  const shifted = (await read('?from=2026-03-01T00:30:00%2B01:00&to=2026-03-02')).body
  assert.equal(shifted.from, '2026-02-28', 'an instant counts in UTC')
  const year = (await read('?from=2024-01-01&to=2024-12-31')).body
  assert.equal(year.days.length, 366)
})

for (const [query, says] of [
  ['?from=2026-13-01', /query\.from must be a day, such as 2026-11-16/],
  ['?to=yesterday', /query\.to must be a day/],
  ['?from=', /query\.from must be a day/],
  ['?from=2026-02-02&to=2026-02-01', /from is 2026-02-02, which is after to \(2026-02-01\)/],
  ['?from=2999-01-01', /from is 2999-01-01, which is after today/],
  ['?from=2024-01-01&to=2025-01-01', /include 367 days, which must be 366 at most/],
  ['?cursor=bm90IG91cnM', /cursor is not one that this list gave/],
  [`?cursor=${Buffer.from(`2026-99-99 agent ${kit.project.id}`).toString('base64url')}`, /cursor is not one/],
  ['?limit=201', /query\.limit/],
] as const) {
  test(`${query} is refused with a reason`, async () => {
    const [status, message] = await refusal(query)
    assert.equal(status, 400)
    assert.match(message, says)
  })
}

test('a report is for people and keys of the project', async () => {
  const other = (await kit.createKey((await kit.createProject()).id, 'admin')).key
  assert.equal((await read('', null)).status, 401)
  assert.equal((await read('', other)).status, 404)
})
