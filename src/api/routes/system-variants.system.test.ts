// The variants of a supervisor system: their configuration, and the choice of one for a request.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSupervisor, finish } from '../../../test/kit/supervisor.ts'
import type { SystemConfig } from '../../kernel/supervisor.ts'
import { byWeight, requestShares, type System } from '../../supervisor/systems.ts'

const kit = await createSupervisor()
interface Listed {
  items: (System & { share: number })[]
  next_cursor: null
}
type Stored = System & { error?: { message: string } }
const read = (variant: string, projectId = kit.project.id) =>
  kit.call<Stored>(`GET /api/projects/${projectId}/systems/${variant}`)

test('blue (100) and green (0) exist from the start, with research_agent and transform_agent', async () => {
  const project = await kit.createProject('Fresh')
  for (const [variant, traffic] of [
    ['blue', 100],
    ['green', 0],
  ] as const) {
    const { status, body } = await read(variant, project.id)
    assert.equal(status, 200)
    assert.deepEqual(
      [body.variant, body.traffic, body.updated_at, body.specialists.map(({ name }) => name)],
      [variant, traffic, null, ['research_agent', 'transform_agent']],
    )
    assert.deepEqual(body.supervisor, { prompt_id: 'supervisor_planner', model: null })
  }
  assert.equal((await read('mauve', project.id)).status, 404)
  const { body } = await kit.call<Listed>(`GET /api/projects/${project.id}/systems`)
  assert.deepEqual(
    body.items.map(({ variant, share }) => [variant, share]),
    [
      ['blue', 1],
      ['green', 0],
    ],
  )
  assert.equal(body.next_cursor, null)
})

const config = (more: object = {}) => ({ ...kit.config, traffic: 0, ...more }) as SystemConfig

for (const [what, body, problem] of [
  ['no specialists', config({ specialists: [] }), /specialists/],
  [
    'two specialists of one name',
    config({ specialists: [kit.config.specialists[0], kit.config.specialists[0]] }),
    /different names/,
  ],
  [
    'a specialist called like a node',
    config({ specialists: [{ ...kit.config.specialists[0], name: 'finalizer' }] }),
    /part of every system/,
  ],
  [
    'a tool that does not exist',
    config({ specialists: [{ ...kit.config.specialists[0], tools: ['no_such'] }] }),
    /no_such/,
  ],
  [
    'a provider that does not exist',
    config({ finalizer: { prompt_id: 'x', model: { provider: 'nobody', name: 'x' } } }),
    /nobody/,
  ],
  ['a weight below zero', config({ traffic: -1 }), /traffic/],
  ['an unknown field', config({ colour: 'red' }), /colour/],
  ['tools for the supervisor', config({ supervisor: { prompt_id: 'x', model: null, tools: ['http_fetch'] } }), /tools/],
] as const) {
  test(`a variant with ${what} is refused, and nothing changes`, async () => {
    const answer = await kit.call(`PUT ${kit.base}/systems/own`, { body })
    assert.equal(answer.status, 400)
    assert.match(answer.text, problem)
    assert.equal((await read('own')).status, 404)
  })
}

test('a project’s own variant is stored as a whole, is used by name, and is unknown to other projects', async () => {
  const other = await kit.createProject('Neighbour')
  assert.equal(
    (await kit.put('own', config({ finalizer: { ...kit.config.finalizer, prompt_id: 'finalizer_agent' } }))).status,
    200,
  )
  for (const id of ['supervisor_planner', 'finalizer_agent']) {
    const messages = [{ role: 'user', content: 'Own: {{USER_INPUT}}' }]
    await kit.call(`PUT ${kit.base}/prompts/${id}/variants/own`, { body: { messages } })
  }
  const { body } = await kit.run('Use it.', { options: { system_variant: 'own' } })
  assert.deepEqual([body.result.status, body.metadata.system_variant], ['DONE', 'own'])
  assert.match(JSON.stringify(kit.asked('finalizer').at(-1)?.prompt), /Own: Use it\./)
  assert.equal((await read('own', other.id)).status, 404)
  const audit = await kit.call(`GET ${kit.base}/audit?limit=200`)
  assert.match(audit.text, /system\.update/)
})

