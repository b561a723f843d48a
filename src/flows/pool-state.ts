import type { Topology } from '../kernel/flow.ts'
import type { MeasuresByTopology } from './pool-measures.ts'

/** A waiting task that an idle worker took from another's queue. There is no other handover. */
export interface Handover {
  task_id: string
  from: string
  to: string
  at: number
}

export interface Switch {
  from: Topology
  to: Topology
  reason: string
  at: number
  /** The number of waiting tasks that were dealt anew. */
  moved: number
  switchMs: number
}

export interface PoolState {
  current: Topology
  history: Switch[]
  handovers: Handover[]
  byTopology: MeasuresByTopology
  /** `waiting`: tasks in its own queue, none with a hub. `averageMs`: the recent average, null before the first. */
  workers: { name: string; waiting: number; running: string | null; averageMs: number | null }[]
  waiting: number
  running: number
}
