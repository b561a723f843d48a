// The rules that escalate a supervisor's run whatever its model decides: the same failed delegation again, and too many
// tokens.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createEvalKit } from '../../../test/kit/evals.ts'
import { buryWorker } from '../../../test/kit/runs.ts'
import { createScriptedModel } from '../../../test/kit/scripted-model.ts'
import { createSupervisor, delegate, finish, type Replies, summary } from '../../../test/kit/supervisor.ts'
import { until } from '../../../test/kit/until.ts'
import { tokensOf } from '../../supervisor/rules.ts'

type Kit = Awaited<ReturnType<typeof createSupervisor>>
const failing: Replies = {
  summary: { research_agent: summary('FAILED', 'It is locked.'), transform_agent: summary('FAILED', 'No.') },
}
const TWICE = 'research_agent failed twice with the same instructions, and would get them a third time.'
const openTasks = async (kit: Kit): Promise<{ description: string }[]> =>
  (await kit.get<{ items: { description: string }[] }>('/tasks?status=pending')).items

test('the third delegation in a row with the same specialist and instructions is not made: people are asked', async () => {
  const kit = await createSupervisor({ ...failing, supervisor: delegate('research_agent', [], 'Open the door.') })
  const { body } = await kit.run('Go in.')
  const { status, output, supervisor_state: state } = body.result
  assert.deepEqual([status, state.status, state.history.length], ['ESCALATE', 'ESCALATE', 2])
  assert.deepEqual([state.notes, output?.content], [TWICE, `${TWICE}\n\nWhat shall we do?`])
  assert.deepEqual([kit.asked('supervisor').length, kit.asked('research_agent').length], [3, 2])
  assert.match(JSON.stringify(kit.asked('escalation')[0]?.prompt), /failed twice with the same instructions/)
  assert.equal((await openTasks(kit)).length, 1)
  // A person may want it tried again.
  const again = await kit.run('The door is open now.', { options: { run_id: body.metadata.run_id } })
  assert.deepEqual([again.body.result.status, again.body.result.supervisor_state.history.length], ['ESCALATE', 4])
})

const others: [name: string, Replies, rounds: number][] = [
  [
    'other instructions',
    {
      ...failing,
      supervisor: [...['A.', 'B.', 'A.', 'B.'].map((text) => delegate('research_agent', [], text)), finish()],
    },
    4,
  ],
  [
    'another specialist',
    {
      ...failing,
      supervisor: [...['research', 'transform', 'research'].map((who) => delegate(`${who}_agent`)), finish()],
    },
    3,
  ],
  [
    'a success in between',
    {
      supervisor: [...Array.from({ length: 3 }, () => delegate('research_agent')), finish()],
      summary: { research_agent: [summary('FAILED'), summary(), summary('FAILED')] },
    },
    3,
  ],
]
for (const [name, replies, rounds] of others) {
  test(`a delegation is made with ${name}`, async () => {
    const { body } = await (await createSupervisor(replies)).run('Go in.')
    assert.deepEqual([body.result.status, body.result.supervisor_state.history.length], ['DONE', rounds])
  })
}

test('instructions that stand in the plan are the same instructions', async () => {
  const toDo = { id: 't1', description: 'Open the door', status: 'IN_PROGRESS', owner_agent: 'research_agent' }
  const kit = await createSupervisor({ ...failing, supervisor: delegate('research_agent', [toDo], '') })
  const { body } = await kit.run('Go in.')
  assert.deepEqual([body.result.status, body.result.supervisor_state.history.length], ['ESCALATE', 2])
  assert.equal(body.result.supervisor_state.notes, TWICE)
})

test('the next owner of the run finds the same: nothing is asked or delegated again', async (t) => {
  const begun = Promise.withResolvers<void>()
  const go = Promise.withResolvers<void>()
  t.after(() => go.resolve())
  const kit = await createSupervisor({
    ...failing,
    supervisor: delegate('research_agent'),
    escalation: async (_request: unknown, call: number) => {
      begun.resolve()
      if (call === 0) await go.promise
      return 'What now?'
    },
  })
  const done = kit.run('Go in.')
  await begun.promise
  // All of the graph's steps are lost, so the next owner executes every node again.
  await kit.pool.query('delete from supervisor_checkpoints')
  const { rows } = await kit.pool.query<{ id: string }>('select id from workers')
  for (const { id } of rows) await buryWorker(kit.pool, id)
  await until(() => kit.asked('escalation').length === 2, 'the next owner asks')
  go.resolve()
  const { body } = await done
  assert.deepEqual([body.result.status, body.result.output?.content], ['ESCALATE', `${TWICE}\n\nWhat now?`])
  assert.deepEqual([kit.asked('supervisor').length, kit.asked('research_agent').length], [3, 2])
})

