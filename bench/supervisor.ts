// The cost of checkpoints: the same graph over our saver and over LangGraph's own for PostgreSQL, on one embedded server
// with fsync on, with the same number of connections. Rounds of both sides take turns, and the median round counts.
import { startBenchServer } from './kit/database.ts'
import { type Side, startSide } from './kit/side.ts'
import { atLeast, printVerdicts, type Verdict } from './kit/verdict.ts'
import type { GraphQuestion } from './supervisor/graph-side.ts'

const POOL_SIZE = 10
const IN_FLIGHT = 50
const ROUNDS = 7
const OVER_POSTGRES_SAVER = 3

const CASES = [
  { what: '5-step graph, small state', characters: 100, ours: 300, peer: 100, required: OVER_POSTGRES_SAVER },
] as const

export async function benchSupervisor(): Promise<boolean> {
  await using server = await startBenchServer()
  const program = 'bench/supervisor/graph-side.ts'
  const [ourUrl, peerUrl] = [await server.createDatabase('ours'), await server.createDatabase('peer')]
  await using ours = startSide(program, ['ours', ourUrl, String(POOL_SIZE)], { isProfiled: true })
  await using peer = startSide(program, ['peer', peerUrl, String(POOL_SIZE)])
  const verdicts: Verdict[] = []
  for (const one of CASES) verdicts.push(await compare(one, { ours, peer }))
  printVerdicts(verdicts, { ours: 'muster', peer: 'PostgresSaver' })
  return verdicts.every((verdict) => verdict.isKept)
}

async function compare(
  { what, characters, ours: ourCount, peer: peerCount, required }: (typeof CASES)[number],
  { ours, peer }: { ours: Side; peer: Side },
): Promise<Verdict> {
  const rounds: { ours: number; peer: number; ratio: number }[] = []
  for (let round = 0; round <= ROUNDS; round++) {
    const measured = {
      ours: await runsPerSecond(ours, { count: ourCount, inFlight: IN_FLIGHT, characters }),
      peer: await runsPerSecond(peer, { count: peerCount, inFlight: IN_FLIGHT, characters }),
    }
    // The first round warms up.
    if (round > 0) rounds.push({ ...measured, ratio: measured.ours / measured.peer })
  }
  const sorted = rounds.toSorted((a, b) => a.ratio - b.ratio)
  console.log(`${what}: ${sorted.map(({ ratio }) => ratio.toFixed(2)).join(' ')}`)
  const middle = sorted[Math.floor(sorted.length / 2)] ?? { ours: 0, peer: 0, ratio: Number.NaN }
  const perSecond = (value: number): string => `${value.toFixed(0)} runs/s`
  return { what, ours: perSecond(middle.ours), peer: perSecond(middle.peer), ...atLeast(middle.ratio, required) }
}

async function runsPerSecond(side: Side, question: GraphQuestion): Promise<number> {
  const { seconds } = await side.ask<{ seconds: number }>(question)
  return question.count / seconds
}
