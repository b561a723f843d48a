// Timers of a parked flow: all its leaves are under way elsewhere, and no process holds the flow in memory.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestFlows } from '../../../test/kit/flows.ts'
import { createScriptedModel } from '../../../test/kit/scripted-model.ts'
import { systemActor } from '../../kernel/principal.ts'
import { type BuiltInNode, builtInPatterns } from '../machine/built-in-patterns.ts'
import { adjustFlow } from './adjust.ts'
import type { ClaimedFlow } from './claim.ts'
import { stateOf } from './state.ts'

let gate = Promise.withResolvers<void>()
let tries = 0
let firedAt: number | null = null
const flows = await createTestFlows({
  functions: {
    flaky: () => {
      tries++
      if (tries < 3) throw new Error('not yet')
      return 'at last'
    },
    stubborn: (_: unknown, { signal }) =>
      new Promise((resolve) => {
        signal.addEventListener('abort', () => {
          firedAt = Date.now()
          resolve('stopped')
        })
      }),
  },
  drainMs: 60_000,
})
flows.models.set(
  'script',
  createScriptedModel(() => ({ text: 'Done.', waitFor: gate.promise })),
)
await flows.createAgent({ name: 'held' })
const held = (more: object = {}): BuiltInNode => ({ type: 'task', agent: 'held', input: 'Go.', ...more })
const inTurn = (...steps: BuiltInNode[]): BuiltInNode => ({ type: 'sequential', steps })

