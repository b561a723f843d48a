import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { createTestFlows } from '../../../test/kit/flows.ts'
import { createScriptedModel } from '../../../test/kit/scripted-model.ts'
import { setHalted } from '../../identity/projects.ts'
import { FLOW_CHANNEL } from '../../journal/wake.ts'
import { systemActor } from '../../kernel/principal.ts'
import type { BuiltInNode } from '../machine/built-in-patterns.ts'
import { adjustFlow } from './adjust.ts'
import { functionKey } from './leaf-scope.ts'

const calls: { name: string; key: string; attempt: number }[] = []
let gate = Promise.withResolvers<void>()
const flows = await createTestFlows({
  functions: {
    add: (n: number) => n + 1,
    fail: () => {
      throw new Error('broken')
    },
    note: (name: string, { key, attempt }) => {
      calls.push({ name, key, attempt })
      return name
    },
    wait: async (_: unknown, { signal }) => {
      await Promise.race([gate.promise, new Promise((resolve) => signal.addEventListener('abort', resolve))])
      return signal.aborted ? Promise.reject(new Error('aborted')) : 'waited'
    },
    deaf: () => new Promise(() => {}),
    bad: () => 10n,
  },
  drainMs: 50,
})
const f = (name: string, more: object = {}): BuiltInNode => ({ type: 'task', function: name, ...more })
const sequence = (...steps: BuiltInNode[]): BuiltInNode => ({ type: 'sequential', steps })
const parallel = (...branches: BuiltInNode[]): BuiltInNode => ({ type: 'parallel', branches })

test('Execute flow: five tasks are journalled and counted, and the result comes at the end', async () => {
  const { id, status, output, progress } = await flows.play(
    sequence(f('add'), f('add'), f('add'), f('add'), f('add')),
    { input: 0 },
  )
  assert.deepEqual([status, output], ['completed', 5])
  assert.deepEqual(progress, { total: 5, pending: 0, running: 0, completed: 5, failed: 0, skipped: 0 })
  const kinds = await flows.flowKinds(id)
  assert.deepEqual(kinds, [
    'flow.started',
    ...Array.from({ length: 5 }, () => ['task.started', 'task.completed']).flat(),
    'flow.completed',
  ])
})

test('a failure ends a sequence: finished steps keep their results, later steps are skipped', async () => {
  const { id, status, error, progress } = await flows.play(sequence(f('add'), f('fail'), f('add')), { input: 0 })
  assert.deepEqual([status, error], ['failed', 'root/1: broken'])
  assert.deepEqual(progress, { total: 3, pending: 0, running: 0, completed: 1, failed: 1, skipped: 1 })
  assert.equal((await flows.flowKinds(id)).at(-1), 'flow.failed')
})

test('a parallel flow with a failure is partial, and keeps the results of the other branches', async () => {
  const { status, output } = await flows.play(parallel(f('add'), f('fail'), f('add')), { input: 1 })
  assert.deepEqual([status, output], ['partial', [2, null, 2]])
})

test('a leaf that is tried again keeps its key, and its attempts are journalled', async () => {
  let tries = 0
  flows.functions.set('flaky', (_: unknown, { key, attempt }) => {
    calls.push({ name: 'flaky', key, attempt })
    if (++tries < 3) throw new Error('not yet')
    return 'now'
  })
  const root = f('flaky', { id: 'x', retry: { max_retries: 2, backoff: 20 } })
  const { id, output, progress } = await flows.play(root)
  assert.equal(output, 'now')
  assert.equal(progress.total, 1)
  const made = calls.filter((call) => call.name === 'flaky')
  assert.deepEqual(
    made.map((call) => [call.key, call.attempt]),
    [1, 2, 3].map((attempt) => [functionKey(`${id}:x`, 'flaky', null), attempt]),
  )
})

test('a result that is no JSON fails the leaf, and the error says so', async () => {
  assert.match((await flows.play(f('bad'))).error ?? '', /bad/)
})

