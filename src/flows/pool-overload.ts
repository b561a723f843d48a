// Whether a pool has more waiting than it should, and whether another topology would help.
import type { Topology } from '../kernel/flow.ts'
import type { MeasuresByTopology } from './pool-measures.ts'

export interface Overload {
  /** What is too much, and why to leave the topology or to stay. */
  reason: string
  /** Where to switch; null: stay. */
  to: Topology | null
  /** The alternatives, by how many times as much as now each is expected to get done. */
  considered: { topology: Topology; gain: number }[]
}

/** A pool as it is at one instant. */
export interface PoolLoad {
  topology: Topology
  stealing: boolean
  hasEdges: boolean
  queueLength: number
  maySwitch: boolean
  /** What waits at the hub. */
  hub: number
  /** `perSecond`: what the worker gets done; idle: it has nothing to do and nothing it may take. */
  workers: readonly { waiting: number; perSecond: number; isIdle: boolean }[]
  measured: MeasuresByTopology
}

/** A switch costs something: what is expected of it has to be more than chance. */
const LEAST_GAIN = 1.2
/** From so many tasks per worker on, what was measured counts more than what is expected. */
const MEASURED_TASKS = 4

export function findOverload(load: PoolLoad): Overload | null {
  const { topology, maySwitch } = load
  const tooMuch = describeExcess(load)
  if (tooMuch === null) return null
  const considered = alternativesTo(load)
  const stay = (why: string): Overload => ({ reason: `${tooMuch}; ${why}`, to: null, considered })
  if (!maySwitch) return stay('the topology is fixed')
  // Nobody helps anybody there, so that what is badly dealt stays so, however it was measured.
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

/** Without hierarchical, which evens nothing out, and without edges, which nobody gave. */
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
