// (d) A map-reduce of a hundred thousand items that a function yields one by one. No speed is promised: the best round
// is shown, with the largest heap of all rounds.
import { startSide } from '../kit/side.ts'
import type { MusterAnswer, MusterQuestion } from './muster-side.ts'

const ITEMS = 100_000
const WORKERS = 50
const ROUNDS = 3

/** Returns a line with the measurements. */
export async function benchMapReduce(database: string): Promise<string> {
  await using muster = startSide('bench/flows/muster-side.ts', [database, String(WORKERS)], { isProfiled: true })
  let best = Number.POSITIVE_INFINITY
  let heapBytes = 0
  for (let round = 0; round < ROUNDS; round++) {
    const question: MusterQuestion = { do: 'map_reduce', items: ITEMS, workers: WORKERS }
    const answer = await muster.ask<MusterAnswer>(question)
    best = Math.min(best, answer.seconds)
    heapBytes = Math.max(heapBytes, answer.heapBytes)
  }
  const perSecond = (ITEMS / best).toFixed(0)
  const megabytes = (heapBytes / 1_000_000).toFixed(0)
  return `map-reduce of ${ITEMS} items: ${best.toFixed(2)} s, ${perSecond} items/s, heap up to ${megabytes} MB`
}
