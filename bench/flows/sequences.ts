// (a) Flows of five function leaves in sequence, fifty flows at once: against LangGraph with a node for each leaf, and
// against the bare inserts of the same rows in as few commits as durability allows. Rounds take turns, and the best of
// each counts.
import { startSide } from '../kit/side.ts'
import { atLeast, type Verdict } from '../kit/verdict.ts'
import { POOL_SIZE } from '../runs/bench-worker.ts'
import type { BareAnswer, BareQuestion } from './bare-side.ts'
import type { GraphQuestion } from './langgraph-side.ts'
import type { MusterAnswer, MusterQuestion } from './muster-side.ts'

const IN_FLIGHT = 50
const COUNT = 1_000
const GRAPHS = 100
const ROUNDS = 7
const OVER_LANGGRAPH = 20
const OVER_BARE = 0.4

export async function benchSequences(databases: { ours: string; langGraph: string }): Promise<Verdict[]> {
  await using muster = startSide('bench/flows/muster-side.ts', [databases.ours, '50'], { isProfiled: true })
  await using bare = startSide('bench/flows/bare-side.ts', [databases.ours])
  await using langGraph = startSide('bench/flows/langgraph-side.ts', [databases.langGraph, String(POOL_SIZE)])
  const best = { ours: 0, bare: 0, graph: 0 }
  for (let round = 0; round <= ROUNDS; round++) {
    const question: MusterQuestion = { do: 'sequences', count: COUNT, inFlight: IN_FLIGHT }
    const made = await muster.ask<MusterAnswer>(question)
    const again: BareQuestion = { flowRunIds: made.flowRunIds, inFlight: IN_FLIGHT }
    const ceiling = await bare.ask<BareAnswer>(again)
    const graphs: GraphQuestion = { do: 'sequences', count: GRAPHS, inFlight: IN_FLIGHT }
    const graph = await langGraph.ask<{ seconds: number }>(graphs)
    if (ceiling.flows !== COUNT) throw new Error(`${COUNT} flows, ${ceiling.flows} of them inserted`)
    // The first round warms up.
    if (round === 0) continue
    best.ours = Math.max(best.ours, COUNT / made.seconds)
    best.bare = Math.max(best.bare, COUNT / ceiling.seconds)
    best.graph = Math.max(best.graph, GRAPHS / graph.seconds)
  }
  const perSecond = (flows: number): string => `${flows.toFixed(0)} flows/s`
  const common = { ours: perSecond(best.ours) }
  return [
    {
      what: '5 function leaves in sequence to LangGraph',
      ...common,
      peer: perSecond(best.graph),
      ...atLeast(best.ours / best.graph, OVER_LANGGRAPH),
    },
    {
      what: '5 function leaves in sequence to bare inserts',
      ...common,
      peer: perSecond(best.bare),
      ...atLeast(best.ours / best.bare, OVER_BARE),
    },
  ]
}
