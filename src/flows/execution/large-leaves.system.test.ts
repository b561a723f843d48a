// Leaves that cannot be started, because their arguments are larger than any value that can be serialised, or because
// the database refuses them. Each such problem fails its leaf, once, and is not tried again.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestFlows } from '../../../test/kit/flows.ts'
import { createScriptedModel } from '../../../test/kit/scripted-model.ts'
import { setHalted } from '../../identity/projects.ts'
import { systemActor } from '../../kernel/principal.ts'
import type { BuiltInNode } from '../machine/built-in-patterns.ts'
import { cancelFlow } from './cancel.ts'

const flows = await createTestFlows({
  functions: {
    same: (value: unknown) => value,
    fifteen: (_: unknown, { attempt }) => String(attempt).repeat(15 * 1_048_576),
    pair: () => [['a', 1]],
    yes: () => true,
    never: () => assert.fail('the argument is too large, so the function must not be called'),
  },
})
flows.models.set(
  'script',
  createScriptedModel(() => ({ text: 'said' })),
)
await flows.createAgent({ name: 'ann' })

const f = (name: string, more: object = {}): BuiltInNode => ({ type: 'task', function: name, ...more })
const sequence = (...steps: BuiltInNode[]): BuiltInNode => ({ type: 'sequential', steps })
const parallel = (...branches: BuiltInNode[]): BuiltInNode => ({ type: 'parallel', branches })

/** The largest input that the API accepts. */
const input = 'x'.repeat(1_000_000)
const nodes = Array.from({ length: 200_000 }, () => 1)
const asList = (count: number): string[] => Array.from({ length: count }, () => '{{input}}')
const asText = (count: number): string => '{{input}} '.repeat(count)

const tooLarge: Record<string, { leaf: BuiltInNode; input?: unknown; error?: RegExp }> = {
  'an agent that is given a list': { leaf: { type: 'task', agent: 'ann', input: { all: asList(600) } } },
  'an agent that is given a text': { leaf: { type: 'task', agent: 'ann', input: asText(600) } },
  'an agent that is given the result before it': {
    leaf: sequence(parallel(...Array.from({ length: 20 }, () => f('same'))), { type: 'task', agent: 'ann' }),
  },
  'a function that is given a list': { leaf: f('never', { args: asList(10_000) }) },
  'a function that is given a text': { leaf: f('never', { args: asText(10_000) }) },
  'many values': { leaf: f('never', { args: asList(10) }), input: nodes, error: /more than 1000000 values/ },
  'the source of a pipeline': {
    leaf: {
      type: 'pipeline',
      source: { function: 'never', args: asList(600) },
      stages: [{ type: 'task', function: 'never' }],
      on_error: 'stop',
    },
  },
  'a stage of a pipeline': {
    leaf: {
      type: 'pipeline',
      source: [1],
      stages: [{ type: 'task', function: 'never', args: asList(600) }],
      on_error: 'stop',
    },
  },
  'an agent that is a stage': {
    leaf: {
      type: 'pipeline',
      source: [1],
      stages: [{ type: 'task', agent: 'ann', input: asList(600) }],
      on_error: 'stop',
    },
  },
  'the items of a map': {
    leaf: {
      type: 'map_reduce',
      items: { function: 'never', args: asText(600) },
      workers: 1,
      map: 'never',
      reduce: 'never',
    },
  },
  'a map': { leaf: { type: 'map_reduce', items: asList(600), workers: 1, map: 'never', reduce: 'never' } },
  'a reduce': {
    leaf: {
      type: 'map_reduce',
      items: [1],
      workers: 1,
      map: 'pair',
      reduce: { type: 'task', function: 'never', args: asList(600) },
    },
  },
  'the problem of a fork': {
    leaf: {
      type: 'fork_join',
      problem: asText(600),
      should_split: 'never',
      split: 'never',
      solve: 'never',
      join: 'never',
      stealing: true,
      workers: 1,
    },
  },
  'a piece of a fork': {
    leaf: {
      type: 'fork_join',
      problem: asList(600),
      should_split: 'never',
      split: 'never',
      solve: 'never',
      join: 'never',
      stealing: true,
      workers: 1,
    },
  },
  'the goal of a queen': { leaf: { type: 'hierarchical', queen: 'ann', workers: ['ann'], goal: asText(600) } },
}
for (const [
  what,
  { leaf, input: given = input, error: expected = /takes more than 16777216 bytes \(16 MiB\)/ },
] of Object.entries(tooLarge)) {
  test(`an argument that is too large fails its leaf: ${what}`, async () => {
    const { status, error, crashes } = await flows.play(leaf, { input: given })
    assert.deepEqual([status, crashes], ['failed', 0])
    assert.match(error ?? '', expected)
  })
}

test('an argument that is too large fails no other leaf', async () => {
  const { status, output, error } = await flows.play(parallel(f('never', { args: asList(600) }), f('yes')), { input })
  assert.deepEqual([status, output], ['partial', [null, true]])
  assert.match(error ?? '', /16 MiB/)
})

test('the arguments of a leaf are rendered when it starts, from the results of that moment', async () => {
  const args = { first: '{{results.first}}', second: '{{results.second?}}' }
  const root = sequence(
    f('same', { id: 'first', args: 1 }),
    parallel(f('same', { args }), f('same', { id: 'second', args: 2 })),
  )
  assert.deepEqual((await flows.play(root, { workers: 1 })).output, [{ first: 1, second: null }, 2])
})

test('an input that the database refuses fails only its own leaf', async () => {
  await flows.pool.query(
    `create function refuse() returns trigger language plpgsql as $$ begin
       if new.input = '"poison"' then raise exception 'This cannot be stored.'; end if; return new; end $$;
     create trigger refuse before insert on agent_runs for each row execute function refuse()`,
  )
  const ask = (text: string): BuiltInNode => ({ type: 'task', agent: 'ann', input: text })
  const { status, error, output } = await flows.play(parallel(ask('one'), ask('poison'), ask('two')))
  assert.deepEqual([status, output], ['partial', ['said', null, 'said']])
  assert.match(error ?? '', /This cannot be stored/)
  await flows.pool.query('drop trigger refuse on agent_runs')
})

test('the output of a flow is bounded', async () => {
  const given = await flows.play(parallel(...Array.from({ length: 5 }, () => f('fifteen'))))
  const error = 'The output of the flow takes more than 67108864 bytes (64 MiB).'
  assert.deepEqual([given.status, given.error], ['failed', error])
})

test('a cancel ends a flow that no process can go on with', async () => {
  await setHalted(flows.pool, flows.projectId, true, systemActor)
  while (!flows.worker.isHalted(flows.projectId)) await new Promise(setImmediate)
  const id = await flows.startFlow(f('yes'))
  await flows.pool.query(`update flow_runs set root = '{"type": "sequential"}' where id = $1`, [id])
  await cancelFlow(flows.pool, flows.projectId, id, systemActor)
  assert.equal((await flows.ended(id)).status, 'cancelled')
  await setHalted(flows.pool, flows.projectId, false, systemActor)
})