test('a run keeps the configuration with which it started', async () => {
  const begun = Promise.withResolvers<void>()
  const gate = Promise.withResolvers<object>()
  const own = await createSupervisor({
    supervisor: () => {
      begun.resolve()
      return gate.promise
    },
  })
  const asked = own.run('Wait.')
  await begun.promise
  await own.put('blue', { ...own.config, finalizer: { prompt_id: 'no_such_prompt', model: null } })
  gate.resolve(finish())
  assert.equal((await asked).body.result.status, 'DONE')
})

const weighted = (weights: Record<string, number>): System[] =>
  Object.entries(weights).map(([variant, traffic]) => ({ ...config({ traffic }), variant, updated_at: null }))

test('without a name the weights decide', () => {
  const systems = weighted({ blue: 30, green: 70 })
  const counts = { blue: 0, green: 0 }
  for (let at = 0; at < 1_000; at++) counts[byWeight(systems, at / 1_000).variant as 'blue' | 'green']++
  assert.deepEqual(counts, { blue: 300, green: 700 })
  assert.equal(byWeight(weighted({ blue: 0, green: 0 }), 0.99).variant, 'blue')
  assert.equal(byWeight(weighted({ blue: 0, green: 1 }), 0).variant, 'green')
})

test('the list says the share of each variant, as the choice deals it', async () => {
  for (const [weights, ofProcess, shares] of [
    [{ blue: 30, green: 70 }, null, [0.3, 0.7]],
    [{ blue: 0, green: 0 }, null, [1, 0]],
    [{ blue: 30, green: 70 }, 'blue', [1, 0]],
    [{ blue: 0, green: 0 }, 'green', [0, 1]],
  ] as const) {
    assert.deepEqual([...requestShares(weighted(weights), ofProcess).values()], shares)
  }
  const own = await createSupervisor({}, { systemVariant: 'green' })
  const { items } = (await own.call<Listed>(`GET ${own.base}/systems`)).body
  assert.deepEqual(
    items.map(({ share }) => share),
    [0, 1],
  )
})

test('a context keeps its variant after a change of the weights; SYSTEM_VARIANT and the request come first', async () => {
  const own = await createSupervisor()
  await own.put('green', { ...own.config, traffic: 0 })
  const variantOf = async (context_id: string | null, options = {}) =>
    (await own.run('x', { context: { context_id }, options })).body.metadata.system_variant
  assert.equal(await variantOf('c1'), 'blue')
  await own.put('blue', { ...own.config, traffic: 0 })
  await own.put('green', { ...own.config, traffic: 100 })
  assert.deepEqual([await variantOf('c1'), await variantOf('c2'), await variantOf(null)], ['blue', 'green', 'green'])
  assert.equal(await variantOf('c1', { system_variant: 'green' }), 'green')
  const set = await createSupervisor({}, { systemVariant: 'green' })
  await set.put('green', { ...set.config, traffic: 0 })
  assert.equal((await set.run('x')).body.metadata.system_variant, 'green')
})

test('the body of a GET may be sent in a PUT; the planner gets the descriptions of specialists', async () => {
  const kit = await createSupervisor()
  const read = await kit.get<{ specialists: object[] }>('/systems/blue')
  assert.equal((await kit.put('blue', read)).status, 200)
  assert.equal((await kit.put('green', read)).status, 400, 'the body of another variant')
  const specialists = read.specialists.map((each) => ({ ...each, description: 'Looks things up.' }))
  assert.equal((await kit.put('blue', { ...read, specialists })).status, 200)
  await kit.run('Go.')
  assert.match(JSON.stringify(kit.asked('supervisor')[0]?.prompt), /specialist_descriptions.*Looks things up\./)
})
