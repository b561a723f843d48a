// Tells whether a pool has more tasks waiting than it should, and whether another topology would help.
import type { Topology } from '../kernel/flow.ts'
import type { MeasuresByTopology } from './pool-measures.ts'

export interface Overload {
  /** The excess, and the reason to switch or to stay. */
  reason: string
  /** The topology to switch to; null: stay. */
  to: Topology | null
  /** The other topologies, each with its expected throughput as a multiple of the present one. */
  considered: { topology: Topology; gain: number }[]
}

/** A pool as it is at one instant. */
export interface PoolLoad {
  topology: Topology
  stealing: boolean
  hasEdges: boolean
  queueLength: number
  maySwitch: boolean
  /** The number of tasks that wait at the hub. */
  hub: number
  /** `perSecond`: the tasks that the worker gets done; idle: it has nothing to do and nothing that it may take. */
  workers: readonly { waiting: number; perSecond: number; isIdle: boolean }[]
  measured: MeasuresByTopology
}

/** A switch has a cost: its expected gain has to be more than chance. */
const LEAST_GAIN = 1.2
/** From so many tasks per worker on, measurements count more than expectations. */
const MEASURED_TASKS = 4

export function findOverload(load: PoolLoad): Overload | null {
  const { topology, maySwitch } = load
  const tooMuch = describeExcess(load)
  if (tooMuch === null) return null
  const considered = alternativesTo(load)
  const stay = (why: string): Overload => ({ reason: `${tooMuch}; ${why}`, to: null, considered })
  if (!maySwitch) return stay('the topology is fixed')
  // Under this topology no worker helps another, so an uneven deal stays uneven, however well it was measured.
  if (topology === 'hierarchical') return { reason: tooMuch, to: 'mesh', considered }
  const [best] = considered.toSorted((one, other) => other.gain - one.gain)
  if (!best || best.gain < LEAST_GAIN) return stay(`no other topology is expected to do better than ${topology}`)
  const times = Number.isFinite(best.gain) ? `${best.gain.toFixed(1)} times as much` : 'more'
  return { reason: `${tooMuch}; ${best.topology} is expected to get ${times} done`, to: best.topology, considered }
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

/** Leaves out hierarchical, which evens nothing out, and custom where there are no edges. */
function alternativesTo(load: PoolLoad): Overload['considered'] {
  const possible: Topology[] = load.hasEdges ? ['mesh', 'star', 'custom'] : ['mesh', 'star']
  return possible
    .filter((topology) => topology !== load.topology)
    .map((topology) => ({ topology, gain: gainOf(topology, load) }))
}

function gainOf(topology: Topology, load: PoolLoad): number {
  const { measured, workers, stealing } = load
  const [now, then] = [measured[load.topology], measured[topology]]
  const enough = MEASURED_TASKS * workers.length
  if (now && then && now.tasks >= enough && then.tasks >= enough) return then.throughput / now.throughput
  const isEven = (one: Topology): boolean => one === 'star' || (one === 'mesh' && stealing)
  if (isEven(load.topology) || !isEven(topology)) return 1
  const sum = (some: PoolLoad['workers']): number => some.reduce((total, { perSecond }) => total + perSecond, 0)
  return sum(workers) / sum(workers.filter(({ isIdle }) => !isIdle))
}
