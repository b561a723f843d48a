// (a) A loop of ten steps with a tool call in each but the last, fifty at once: our runs store every event, LangGraph
// stores checkpoints, the AI SDK's own loop stores nothing.
import { startSide } from '../kit/side.ts'
import { atLeast, type Verdict } from '../kit/verdict.ts'
import { POOL_SIZE } from './bench-worker.ts'

const SCRIPT = { steps: 10, parts: 20 }
const IN_FLIGHT = 50
const ROUNDS = 3
const OVER_LANGGRAPH = 10
const OVER_STREAM_TEXT = 2

export async function benchToolLoop(databases: { ours: string; langGraph: string }): Promise<Verdict[]> {
  await using muster = startSide('bench/runs/muster-side.ts', [databases.ours], { isProfiled: true })
  await using streamText = startSide('bench/runs/stream-text-side.ts', [])
  await using langGraph = startSide('bench/runs/langgraph-side.ts', [databases.langGraph, String(POOL_SIZE)])
  const sides = [
    { side: muster, question: { do: 'runs', count: 400 }, best: 0 },
    { side: streamText, question: { count: 100 }, best: 0 },
    { side: langGraph, question: { count: 50 }, best: 0 },
  ]
  for (let round = 0; round <= ROUNDS; round++) {
    for (const one of sides) {
      const question = { ...one.question, script: SCRIPT, inFlight: IN_FLIGHT }
      const { seconds } = await one.side.ask<{ seconds: number }>(question)
      // The first round warms up.
      if (round > 0) one.best = Math.max(one.best, one.question.count / seconds)
    }
  }
  const [ours = 0, bare = 0, graph = 0] = sides.map((one) => one.best)
  const perSecond = (value: number): string => `${value.toFixed(0)} runs/s`
  const common = { ours: perSecond(ours) }
  return [
    {
      what: '10-step tool loop to LangGraph',
      ...common,
      peer: perSecond(graph),
      ...atLeast(ours / graph, OVER_LANGGRAPH),
    },
    {
      what: '10-step tool loop to streamText',
      ...common,
      peer: perSecond(bare),
      ...atLeast(ours / bare, OVER_STREAM_TEXT),
    },
  ]
}
