import type { PatternNode } from '../../../kernel/flow.ts'
import type { NodeState } from '../move.ts'
import { isRunOfWorker } from './run-keys.ts'

/** A queen and her workers. A worker is named as many times as it may work at once. */
export interface Team extends PatternNode {
  queen: string
  workers: readonly string[]
}

/** Gives the next run to the worker that is expected to be done with it first. */
export interface Balancer {
  /** The worker for the next run: another than `not`, if there is another. */
  choose(not: string | null): string
  agentOf(key: string): string | null
}

interface Load {
  agent: string
  /** The number of times the team names the agent, which is the number of runs it may work on at once. */
  places: number
  open: number
  given: number
  took: number[]
}

/** Weighs the runs under way and the speed of each worker. A worker that was never measured counts as average. */
export function createBalancer({ node, nodes, children }: NodeState<Team>): Balancer {
  const loads = new Map<string, Load>()
  for (const agent of node.workers) {
    const load = loads.get(agent) ?? { agent, places: 0, open: 0, given: 0, took: [] }
    loads.set(agent, { ...load, places: load.places + 1 })
  }
  const agentOf = (key: string): string | null => {
    const child = nodes.get(key)
    return child && 'agent' in child ? child.agent : null
  }
  for (const [key, outcome] of children) {
    const load = isRunOfWorker(key) ? loads.get(agentOf(key) ?? '') : undefined
    if (!load) continue
    load.given++
    if (outcome === null) load.open++
    else if (outcome.status !== 'failed' && outcome.tookMs !== undefined) load.took.push(outcome.tookMs)
  }
  const overall = averageOf([...loads.values()].flatMap(({ took }) => took)) ?? 1
  const cost = ({ open, places, took }: Load): number => (Math.floor(open / places) + 1) * (averageOf(took) ?? overall)

  return {
    agentOf,
    choose: (not) => {
      const all = [...loads.values()]
      const others = all.filter(({ agent }) => agent !== not)
      const [best] = (others.length > 0 ? others : all).toSorted(
        (one, other) => cost(one) - cost(other) || one.given / one.places - other.given / other.places,
      )
      if (!best) return ''
      best.open++
      best.given++
      return best.agent
    },
  }
}

const averageOf = (values: readonly number[]): number | null =>
  values.length === 0 ? null : Math.max(1, values.reduce((sum, value) => sum + value, 0) / values.length)
