// (c) One flow whose thousand branches are agents with a model that answers at once, fifty at a time, against as many
// runs outside of flows, in the same process. No ratio is promised: the best round of each is shown.
import { startSide } from '../kit/side.ts'
import type { MusterAnswer, MusterQuestion } from './muster-side.ts'

const BRANCHES = 1_000
const IN_FLIGHT = 50
const ROUNDS = 3

/** Returns a line with the measurements. */
export async function benchAgentLeaves(database: string): Promise<string> {
  await using muster = startSide('bench/flows/muster-side.ts', [database, String(IN_FLIGHT)], { isProfiled: true })
  const best = { leaves: 0, runs: 0 }
  for (let round = 0; round <= ROUNDS; round++) {
    const fanOut: MusterQuestion = { do: 'fan_out', branches: BRANCHES, leaf: 'agent' }
    const leaves = await muster.ask<MusterAnswer>(fanOut)
    const plainRuns: MusterQuestion = { do: 'plain_runs', count: BRANCHES, inFlight: IN_FLIGHT }
    const runs = await muster.ask<MusterAnswer>(plainRuns)
    // The first round warms up.
    if (round === 0) continue
    best.leaves = Math.max(best.leaves, BRANCHES / leaves.seconds)
    best.runs = Math.max(best.runs, BRANCHES / runs.seconds)
  }
  const ratio = (best.leaves / best.runs).toFixed(2)
  const shown = (perSecond: number): string => `${perSecond.toFixed(0)} runs/s`
  return `${BRANCHES} agent leaves: ${shown(best.leaves)}, plain runs: ${shown(best.runs)}, ratio ${ratio}x`
}
