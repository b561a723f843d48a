// (a) Whole runs of five steps, fifty at once, in runs per second. (b) The time from the start of a run in another
// process until its owner makes the first model call.
import { startSide } from '../kit/side.ts'
import { atLeast, atMostLatency, type Verdict } from '../kit/verdict.ts'
import { measureRuns, type Pairs, SAMPLES, samplePairs, WARM_UP } from '../runs/first-step.ts'
import type { MusterAnswer, MusterQuestion } from '../runs/muster-side.ts'

const ROUNDS = 7
const RUNS_REQUIRED = 0.9
const FIRST_STEP_REQUIRED = 1.3
const QUESTION: MusterQuestion = { do: 'runs', count: 600, inFlight: 50, script: { steps: 5, parts: 1 } }

export async function benchGrownRuns(databases: { grown: string; empty: string }): Promise<Verdict[]> {
  return [await compareRuns(databases), await compareFirstSteps(databases)]
}

/** The best round of each. */
async function compareRuns(databases: { grown: string; empty: string }): Promise<Verdict> {
  await using grown = startSide('bench/runs/muster-side.ts', [databases.grown], { isProfiled: true })
  await using empty = startSide('bench/runs/muster-side.ts', [databases.empty])
  const sides = [
    { side: grown, best: 0 },
    { side: empty, best: 0 },
  ]
  for (let round = 0; round <= ROUNDS; round++) {
    for (const one of sides) {
      const { seconds, runIds } = await one.side.ask<MusterAnswer>(QUESTION)
      // The first round warms up.
      if (round > 0) one.best = Math.max(one.best, runIds.length / seconds)
    }
    sides.reverse()
  }
  const perSecond = (best: number): string => `${best.toFixed(0)} runs/s`
  const best = (which: typeof grown): number => sides.find(({ side }) => side === which)?.best ?? 0
  return {
    what: 'whole 5-step runs',
    ours: perSecond(best(grown)),
    peer: perSecond(best(empty)),
    ...atLeast(best(grown) / best(empty), RUNS_REQUIRED),
  }
}

async function compareFirstSteps(databases: { grown: string; empty: string }): Promise<Verdict> {
  await using grownStarter = startSide('bench/runs/starter.ts', [databases.grown])
  await using emptyStarter = startSide('bench/runs/starter.ts', [databases.empty])
  await using grown = await measureRuns(databases.grown, grownStarter)
  await using empty = await measureRuns(databases.empty, emptyStarter)
  await samplePairs(grown.measure, empty.measure, WARM_UP)
  const rounds: Pairs[] = []
  for (let round = 0; round < ROUNDS; round++) rounds.push(await samplePairs(grown.measure, empty.measure, SAMPLES))
  return atMostLatency('first step after a start elsewhere, p99', rounds, 0.99, FIRST_STEP_REQUIRED)
}