test('no more leaves are under way than the run may have workers', async () => {
  let open = 0
  let most = 0
  flows.functions.set('busy', async () => {
    most = Math.max(most, ++open)
    await new Promise(setImmediate)
    open--
  })
  await flows.play(parallel(...Array.from({ length: 20 }, () => f('busy'))), { workers: 3 })
  assert.equal(most, 3)
})

test('an agent as a leaf is a run: the flow holds no slot meanwhile, and the text is the value', async () => {
  flows.models.set(
    'script',
    createScriptedModel((request) => ({ text: `Heard: ${JSON.stringify(request.prompt.at(-1)?.content)}` })),
  )
  const agent = await flows.createAgent({ name: 'leaf' })
  const leaf: BuiltInNode = { type: 'task', agent: 'leaf', input: 'Say {{previous}}.' }
  const { id, status, output, ended_leaves } = await flows.play(sequence(f('add'), parallel(leaf, leaf), f('note')), {
    input: 1,
  })
  assert.equal(status, 'completed')
  assert.equal(ended_leaves, 2)
  assert.match(JSON.stringify(output), /Say 2\./)
  const { rows } = await flows.pool.query<{ trigger: { type: string }; agent_id: string }>(
    'select trigger, agent_id from agent_runs where flow_run_id = $1',
    [id],
  )
  assert.deepEqual(
    rows.map((row) => [row.trigger.type, row.agent_id]),
    [
      ['flow', agent.id],
      ['flow', agent.id],
    ],
  )
})

test('an agent that fails, or does not exist, fails its leaf', async () => {
  flows.models.set(
    'broken',
    createScriptedModel(() => ({ fail: { message: 'No model.', isRetryable: false } })),
  )
  await flows.createAgent({ name: 'broken', model: { provider: 'test', name: 'broken' } })
  assert.match((await flows.play({ type: 'task', agent: 'broken' }, { input: 'x' })).error ?? '', /No model/)
  assert.match(
    (await flows.play({ type: 'task', agent: 'nobody' }, { input: 'x' })).error ?? '',
    /no agent called nobody/,
  )
})

test('Flow cancellation: nothing new is begun, and leaves under way may end and keep their results', async () => {
  gate = Promise.withResolvers()
  const id = await flows.startFlow(sequence(parallel(f('add'), f('wait')), f('add')), { input: 1 })
  while ((await flows.read(id)).progress.completed < 1) await new Promise(setImmediate)
  await cancelFlow(id)
  gate.resolve()
  const { status, progress } = await flows.ended(id)
  assert.equal(status, 'cancelled')
  assert.deepEqual(progress, { total: 3, pending: 0, running: 0, completed: 2, failed: 0, skipped: 1 })
})

for (const how of ['ends well', 'fails']) {
  test(`a cancel that is committed before the end wins, even if the last leaf ${how} meanwhile`, async () => {
    flows.functions.set('last', async (_: unknown, { run_id: runId }: { run_id: string }) => {
      // The owner is not told of the cancel: it learns of it from the journal.
      await flows.pool.query('update flow_runs set cancel_requested_at = muster.now() where id = $1', [runId])
      if (how === 'fails') throw new Error('no')
      return 'done'
    })
    const id = await flows.startFlow(sequence(f('add'), f('last')), { input: 1 })
    const { status, progress } = await flows.ended(id)
    assert.equal(status, 'cancelled')
    assert.equal(progress.completed, how === 'fails' ? 1 : 2)
    const ends = `select kind from flow_events where run_id = $1 and kind like 'flow.%' and kind <> 'flow.started'`
    assert.deepEqual((await flows.pool.query(ends, [id])).rows, [{ kind: 'flow.cancelled' }])
  })
}

test('a leaf that ignores the cancel is left behind when its time is over', async () => {
  const id = await flows.startFlow(parallel(f('deaf'), f('add')), { input: 1 })
  while ((await flows.read(id)).progress.completed < 1) await new Promise(setImmediate)
  await cancelFlow(id)
  const { status, progress } = await flows.ended(id)
  assert.deepEqual([status, progress.completed, progress.failed], ['cancelled', 1, 1])
})

