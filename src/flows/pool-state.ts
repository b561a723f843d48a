import type { Topology } from '../kernel/flow.ts'
import type { MeasuresByTopology } from './pool-measures.ts'

/** A waiting task taken by an idle worker from another's queue. There is no other handover. */
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
  /** How many waiting tasks were dealt anew. */
  moved: number
  switchMs: number
}

export interface PoolState {
  current: Topology
  history: Switch[]
  handovers: Handover[]
  byTopology: MeasuresByTopology
  /** `waiting`: in its own queue, so nobody's where all pull from the hub. `averageMs`: of late, null before the first. */
  workers: { name: string; waiting: number; running: string | null; averageMs: number | null }[]
  waiting: number
  running: number
}
