import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Topology } from '../../kernel/flow.ts'
import { type BuiltInNode, builtInPatterns } from '../machine/built-in-patterns.ts'
import type { Adaptive } from '../machine/patterns/adaptive.ts'
import { topologiesIn } from '../machine/topologies.ts'
import { recordTopologies, type TopologyEvent } from './topology-record.ts'

const f = (name: string, more: object = {}): Adaptive['tasks'][number] => ({ type: 'task', function: name, ...more })
const part = (fields: Partial<Adaptive> = {}): Adaptive => ({
  type: 'adaptive',
  workers: 2,
  switch: true,
  tasks: [f('a'), f('b')],
  ...fields,
})
const at = (ms: number): Date => new Date(1_000_000 + ms)
const started = (ms: number, id: string, handover?: { from: string; to: string }): TopologyEvent => ({
  kind: 'task.started',
  at: at(ms),
  data: { task_id: id, attempt: 1, ...(handover ? { handover } : {}) },
})
const ended = (ms: number, id: string, kind = 'task.completed', attempt = 1): TopologyEvent => ({
  kind,
  at: at(ms),
  data: { task_id: id, attempt, duration: 7 },
})
const switched = (ms: number, pool: string, from: Topology, to: Topology): TopologyEvent => ({
  kind: 'topology.switched',
  at: at(ms),
  data: { pool, from, to, reason: 'because', moved: 1, switch_ms: 2 },
})

test('each topology is measured over the time in which it was in force', () => {
  const root = part({ topology: 'star', workload: 'w' })
  const events = [
    started(0, 'root/0'),
    ended(100, 'root/0'),
    switched(100, 'root', 'star', 'mesh'),
    started(100, 'root/1', { from: 'w1', to: 'w2' }),
    ended(300, 'root/1'),
    { kind: 'flow.completed', at: at(900), data: {} },
  ]
  const record = recordTopologies(root, events, null, builtInPatterns)
  assert.deepEqual(record.byTopology, {
    star: { tasks: 1, throughput: 10, wait: 0, duration: 7 },
    mesh: { tasks: 1, throughput: 5, wait: 100, duration: 7 },
  })
  assert.deepEqual(record.byWorkload, [{ workload: 'w', pool: 'root', byTopology: record.byTopology }])
  assert.equal(record.parts[0]?.current, 'mesh')
  assert.deepEqual(record.handovers, [{ task_id: 'root/1', from: 'w1', to: 'w2', at: at(100), pool: 'root' }])
})

test('a topology under which nothing was done is not measured; the present topology is measured until now', () => {
  const events = [
    switched(0, 'root', 'hierarchical', 'mesh'),
    started(0, 'root/0'),
    started(0, 'root/1'),
    ended(100, 'root/0'),
  ]
  assert.deepEqual(recordTopologies(part(), events, at(500), builtInPatterns).byTopology, {
    mesh: { tasks: 1, throughput: 2, wait: 0, duration: 7 },
  })
})

test('the wait of a retried task begins with its failure, and failed tasks do not count as throughput', () => {
  const root = part({ topology: 'star', tasks: [f('a', { retry: { max_retries: 1, backoff: 50 } }), f('b')] })
  const events = [
    started(0, 'root/0'),
    started(0, 'root/1'),
    ended(100, 'root/1', 'task.failed'),
    ended(100, 'root/0', 'task.failed'),
    { ...started(180, 'root/0'), data: { task_id: 'root/0', attempt: 2 } },
    ended(200, 'root/0', 'task.completed', 2),
  ]
  // All tasks have ended after 200 ms; the moment of the request does not matter.
  assert.deepEqual(recordTopologies(root, events, at(9_000), builtInPatterns).byTopology, {
    star: { tasks: 1, throughput: 5, wait: 30, duration: 7 },
  })
})

test('parts are told apart in loops and beside each other, by their names and paths', () => {
  const root: BuiltInNode = {
    type: 'sequential',
    steps: [
      { type: 'loop', max_iterations: 3, body: part({ id: 'named', topology: 'star' }) },
      { type: 'loop', max_iterations: 3, body: { type: 'parallel', branches: [part({ topology: 'mesh' })] } },
      f('last'),
    ],
  }
  const events = ['named/0', 'named#2/1', 'root/1/1/0/0', 'root/1/2/0/1', 'root/2'].map((id) => started(0, id))
  const { parts } = recordTopologies(root, events, at(1), builtInPatterns)
  assert.deepEqual(
    parts.map(({ pool, current }) => [pool, current]),
    [
      ['named', 'star'],
      ['named#2', 'star'],
      ['root/1/1/0', 'mesh'],
      ['root/1/2/0', 'mesh'],
    ],
  )
  assert.equal(topologiesIn(root, builtInPatterns).length, 2)
})

test('handovers of pieces of a problem are recorded too, though the pieces have no topology', () => {
  const work = { should_split: 'x', split: 'x', solve: 'x', join: 'x' }
  const root: BuiltInNode = { type: 'fork_join', problem: 1, workers: 2, stealing: true, ...work }
  const record = recordTopologies(
    root,
    [started(0, 'root/whole/1/solve', { from: 'w1', to: 'w2' })],
    null,
    builtInPatterns,
  )
  assert.deepEqual(record.parts, [])
  assert.deepEqual(record.handovers, [{ task_id: 'root/whole/1/solve', from: 'w1', to: 'w2', at: at(0), pool: null }])
})

const workloadOf = (node: Adaptive): string | undefined => topologiesIn(node, builtInPatterns)[0]?.workload

test('a workload has the name its author gave, else one made of its agents and functions', () => {
  assert.equal(workloadOf(part({ workload: 'mine' })), 'mine')
  const tasks: Adaptive['tasks'] = [f('b', { args: 1 }), f('a'), f('b', { args: 2 }), { type: 'task', agent: 'c' }]
  assert.equal(workloadOf(part({ tasks })), 'agent c, function a, function b')
  assert.equal(workloadOf(part({ tasks: tasks.toReversed() })), 'agent c, function a, function b')
  const many = Array.from({ length: 100 }, (_, index) => f(`function ${index}`))
  assert.match(workloadOf(part({ tasks: many })) ?? '', /^100 kinds of tasks, [0-9a-f-]{36}$/)
})
