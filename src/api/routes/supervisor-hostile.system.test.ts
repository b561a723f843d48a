// Models, people and callers with unexpected behaviour.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSupervisor, delegate, finish, summary } from '../../../test/kit/supervisor.ts'
import { until } from '../../../test/kit/until.ts'

const escalate = { plan: [], action: 'escalate' }
const withMetadata = (metadata: string): string =>
  `{"plan":[{"id":"t","description":"d","status":"PENDING","metadata":${metadata}}],"action":"finish"}`
const nested = (depth: number): string => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`

for (const [what, decision] of [
  ['metadata of 250 levels', withMetadata(nested(250))],
  ['metadata of 100,000 levels', withMetadata(nested(100_000))],
  ['a number that no double holds', withMetadata('{"n":1e400}')],
  ['a plan that fills every prompt', withMetadata(`{"x":"${'x'.repeat(200_000)}"}`)],
  [
    'a todo that is its own parent',
    '{"plan":[{"id":"t","description":"d","status":"PENDING","parent_id":"t"}],"action":"finish"}',
  ],
] as const) {
  test(`a decision with ${what} is asked for once more, and then escalates`, async () => {
    const kit = await createSupervisor({ supervisor: decision })
    const { status, body } = await kit.run('Decide.')
    assert.deepEqual([status, body.result?.status], [200, 'ESCALATE'], JSON.stringify(body.error))
    assert.equal(kit.asked('supervisor').length, 2)
  })
}

test('instructions with characters that no column takes reach the specialist without them', async () => {
  const kit = await createSupervisor({
    supervisor: [delegate('research_agent', [], 'Find\0 it \ud800.'), finish()],
  })
  const { body } = await kit.run('Go.')
  assert.equal(body.result.status, 'DONE', JSON.stringify(body))
  assert.match(JSON.stringify(kit.asked('research_agent')[0]?.prompt), /Find\ufffd it \ufffd\./)
})

test('without instructions a specialist is told its own todos', async () => {
  const toDo = (id: string, owner: string, description: string) => ({
    id,
    description,
    status: 'IN_PROGRESS',
    owner_agent: owner,
  })
  const plan = [toDo('1', 'research_agent', 'Look it up.'), toDo('2', 'transform_agent', 'Write it.')]
  const kit = await createSupervisor({ supervisor: [delegate('research_agent', plan, ' '), finish(plan)] })
  await kit.run('Go.')
  const { items } = await kit.get<{ items: { input: unknown; parent_run_id: string | null }[] }>('/runs')
  assert.equal(items.find((run) => run.parent_run_id !== null)?.input, 'Look it up.')
})

test('silent failures on missing prompts are prohibited: a specialist’s prompt that is missing fails the run', async () => {
  const kit = await createSupervisor({ supervisor: [delegate('research_agent'), finish()] })
  await kit.call(`DELETE ${kit.base}/prompts/research_agent/variants/blue`)
  const { status, body } = await kit.run('Go.')
  assert.deepEqual([status, body.error?.code], [422, 'PROMPT_MISSING'])
  assert.match(body.error?.message ?? '', /research_agent/)
  assert.equal(kit.asked('supervisor').length, 1)
})

test('a text that reached the limit of its length is the answer, as far as it goes', async () => {
  const kit = await createSupervisor({ finalizer: { text: 'The report begins', finishReason: 'length' } })
  const { body } = await kit.run('Report.')
  assert.deepEqual([body.result.status, body.result.output?.content], ['DONE', 'The report begins'])
  const other = await createSupervisor({ supervisor: escalate, escalation: { text: 'May I', finishReason: 'length' } })
  const asked = await other.run('Ask.')
  assert.deepEqual([asked.body.result.status, asked.body.result.output?.content], ['ESCALATE', 'May I'])
})

test('the supervisor reads only a part of a summary with a million characters', async () => {
  const long = {
    ...summary(),
    key_decisions: Array.from({ length: 1_000 }, (_, place) => `${place} `.padEnd(1_000, 'x')),
  }
  const kit = await createSupervisor({
    supervisor: [delegate('research_agent'), finish()],
    summary: { research_agent: long },
  })
  const { body } = await kit.run('Go.')
  assert.equal(body.result.status, 'DONE', JSON.stringify(body.result.error))
  const [told] = body.result.supervisor_state.history
  assert.deepEqual([told?.key_decisions.length, told?.key_decisions.at(-1)], [21, '[980 more]'])
})

for (const name of ['constructor', 'toString', 'hasOwnProperty']) {
  test(`a specialist cannot be called ${name}`, async () => {
    const kit = await createSupervisor()
    const { status } = await kit.put('green', { ...kit.config, specialists: [{ ...kit.specialist('x'), name }] })
    assert.equal(status, 400)
  })
}

test('a halt during the work of a specialist is answered 202 with RUNNING', async () => {
  const gate = Promise.withResolvers<void>()
  const kit = await createSupervisor({
    supervisor: [delegate('research_agent'), finish()],
    work: { research_agent: { text: 'Done.', waitFor: gate.promise } },
  })
  const request = kit.run('Go.')
  await until(async () => kit.asked('research_agent').length > 0, 'the specialist works')
  await kit.call(`POST ${kit.base}/halt`)
  gate.resolve()
  const { status, body } = await request
  assert.deepEqual([status, body.result.status], [202, 'RUNNING'])
  await kit.call(`POST ${kit.base}/unhalt`)
  await until(async () => (await kit.read(body.metadata.run_id)).body.result.status === 'DONE', 'the run goes on')
})

for (const [what, change, told] of [
  ['without words', { status: 'completed' }, /The question was marked as done, without words\./],
  ['by declining it', { status: 'cancelled' }, /The people in charge declined to answer\./],
] as const) {
  test(`a question that is answered ${what} is told to the supervisor in plain words`, async () => {
    const kit = await createSupervisor({ supervisor: [escalate, finish()] })
    const { body } = await kit.run('Ask.')
    const { items } = await kit.get<{ items: { id: string }[] }>('/tasks?kind=escalation')
    await kit.call(`PATCH ${kit.base}/tasks/${items[0]?.id}`, { body: change })
    await until(async () => (await kit.read(body.metadata.run_id)).body.result.status === 'DONE', 'the run goes on')
    assert.match(JSON.stringify(kit.asked('supervisor')[1]?.prompt), told)
  })
}

test('a request that continues a run on another variant is refused', async () => {
  const kit = await createSupervisor({ supervisor: [escalate, finish()] })
  const { body } = await kit.run('Ask.')
  const options = { run_id: body.metadata.run_id, system_variant: 'green' }
  assert.equal((await kit.run('Yes.', { options })).status, 409)
  assert.equal((await kit.run('Yes.', { options: { ...options, system_variant: 'blue' } })).status, 200)
})

test('a hundred evals of a project may be under way', async () => {
  const kit = await createSupervisor()
  await kit.call(`POST ${kit.base}/halt`)
  const create = () =>
    kit.call(`POST ${kit.base}/evals`, { body: { name: 'e', variants: ['blue'], cases: [{ task: 'x' }] } })
  for (let made = 0; made < 100; made++) assert.equal((await create()).status, 201)
  const { status, text } = await create()
  assert.deepEqual([status, /100 evals/.test(text)], [409, true])
})

test('an error in a case names its field, though a case has several forms', async () => {
  const kit = await createSupervisor()
  const cases = [{ task: 'x', expect: { status: 'NOPE' } }]
  const { text } = await kit.call(`POST ${kit.base}/evals`, { body: { name: 'e', variants: ['blue'], cases } })
  assert.match(text, /body\.cases\.0\.expect\.status must be one of /)
})
