// Templates say when they are wrong: at the door, and in the leaf where a value is not there.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../../test/kit/app.ts'
import { flowCalls } from '../../../test/kit/flow-calls.ts'
import { createScriptedModel } from '../../../test/kit/scripted-model.ts'
import type { ErrorAnswer } from '../http/errors.ts'

const gate = Promise.withResolvers<void>()
const models = new Map([['script', createScriptedModel(() => ({ text: 'An agent was here.' }))]])
const kit = await createTestApp({
  models,
  functions: {
    echo: (value: unknown) => value ?? 'nothing',
    wait: async () => {
      await gate.promise
      return 'waited'
    },
    pairs: ({ items }: { items: string[] }) => items,
    count: ({ values }: { values: unknown[] }) => values.length,
    no: () => false,
  },
})
const project = await kit.createProject()
const base = `/api/projects/${project.id}`

await kit.createAgent(project.id, { name: 'Writer' })
const { runs, start, play, ended, tasksOf } = flowCalls(kit, project.id)
const f = (name: string, more: object = {}) => ({ type: 'task', function: name, ...more })
const sequence = (...steps: object[]) => ({ type: 'sequential', steps })

const wrong = sequence(f('echo', { id: 'draft' }), f('echo', { args: { text: 'x {{results.drft}}' } }))
const told = {
  path: 'root.steps[1].args.text',
  message: '{{results.drft}}: there is no leaf called drft. Did you mean "draft"?',
}

test('Templates say when they are wrong: validate names the node and suggests the nearest id', async () => {
  const { status, body } = await kit.call(`POST ${base}/flows/validate`, { body: { root: wrong } })
  assert.deepEqual([status, body], [200, { valid: false, errors: [told] }])
  const root = f('echo', { args: '{{inptu.topic}}' })
  const unknown = await kit.call<{ errors: { message: string }[] }>(`POST ${base}/flows/validate`, { body: { root } })
  assert.match(
    unknown.body.errors[0]?.message ?? '',
    /^\{\{inptu\.topic\}\}: begins with none of .*Did you mean "input"\?$/,
  )
})

test('Templates say when they are wrong: brackets, open braces, and an item where there is none', async () => {
  const texts: [text: string, message: RegExp][] = [
    ['{{input.topic[0]}}', /^\{\{input\.topic\[0\]\}\}: .* write \{\{input\.topic\.0\}\}$/],
    ['About {{input.topic}', /^\{\{input\.topic: is not closed/],
    ['{{item}}', /^\{\{item\}\}: there is no item here/],
  ]
  for (const [args, message] of texts) {
    const { body } = await kit.call<{ errors: { path: string; message: string }[] }>(`POST ${base}/flows/validate`, {
      body: { root: f('echo', { args }) },
    })
    assert.equal(body.errors[0]?.path, 'root.args')
    assert.match(body.errors[0]?.message ?? '', message)
  }
})

test('Templates say when they are wrong: such a flow is neither stored, changed nor started', async () => {
  const { body: flow } = await kit.call<{ id: string }>(`POST ${base}/flows`, {
    body: { name: 'good', root: f('echo') },
  })
  const requests: [string, object][] = [
    [`POST ${base}/flows`, { name: 'bad', root: wrong }],
    [`PATCH ${base}/flows/${flow.id}`, { root: wrong }],
    [`POST ${runs}`, { root: wrong }],
  ]
  for (const [request, body] of requests) {
    const answer = await kit.call<ErrorAnswer>(request, { body })
    assert.equal(answer.status, 400, request)
    assert.equal(answer.body.error.message, `${told.path}: ${told.message}`)
    assert.deepEqual(answer.body.error.details, { errors: [told] })
  }
  // A flow that was stored before this was checked.
  await kit.pool.query('update flows set root = $2 where id = $1', [flow.id, JSON.stringify(wrong)])
  const { status, body } = await kit.call<ErrorAnswer>(`POST ${runs}`, { body: { flow_id: flow.id } })
  assert.deepEqual([status, body.error.message], [400, `${told.path}: ${told.message}`])
})

const text = '{{input.topic}}'
const message = '{{input.topic}} is not there: the input has subject.'
const forked = { type: 'fork_join', should_split: 'no', split: 'echo', solve: 'echo', join: 'echo', workers: 1 }
const mapped = { type: 'map_reduce', workers: 1, map: 'pairs', reduce: 'count' }
const gaps: Record<string, { root: object; error: string }> = {
  'the args of a function': { root: f('echo', { id: 'a', args: `About ${text}` }), error: `a: ${message}` },
  'the input of an agent': { root: { type: 'task', agent: 'Writer', input: text, id: 'a' }, error: `a: ${message}` },
  'a part of the args': { root: f('echo', { args: { deep: [text] } }), error: `root: ${message}` },
  items: { root: { ...mapped, id: 'm', items: text }, error: `m: ${message}` },
  'the args of the items’ function': {
    root: { ...mapped, id: 'm', items: { function: 'echo', args: text } },
    error: `m/items: ${message}`,
  },
  map: { root: { ...mapped, items: [1], map: f('echo', { id: 'a', args: text }) }, error: `a: ${message}` },
  'each of several calls': {
    root: { ...mapped, items: [['k', 1]], reduce: f('echo', { id: 'a', args: text }) },
    error: `a: ${message}`,
  },
  problem: { root: { ...forked, id: 'p', problem: { of: text } }, error: `p: ${message}` },
  source: { root: { type: 'pipeline', id: 'l', source: text, stages: [f('echo')] }, error: `l: ${message}` },
  'a stage': {
    root: { type: 'pipeline', id: 'l', source: [1], stages: [f('echo', { args: text })] },
    error: `l: Stage 0 (echo) failed at item 0: ${message}`,
  },
  goal: {
    root: { type: 'hierarchical', id: 'h', queen: 'Writer', workers: ['Writer'], goal: `Do ${text}` },
    error: `h: ${message}`,
  },
}
for (const [place, { root, error }] of Object.entries(gaps)) {
  test(`Templates say when they are wrong: a path that is not there fails the leaf and is named, in ${place}`, async () => {
    const run = await play(root, { input: { subject: 'x' } })
    assert.deepEqual([run.status, run.error], ['failed', error])
    assert.equal(
      (await play(root, { input: { subject: 'x', topic: [1] } })).error?.includes('is not there') ?? false,
      false,
    )
  })
}

test('a path below the input, the value before or the item is not waited for: no attempt follows the first', async () => {
  const retry = { max_retries: 3, backoff: 3_600_000 }
  const again = (root: object): object => ({ ...root, retry })
  const stage = (args: string) => ({ type: 'pipeline', id: 'l', source: [1], stages: [again(f('echo', { args }))] })
  const roots: object[] = [
    again(f('echo', { args: { deep: [text] } })),
    again({ type: 'task', agent: 'Writer', input: '{{previous.topic}}' }),
    { ...mapped, items: [['k', 1]], reduce: again(f('echo', { args: '{{item.topic}}' })) },
    again({ ...mapped, items: text }),
    again({ ...mapped, items: { function: 'echo', args: text } }),
    again({ type: 'pipeline', source: text, stages: [f('echo')] }),
    again({ ...forked, problem: text }),
    stage(text),
    stage('{{item.topic}}'),
  ]
  for (const root of roots) {
    const run = await play(root, { input: { subject: 'x' }, timeout: 10_000 })
    assert.equal(run.status, 'failed', JSON.stringify(root))
    assert.match(run.error ?? '', /\.topic\}\} is not there/)
    for (const { attempts } of await tasksOf(run.id)) assert.ok(attempts <= 1, `${attempts} attempts`)
  }
})