// Every call of the scripted models takes 15 tokens: a decision 15, the work of a specialist and its summary 30.
const limitTo = async (kit: Kit, tokens: number): Promise<void> => {
  const { status, text } = await kit.call(`PATCH ${kit.base}/settings`, { body: { supervisor_token_limit: tokens } })
  assert.equal(status, 200, text)
}
const limits: [limit: number, decisions: number, delegations: number, used: number][] = [
  [15, 1, 0, 15],
  [16, 1, 1, 45],
  [45, 1, 1, 45],
  [46, 2, 1, 60],
  [61, 2, 2, 90],
]
for (const [limit, decisions, delegations, used] of limits) {
  test(`supervisor_token_limit ${limit}: ${decisions} decisions and ${delegations} delegations, then people are asked`, async () => {
    const kit = await createSupervisor({ supervisor: delegate('research_agent') })
    await limitTo(kit, limit)
    const { body } = await kit.run('Never ends.')
    assert.equal(body.result.status, 'ESCALATE')
    assert.deepEqual([kit.asked('supervisor').length, kit.asked('research_agent').length], [decisions, delegations])
    const reason = `The task used ${used} tokens, and supervisor_token_limit is ${limit}.`
    assert.equal(body.result.output?.content, `${reason}\n\nWhat shall we do?`)
    assert.equal((await openTasks(kit)).length, 1)
  })
}

test('the answer of a person allows as many tokens again; a task that ends within them is done', async () => {
  const kit = await createSupervisor({ supervisor: [delegate('research_agent'), delegate('research_agent'), finish()] })
  await limitTo(kit, 50)
  const { body } = await kit.run('Take your time.')
  const { run_id: runId } = body.metadata
  // 45 tokens are within the limit, the second decision makes them 60.
  assert.deepEqual([body.result.status, body.result.supervisor_state.history.length], ['ESCALATE', 1])
  const again = await kit.run('Go on.', { options: { run_id: runId } })
  assert.equal(again.body.result.status, 'DONE', JSON.stringify(again.body))
})

test('the tokens of sub-runs of specialists count', async () => {
  const models = new Map([['child', createScriptedModel(() => ({ text: 'Done.', usage: { inputTokens: 1_000 } }))]])
  const kit = await createSupervisor(
    {
      supervisor: [delegate('research_agent'), delegate('research_agent')],
      work: { research_agent: [{ calls: [{ name: 'spawn_agent', args: { agent: 'child', input: 'go' } }] }, 'Done.'] },
    },
    { models },
  )
  const agent = { name: 'child', model: { provider: 'test', name: 'child' } }
  assert.equal((await kit.call(`POST ${kit.base}/agents`, { body: agent })).status, 201)
  const specialists = [kit.specialist('research_agent', ['spawn_agent'])]
  assert.equal((await kit.put('blue', { ...kit.config, specialists })).status, 200)
  await limitTo(kit, 1_000)
  const { body } = await kit.run('Have it done.')
  assert.deepEqual([body.result.status, body.result.supervisor_state.history.length], ['ESCALATE', 1])
  assert.match(body.result.supervisor_state.notes ?? '', /^The task used 1065 tokens,/)
  // The question to people took 15 more.
  assert.equal(await tokensOf(kit.pool, body.metadata.run_id), 1_080)
})

test('in an eval the same outcome comes without a task for people', async () => {
  const kit = await createEvalKit({ supervisor: delegate('research_agent') })
  await limitTo(kit, 16)
  const cases = [{ task: 'Never ends.', expect: { status: 'ESCALATE' } }]
  const made = await kit.call<{ id: string }>(`POST ${kit.base}/evals`, {
    body: { name: 'limits', cases, variants: ['blue'] },
  })
  assert.equal(made.status, 201, made.text)
  type Read = { status: string; variants: Record<string, { cases: { passed: boolean; status: string }[] }> }
  const read = () => kit.get<Read>(`/evals/${made.body.id}`)
  await until(async () => (await read()).status === 'completed', 'the eval has ended')
  const [outcome] = (await read()).variants.blue?.cases ?? []
  assert.deepEqual([outcome?.passed, outcome?.status], [true, 'ESCALATE'])
  assert.deepEqual(await openTasks(kit), [])
})