test('Flow timeout handling: results are kept, and the error says that the time of the flow was up', async () => {
  const { status, error, progress } = await flows.play(parallel(f('add'), f('deaf')), { input: 1, timeout: 60 })
  assert.deepEqual([status, error], ['timed_out', 'The time of the flow was up.'])
  assert.equal(progress.completed, 1)
})

test('a part whose time is up fails, its leaves are stopped, and the rest of the flow goes on', async () => {
  const slow: BuiltInNode = { type: 'sequential', timeout: 40, steps: [f('add'), f('wait')] }
  gate = Promise.withResolvers()
  const { id, status, output, progress } = await flows.play(parallel(slow, f('add')), { input: 1 })
  assert.deepEqual([status, output], ['partial', [null, 2]])
  assert.deepEqual([progress.completed, progress.failed, progress.running], [2, 1, 0])
  assert.ok((await flows.flowKinds(id)).includes('node.expired'))
})

test('Fork-join with workers of its own: they take the pieces, and an idle worker takes from another', async () => {
  flows.functions.set('large', (list: number[]) => list.length > 8)
  flows.functions.set('halves', (list: number[]) => [list.slice(0, list.length / 2), list.slice(list.length / 2)])
  let solved = 0
  flows.functions.set('sum', async (list: number[]) => {
    // The worker with the first piece is held up until the others have done nearly all the rest, its own share too.
    while (list[0] === 0 && list.length === 8 && solved < 6) await new Promise(setImmediate)
    if (list.length === 8) solved++
    return list.reduce((all, each) => all + each, 0)
  })
  const problem = Array.from({ length: 64 }, (_, index) => index)
  const shared = {
    type: 'fork_join',
    problem,
    should_split: 'large',
    split: 'halves',
    solve: 'sum',
    join: 'sum',
  } as const
  const { id, output } = await flows.play({ ...shared, workers: 3, stealing: true })
  assert.equal(output, 2_016)
  const { rows } = await flows.pool.query<{ worker: string; handed: boolean }>(
    `select data->>'worker' as worker, data ? 'handover' as handed from flow_events where run_id = $1 and kind = 'task.started'`,
    [id],
  )
  assert.deepEqual([...new Set(rows.map((row) => row.worker))].toSorted(), ['w1', 'w2', 'w3'])
  assert.ok(rows.some((row) => row.handed))
})

test('an overloaded hierarchical part switches to mesh, and every task is done once', async () => {
  const done: number[] = []
  flows.functions.set('one', async (n: number) => {
    await new Promise(setImmediate)
    done.push(n)
    return n
  })
  const tasks = Array.from({ length: 200 }, (_, index) => ({ type: 'task' as const, function: 'one', args: index }))
  const { id, output } = await flows.play({
    type: 'adaptive',
    topology: 'hierarchical',
    workers: 4,
    tasks,
    switch: true,
  })
  assert.deepEqual(
    output,
    tasks.map((task) => task.args),
  )
  assert.equal(new Set(done).size, 200)
  assert.equal(done.length, 200)
  const { rows } = await flows.pool.query<{ to: string }>(
    `select data->>'to' as to from flow_events where run_id = $1 and kind = 'topology.switched'`,
    [id],
  )
  assert.deepEqual(rows, [{ to: 'mesh' }])
})

test('a flow of a halted project begins no leaf, and goes on after the release', async () => {
  gate = Promise.withResolvers()
  const id = await flows.startFlow(sequence(f('wait'), f('note', { args: 'after the halt' })))
  while ((await flows.read(id)).progress.running < 1) await new Promise(setImmediate)
  await setHalted(flows.pool, flows.projectId, true, systemActor)
  while (!flows.worker.isHalted(flows.projectId)) await new Promise(setImmediate)
  gate.resolve()
  while ((await flows.read(id)).owner !== null) await new Promise(setImmediate)
  assert.equal((await flows.read(id)).progress.completed, 1)
  assert.ok(!calls.some((call) => call.name === 'after the halt'))
  await setHalted(flows.pool, flows.projectId, false, systemActor)
  assert.equal((await flows.ended(id)).output, 'after the halt')
})

