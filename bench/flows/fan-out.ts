// (b) One flow whose thousand branches are functions, from its start until their results are joined, against
// LangGraph's Send to a thousand tasks and their join. MUSTER_CONCURRENCY is a thousand, because LangGraph starts all
// tasks at once, too. The best round of each counts.
import { startSide } from '../kit/side.ts'
import { atMost, type Verdict } from '../kit/verdict.ts'
import { POOL_SIZE } from '../runs/bench-worker.ts'
import type { GraphQuestion } from './langgraph-side.ts'
import type { MusterAnswer, MusterQuestion } from './muster-side.ts'

const BRANCHES = 1_000
const ROUNDS = 5
const REQUIRED = 0.2

export async function benchFanOut(databases: { ours: string; langGraph: string }): Promise<Verdict> {
  await using muster = startSide('bench/flows/muster-side.ts', [databases.ours, String(BRANCHES)], { isProfiled: true })
  await using langGraph = startSide('bench/flows/langgraph-side.ts', [databases.langGraph, String(POOL_SIZE)])
  const best = { ours: Number.POSITIVE_INFINITY, graph: Number.POSITIVE_INFINITY }
  for (let round = 0; round <= ROUNDS; round++) {
    const question: MusterQuestion = { do: 'fan_out', branches: BRANCHES, leaf: 'function' }
    const ours = await muster.ask<MusterAnswer>(question)
    const sends: GraphQuestion = { do: 'fan_out', branches: BRANCHES }
    const graph = await langGraph.ask<{ seconds: number }>(sends)
    // The first round warms up.
    if (round === 0) continue
    best.ours = Math.min(best.ours, ours.seconds)
    best.graph = Math.min(best.graph, graph.seconds)
  }
  const shown = (seconds: number): string => `${(seconds * 1_000).toFixed(0)} ms`
  return {
    what: `fan-out and join of ${BRANCHES} function leaves to LangGraph's Send`,
    ours: shown(best.ours),
    peer: shown(best.graph),
    ...atMost(best.ours / best.graph, REQUIRED),
  }
}
