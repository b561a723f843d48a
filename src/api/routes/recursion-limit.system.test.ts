// The recursion limit of specialists, by the sentences of the specification.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testTool } from '../../../test/kit/run-worker.ts'
import { createSupervisor, delegate, finish, type Replies, summary } from '../../../test/kit/supervisor.ts'
import type { ModelRequest } from '../../kernel/model-call.ts'
import type { Step } from '../../kernel/run.ts'
import type { AgentState } from '../../kernel/supervisor.ts'
import { decodeValue } from '../../supervisor/checkpoints/plain-values.ts'

let called = 0
const look = testTool('look', async () => ({ found: called++ }))
const broken = testTool('broken', async () => {
  called++
  throw new Error('out of order')
})

const replies: Replies = {}
const kit = await createSupervisor(replies, { tools: [look, broken] })
const tooled = [kit.specialist('research_agent', ['look', 'broken', 'http_fetch']), kit.specialist('transform_agent')]
assert.equal((await kit.put('blue', { ...kit.config, specialists: tooled })).status, 200)
const limit = (recursion_limit: number) => kit.call(`PATCH ${kit.base}/settings`, { body: { recursion_limit } })

const roundsSoFar = ({ prompt }: ModelRequest): number => prompt.filter(({ role }) => role === 'tool').length
/** Calls a tool in this many steps, with other arguments in each, then answers. */
const lookFor =
  (rounds: number, name = 'look') =>
  (request: ModelRequest) => {
    const round = roundsSoFar(request) + 1
    return round <= rounds ? { text: `Round ${round}.`, calls: [{ name, args: { round } }] } : 'I found it.'
  }
const oneRound = (request: { prompt: unknown }) =>
  JSON.stringify(request.prompt).includes('agent_name') ? finish() : delegate('research_agent')

async function runWith(work: NonNullable<Replies['work']>[string], more: Partial<Replies> = {}) {
  for (const key of Object.keys(replies)) delete replies[key as keyof Replies]
  Object.assign(replies, { supervisor: oneRound, work: { research_agent: work }, ...more })
  called = 0
  kit.requests.length = 0
  const { status, body } = await kit.run('Find it.')
  const { items } = await kit.get<{ items: { id: string; error_code: string | null; status: string }[] }>(
    `/runs?parent_run_id=${body.metadata.run_id}`,
  )
  const child = items[0] ?? assert.fail('there is no specialist')
  const { items: steps } = await kit.get<{ items: Step[] }>(`/runs/${child.id}/steps?limit=200`)
  return {
    status,
    result: body.result,
    child,
    steps,
    told: body.result.supervisor_state.history[0],
    runId: body.metadata.run_id,
  }
}

async function agentStateOf(runId: string): Promise<AgentState> {
  const { rows } = await kit.pool.query<{ value: string }>(
    `select v.value::text as value from supervisor_channels v
     where v.thread_id = $1 and v.channel = 'agent_state' order by v.version::numeric desc limit 1`,
    [runId],
  )
  return decodeValue(rows[0]?.value ?? assert.fail('there is no agent state')) as AgentState // written by the graph
}

test('recursion limit: N rounds of tools are allowed, and the specialist writes its own summary', async () => {
  await limit(3)
  const { result, told, child, runId } = await runWith(lookFor(3))
  assert.deepEqual([result.status, child.status, told?.result], ['DONE', 'completed', 'COMPLETED'])
  assert.equal(called, 3)
  assert.equal((await agentStateOf(runId)).recursion_depth, 3)
})

test('recursion limit: round N+1 does not happen', async () => {
  await limit(3)
  const { child, steps } = await runWith(lookFor(4))
  assert.deepEqual([child.status, child.error_code], ['failed', 'RECURSION_LIMIT'])
  assert.equal(called, 3)
  const rows = steps.flatMap((step) => (step.kind === 'tool' ? [step.blocked] : []))
  assert.deepEqual(rows, [null, null, null, 'recursion_limit'])
})

test('recursion limit: the AgentSummary is FAILED, even if the model says otherwise', async () => {
  await limit(2)
  const claims = { summary: { research_agent: summary('COMPLETED', 'All is well.') } }
  const work = (request: ModelRequest) => ({
    text: JSON.stringify(summary('COMPLETED', 'All is well.')),
    calls: [{ name: 'look', args: { round: roundsSoFar(request) } }],
  })
  const { told } = await runWith(work, claims)
  assert.equal(told?.result, 'FAILED')
  assert.match(told?.short_summary ?? '', /RECURSION_LIMIT_EXCEEDED/)
  assert.deepEqual(kit.asked('research_agent summary'), [])
})

test('recursion limit: the supervisor goes on with the FAILED summary and does not crash', async () => {
  await limit(1)
  const { status, result, told } = await runWith(lookFor(9), { finalizer: 'It could not be found.' })
  assert.deepEqual([status, result.status, result.error], [200, 'DONE', undefined])
  assert.equal(result.output?.content, 'It could not be found.')
  assert.deepEqual([told?.agent_name, told?.result], ['research_agent', 'FAILED'])
  const [, second] = kit.asked('supervisor')
  assert.match(JSON.stringify(second?.prompt), /RECURSION_LIMIT_EXCEEDED/)
})

test('recursion limit: Call Tool A → Error → Call Tool A → Error is stopped as well', async () => {
  await limit(4)
  const { told } = await runWith(lookFor(99, 'broken'))
  assert.equal(told?.result, 'FAILED')
  assert.equal(called, 4)
})

test('recursion limit: calls of unknown tools count as rounds too', async () => {
  await limit(2)
  const { told, steps } = await runWith(lookFor(99, 'nothing'))
  assert.equal(told?.result, 'FAILED')
  assert.equal(steps.filter(({ kind }) => kind === 'model').length, 3)
})

test('recursion_depth of AgentState counts the rounds of tools, from zero for each specialist', async () => {
  await limit(5)
  const depths: number[] = []
  for (const rounds of [0, 1, 2, 5, 6]) {
    const { runId } = await runWith(lookFor(rounds))
    depths.push((await agentStateOf(runId)).recursion_depth)
  }
  // A sixth round was asked for, and that is more than the limit.
  assert.deepEqual(depths, [0, 1, 2, 5, 6])
  const both = (request: { prompt: unknown }) => {
    const text = JSON.stringify(request.prompt)
    if (!text.includes('agent_name')) return delegate('research_agent')
    return text.includes('transform_agent","step_id') || text.split('agent_name').length > 2
      ? finish()
      : delegate('transform_agent')
  }
  const { runId, result } = await runWith(lookFor(3), { supervisor: both })
  assert.deepEqual(
    result.supervisor_state.history.map(({ agent_name: name }) => name),
    ['research_agent', 'transform_agent'],
  )
  assert.equal((await agentStateOf(runId)).recursion_depth, 0)
})

test('the recursion limit binds specialists only: the run of an agent has its own limits', async () => {
  await limit(1)
  const agent = await kit.createAgent(kit.project.id, {
    tools: ['look'],
    model: { provider: 'test', name: 'research_agent' },
  })
  Object.assign(replies, { work: { research_agent: lookFor(4) } })
  called = 0
  const { body } = await kit.call<{ status: string }>(`POST ${kit.base}/agents/${agent.id}/trigger`, {
    body: { input: 'Find it.' },
  })
  assert.deepEqual([body.status, called], ['completed', 4])
})