test('added workers take leaves at once', async () => {
  gate = Promise.withResolvers()
  const id = await flows.startFlow(parallel(...Array.from({ length: 6 }, () => f('wait'))), { workers: 1 })
  while ((await flows.read(id)).progress.running < 1) await new Promise(setImmediate)
  const of = { projectId: flows.projectId, flowRunId: id, actor: systemActor }
  await adjustFlow(flows.pool, of, { workers: { add: 3, usual: 50 } })
  while ((await flows.read(id)).progress.running < 4) await new Promise(setImmediate)
  gate.resolve()
  assert.equal((await flows.ended(id)).status, 'completed')
})

async function cancelFlow(id: string): Promise<void> {
  await flows.pool.query('update flow_runs set cancel_requested_at = muster.now() where id = $1', [id])
  await flows.pool.query(`select pg_notify('muster_flow', $1)`, [id])
}

test('a pipeline is a leaf of a flow: items go through its stages, functions and agents alike', async () => {
  flows.functions.set('double', (n: number) => n * 2)
  flows.functions.set('numbers', async function* () {
    for (let n = 1; n <= 30; n++) yield n
  })
  const stages = [
    { type: 'task' as const, function: 'double' },
    { type: 'task' as const, function: 'add' },
  ]
  const pipeline: BuiltInNode = { type: 'pipeline', id: 'line', source: 'numbers', stages, on_error: 'stop' }
  const { status, output, progress } = await flows.play(sequence(pipeline, f('note', { args: '{{results.line.29}}' })))
  assert.deepEqual([status, output], ['completed', 61])
  assert.deepEqual(progress, {
    total: 3,
    pending: 0,
    running: 0,
    completed: 3,
    failed: 0,
    skipped: 0,
    items: { total: 30, completed: 30, failed: 0, skipped: 0 },
  })
  const withAgent: BuiltInNode = {
    type: 'pipeline',
    source: ['a', 'b', 'c'],
    on_error: 'stop',
    stages: [{ type: 'task', agent: 'leaf', input: 'Say {{item}}.' }],
  }
  const spoken = await flows.play(withAgent)
  assert.equal(spoken.status, 'completed')
  assert.match(JSON.stringify(spoken.output), /Say a\..*Say b\..*Say c\./)
})

test('a cancel lets the items under way end and begins no other', async () => {
  const begun: number[] = []
  const ended: number[] = []
  const opened = Promise.withResolvers<void>()
  flows.functions.set('slowly', async (item: number, { signal }: { signal: AbortSignal }) => {
    begun.push(item)
    await opened.promise
    await new Promise((resolve) => setTimeout(resolve, 20))
    if (!signal.aborted) ended.push(item)
    return item
  })
  const line: BuiltInNode = {
    type: 'pipeline',
    source: Array.from({ length: 50 }, (_, index) => index),
    on_error: 'stop',
    stages: [{ type: 'task', function: 'slowly' }],
  }
  const id = await flows.startFlow(line)
  while (begun.length === 0) await new Promise(setImmediate)
  await cancelFlow(id)
  opened.resolve()
  assert.equal((await flows.ended(id)).status, 'cancelled')
  assert.deepEqual(ended, begun)
  // The owner is told of the cancel a moment after the request.
  assert.ok(begun.length < 25, `${begun.length} items were begun`)
})

test('the next step gets the whole output of a pipeline, even if it is large, after a takeover too', async () => {
  flows.functions.set('large', (item: number) => `${item}${'x'.repeat(600_000)}`)
  flows.functions.set('lengths', (items: string[]) => items.map((item) => item.length))
  let isHeld = true
  flows.functions.set('held', async (items: unknown, { signal }: { signal: AbortSignal }) => {
    while (isHeld && !signal.aborted) await new Promise(setImmediate)
    return items
  })
  const line: BuiltInNode = {
    type: 'pipeline',
    id: 'line',
    source: [1, 2, 3],
    on_error: 'stop',
    stages: [{ type: 'task', function: 'large' }],
  }
  const id = await flows.startFlow(sequence(line, f('lengths'), f('held')))
  while (!(await flows.flowKinds(id)).includes('task.completed')) await new Promise(setImmediate)
  await flows.pool.query(
    'update flow_runs set fence = fence + 1, owner = null, ready_at = muster.now() where id = $1',
    [id],
  )
  isHeld = false
  flows.flowWorker.poke()
  assert.deepEqual((await flows.ended(id)).output, [600_001, 600_001, 600_001])
})

