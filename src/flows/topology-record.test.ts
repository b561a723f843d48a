import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Adaptive, FlowNode, Topology } from '../kernel/flow.ts'
import { recordTopologies, type TopologyEvent } from './topology-record.ts'
import { adaptiveAt, adaptiveNodes, workloadOf } from './topology-workload.ts'

const f = (name: string, more: object = {}): Adaptive['tasks'][number] => ({ type: 'task', function: name, ...more })
const part = (fields: Partial<Adaptive> = {}): Adaptive => ({
  ...{ type: 'adaptive', workers: 2, switch: true, tasks: [f('a'), f('b')] },
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
  const record = recordTopologies(root, events, null)
  assert.deepEqual(record.byTopology, {
    star: { tasks: 1, throughput: 10, wait: 0, duration: 7 },
    mesh: { tasks: 1, throughput: 5, wait: 100, duration: 7 },
  })
  assert.deepEqual(record.byWorkload, [{ workload: 'w', pool: 'root', byTopology: record.byTopology }])
  assert.equal(record.parts[0]?.current, 'mesh')
  assert.deepEqual(record.handovers, [{ task_id: 'root/1', from: 'w1', to: 'w2', at: at(100), pool: 'root' }])
})

test('one under which nothing was done is not measured; one under way is, until now', () => {
  const events = [
    switched(0, 'root', 'hierarchical', 'mesh'),
    started(0, 'root/0'),
    started(0, 'root/1'),
    ended(100, 'root/0'),
  ]
  assert.deepEqual(recordTopologies(part(), events, at(500)).byTopology, {
    mesh: { tasks: 1, throughput: 2, wait: 0, duration: 7 },
  })
})

test('what is tried again waits from then on; what fails is no speed, and ends all the same', () => {
  const root = part({ topology: 'star', tasks: [f('a', { retry: { max_retries: 1, backoff: 50 } }), f('b')] })
  const events = [
    started(0, 'root/0'),
    started(0, 'root/1'),
    ended(100, 'root/1', 'task.failed'),
    ended(100, 'root/0', 'task.failed'),
    { ...started(180, 'root/0'), data: { task_id: 'root/0', attempt: 2 } },
    ended(200, 'root/0', 'task.completed', 2),
  ]
  // All of it has ended after 200 ms, whenever it is asked about.
  assert.deepEqual(recordTopologies(root, events, at(9_000)).byTopology, {
    star: { tasks: 1, throughput: 5, wait: 30, duration: 7 },
  })
})

test('parts are told apart in loops and beside each other, by name and by the way to them', () => {
  const root: FlowNode = {
    type: 'sequential',
    steps: [
      { type: 'loop', max_iterations: 3, body: part({ id: 'named', topology: 'star' }) },
      { type: 'loop', max_iterations: 3, body: { type: 'parallel', branches: [part({ topology: 'mesh' })] } },
      f('last'),
    ],
  }
  const events = ['named/0', 'named#2/1', 'root/1/1/0/0', 'root/1/2/0/1', 'root/2'].map((id) => started(0, id))
  const { parts } = recordTopologies(root, events, at(1))
  assert.deepEqual(
    parts.map(({ pool, current }) => [pool, current]),
    [
      ['named', 'star'],
      ['named#2', 'star'],
      ['root/1/1/0', 'mesh'],
      ['root/1/2/0', 'mesh'],
    ],
  )
  assert.equal(adaptiveNodes(root).length, 2)
  assert.equal(adaptiveAt(root, [{ key: '2' }]), null)
})

test('pieces of a problem are handed over as well, though they have no topology', () => {
  const work = { should_split: 'x', split: 'x', solve: 'x', join: 'x' }
  const root: FlowNode = { type: 'fork_join', problem: 1, workers: 2, stealing: true, ...work }
  const record = recordTopologies(root, [started(0, 'root/whole/1/solve', { from: 'w1', to: 'w2' })], null)
  assert.deepEqual(record.parts, [])
  assert.deepEqual(record.handovers, [{ task_id: 'root/whole/1/solve', from: 'w1', to: 'w2', at: at(0), pool: null }])
})

test('a workload is called as its author said, else by what its tasks are done by', () => {
  assert.equal(workloadOf(part({ workload: 'mine' })), 'mine')
  const tasks: Adaptive['tasks'] = [f('b', { args: 1 }), f('a'), f('b', { args: 2 }), { type: 'task', agent: 'c' }]
  assert.equal(workloadOf(part({ tasks })), 'agent c, function a, function b')
  assert.equal(workloadOf(part({ tasks: tasks.toReversed() })), 'agent c, function a, function b')
  const many = Array.from({ length: 100 }, (_, index) => f(`function ${index}`))
  assert.match(workloadOf(part({ tasks: many })), /^100 kinds of tasks, [0-9a-f-]{36}$/)
})
