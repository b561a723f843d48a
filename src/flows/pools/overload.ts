// Tells whether a pool has more tasks waiting than it should, and whether another topology would help.
import type { Topology } from '../../kernel/flow.ts'
import type { ConsideredTopology } from '../../kernel/flow-run.ts'
import type { MeasuresByTopology } from './measures.ts'

export interface Overload {
  /** The excess, and the reason to switch or to stay. */
  reason: string
  /** The topology to switch to; null if the pool keeps its topology. */
  to: Topology | null
  /** The other topologies that are possible. */
  considered: ConsideredTopology[]
}

export interface PoolLoad {
  topology: Topology
  stealing: boolean
  hasEdges: boolean
  queueLength: number
  maySwitch: boolean
  hub: number
  /** `perSecond`: the tasks that the worker gets done. `isIdle`: the worker has no task and none that it may take. */
  workers: readonly { waiting: number; perSecond: number; isIdle: boolean }[]
  measured: MeasuresByTopology
}

/** A switch has a cost: its expected gain has to be more than chance. */
const LEAST_GAIN = 1.2
/** From this many tasks per worker on, measurements count more than expectations. */
const MEASURED_TASKS = 4

export function findOverload(load: PoolLoad): Overload | null {
  const { topology, maySwitch } = load
  const tooMuch = describeExcess(load)
  if (tooMuch === null) return null
  const considered = alternativesTo(load)
  const stay = (why: string): Overload => ({ reason: `${tooMuch}; ${why}`, to: null, considered })
  if (!maySwitch) return stay('the topology is fixed')
  // Under this topology no worker helps another, so an uneven deal stays uneven. Measurements do not change that.
  if (topology === 'hierarchical') return { reason: tooMuch, to: 'mesh', considered }
  const [best] = considered.toSorted((one, other) => other.estimate - one.estimate)
  if (!best || best.estimate < LEAST_GAIN) return stay(`no other topology is expected to do better than ${topology}`)
  const times = best.estimate.toFixed(1)
  return {
    reason: `${tooMuch}; ${best.topology} is expected to get ${times} times as much done`,
    to: best.topology,
    considered,
  }
}

function describeExcess({ topology, queueLength, hub, workers }: PoolLoad): string | null {
  if (workers.length === 0) return null
  if (topology === 'star') {
    return hub > queueLength * workers.length ? `${hub} wait at the hub of ${workers.length} workers` : null
  }
  const overloaded = workers.filter(({ waiting }) => waiting > queueLength).length
  if (overloaded * 2 < workers.length) return null
  return `${overloaded} of ${workers.length} workers have more than ${queueLength} waiting`
}

/** Leaves out hierarchical, which evens nothing out, and custom if there are no edges. */
function alternativesTo(load: PoolLoad): Overload['considered'] {
  const possible: Topology[] = load.hasEdges ? ['mesh', 'star', 'custom'] : ['mesh', 'star']
  return possible
    .filter((topology) => topology !== load.topology)
    .map((topology) => ({ topology, estimate: Number(gainOf(topology, load).toPrecision(3)) }))
}

function gainOf(topology: Topology, load: PoolLoad): number {
  const { measured, workers, stealing } = load
  const [now, then] = [measured[load.topology], measured[topology]]
  const enough = MEASURED_TASKS * workers.length
  if (now && then && now.tasks >= enough && then.tasks >= enough) return then.throughput / now.throughput
  const isEven = (one: Topology): boolean => one === 'star' || (one === 'mesh' && stealing)
  if (isEven(load.topology) || !isEven(topology)) return 1
  const sum = (some: PoolLoad['workers']): number => some.reduce((total, { perSecond }) => total + perSecond, 0)
  const busy = workers.filter(({ isIdle }) => !isIdle)
  // If no worker has anything to do, no figure says how much more another topology would get done.
  return busy.length === 0 ? workers.length : sum(workers) / sum(busy)
}