test('a problem that is split without end, or into no list, fails with an error that says so', async () => {
  flows.functions.set('always', () => true)
  flows.functions.set('same', (problem: unknown) => [problem])
  flows.functions.set('nothing', () => [])
  const parts = {
    type: 'fork_join',
    problem: 1,
    should_split: 'always',
    solve: 'add',
    join: 'add',
    workers: 2,
    stealing: true,
  } as const
  assert.match((await flows.play({ ...parts, split: 'same' })).error ?? '', /split 25 times over/)
  assert.match((await flows.play({ ...parts, split: 'nothing' })).error ?? '', /split gave no list/)
})

test('leaves that waited or were never reached are journalled as skipped', async () => {
  const { id, progress } = await flows.play(
    sequence(f('add', { id: 'a' }), f('bad', { id: 'b' }), f('add', { id: 'c' })),
    {
      input: 1,
    },
  )
  assert.deepEqual(progress, { total: 3, pending: 0, running: 0, completed: 1, failed: 1, skipped: 1 })
  const { rows } = await flows.pool.query(
    `select data->>'task_id' as id from flow_events where run_id = $1 and kind = 'task.skipped'`,
    [id],
  )
  assert.deepEqual(rows, [{ id: 'c' }])
})

test('the error of a partial run names the failed leaves', async () => {
  const { status, error } = await flows.play(parallel(f('add'), f('bad', { id: 'b' })), { input: 1 })
  assert.equal(status, 'partial')
  assert.match(error ?? '', /^1 failed\. b: /)
})

test('a result that cannot be stored as it is fails its leaf, with an error about the function', async () => {
  let nested: unknown = 1
  for (let depth = 0; depth < 70; depth++) nested = [nested]
  const hung = f('hang', { timeout: 20 })
  flows.functions.set('nul', () => 'a\0b')
  flows.functions.set('half', () => ({ text: 'a\ud800' }))
  flows.functions.set('deep', () => nested)
  flows.functions.set('hang', () => new Promise(() => {}))
  assert.match((await flows.play(f('nul'))).error ?? '', /no Unicode, or NUL/)
  assert.match((await flows.play(f('half'))).error ?? '', /no Unicode, or NUL/)
  assert.match((await flows.play(f('deep'))).error ?? '', /nested deeper than 64 levels/)
  assert.match(
    (await flows.play(hung)).error ?? '',
    /^root: The function hang did not answer within 20 ms and was given up\.$/,
  )
})

test('fifty notices that come during one look are one further look', { timeout: 30_000 }, async () => {
  gate = Promise.withResolvers()
  const { pool } = flows
  const id = await flows.startFlow(f('wait'))
  while ((await flows.read(id)).progress.running === 0) await new Promise(setImmediate)
  const looking = Promise.withResolvers<void>()
  const told = Promise.withResolvers<void>()
  const query = pool.query.bind(pool) as (...given: unknown[]) => Promise<never>
  let looks = 0
  const held = mock.method(pool, 'query', async (...given: unknown[]) => {
    if (String(given[0]).startsWith('select ended_leaves') && ++looks === 1) {
      looking.resolve()
      await told.promise
    }
    return query(...given)
  })
  await query('select pg_notify($1, $2)', [FLOW_CHANNEL, id])
  await looking.promise
  for (let count = 0; count < 50; count++) await query('select pg_notify($1, $2)', [FLOW_CHANNEL, id])
  told.resolve()
  gate.resolve()
  await flows.ended(id)
  held.mock.restore()
  assert.ok(looks <= 10, `${looks} looks`)
})
