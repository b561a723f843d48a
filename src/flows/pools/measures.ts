import type { Topology } from '../../kernel/flow.ts'

export interface TopologyMeasures {
  /** The number of tasks that succeeded in that time. Failures do not count: a quick failure is no speed. */
  tasks: number
  throughput: number
  /** Average milliseconds between the moments at which a task was added and taken. */
  wait: number
  /** Average milliseconds between the moments at which a task was taken and done. */
  duration: number
}

export type MeasuresByTopology = Partial<Record<Topology, TopologyMeasures>>

export interface PoolMeasures {
  /** The topology that the open work is under from now on; null while there is no work. */
  work(topology: Topology | null, atMs: number): void
  succeeded(topology: Topology, waitMs: number, durationMs: number): void
  read(atMs: number): MeasuresByTopology
}

export interface TopologyTotals {
  tasks: number
  waitMs: number
  durationMs: number
  workedMs: number
}

export function totalsOf(all: Map<Topology, TopologyTotals>, topology: Topology): TopologyTotals {
  const totals = all.get(topology) ?? { tasks: 0, waitMs: 0, durationMs: 0, workedMs: 0 }
  all.set(topology, totals)
  return totals
}

export function measuresOf(all: ReadonlyMap<Topology, TopologyTotals>): MeasuresByTopology {
  const measures: MeasuresByTopology = {}
  for (const [topology, { tasks, waitMs, durationMs, workedMs }] of all) {
    measures[topology] = {
      tasks,
      throughput: (tasks * 1_000) / Math.max(1, workedMs),
      wait: waitMs / Math.max(1, tasks),
      duration: durationMs / Math.max(1, tasks),
    }
  }
  return measures
}

export function createPoolMeasures(): PoolMeasures {
  const totals = new Map<Topology, TopologyTotals>()
  let busy: { topology: Topology; sinceMs: number } | null = null

  const countTime = (atMs: number): void => {
    if (!busy) return
    totalsOf(totals, busy.topology).workedMs += Math.max(0, atMs - busy.sinceMs)
    busy.sinceMs = atMs
  }

  return {
    work: (topology, atMs) => {
      if (busy?.topology === topology) return
      countTime(atMs)
      busy = topology && { topology, sinceMs: atMs }
    },
    succeeded: (topology, waitMs, durationMs) => {
      const total = totalsOf(totals, topology)
      total.tasks++
      total.waitMs += waitMs
      total.durationMs += durationMs
    },
    read: (atMs) => {
      countTime(atMs)
      return measuresOf(totals)
    },
  }
}
