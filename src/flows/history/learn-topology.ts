// Finds the topology that suits a kind of workload, from the measurements of earlier runs of that kind.

import { type Topology, topologies } from '../../kernel/flow.ts'
import { medianOf } from '../machine/median.ts'

/** A run's measurements of one topology; a run that switched has several of these. */
export interface TopologyResult {
  runId: string
  workload: string
  topology: Topology
  /** Tasks per second. */
  throughput: number
  /** Milliseconds. */
  wait: number
  duration: number
}

export interface TopologyRecommendation {
  topology: Topology
  reason: string
}

const LEAST_RUNS = 3
/** Topologies that get nearly as much done as the best one count as equal, and the shorter wait decides. */
const NEARLY = 0.95

/** Null if there are fewer than three runs, or no possible topology was measured. */
export function recommendTopology(
  workload: string,
  results: readonly TopologyResult[],
  possible: readonly Topology[] = topologies,
): TopologyRecommendation | null {
  const ofKind = results.filter((result) => result.workload === workload)
  const runs = new Set(ofKind.map(({ runId }) => runId)).size
  if (runs < LEAST_RUNS) return null
  const measured = possible.flatMap((topology) => {
    const own = ofKind.filter((result) => result.topology === topology)
    if (own.length === 0) return []
    // The median is taken, so that one run on a slow machine does not decide.
    const throughput = medianOf(own.map((result) => result.throughput))
    return { topology, runs: own.length, throughput, wait: medianOf(own.map(({ wait }) => wait)) }
  })
  const most = Math.max(...measured.map(({ throughput }) => throughput))
  const [best, ...others] = measured.toSorted((one, other) => {
    const isNear = [one, other].map(({ throughput }) => throughput >= most * NEARLY)
    if (isNear[0] && isNear[1]) return one.wait - other.wait
    return other.throughput - one.throughput
  })
  if (!best) return null
  const figures = (one: typeof best): string =>
    `${one.topology} got ${one.throughput.toPrecision(3)} tasks a second done, after a wait of ${Math.round(one.wait)} ms`
  const comparison = others.length > 0 ? others.map(figures).join('; ') : 'no other was measured'
  return { topology: best.topology, reason: `In ${runs} runs ${figures(best)}; ${comparison}.` }
}
