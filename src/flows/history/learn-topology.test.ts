import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Topology, topologies } from '../../kernel/flow.ts'
import { recommendTopology, type TopologyResult } from './learn-topology.ts'

const result = (
  runId: string,
  topology: Topology,
  throughput: number,
  wait = 100,
  workload = 'documents',
): TopologyResult => ({ runId, workload, topology, throughput, wait, duration: 50 })

const cases: { name: string; results: TopologyResult[]; possible?: Topology[]; topology: Topology | null }[] = [
  { name: 'nothing measured', results: [], topology: null },
  { name: 'two runs', results: [result('1', 'mesh', 9), result('2', 'star', 5)], topology: null },
  {
    name: 'two runs that switched',
    results: [
      result('1', 'hierarchical', 3),
      result('1', 'mesh', 9),
      result('2', 'hierarchical', 3),
      result('2', 'mesh', 9),
    ],
    topology: null,
  },
  {
    name: 'three runs, of which one is of another kind',
    results: [result('1', 'mesh', 9), result('2', 'mesh', 9), result('3', 'mesh', 9, 100, 'pictures')],
    topology: null,
  },
  {
    name: 'three runs of one topology',
    results: [result('1', 'star', 9), result('2', 'star', 9), result('3', 'star', 9)],
    topology: 'star',
  },
  {
    name: 'the most throughput',
    results: [result('1', 'mesh', 5, 1), result('2', 'star', 9, 900), result('3', 'hierarchical', 2, 1)],
    topology: 'star',
  },
  {
    name: 'the shorter wait, if throughput is nearly the same',
    results: [result('1', 'mesh', 9.8, 40), result('2', 'star', 10, 90), result('3', 'hierarchical', 9, 1)],
    topology: 'mesh',
  },
  {
    name: 'not one lucky run',
    results: [
      result('1', 'mesh', 8),
      result('2', 'mesh', 8),
      result('3', 'star', 5),
      result('4', 'star', 5),
      result('5', 'star', 90),
    ],
    topology: 'mesh',
  },
  {
    name: 'other kinds do not count',
    results: [
      result('1', 'mesh', 8),
      result('2', 'mesh', 8),
      result('3', 'star', 5),
      result('4', 'star', 90, 1, 'pictures'),
    ],
    topology: 'mesh',
  },
  {
    name: 'the best of the possible topologies',
    results: [result('1', 'custom', 20), result('2', 'mesh', 9), result('3', 'star', 5)],
    possible: ['hierarchical', 'mesh', 'star'],
    topology: 'mesh',
  },
  {
    name: 'no possible topology was measured',
    results: [result('1', 'custom', 20), result('2', 'custom', 20), result('3', 'custom', 20)],
    possible: ['mesh', 'star'],
    topology: null,
  },
]

for (const { name, results, possible, topology } of cases) {
  test(`a recommendation: ${name}: ${topology ?? 'none'}`, () => {
    assert.equal(recommendTopology('documents', results, possible)?.topology ?? null, topology)
  })
}

test('a recommendation gives the figures that decided it', () => {
  const results = [result('1', 'mesh', 12.34, 40), result('2', 'mesh', 12.34, 40), result('3', 'star', 5, 90)]
  assert.deepEqual(recommendTopology('documents', results), {
    topology: 'mesh',
    reason:
      'In 3 runs mesh got 12.3 tasks a second done, after a wait of 40 ms; star got 5.00 tasks a second done, after a wait of 90 ms.',
  })
  assert.match(recommendTopology('documents', results, ['mesh'])?.reason ?? '', /no other was measured\.$/)
})

test('the order of the runs does not matter', () => {
  const results = fc.array(
    fc
      .tuple(fc.constantFrom(...topologies), fc.nat(20), fc.nat(20))
      .map(([topology, throughput, wait]) => ({ topology, throughput, wait })),
    { minLength: 3, maxLength: 12 },
  )
  const property = fc.property(results, (measured) => {
    const runs = measured.map(({ topology, throughput, wait }, index) =>
      result(String(index), topology, throughput, wait),
    )
    assert.deepEqual(recommendTopology('documents', runs.toReversed()), recommendTopology('documents', runs))
  })
  fc.assert(property)
})