test('a path that is not there fails that leaf alone', async () => {
  const branches = [f('echo', { id: 'a', args: text }), f('echo', { id: 'b', args: 'fine' })]
  const run = await play({ type: 'parallel', branches }, { input: { subject: 'x' } })
  assert.deepEqual([run.status, run.output], ['partial', [null, 'fine']])
  const tasks = await tasksOf(run.id)
  assert.deepEqual(
    tasks.map(({ id, status, error }) => [id, status, error]),
    [
      ['a', 'failed', message],
      ['b', 'completed', null],
    ],
  )
})

test('a path that may be missing is empty in a text, and null where it is the whole text', async () => {
  const args = ['{{input.topic?}}', 'About {{input.topic?}}.', '{{ input.subject? }}']
  const run = await play(f('echo', { args }), { input: { subject: 'x' } })
  assert.deepEqual([run.status, run.output], ['completed', [null, 'About .', 'x']])
})

test('the input of a flow without input is null, and not missing', async () => {
  const run = await play(f('echo', { args: ['{{input}}', '<{{input}}>', '{{previous}}'] }))
  assert.deepEqual([run.status, run.output], ['completed', [null, '<>', null]])
  assert.match((await play(f('echo', { args: '{{input.topic}}' }))).error ?? '', /the input is null/)
})

test('a result of another branch that is not there yet fails the leaf; a retry finds the result once it is', async () => {
  const branches = (retry: object) => [
    f('wait', { id: 'slow' }),
    f('echo', { id: 'quick', args: 'x {{results.slow}}', ...retry }),
  ]
  const hasty = await start({ type: 'parallel', branches: branches({}) })
  const patient = await start({
    type: 'parallel',
    branches: branches({ retry: { max_retries: 100, backoff: 10 } }),
  })
  for (;;) {
    const [, quick] = await tasksOf(patient.id)
    if ((quick?.attempts ?? 0) > 1) break
  }
  gate.resolve()
  const failed = await ended(hasty.id)
  assert.equal(failed.status, 'partial')
  assert.match(failed.error ?? '', /quick: \{\{results\.slow\}\} is not there: slow has given no result so far\./)
  assert.deepEqual((await ended(patient.id)).output, ['waited', 'x waited'])
})

test('an item whose stage names what is not there is skipped like any other', async () => {
  const stages = [f('echo', { args: '{{item.name}}' })]
  const root = { type: 'pipeline', source: '{{input}}', stages, on_error: 'skip' }
  const run = await play(root, { input: [{ name: 'a' }, { nam: 'b' }, { name: 'c' }] })
  assert.deepEqual([run.status, run.output, run.progress.items?.skipped], ['completed', ['a', 'c'], 1])
})