/** Until the flow is parked. On a busy machine its time may be up before somebody looks. */
async function untilParked(id: string): Promise<void> {
  for (;;) {
    const { owner, progress, status } = await flows.read(id)
    if (status === 'failed' || (owner === null && progress.running > 0)) return
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

function hold(): () => void {
  gate = Promise.withResolvers()
  return gate.resolve
}

for (const [what, root] of Object.entries<BuiltInNode>({
  sequence: { type: 'sequential', timeout: 600, steps: [held()] },
  'part of a parallel': { type: 'parallel', branches: [{ type: 'sequential', timeout: 600, steps: [held()] }] },
  loop: { type: 'loop', timeout: 600, max_iterations: 3, body: held() },
  'map-reduce': {
    type: 'map_reduce',
    timeout: 600,
    items: [1],
    workers: 1,
    reduce: 'flaky',
    map: { type: 'task', agent: 'held', input: 'Go.' },
  },
})) {
  test(`the timeout of a ${what} is kept while an agent is under way and the flow is parked`, async () => {
    const release = hold()
    const id = await flows.startFlow(root)
    await untilParked(id)
    const { status, error, progress } = await flows.ended(id)
    release()
    assert.equal(status, 'failed')
    assert.match(error ?? '', /root(?:\/0)?: The time of this part of the flow was up\.$/)
    assert.equal(progress.failed, 1)
  })
}

test('a leaf is retried after its backoff while an agent beside it is under way', async () => {
  const release = hold()
  tries = 0
  const flaky: BuiltInNode = { type: 'task', function: 'flaky', retry: { max_retries: 3, backoff: 300 } }
  const id = await flows.startFlow({ type: 'parallel', branches: [held(), flaky] })
  while ((await flows.read(id)).progress.completed < 1) await new Promise((resolve) => setTimeout(resolve, 5))
  assert.equal(tries, 3)
  release()
  assert.deepEqual((await flows.ended(id)).output, ['Done.', 'at last'])
})

test('a flow that was under way for months ends like any other', async () => {
  const release = hold()
  const id = await flows.startFlow(held())
  await untilParked(id)
  await flows.pool.query(`update flow_runs set started_at = started_at - interval '90 days' where id = $1`, [id])
  release()
  const { status } = await flows.ended(id)
  assert.ok(status === 'completed' || status === 'timed_out', status)
  const { rows } = await flows.pool.query('select duration from flow_runs where id = $1', [id])
  // The column holds 24 days of milliseconds at most.
  assert.equal(rows[0].duration, 2 ** 31 - 1)
})

test('added workers wake a flow that waits for its agents', async () => {
  const release = hold()
  const id = await flows.startFlow({ type: 'parallel', branches: [held(), held(), held()] }, { workers: 1 })
  await untilParked(id)
  const of = { projectId: flows.projectId, flowRunId: id, actor: systemActor }
  await adjustFlow(flows.pool, of, { workers: { add: 2, usual: 50 } })
  while ((await flows.read(id)).progress.running < 3) await new Promise((resolve) => setTimeout(resolve, 5))
  release()
  assert.equal((await flows.ended(id)).status, 'completed')
})

test('a drain lasts no longer than the time of the flow, and the flow is cancelled all the same', async () => {
  const id = await flows.startFlow({ type: 'task', function: 'stubborn' }, { timeout: 700 })
  while ((await flows.read(id)).progress.running < 1) await new Promise(setImmediate)
  await flows.pool.query('update flow_runs set cancel_requested_at = muster.now() where id = $1', [id])
  await flows.pool.query(`select pg_notify('muster_flow', $1)`, [id])
  assert.equal((await flows.ended(id)).status, 'cancelled')
  assert.notEqual(firedAt, null)
})

test('the next owner of a flow goes by the times of the journal, even if its own clock differs', () => {
  const anHourAhead = Date.now() + 3_600_000
  const at = (ms: number): Date => new Date(anHourAhead - 10_000 + ms)
  const root: BuiltInNode = {
    type: 'sequential',
    timeout: 30_000,
    steps: [
      { type: 'task', function: 'a' },
      { type: 'loop', timeout: 20_000, max_iterations: 2, body: { type: 'task', function: 'b' } },
      { type: 'task', function: 'c', retry: { max_retries: 2, backoff: 9_000 } },
    ],
  }
  const flow = { root, input: 1, age: 10_000, claimed_at: new Date(anHourAhead) } as unknown as ClaimedFlow
  const told = (kind: 'task.started' | 'task.completed', id: string, ms: number) => ({
    kind,
    at: at(ms),
    data: { task_id: id, node_id: null, name: id, attempt: 1, duration: 1, result: 1 },
  })
  const events = [told('task.started', 'root/0', 0), told('task.completed', 'root/0', 4_000)]
  const { deadlines, begun } = stateOf(flow, events as Parameters<typeof stateOf>[1], builtInPatterns)
  const inSeconds = (atMs: number | undefined): number => Math.round(((atMs ?? 0) - Date.now()) / 1_000)
  assert.equal(inSeconds(deadlines.get('root')), 20)
  assert.equal(inSeconds(deadlines.get('root/1')), 14)
  assert.equal(inSeconds(begun.get('1 root/0')), -10)
})

test('the source function of a pipeline gets the result before it, or its rendered arguments', async () => {
  flows.functions.set('range', (given: unknown) => {
    const count = typeof given === 'number' ? given : (given as { n: number }).n
    return Array.from({ length: count }, (_, index) => index)
  })
  flows.functions.set('same', (item: unknown) => item)
  const through = (source: unknown): BuiltInNode =>
    ({ type: 'pipeline', source, stages: [{ type: 'task', function: 'same' }], on_error: 'stop' }) as BuiltInNode
  const asTask = (args: unknown) => ({ type: 'task', function: 'range', args })
  assert.deepEqual((await flows.play(through({ type: 'task', function: 'range' }), { input: 3 })).output, [0, 1, 2])
  assert.deepEqual((await flows.play(through(asTask('{{input}}')), { input: 2 })).output, [0, 1])
  assert.deepEqual((await flows.play(through(asTask({ n: '{{input}}' })), { input: 4 })).output, [0, 1, 2, 3])
  const nested = inTurn({ type: 'task', function: 'same', args: 2 }, through({ type: 'task', function: 'range' }))
  assert.deepEqual((await flows.play(nested, { input: 9 })).output, [0, 1])
})
